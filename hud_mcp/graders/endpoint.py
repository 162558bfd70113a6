"""A language model behind HTTP: one question, one reply, in either of the two common formats."""

import base64
import math
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ssl import SSLContext
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import anyio
import httpx
import orjson

from hud_mcp.base.text import mask
from hud_mcp.errors import GraderFailed

Speaks = Literal["openai", "anthropic"]

_OPENAI, _ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
_PROVIDER_KEYS = {"api.openai.com": "OPENAI_API_KEY", "api.anthropic.com": "ANTHROPIC_API_KEY"}
"""A provider's key goes to the provider alone."""
_ANTHROPIC_VERSION = "2023-06-01"

_OK = 200
_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_NOT_UNDERSTOOD = frozenset({400, 422})
_TRIES = 5
_REQUEST_S = 60.0
_LONGEST_BACKOFF_S = 20.0
_MOST_REPLY_BYTES = 4 * 1024 * 1024
_SHOWN_CHARS = 300
_PNG = b"\x89PNG"
_REPLY_TOKENS = 4096

_dialects: dict[tuple[str, str], tuple[str, ...]] = {}
"""The parts of a request that an endpoint's model refused, by address and model."""


class Unreadable(Exception):
    """A reply that does not come from a model; another reply may."""


@dataclass(frozen=True)
class Question:
    """A question to a model: rules, a case, its PNG or JPEG pictures, and a text after.

    Without a schema of the reply's JSON object, the model replies with free text.
    """

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    pictures: tuple[bytes, ...] = ()
    after: str = ""
    reply_tokens: int = _REPLY_TOKENS
    seed: int | None = None


@dataclass(frozen=True)
class Endpoint:
    """The address and the name of a model that answers questions.

    No error and no record has its key.
    """

    url: str
    model: str
    speaks: Speaks
    key: str = field(default="", repr=False)

    @property
    def shown_url(self) -> str:
        """The address without its parts that may be secret."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{host}{port}{parts.path}"

    def payload(self, question: Question) -> dict[str, Any]:
        """Return the body of a request, with all that makes replies steady and structured."""
        asked = {"role": "user", "content": _content(self.speaks, question)}
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": question.reply_tokens,
            "temperature": 0,
        }
        if question.seed is not None and self.speaks == "openai":
            body["seed"] = question.seed
        system = {"role": "system", "content": question.system}
        if question.schema is None:
            if self.speaks == "anthropic":
                return body | {"system": question.system, "messages": [asked]}
            return body | {"messages": [system, asked]}
        if self.speaks == "anthropic":
            verdict = {
                "name": "verdict",
                "description": "Give the verdict.",
                "input_schema": question.schema,
            }
            choice = {"type": "tool", "name": "verdict"}
            body |= {"system": question.system, "messages": [asked]}
            return body | {"tools": [verdict], "tool_choice": choice}
        schema = {"name": "verdict", "strict": True, "schema": question.schema}
        form = {"type": "json_schema", "json_schema": schema}
        return body | {"messages": [system, asked], "response_format": form}

    async def ask(
        self,
        client: httpx.AsyncClient,
        question: Question,
        *,
        limiter: anyio.CapacityLimiter,
        deadline: float,
        backoff_s: float,
    ) -> str:
        """Return the text of the model's reply; a structured one as JSON.

        A request that is refused for now (429, 5xx, no connection, no reply) is sent again. Each
        wait is longer, ends no sooner than `Retry-After`, and not after the deadline. A request
        that is not understood is sent again without the parts that not every server takes.

        Raises:
            GraderFailed: There is no reply; the text says why.
            Unreadable: The reply does not come from a model.
        """
        known = (self.url, self.model)
        without = list(_dialects.get(known, ()))
        tries, why, asked_s = 0, "", 0.0
        while tries < _TRIES:
            if tries:
                await self._wait(backoff_s * 2 ** (tries - 1), asked_s, why, deadline)
            body = _adapted(self.payload(question), without)
            try:
                async with limiter:
                    status, headers, data = await self._post(client, body)
            except httpx.HTTPError as exc:
                tries, asked_s = tries + 1, 0.0
                why = f"{type(exc).__name__}: {exc}".rstrip(": ")
                continue
            if status in _NOT_UNDERSTOOD and (less := _next_adaptation(body, data)):
                without.append(less)
                continue
            if status in _TRY_AGAIN:
                tries, why = tries + 1, f"status {status}"
                asked_s = self._asked_to_wait(headers, deadline)
                continue
            if status != _OK:
                raise GraderFailed(
                    f"The judge at {self.shown_url} refused: {self._said(status, data)}"
                )
            _dialects[known] = tuple(without)
            return _reply_of(self.speaks, data)
        raise GraderFailed(
            f"The judge at {self.shown_url} gave no reply in {_TRIES} tries; the last: {why}."
        )

    async def _post(
        self, client: httpx.AsyncClient, body: Mapping[str, Any]
    ) -> tuple[int, httpx.Headers, bytes]:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.speaks == "anthropic":
            headers["anthropic-version"] = _ANTHROPIC_VERSION
        if self.key and self.speaks == "anthropic":
            headers["x-api-key"] = self.key
        elif self.key:
            headers["authorization"] = f"Bearer {self.key}"
        data = bytearray()
        async with client.stream(
            "POST", self.url, content=orjson.dumps(body), headers=headers
        ) as reply:
            async for chunk in reply.aiter_bytes():
                data += chunk
                if len(data) > _MOST_REPLY_BYTES:
                    raise GraderFailed(
                        f"The judge at {self.shown_url} replied with more than "
                        f"{_MOST_REPLY_BYTES} bytes."
                    )
            return reply.status_code, reply.headers, bytes(data)

    async def _wait(self, backoff_s: float, asked_s: float, why: str, deadline: float) -> None:
        """Wait before asking again: as long as was asked, at random beyond that."""
        backoff_s = min(backoff_s, _LONGEST_BACKOFF_S) * random.uniform(1, 1.25)  # noqa: S311  # no secret
        seconds = max(backoff_s, asked_s)
        if anyio.current_time() + seconds > deadline:
            raise GraderFailed(
                f"The judge at {self.shown_url} gave no reply, and there is no time for another "
                f"request; the last: {why}."
            )
        await anyio.sleep(seconds)

    def _asked_to_wait(self, headers: httpx.Headers, deadline: float) -> float:
        """Return the seconds that a server asks for; 0 if it asks for none."""
        seconds = _retry_after(headers.get("retry-after", ""))
        if anyio.current_time() + seconds > deadline:
            raise GraderFailed(
                f"The judge at {self.shown_url} asks to wait for {seconds:.0f} s, which is "
                "longer than this grading may take. Send fewer requests at once, or raise "
                "timeout_seconds."
            )
        return seconds

    def _said(self, status: int, data: bytes) -> str:
        text = mask(" ".join(data.decode("utf-8", "replace").split()), self.key or "", "…")
        hint = " Set its key in the environment." if status in (401, 403) else ""
        return f"status {status}: {text[:_SHOWN_CHARS] or 'nothing more'}.{hint}"


def find_endpoint(
    model: str = "",
    *,
    base_url: str | None = None,
    speaks: Speaks | None = None,
    api_key_env: str | None = None,
) -> Endpoint:
    """Return the endpoint for these arguments, with its key from the environment.

    Args:
        model: The model's name; `HUD_MCP_JUDGE_MODEL` if it is empty.
        base_url: An address such as `http://127.0.0.1:8000/v1`, by default `HUD_MCP_JUDGE_URL`.
            Without either it is Anthropic's for models called `claude…` and OpenAI's for others.
        speaks: The format; by default that of the address, or `openai` if it does not tell.
        api_key_env: The variable that has the key: `HUD_MCP_JUDGE_API_KEY` by default, and for
            a provider's own address also `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`.

    Raises:
        GraderFailed: No model is named, the address is invalid, or a key is missing.
    """
    model = model or os.environ.get("HUD_MCP_JUDGE_MODEL", "")
    if not model:
        raise GraderFailed(
            "LLMJudgeGrader knows no model. Pass model='…', or set HUD_MCP_JUDGE_MODEL."
        )
    base = base_url or os.environ.get("HUD_MCP_JUDGE_URL", "")
    base = base or (_ANTHROPIC if model.startswith("claude") else _OPENAI)
    base = base.rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise GraderFailed(
            f"The judge's address is http://… or https://…, got {base!r:.200}. Correct base_url or "
            "HUD_MCP_JUDGE_URL."
        )
    if speaks is None:
        by_address = parts.hostname == "api.anthropic.com" or parts.path.endswith("/messages")
        speaks = "anthropic" if by_address else "openai"
    elif speaks not in ("openai", "anthropic"):  # pyright: ignore[reportUnnecessaryContains]  # authors' files are not type-checked
        raise GraderFailed(f"A judge speaks 'openai' or 'anthropic', got {speaks!r}.")
    key = _key_for(parts.hostname, api_key_env)
    return Endpoint(_whole(base, parts.path, speaks), model, speaks, key)


def _content(speaks: Speaks, question: Question) -> str | list[dict[str, Any]]:
    if not question.pictures:
        return question.user + question.after
    parts: list[dict[str, Any]] = [{"type": "text", "text": question.user}]
    for data in question.pictures:
        kind = "image/png" if data.startswith(_PNG) else "image/jpeg"
        text = base64.b64encode(data).decode()
        if speaks == "anthropic":
            source = {"type": "base64", "media_type": kind, "data": text}
            parts.append({"type": "image", "source": source})
        else:
            address = f"data:{kind};base64,{text}"
            parts.append({"type": "image_url", "image_url": {"url": address}})
    if question.after:
        parts.append({"type": "text", "text": question.after})
    return parts


def open_client() -> httpx.AsyncClient:
    """Return a client that sends requests. The caller closes it."""
    timeout = httpx.Timeout(_REQUEST_S)
    return httpx.AsyncClient(timeout=timeout, verify=_trusted(), follow_redirects=False)


@lru_cache(maxsize=1)
def _trusted() -> SSLContext:
    return httpx.create_ssl_context()


def _key_for(host: str, variable: str | None) -> str:
    if variable is not None:
        if key := os.environ.get(variable, ""):
            return key
        raise GraderFailed(f"The judge's key is to be in {variable}, and that is not set. Set it.")
    own = _PROVIDER_KEYS.get(host)
    key = os.environ.get("HUD_MCP_JUDGE_API_KEY", "")
    if own is None:
        return key
    key = os.environ.get(own, "") or key
    if not key:
        raise GraderFailed(
            f"{host} needs a key. Set {own}, or HUD_MCP_JUDGE_URL to a judge of your own."
        )
    return key


def _whole(base: str, path: str, speaks: Speaks) -> str:
    if speaks == "anthropic":
        if path.endswith("/messages"):
            return base
        return f"{base}/messages" if path.endswith("/v1") else f"{base}/v1/messages"
    return base if path.endswith("/chat/completions") else f"{base}/chat/completions"


_STRUCTURE = ("response_format", "tools", "tool_choice")


def _next_adaptation(body: Mapping[str, Any], data: bytes) -> str | None:
    """Return the part to leave out of a refused request, by the server's words about it."""
    said = data.decode("utf-8", "replace")
    if "max_completion_tokens" in said and "max_tokens" in body:
        return "max_tokens"
    if "seed" in body and "seed" in said:
        return "seed"
    structured = any(name in body for name in _STRUCTURE)
    if "temperature" in body and ("temperature" in said or not structured):
        return "temperature"
    return "structure" if structured else "seed" if "seed" in body else None


def _adapted(body: dict[str, Any], without: list[str]) -> dict[str, Any]:
    if "max_tokens" in without:
        body["max_completion_tokens"] = body.pop("max_tokens")
    left_out = {*without, *(_STRUCTURE if "structure" in without else ())}
    return {name: value for name, value in body.items() if name not in left_out}


def _retry_after(text: str) -> float:
    """Return the seconds of a number or a date (RFC 9110, section 10.2.3)."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _reply_of(speaks: Speaks, data: bytes) -> str:
    """Return the text in a reply, or its call's arguments as JSON, or raise `Unreadable`."""
    try:
        reply: Any = orjson.loads(data)
        if speaks == "openai":
            content = reply["choices"][0]["message"]["content"]
            if isinstance(content, list):
                parts = cast("list[dict[str, Any]]", content)
                content = "".join(part.get("text", "") for part in parts)
            return content if isinstance(content, str) else ""
        blocks = cast("list[dict[str, Any]]", reply["content"])
        for block in blocks:
            if block.get("type") == "tool_use":
                return orjson.dumps(block["input"]).decode()
        return "".join(block.get("text", "") for block in blocks if block.get("type") == "text")
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError) as exc:
        shown = data[:_SHOWN_CHARS].decode("utf-8", "replace")
        raise Unreadable(f"it is not a reply in the {speaks} format: {shown!r}") from exc

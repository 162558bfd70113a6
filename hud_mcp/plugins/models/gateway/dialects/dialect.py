"""The wire form of a provider: what all of them do in one way, and what each says itself.

A dialect reads and never sends.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Action, Asked, Json, Said, Unreadable
from hud_mcp.plugins.models.gateway.dialects.body import (
    Body,
    canonical,
    clean,
    count_of,
    dict_of,
    dicts_of,
    digest_of,
    mended,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.replies import (
    BodyReader,
    Came,
    Draft,
    ReplyReader,
    StreamReader,
)
from hud_mcp.plugins.models.gateway.dialects.requests import Part, measured, read_said, without

__all__ = ["MODELS", "Dialect", "openai_error", "openai_usage"]

MODELS = re.compile(r"/v1/models(/[^/]+)?")
_FIRST_ERROR = 400
_HOSTED = ("mcp_servers", "plugins", "web_search_options")
_LOCAL = re.compile(
    "function|custom|namespace|local_shell|shell|apply_patch|computer|bash|text_editor|memory"
)
"""Types of tools that the agent runs itself."""
_ERRORS: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", None),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", None),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
"""OpenAI's types and codes of errors."""

_NO_SETTINGS = re.compile(
    r"model|stream|messages|input|contents|tools|system(_?[iI]nstruction)?|instructions"
    r"|(client_)?metadata|user|safety_identifier|prompt_cache_key"
)
"""Names whose values stand elsewhere in a turn, or tell of a person or a machine."""


class Dialect:
    """One wire form, by its tables and by the functions that read its items and events.

    Attributes:
        name: `messages`, `chat`, `responses` or `gemini`.
        actions: The actions by method and path.
        models: The paths of the list of models.
        caps: The names of the cap of output; the first is put in where there is none.
        configs: The names of objects in a body that decide too, and must not say one thing twice.
    """

    name: str
    actions: Mapping[tuple[str, str], Action] = {}
    models: re.Pattern[str] | None = None
    caps: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()

    def action(self, method: str, path: str) -> Action | None:
        """Return the action of a path, which may have a query; None for any other path."""
        bare = path.partition("?")[0]
        if method == "GET" and self.models is not None and self.models.fullmatch(bare):
            return "models"
        return self.actions.get((method, bare))

    def named(self, path: str, value: Json) -> tuple[str, bool]:  # noqa: ARG002  # Gemini reads the path
        """Return the model of a request, and whether it wants a stream; raise `Unreadable`."""
        if not (model := text_of(value.get("model"))):
            raise Unreadable('The body names no "model".')
        return model, value.get("stream") is True

    def asked(self, value: Json) -> tuple[Asked, Any]:
        """Return what else a body says, and the schema that it wants its reply in."""
        raise NotImplementedError

    def spoken(self, item: Json, /) -> tuple[str, list[Part]]:
        """Return the role of an item, and its parts: those of `Said`, and media as they came."""
        raise NotImplementedError

    def stable(self, item: Json, /) -> Any:
        """Return what stays of an item when it is sent again, or None if all of it may go."""
        raise NotImplementedError

    def event(self, draft: Draft, event: Json, /) -> Came:
        """Write an event of a stream into a draft."""
        raise NotImplementedError

    def whole(self, draft: Draft, reply: Json, /) -> Came:
        """Write a reply without a stream into a draft."""
        return self.event(draft, reply)

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        """Return the body of an error, and the name of its event in a stream."""
        raise NotImplementedError

    def last_event(self, status: int, message: str) -> tuple[Json, str]:
        """Return the event of an error in a stream, and its name."""
        return self.error_of(status, message)

    def request(self, path: str, body: bytes, headers: Mapping[str, str]) -> Asked:
        """Read a request of the action `turn`; names of headers are lower-case.

        Raises:
            Unreadable: It is no JSON object in UTF-8, names no model, or says one thing twice.
        """
        read = Body(body)
        read.refuse_doubles(self.configs)
        try:
            model, is_stream = self.named(path, read.value)
            asked, schema = self.asked(read.value)
            tools = (*dicts_of(read.value.get("tools")), *asked.tools)
            stable = [without(tool, "cache_control") for tool in tools]
            digest = digest_of(stable).hex() if tools else None
            asked = measured(asked, self.spoken, self.stable, len(body))
        except RecursionError as exc:
            raise Unreadable("The body is nested too deeply.") from exc
        hosted = [name for tool in tools for name in _hosted(tool)]
        kept = {k: v for k, v in read.value.items() if not _NO_SETTINGS.fullmatch(k)}
        return replace(
            asked,
            dialect=self.name,
            is_stream=is_stream,
            model=mended(model),
            system=mended(asked.system or "") or None,
            tools=tools,
            tools_digest=digest,
            hosted=(*hosted, *(name for name in _HOSTED if read.value.get(name))),
            settings=dict_of(clean(kept)),
            is_side=bool(headers.get("x-openai-subagent") or (schema and not tools)),
        )

    def said(self, asked: Asked, start: int = 0) -> Said:
        """Read the messages from an item on; pictures are decoded."""
        try:
            return read_said(asked, self.spoken, start)
        except RecursionError as exc:
            raise Unreadable("The body is nested too deeply.") from exc

    def reader(self, asked: Asked, status: int, content_type: str) -> ReplyReader:
        """Return the reader of one reply."""
        is_error = status >= _FIRST_ERROR
        is_stream = asked.is_stream and "json" not in content_type
        if not is_error and (is_stream or "event-stream" in content_type):
            return StreamReader(self.event)
        return BodyReader(self.whole, is_error=is_error)

    def with_model(self, path: str, body: bytes, model: str) -> tuple[str, bytes]:
        """Return path and body with another model; all other bytes are the same."""
        return path, Body(body).put("model", model)

    def with_cap(self, body: bytes, tokens: int) -> bytes:
        """Return the body with another cap of output; all other bytes are the same."""
        read = Body(body)
        for name in [name for name in self.caps if read.has(name)] or self.caps[:1]:
            body = Body(body).put(name, tokens)
        return body

    def error(
        self, status: int, message: str, *, is_stream: bool = False
    ) -> tuple[int, str, bytes]:
        """Return status, content type and body of an error; of a stream, its last event."""
        if not is_stream:
            return status, "application/json", canonical(self.error_of(status, message)[0])
        event, name = self.last_event(status, message)
        head = f"event: {name}\n".encode() if name else b""
        return 200, "text/event-stream", head + b"data: " + canonical(event) + b"\n\n"


def _hosted(tool: Json) -> list[str]:
    """Return the names by which a tool is one of the provider's own."""
    kind = text_of(tool.get("type"))
    if kind or "name" in tool:
        return [kind] if kind and not _LOCAL.match(kind) else []
    own = ("functiondeclarations", "computeruse")  # a tool of Gemini is named by its key
    return [name for name in tool if name.replace("_", "").lower() not in own]


def openai_usage(draft: Draft, usage: Json, given: str, made: str) -> None:
    """Note the usage of OpenAI's, by its names of input and output."""
    of_given = dict_of(usage.get(f"{given}_tokens_details"))
    of_made = dict_of(usage.get(f"{made}_tokens_details"))
    draft.count(
        input=count_of(usage.get(f"{given}_tokens")),
        output=count_of(usage.get(f"{made}_tokens")),
        cached=count_of(of_given.get("cached_tokens")),
        cache_write=count_of(of_given.get("cache_write_tokens")),
        reasoning=count_of(of_made.get("reasoning_tokens")),
    )


def openai_error(status: int, message: str) -> Json:
    """Return the object of an error of OpenAI's."""
    kind, code = _ERRORS.get(status, ("server_error", None))
    return {"message": message, "type": kind, "param": None, "code": code}

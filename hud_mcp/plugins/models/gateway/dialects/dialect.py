"""The part of a dialect that its tables alone decide."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Asked, Json, ReplyReader, Said, Unreadable
from hud_mcp.plugins.models.gateway.dialects.body import (
    Body,
    canonical,
    clean,
    count_of,
    dict_of,
    digest_of,
    mended,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.replies import Draft, Fold, make_reader
from hud_mcp.plugins.models.gateway.dialects.requests import (
    Spoken,
    Stable,
    measured,
    read_said,
    without,
)

__all__ = ["Form", "model_of", "openai_error", "openai_usage"]

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


class Form:
    """Reads requests and replies by the functions of a dialect."""

    configs: tuple[str, ...] = ()
    """The names of objects in a body that decide too, and must not say one thing twice."""

    def __init__(
        self, name: str, spoken: Spoken, stable: Stable, event: Fold, whole: Fold | None = None
    ) -> None:
        """Read items by `spoken`, events of streams by `event`, and bodies by `whole`."""
        self.name = name
        self.spoken, self._stable = spoken, stable
        self._event, self._whole = event, whole or event

    def asked(self, value: Json) -> tuple[Asked, Any]:
        """Return what a body says, and the schema that it wants its reply in."""
        raise NotImplementedError

    def request(self, path: str, body: bytes, headers: Mapping[str, str]) -> Asked:  # noqa: ARG002  # Gemini reads the path
        """Read a request; raise `Unreadable`."""
        read = Body(body)
        read.refuse_doubles(self.configs)
        try:
            asked, schema = self.asked(read.value)
            tools = [without(tool, "cache_control") for tool in asked.tools]
            digest = digest_of(tools).hex() if tools else None
            asked = measured(asked, self.spoken, self._stable, len(body))
        except RecursionError as exc:
            raise Unreadable("The body is nested too deeply.") from exc
        hosted = [name for tool in asked.tools for name in _hosted(tool)]
        kept = {k: v for k, v in read.value.items() if not _NO_SETTINGS.fullmatch(k)}
        return replace(
            asked,
            dialect=self.name,
            is_stream=read.value.get("stream") is True,
            model=mended(asked.model),
            system=mended(asked.system or "") or None,
            tools_digest=digest,
            hosted=(*hosted, *(name for name in _HOSTED if read.value.get(name))),
            settings=dict_of(clean(kept)),
            is_side=bool(headers.get("x-openai-subagent") or (schema and not tools)),
        )

    def said(self, asked: Asked, start: int = 0) -> Said:
        """Read the messages from an item on."""
        try:
            return read_said(asked, self.spoken, start)
        except RecursionError as exc:
            raise Unreadable("The body is nested too deeply.") from exc

    def reader(self, asked: Asked, status: int, content_type: str) -> ReplyReader:
        """Return the reader of one reply."""
        is_stream = "event-stream" in content_type or (
            asked.is_stream and "json" not in content_type
        )
        is_error = status >= _FIRST_ERROR
        return make_reader(self._event, self._whole, is_stream=is_stream, is_error=is_error)

    def with_model(self, path: str, body: bytes, model: str) -> tuple[str, bytes]:
        """Return path and body with another model."""
        return path, Body(body).put("model", model)

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        """Return the body of an error, and the name of its event in a stream."""
        raise NotImplementedError

    def last_event(self, status: int, message: str) -> tuple[Json, str]:
        """Return the event of an error in a stream, and its name."""
        return self.error_of(status, message)

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


def model_of(value: Mapping[str, object]) -> str:
    """Return the model that a body names.

    Raises:
        Unreadable: It names none.
    """
    model = text_of(value.get("model"))
    if not model:
        raise Unreadable('The body names no "model".')
    return model


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

"""The server before its handlers: the traces, refusals and introductions of requests.

Every transport passes here. Faults of an envelope get the server's own texts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
from pydantic import ValidationError

from hud_mcp.base.reading import fault_words
from hud_mcp.errors import clipped
from hud_mcp.session.caller import Caller

__all__ = ["ListChanges", "changing", "explain_envelope", "introduced", "trace_where_seen"]


_MOST_FAULTS = 3

_NOT_INITIALIZED = (
    "This connection is not initialized. Send `initialize` first, with protocolVersion, "
    "capabilities and clientInfo; then notifications/initialized."
)


_DESCRIPTION = (
    "Holds tasks in environments (web pages, shells, games, questions) for agents, and grades them."
)
"""The description in lists for people, at most 100 characters.

It is sent once, with the icon, when a connection begins. 2026-07-28 repeats the server's name with
every result, and a picture in each would weigh more than most results.
"""

_ICON = {
    "src": "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwBAMAAAClLOS0AAAAJFBMVEX////+///9/v7x9PeDsK8lVIAZS3kZSngY"
    "SnkYSngXSngSRnVsocTiAAACEklEQVR42mWUsWsUQRTGfzM7sUjgcokKEmUzySUgF9GDw0IDQYQ0BwlaWB1EG2Nr"
    "lb9CsLEJBsUiYIwkVSw0RAio1UkQG9HcbS5HiqDe5mJ7Oxa3dzu7+6rZ9/F933tv5i2AGCcW4xpQwGjVKVh581UC"
    "AiS3h2KM5m/fQ4CeXIpLsbyR8RWy8Xw9ATz6W/MFeupiMQFU5ucDR54+/XkhAYx86kcyRoFUnK0LPeWmgbY7r0JV"
    "K1sEBKo+DezPZqP+3haBq0oA7etvLMbDzYJziAJoZKoW8OTBKbIDnKzYHurxaThEpr/E5ruaKXSA9mBgS3GDLgOn"
    "mGpFAc5B/KYGr9GViilxZi/0IPvHs4HLkcewDHPBxI6OPCAIOhQpb96q1ayquuHme0fZO2iQjXLpY9OWAtw6uPmt"
    "I12LM2RjZkw2yqVdQ5yhc/cX3PzWka4mPfrezTTKpd2ABMOrvzL9FqEHBO7qwEBpwU2X23p/p29Fe2mgeenlceRg"
    "9WFa2wgvAfgSaI4b44Uj6F7U50wVTLegg2eHXYaZaFX9MC10LpK6cv4kF6kvbhQAZQDnw6I1+/Ui7UGU62eguJ54"
    "1NlvKvqwwyDF8Vx6b75vog4O03nEvusY1/s3klzOuddNSevHvcpebM8qsy/wBWJ0csl4JpIZyq5t4ylMa4dzdy3G"
    "8dqveoAAtBevtiLD8cvEb2lYA/8BPR+jYV0Ve3MAAAAASUVORK5CYII=",
    "mimeType": "image/png",
    "sizes": ["48x48"],
}
"""A window with a tick."""

_FIRST_VERSION = "2025-11-25"
"""The first version of the protocol with descriptions and icons."""


_LISTS = ("tools", "prompts", "resources")


def trace_where_seen(server: Server[Any]) -> None:
    """Skip the SDK's middleware of a new server, unless its spans go somewhere.

    It costs more than the rest of a call. It runs after OpenTelemetry is set up in this process,
    and for a request that belongs to a trace of its caller.
    """
    standard = tuple(server.middleware)

    def trace(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Awaitable[HandlerResult]:
        is_set_up = not isinstance(get_tracer_provider(), ProxyTracerProvider)
        is_seen = is_set_up or "traceparent" in (ctx.meta or ())
        return traced(ctx, call_next) if is_seen else call_next(ctx)

    async def traced(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        for middleware in reversed(standard):
            call_next = partial(middleware, call_next=call_next)
        # A trace in `_meta` wins, because the SDK looks there.
        token = attach(extract(ctx.request.headers)) if ctx.request is not None else None
        try:
            return await call_next(ctx)
        finally:
            if token is not None:
                detach(token)

    server.middleware[:] = [cast("ServerMiddleware[Any]", trace)]


async def explain_envelope(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Pass a request on, and name the fault if the SDK only reports that there is one.

    Raises:
        MCPError: -32602 with the wrong part of the envelope, or with the request that must come
            first.
    """
    try:
        return await call_next(ctx)
    except ValidationError as exc:
        raise MCPError(code=INVALID_PARAMS, message=_faults(ctx.method, exc)) from None
    except MCPError as exc:
        # the SDK's check of envelopes
        if exc.error.code == INVALID_PARAMS and exc.error.data == "":
            raise MCPError(code=INVALID_PARAMS, message=_NOT_INITIALIZED) from None
        raise


def _faults(method: str, exc: ValidationError) -> str:
    """Describe the right form of each wrong part. If a part has several forms, take the first."""
    found: dict[str, str] = {}
    for error in exc.errors(include_url=False):
        # pydantic counts the forms of a union among the parts, by the names of classes.
        parts = [str(part) for part in error["loc"] if not _is_form(part)]
        path = ".".join(parts if parts[:1] == ["params"] else ["params", *parts])
        if error["type"] == "missing":
            found.setdefault(path, f"{path} is required")
        else:
            found.setdefault(
                path, f"{path}: expected {fault_words(error)}, got {clipped(error['input'])}"
            )
    return f"Invalid {method}: {'; '.join(list(found.values())[:_MOST_FAULTS])}."


def _is_form(part: int | str) -> bool:
    return isinstance(part, str) and (part in ("str", "int") or part[:1].isupper())


def introduced(told: Mapping[str, Any]) -> dict[str, Any]:
    """Add the server's description and icon to the beginning of a connection.

    Args:
        told: The result of `initialize` or `server/discover`, as it goes over the wire.
    """
    if "serverInfo" in told and str(told.get("protocolVersion")) >= _FIRST_VERSION:
        return {**told, "serverInfo": _shown(told["serverInfo"])}
    meta: Any = told.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
        named = cast("dict[str, Any]", meta)
        shown = {**named, SERVER_INFO_META_KEY: _shown(named[SERVER_INFO_META_KEY])}
        return {**told, "_meta": shown}
    return dict(told)


def _shown(info: Mapping[str, Any]) -> dict[str, Any]:
    return {**info, "description": _DESCRIPTION, "icons": [_ICON]}


def changing(told: Mapping[str, Any]) -> dict[str, Any]:
    """Announce in the beginning of a connection that lists change.

    Args:
        told: The result of `initialize` or `server/discover`.
    """
    known: Mapping[str, Any] = told["capabilities"]
    lists = {name: {**known[name], "listChanged": True} for name in _LISTS if name in known}
    return {**told, "capabilities": {**known, **lists}}


logger = logging.getLogger(__name__)

_MOST = 256
"""The most connections that hear of changes; the one with the oldest list leaves first."""


class ListChanges:
    """The clients that have listed something, and hear of changes.

    A client of 2025-11-25 gets a notification on its connection. A client of 2026-07-28 gets it on
    its open streams.

    Args:
        tell_streams: Sends events to those streams.
    """

    def __init__(self, tell_streams: Callable[[Iterable[ServerEvent]], None]) -> None:
        self._tell_streams = tell_streams
        self._listed: dict[str | None, Any] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def note(self, ctx: ServerRequestContext[str, Any], caller: Caller) -> None:
        """Tell a connection of later changes, because it has listed tools."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        self._listed.pop(caller.connection, None)
        self._listed[caller.connection] = ctx.session
        if len(self._listed) > _MOST:
            del self._listed[next(iter(self._listed))]

    def tell(self) -> None:
        """Report that all lists have changed."""
        self._tell_streams((ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()))
        for connection, session in list(self._listed.items()):
            telling = self._send(connection, session)
            task = asyncio.get_running_loop().create_task(telling, name="lists changed")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, connection: str | None, session: Any) -> None:
        try:
            await session.send_tool_list_changed()
            await session.send_prompt_list_changed()
            await session.send_resource_list_changed()
        except Exception as exc:  # noqa: BLE001  # the connection is gone, with any error
            logger.debug("%s is not told any more: %s", connection, exc)
            self._listed.pop(connection, None)

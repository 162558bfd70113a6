"""Subscriptions to a session's record and picture, in both eras of the protocol.

A client of 2025-11-25 subscribes with `resources/subscribe`, a client of 2026-07-28 listens with
`subscriptions/listen`. Either hears of its own sessions alone: another's session has the answer of
a missing one.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import mcp_types as types
from anyio import lowlevel
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from hud_mcp.errors import HudMcpError
from hud_mcp.server.app import caller_of
from hud_mcp.server.resources import Resources, session_of
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session

logger = logging.getLogger(__name__)

Context = ServerRequestContext[str, Any]
End = Callable[[], None]

_PAUSE_S = 0.05
"""The time between two updates of one resource; the second covers all changes meanwhile."""
_MOST = 256
"""Subscriptions of one connection, and resources of one stream."""
_MOST_STREAMS = 64
"""Streams of one caller, by its name or its connection."""
_MOST_STREAMS_IN_ALL = 1024


def serve_subscriptions(
    server: Server[Any], sessions: Sessions, resources: Resources
) -> Callable[[Iterable[ServerEvent]], None]:
    """Serve subscriptions in both eras. Return a function that sends events to every stream."""
    found = Subscriptions(sessions, resources)

    async def listen(
        ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await found.listen(ctx, params, caller_of(ctx))

    async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        return await found.subscribe(ctx, params.uri, caller_of(ctx))

    async def unsubscribe(
        ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        return found.unsubscribe(params.uri, caller_of(ctx))

    take = server.add_request_handler
    take("subscriptions/listen", types.SubscriptionsListenRequestParams, listen)
    take("resources/subscribe", types.SubscribeRequestParams, subscribe)
    take("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
    return found.tell


class Subscriptions:
    """The listeners of resources."""

    def __init__(self, sessions: Sessions, resources: Resources) -> None:
        self._sessions = sessions
        self._resources = resources
        self._streams: dict[ListenHandler, str | None] = {}
        self._buses: set[_Bus] = set()
        self._subscribed: dict[str | None, dict[str, End]] = {}
        sessions.changes.at_end(self._close)

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams, caller: Caller
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of updates of the caller's own resources, until a side ends it.

        Raises:
            MCPError: It has too many streams already.
        """
        bus = _Bus()
        stream = ListenHandler(bus)
        self._streams[stream] = self._admit(caller)
        self._buses.add(bus)
        leaving: list[End] = []
        try:
            asked = dict.fromkeys(params.notifications.resource_subscriptions or [])
            own = {uri: key for uri in list(asked)[:_MOST] if (key := await self._own(uri, caller))}
            for uri, key in own.items():
                told = _Due(partial(bus.tell, ResourceUpdated(uri)))
                leaving.append(self._watch(uri, key, told))
            granted = params.notifications.model_copy(
                update={"resource_subscriptions": list(own) or None}
            )
            return await stream(ctx, params.model_copy(update={"notifications": granted}))
        finally:
            del self._streams[stream]
            self._buses.discard(bus)
            for leave in leaving:
                leave()

    def tell(self, events: Iterable[ServerEvent]) -> None:
        """Bring events to every stream that listens to their kind."""
        for event in events:
            for bus in self._buses:
                bus.tell(event)

    async def subscribe(self, ctx: Context, uri: str, caller: Caller) -> types.EmptyResult:
        """Subscribe a connection to the updates of a resource; again is not an error.

        Any other address is accepted too, and has no updates: the conformance suite of 2025-11-25
        asks that of any server.

        Raises:
            MCPError: It has no such resource, or too many subscriptions already.
        """
        try:
            key = await self._resources.key_of(uri, caller)
        except HudMcpError as exc:
            raise MCPError(code=INTERNAL_ERROR, message=str(exc)) from None
        here = None if key is None else self._sessions.roster.get(key)
        has_ended = here is not None and _has_ended(here)
        if key is None or session_of(uri) is None or has_ended:  # what never changes
            return types.EmptyResult()
        mine = self._subscribed.setdefault(caller.connection, {})
        if uri not in mine:
            if len(mine) >= _MOST:
                text = f"{_MOST} subscriptions are open on this connection; end one first."
                raise MCPError(code=INVALID_REQUEST, message=text)
            end = partial(self._end, caller.connection, uri)
            mine[uri] = self._watch(uri, key, _Sender(ctx.session, uri, end), end)
        return types.EmptyResult()

    def unsubscribe(self, uri: str, caller: Caller) -> types.EmptyResult:
        """End a subscription of a connection. A missing subscription is not an error."""
        self._end(caller.connection, uri)
        return types.EmptyResult()

    def _admit(self, caller: Caller) -> str | None:
        """Return the owner of a new stream; None for a caller without a name or connection."""
        whose = caller.principal or caller.connection
        count = Counter(self._streams.values())
        of_all = len(self._streams) >= _MOST_STREAMS_IN_ALL
        if of_all or (whose is not None and count[whose] >= _MOST_STREAMS):
            text = f"Subscription limit reached: {count[whose]} of your streams are open."
            raise MCPError(code=INVALID_REQUEST, message=text)
        return whose

    async def _own(self, uri: str, caller: Caller) -> str | None:
        """Return the digest of the session id of a resource, if the session is the caller's."""
        try:
            return await self._resources.key_of(uri, caller)
        except (MCPError, HudMcpError):
            return None

    def _watch(self, uri: str, key: str, told: "_Due", ended: End | None = None) -> End:
        """Pass a resource's changes to a listener; `ended` is called after the last one."""
        named = session_of(uri)
        what = None if named is None else named[1]
        last: Any = None

        def changed() -> None:
            nonlocal last
            found = self._sessions.roster.get(key)
            shot = None if found is None else found.latest
            if what == "trajectory" or (shot is not None and shot is not last):
                last = shot
                told.soon()
            if ended is not None and found is not None and _has_ended(found):
                told.finish(ended)

        leave = self._sessions.changes.watch(key, changed) if what is not None else lambda: None

        def end() -> None:
            leave()
            told.cancel()

        return end

    def _end(self, connection: str | None, uri: str) -> None:
        mine = self._subscribed.get(connection, {})
        if uri in mine:
            mine.pop(uri)()
        if not mine:
            self._subscribed.pop(connection, None)

    def _close(self) -> None:
        for stream in self._streams:
            stream.close()


class _Due:
    """A bounded rate: one call in a while, and one more for all that came meanwhile."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do
        self._timer: asyncio.TimerHandle | None = None
        self._again = False
        self._ended: End | None = None

    def soon(self) -> None:
        if self._timer is not None or self._is_doing:
            self._again = True
            return
        self._do()
        self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._pass)

    def finish(self, ended: End) -> None:
        self._ended = ended
        self._go_on()

    def cancel(self) -> None:
        self._again, self._ended = False, None
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _is_doing(self) -> bool:
        return False

    def _pass(self) -> None:
        self._timer = None
        self._go_on()

    def _go_on(self) -> None:
        if self._again:
            self._again = False
            self.soon()
        elif self._ended is not None and not self._is_doing:
            self._ended()


class _Sender(_Due):
    """A sender of a resource's updates to a connection of 2025-11-25, one message at a time."""

    def __init__(self, session: Any, uri: str, gone: End) -> None:
        super().__init__(self._begin)
        self._session = session
        self._uri = uri
        self._gone = gone
        self._task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        super().cancel()
        if self._task is not None:
            self._task.cancel()

    @property
    def _is_doing(self) -> bool:
        return self._task is not None

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._send(), name="resource updated")

    async def _send(self) -> None:
        try:
            await self._session.send_resource_updated(self._uri)
        except Exception as exc:  # noqa: BLE001  # it is gone, in whatever way
            logger.debug("no more updates of %s: %s", self._uri, exc)
            self._task = None
            self._gone()
            return
        self._task = None
        self._go_on()


class _Bus:
    """A path of events to the stream that listens, in the turn of the caller."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def tell(self, event: ServerEvent) -> None:
        for listener in list(self._listeners.values()):
            listener(event)

    async def publish(self, event: ServerEvent) -> None:
        self.tell(event)
        await lowlevel.checkpoint()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None


def _has_ended(session: Session) -> bool:
    return session.state.is_over and not session.state.is_let_go

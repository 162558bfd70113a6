"""The HUD session of one of our sessions, and the connection to it.

A dropped connection is made again, and resumes the session by its id. A session that the server
has lost is gone: no task starts twice.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from hud_mcp.errors import EnvironmentFailed, GradingFailed
from hud_mcp.plugins.hud.bridge.origin import Origin
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import (
    ChannelFailed,
    ChannelRefused,
    Place,
    keep_alive,
    open_stream,
)

logger = logging.getLogger(__name__)

REPLY_S = 10.0
"""Seconds until the server must show that it is there."""
_HELD_S = 10.0
"""Seconds for which the lost connection may still hold the session."""
_BEAT_S = 60.0
"""Seconds between two signs of life: networks forget connections that are silent for minutes."""
_CALL_S = 86_400.0
"""The session's limits bound a start and a grade from outside."""
_LEAVE_S = 1.0


class SessionGone(EnvironmentFailed):
    """The HUD server has lost the session."""


class _Client(ChannelClient):
    def __init__(
        self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(place, reader, writer)
        self._reader = reader
        # The connection of a machine that is gone ends within half a minute.
        keep_alive(writer.transport, idle_s=15, every_s=5, tries=3)

    @property
    def is_connected(self) -> bool:
        """Whether the other side is there, as far as this process knows."""
        return not (self._writer.is_closing() or self._reader.at_eof())


class Control:
    """One HUD session.

    Made by `open`. `odd` has its unreadable capabilities, each with the reason.
    """

    def __init__(self, origin: Origin, log: Callable[[str], None]) -> None:
        self.session_id = ""
        self.environment: dict[str, str] = {}
        self.bindings: dict[str, dict[str, Any]] = {}
        self.odd: list[str] = []
        self._origin = origin
        self._log = log
        self._client: _Client | None = None
        self._place: Place | None = None
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._beat: asyncio.Task[None] | None = None
        self._gone: EnvironmentFailed | None = None

    @classmethod
    async def open(
        cls,
        origin: Origin,
        *,
        session_id: str | None = None,
        log: Callable[[str], None] = lambda _line: None,
    ) -> "Control":
        """Begin a session, or resume the one with an id.

        If this call fails or is cancelled, no connection stays open. EnvironmentFailed says that
        the server cannot be reached, and SessionGone that it does not know the session.
        """
        control = cls(origin, log)
        try:
            await control._connect(session_id)
        except BaseException:
            await control.leave()
            raise
        control._beat = asyncio.get_running_loop().create_task(control._keep_alive())
        return control

    async def ready(self) -> None:
        """Connect again if the connection has dropped; EnvironmentFailed says that this failed."""
        await self._connected()

    async def check(self) -> None:
        """Ask the server for a sign of life; without one, raise EnvironmentFailed."""
        client = await self._connected()
        try:
            await client.hello(self.session_id, reply_s=REPLY_S)
        except (ChannelFailed, ChannelRefused) as exc:
            self._log(f"HUD: {exc}")
            await self._again()

    async def list_tasks(self) -> list[dict[str, Any]]:
        """Return the startable tasks; EnvironmentFailed says that the server does not list them."""
        client = await self._connected()
        try:
            return await client.list_tasks()
        except (ChannelFailed, ChannelRefused) as exc:
            raise EnvironmentFailed(f"The HUD server does not list its tasks: {exc}") from exc

    async def start(self, task_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Start a task. If this call is cancelled, the start is cancelled on the server too.

        Raises:
            EnvironmentFailed: The task was not started. Only the log has the server's text, which
                may tell secrets of the task to the agent.
        """
        client = await self._connected()
        starting = asyncio.ensure_future(client.start(task_id, args, within_s=_CALL_S))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _briefly(client.cancel())
            starting.cancel()
            await asyncio.wait([starting])
            if not starting.cancelled():
                starting.exception()  # seen
            raise
        except ChannelRefused as exc:
            self._log(f"HUD: {exc}")
            raise EnvironmentFailed(
                f"The HUD environment did not start {task_id!r} ({exc.code}); the session's log "
                "says why. Look at the task's arguments, or start another one."
            ) from exc
        except ChannelFailed as exc:
            self._log(f"HUD: {exc}")
            raise EnvironmentFailed(
                f"The HUD server ended while it started {task_id!r}. Start the task again."
            ) from exc

    async def grade(self, answer: str) -> dict[str, Any]:
        """Submit the answer, and return the grade's frame.

        If the connection drops, the session is resumed and asked again. HUD's own server has then
        lost the task; others give the same grade again.

        Raises:
            SessionGone, EnvironmentFailed: No grade came, and nobody knows what it was.
            GradingFailed: The environment failed to grade.
        """
        for _try in range(3):
            try:
                client = await self._connected()
            except SessionGone as exc:
                if (stored := _stored_grade(exc, answer)) is not None:
                    return stored  # it was graded, and only its reply was lost
                raise
            try:
                return await client.grade(answer, within_s=_CALL_S)
            except ChannelFailed as exc:
                self._log(f"HUD: {exc}")
            except ChannelRefused as exc:
                self._log(f"HUD: {exc}")
                if exc.code == -32600:  # noqa: PLR2004  # invalid request: it holds no task
                    self._gone = SessionGone(_LOST)
                    raise self._gone from exc
                raise GradingFailed(f"The HUD environment failed to grade. {exc}") from exc
        raise EnvironmentFailed(
            "The connection to the HUD server broke at each of three tries to grade."
        )

    async def bye(self) -> None:
        """End the session on the server, within a bound. A dropped connection is not made again."""
        client = self._client
        if client is not None and client.is_connected and self._gone is None:
            await _briefly(client.bye())

    async def leave(self) -> None:
        """Disconnect; the session on the server keeps its task."""
        if self._beat is not None:
            self._beat.cancel()
        self._client = None
        await _briefly(self._stack.aclose())

    @asynccontextmanager
    async def forward(self, capability: str) -> AsyncGenerator[tuple[str, int]]:
        """Yield a loopback address whose connections are carried to a capability."""
        client = await self._connected()  # the streams have connections of their own
        async with client.forward(capability) as address:
            yield address

    async def knock(self, capability: str) -> str | None:
        """Open a stream to a capability and close it; return the reason if that fails."""
        client = await self._connected()
        try:
            (_, writer), _ = await open_stream(client.place, capability)
        except (ChannelFailed, ChannelRefused) as exc:
            return str(getattr(exc, "message", exc))[:200]
        writer.close()
        return None

    async def _connected(self) -> _Client:
        if self._gone is not None:
            raise self._gone
        client = self._client
        if client is not None and client.is_connected:
            return client
        return await self._again()

    async def _again(self) -> _Client:
        # Several calls may find the connection gone; one of them makes it again.
        async with self._lock:
            if self._gone is not None:
                raise self._gone
            if self._client is not None and self._client.is_connected:
                return self._client
            try:
                client = await self._connect(self.session_id)
            except EnvironmentFailed as exc:
                self._gone = exc
                raise
            self._log("HUD: the connection had dropped; the session was resumed")
            return client

    async def _connect(self, session_id: str | None) -> _Client:
        place = await self._origin.place(anew=session_id is None)
        old, self._stack = self._stack, AsyncExitStack()
        await _briefly(old.aclose())
        loop = asyncio.get_running_loop()
        end = loop.time() + _HELD_S
        while True:
            opened = _Client.connect(
                place,
                session_id=session_id,
                take_over=session_id is not None,
                connect_s=REPLY_S,
                reply_s=REPLY_S,
            )
            try:
                client = cast("_Client", await self._stack.enter_async_context(opened))
                break
            except ChannelFailed as exc:
                self._log(f"HUD: {exc}")
                raise EnvironmentFailed(
                    "The HUD server cannot be reached any more. Start a new task."
                    if session_id
                    else "The HUD server cannot be reached; the server's log says more."
                ) from exc
            except ChannelRefused as exc:
                if session_id and "live connection" in exc.message and loop.time() < end:
                    await asyncio.sleep(0.1)  # until it notices that the old one has ended
                    continue
                self._log(f"HUD: {exc}")
                raise SessionGone(
                    _LOST if session_id else "The HUD server refused a session."
                ) from exc
        if client.graded is not None:
            self._log(f"HUD: {client.graded}")
            raise SessionGone(_LOST) from client.graded
        if session_id is not None and client.session_id != session_id:
            raise SessionGone(_LOST)  # a server that knows no resuming begins another one
        self._client = client
        self.session_id, self.environment = client.session_id, client.environment
        self.bindings, self.odd = _read_bindings(client.bindings)
        return client

    async def _keep_alive(self) -> None:
        while self._gone is None:
            await asyncio.sleep(_BEAT_S)
            with contextlib.suppress(EnvironmentFailed):  # the next call tells
                await self.check()


def _read_bindings(given: list[Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the capabilities by name, and those that cannot be read, each with the reason."""
    found: dict[str, dict[str, Any]] = {}
    odd: list[str] = []
    for item in given:
        each = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        name, url, params = each.get("name"), each.get("url"), each.get("params")
        try:
            if not isinstance(name, str) or not name:
                raise ValueError("it has no name")  # noqa: TRY301  # like the errors of urlsplit
            if not isinstance(url, str) or not urlsplit(url).hostname:
                raise ValueError("it has no address")  # noqa: TRY301  # the same
            _ = urlsplit(url).port
        except ValueError as exc:
            shown = repr(name) if each else repr(cast("Any", item))
            odd.append(f"The capability {shown:.80} cannot be bridged: {exc}")
            continue
        found[name] = {**each, "params": params if isinstance(params, dict) else {}}
    return found, odd


def _stored_grade(gone: SessionGone, answer: str) -> dict[str, Any] | None:
    """Return the grade if the session is gone because it was graded for this answer."""
    why = gone.__cause__
    return why.grade_for(answer) if isinstance(why, ChannelRefused) else None


_LOST = "The HUD server does not have this session any more, so its task cannot be graded."


async def _briefly(work: Any) -> None:
    """Wait a moment for work whose result does not matter."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=_LEAVE_S)
    if not task.done():
        task.cancel()
    elif not task.cancelled() and (exc := task.exception()) is not None:
        logger.debug("while leaving a HUD session: %s", exc)

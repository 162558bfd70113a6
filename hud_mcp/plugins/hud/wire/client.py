"""A client of the control channel: for our servers, and for HUD's own."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

from hud_mcp.base.listening import LOOPBACK, port_of
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.wire.frames import FRAME_BYTES, BadFrame, FrameReader, encode_frame
from hud_mcp.plugins.hud.wire.streams import (
    CONNECT_S,
    REPLY_S,
    ChannelFailed,
    ChannelRefused,
    Place,
    connect_to,
    open_stream,
    read_place,
    result_of,
    splice,
)
from hud_mcp.session.caller import CAUSE, REASON, session_token
from hud_mcp.values.grade import Cause

__all__ = ["ChannelClient"]

_TASK_S = 900.0
_CLOSE_S = 2.0
_NO_METHOD = -32601


class ChannelClient:
    """One control connection after its `hello`. Made by `connect`.

    A call that is cancelled, or times out, closes the connection. Otherwise the next call would
    read its reply. The session keeps its task.

    Attributes:
        place: The address of the server.
        session_id: The session that this connection speaks for.
        environment: The name and version of the served environment.
        bindings: The published capabilities as the wire has them.
        graded: The server's error if the resumed session had been graded. `grade` then returns the
            stored grade, and all other calls raise this error.
        is_ours: Whether the server is one of this package.
    """

    def __init__(
        self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.place = place
        self.session_id = ""
        self.environment: dict[str, str] = {}
        self.bindings: list[dict[str, Any]] = []
        self.graded: ChannelRefused | None = None
        self.is_ours = False
        self._frames = FrameReader(reader, within_s=_TASK_S)
        self._writer = writer
        self._ids = itertools.count(1)
        self._lock = asyncio.Lock()
        self._replies: dict[Any, dict[str, Any]] = {}
        self._is_lent = False

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        place: Place | str,
        *,
        session_id: str | None = None,
        take_over: bool = False,
        connect_s: float = CONNECT_S,
        reply_s: float = REPLY_S,
    ) -> AsyncGenerator["ChannelClient"]:
        """Connect and say hello. After the block, disconnect; the session keeps its task.

        Args:
            place: The address of the server: `tcp://[token@]host:port`, or a `Place`.
            session_id: The session to resume; a new one by default.
            take_over: Whether to take it from a connection that may be dead. HUD's server ignores
                this.
            connect_s: Seconds for connecting.
            reply_s: Seconds for the reply to `hello`.

        Raises:
            ChannelFailed: Nothing answers there, or something else does.
            ChannelRefused: The server does not know the session, or asks for a token.
        """
        place = read_place(place) if isinstance(place, str) else place
        reader, writer = await connect_to(place, connect_s)
        client = cls(place, reader, writer)
        try:
            await client.hello(session_id, take_over=take_over, reply_s=reply_s)
            yield client
        finally:
            await client.close()

    async def hello(
        self,
        session_id: str | None = None,
        *,
        take_over: bool = False,
        reply_s: float = REPLY_S,
    ) -> None:
        """Open a session, or resume the one with an id; it fails as `connect` does.

        A graded session of our servers is not resumed; `grade` returns its stored grade.
        """
        params: dict[str, Any] = {}
        if session_id is not None:
            params["session_id"] = session_id
        if take_over:
            params["take_over"] = True
        if self.place.token is not None:
            params["token"] = self.place.token
        try:
            result = await self._call("hello", params, reply_s)
        except ChannelRefused as exc:
            if session_id is None or not exc.is_graded:
                raise
            self.graded, self.session_id = exc, session_id
            return
        try:
            self.session_id = str(result["session_id"])
            self.environment = {k: str(result["env"][k]) for k in ("name", "version")}
            self.bindings = list(result["bindings"])
            self.is_ours = result.get("server") == "hud-mcp"
        except (KeyError, TypeError) as exc:
            raise ChannelFailed(
                f"The server at {self.place} does not speak the HUD control channel: {exc!r}."
            ) from None

    @asynccontextmanager
    async def for_agent(self) -> AsyncGenerator["ChannelClient"]:
        """Lend an agent a connection to this session while the block runs.

        The connection has a token of this session alone, and cannot start, grade or list anything.
        Some servers know no such tokens, or ask for none. Their agents get this connection, which
        meanwhile sends only what an agent may ask.

        Raises:
            ChannelFailed: The server cannot be reached any more.
        """
        token = self.place.token
        if token is not None and self.is_ours:
            own = replace(self.place, token=session_token(token, self.session_id))
            async with AsyncExitStack() as stack:
                client: ChannelClient | None = None
                with suppress(ChannelRefused):
                    client = await stack.enter_async_context(ChannelClient.connect(own))
                if client is not None:
                    yield client
                    return
        self._is_lent = True
        try:
            yield self
        finally:
            self._is_lent = False

    async def list_tasks(self) -> list[dict[str, Any]]:
        """Return the startable tasks, each with `id`, `description` and the schema of its `args`.

        ChannelFailed or ChannelRefused says that the server did not list them.
        """
        result = await self._call("tasks.list", {}, REPLY_S)
        tasks = result.get("tasks")
        if not isinstance(tasks, list):
            raise ChannelFailed(f"{self.place} lists its tasks as {type(tasks).__name__}.")
        return cast("list[dict[str, Any]]", tasks)

    async def start(
        self, task_id: str, args: Mapping[str, Any] | None = None, *, within_s: float = _TASK_S
    ) -> dict[str, Any]:
        """Start a task, and return its `prompt` and the other values that it yielded.

        Raises:
            ChannelRefused: The task was not started.
            ChannelFailed: The connection is gone; the task may have been started.
        """
        return await self._call("tasks.start", {"id": task_id, "args": dict(args or {})}, within_s)

    async def grade(self, answer: Any, *, within_s: float = _TASK_S) -> dict[str, Any]:
        """Submit the answer, and return the grade: its `score`, and further fields.

        Raises:
            ChannelRefused: The answer was not graded.
            ChannelFailed: The connection is gone. Resume the session and call again: a server of
                this package gives the same answer the same grade.
        """
        if self.graded is not None and (stored := self.graded.grade_for(answer)) is not None:
            return stored
        return await self._call("tasks.grade", {"answer": answer}, within_s)

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the task of the session, and cut off a running start or grade.

        Args:
            reason: Why, for the record of a server of this package.
            cause: The cause of the end, for the same record. The server accepts it only from the
                program that planned the run.

        Raises:
            ChannelFailed: The connection is gone.
            ChannelRefused: The session was graded.
        """
        if self.graded is not None:
            raise self.graded
        self._refuse_if_lent("tasks.cancel")
        said = {} if reason is None else {REASON: reason, CAUSE: cause.value}
        # Written before the lock is held: its holder waits for the call that is to be cut off.
        request_id = self._write("tasks.cancel", said if self.is_ours else {})
        async with self._lock:  # the call that is cut off is answered first
            result_of("tasks.cancel", await self._reply(request_id, REPLY_S))

    async def bye(self) -> None:
        """End the session and its task; ChannelFailed says that the connection is gone."""
        await self._call("bye", {}, REPLY_S)

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed, so that no call can be sent."""
        return self._writer.is_closing()

    async def call(
        self, method: str, params: Mapping[str, Any], *, within_s: float = _TASK_S
    ) -> dict[str, Any]:
        """Call a method that has no function here.

        Raises:
            ChannelRefused: The method was refused, or failed; the text says how.
            ChannelFailed: The connection is gone; the method may have been performed.
        """
        return await self._call(method, dict(params), within_s)

    async def close(self) -> None:
        """Disconnect; the session keeps its task. It may be called twice."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()

    @asynccontextmanager
    async def forward(self, capability: str) -> AsyncGenerator[tuple[str, int]]:
        """Yield a loopback address, and carry its connections to a capability of `bindings`."""
        carried: set[asyncio.Task[None]] = set()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                carried.add(task)
                task.add_done_callback(carried.discard)
            with suppress(HudMcpError, OSError, asyncio.CancelledError):
                try:
                    far, rest = await open_stream(self.place, capability)
                    await splice(far, (reader, writer), rest)
                finally:
                    writer.close()

        server = await asyncio.start_server(carry, LOOPBACK, 0)
        try:
            yield LOOPBACK, port_of(server)
        finally:
            server.close()
            for task in list(carried):
                task.cancel()
            if carried:
                await asyncio.wait(carried, timeout=_CLOSE_S)

    def _refuse_if_lent(self, method: str) -> None:
        if self._is_lent:
            raise ChannelRefused(method, _NO_METHOD, f"method not found: {method}")

    async def _call(self, method: str, params: dict[str, Any], within_s: float) -> dict[str, Any]:
        self._refuse_if_lent(method)
        if self.graded is not None:
            raise self.graded
        async with self._lock:
            frame = await self._reply(self._write(method, params), within_s)
        return result_of(method, frame)

    async def _reply(self, request_id: int, within_s: float) -> dict[str, Any]:
        """Wait for the reply to one request, and keep the replies to others for them."""
        try:
            async with asyncio.timeout(within_s):
                await self._writer.drain()
                while request_id not in self._replies:
                    frame = await self._read()
                    # An error about what is no request has no id; the connection ends with it.
                    given = frame.get("id")
                    self._replies[request_id if given is None else given] = frame
        except TimeoutError:
            self._writer.close()
            raise ChannelFailed(f"{self.place} did not answer within {within_s:g} s.") from None
        except BaseException:
            self._writer.close()
            raise
        return self._replies.pop(request_id)

    def _write(self, method: str, params: dict[str, Any]) -> int:
        if self._writer.is_closing():
            raise ChannelFailed(f"The connection to {self.place} is closed; connect again.")
        request_id = next(self._ids)
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        line = encode_frame(frame)
        if len(line) > FRAME_BYTES:
            raise ChannelFailed(f"{method} has {len(line)} bytes; a frame has {FRAME_BYTES}.")
        self._writer.write(line)
        return request_id

    async def _read(self) -> dict[str, Any]:
        try:
            frame = await self._frames.read()
        except BadFrame as exc:
            raise ChannelFailed(
                f"The server at {self.place} does not speak the HUD control channel: {exc}."
            ) from None
        except OSError as exc:
            raise ChannelFailed(f"The connection to {self.place} broke: {exc}.") from None
        if frame is None:
            raise ChannelFailed(f"{self.place} closed the connection and did not answer.")
        return frame

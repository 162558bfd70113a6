"""A client of the control channel: of ours, and of HUD's own server."""

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
    """One control connection, after its `hello`. Made by `connect`.

    A call that is cancelled, or times out, closes the connection: its reply would be taken for
    the next one's. What the session holds stays held.

    Attributes:
        place: Where the server is.
        session_id: The session that this connection speaks for.
        environment: The served environment's name and version.
        bindings: The capabilities that are published, each as the wire has it.
        graded: Where the session that was to be resumed had been graded: what the server said of
            it. `grade` then returns the stored grade, and nothing else can be asked.
        is_ours: Whether the server is of this package, and not HUD's own, say.
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
        """Connect, say hello, and leave at the end; what is held stays held.

        Args:
            place: Where the server is; `tcp://[token@]host:port` or what was read of it.
            session_id: The session to resume; a new one by default.
            take_over: Whether to take it from a connection that may be dead. HUD's own server
                does not know this.
            connect_s: How long connecting may take.
            reply_s: How long the reply to `hello` may take.

        Raises:
            ChannelFailed: Nothing answers there, or something else does.
            ChannelRefused: The server knows no such session, or asks for a token.
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
        """Identify the session; with an id, resume it.

        A session of ours that was graded is not resumed; its grade is kept for `grade`.

        Raises:
            ChannelFailed, ChannelRefused: As for `connect`.
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
        """A connection for an agent of the session that this one holds, while the block runs.

        It has a token of that session alone, and can start, grade and list nothing. A server that
        knows no such tokens, or asks for none, is reached over this connection, which then sends
        nothing but what an agent may ask.

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
        """Return what can be started: each an `id`, a `description` and the schema of its `args`.

        Raises:
            ChannelFailed, ChannelRefused: It was not told.
        """
        result = await self._call("tasks.list", {}, REPLY_S)
        tasks = result.get("tasks")
        if not isinstance(tasks, list):
            raise ChannelFailed(f"{self.place} lists its tasks as {type(tasks).__name__}.")
        return cast("list[dict[str, Any]]", tasks)

    async def start(
        self, task_id: str, args: Mapping[str, Any] | None = None, *, within_s: float = _TASK_S
    ) -> dict[str, Any]:
        """Start a task, and return what is asked: its `prompt`, and what else was yielded.

        Raises:
            ChannelRefused: It was not started.
            ChannelFailed: The connection is gone; the task may have been started.
        """
        return await self._call("tasks.start", {"id": task_id, "args": dict(args or {})}, within_s)

    async def grade(self, answer: Any, *, within_s: float = _TASK_S) -> dict[str, Any]:
        """Submit the answer, and return the grade: its `score`, and what else is known.

        Raises:
            ChannelRefused: It was not graded.
            ChannelFailed: The connection is gone. Resume the session and ask again: a server of
                this package gives the same answer the same grade.
        """
        if self.graded is not None and (stored := self.graded.grade_for(answer)) is not None:
            return stored
        return await self._call("tasks.grade", {"answer": answer}, within_s)

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End what the session holds; a start or a grade that another task waits for is cut off.

        Args:
            reason: Why, for the record of a server of this package.
            cause: Whose doing it is; the same. It is taken from whoever planned the run alone.

        Raises:
            ChannelFailed: The connection is gone.
            ChannelRefused: The session was graded.
        """
        if self.graded is not None:
            raise self.graded
        self._refuse_if_lent("tasks.cancel")
        said = {} if reason is None else {REASON: reason, CAUSE: cause.value}
        request_id = self._write("tasks.cancel", said if self.is_ours else {})
        async with self._lock:  # the call that is cut off is answered first
            result_of("tasks.cancel", await self._reply(request_id, REPLY_S))

    async def bye(self) -> None:
        """End the session and what it holds.

        Raises:
            ChannelFailed: The connection is gone.
        """
        await self._call("bye", {}, REPLY_S)

    @property
    def is_closed(self) -> bool:
        """Whether its connection is; nothing can be asked over it any more."""
        return self._writer.is_closing()

    async def call(
        self, method: str, params: Mapping[str, Any], *, within_s: float = _TASK_S
    ) -> dict[str, Any]:
        """Call a method that has no function of its own here.

        Raises:
            ChannelRefused: It was not performed; or it failed, and the text says how.
            ChannelFailed: The connection is gone; it may have been performed.
        """
        return await self._call(method, dict(params), within_s)

    async def close(self) -> None:
        """Leave; what the session holds stays held. It may be called twice."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()

    @asynccontextmanager
    async def forward(self, capability: str) -> AsyncGenerator[tuple[str, int]]:
        """Listen on a loopback port, and carry each connection to a capability.

        Args:
            capability: Its name in `bindings`.

        Yields:
            The host and the port to connect to.
        """
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
        """Wait for the reply of one request; those of others are kept for them."""
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

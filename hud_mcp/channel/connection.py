"""One control connection: its conversation, from the first frame to the last reply."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hud_mcp.agents.agent import answer_text
from hud_mcp.channel.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.channel.greeting import WrongGreeting, check_greeting
from hud_mcp.channel.hud_session import HudSession
from hud_mcp.channel.hud_sessions import HudSessions, NoHudSession
from hud_mcp.channel.replies import (
    FAILED,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_METHOD,
    UNAUTHORIZED,
    RpcError,
    error,
    fitting,
    graded,
    known_of,
    read_request,
    started,
)
from hud_mcp.channel.words import in_hud_words
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidContext, InvalidTask
from hud_mcp.plugins.hud.operations import OPERATIONS, Operations
from hud_mcp.session.caller import CREDENTIAL, read_session_token

__all__ = ["Connection", "Service"]

logger = logging.getLogger(__name__)

_WRITE_S = 30.0
"""How long a peer may not read its replies before it is taken for gone."""
_STOP_S = 10.0
"""How long a task call that is interrupted may take to end."""

Method = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Service:
    """What every connection of a channel shares.

    Attributes:
        environment: What is served.
        hud_sessions: Who holds which task.
        token: What a peer must send first; None where none is asked for.
        bindings: The capabilities that are published to a session now, as the wire has them.
        idle_s: How long a connection may say nothing.
        touch_s: How often a connection that is open keeps its task from expiring as idle.
        argument_bytes: How long a task's arguments and an answer may be.
        calls: What is being started and graded now, also for peers that are gone.
        operations: What the operator may call; None where nobody may.
    """

    environment: Environment
    hud_sessions: HudSessions
    token: str | None
    bindings: Callable[[HudSession], Awaitable[list[dict[str, Any]]]]
    idle_s: float
    touch_s: float
    argument_bytes: int
    calls: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    operations: Operations | None = None

    def session_of(self, params: Mapping[str, Any]) -> str | None:
        """The session that a token of one opens, by its id's digest; None for any other token."""
        if self.token is None:
            return None
        read = read_session_token(params.get("token"), [self.token])
        return None if read is None else read[1]

    def check_token(self, params: Mapping[str, Any]) -> None:
        """Let in whoever knows the token.

        Raises:
            RpcError: This peer does not.
        """
        given = params.get("token")
        if self.token is None:
            return
        known = isinstance(given, str) and secrets.compare_digest(
            given.encode(), self.token.encode()
        )
        if not known and not (self.operations and self.operations.admits(given)):
            raise RpcError(
                UNAUTHORIZED,
                "this channel asks for a token; send it as `token` in hello or tunnel.open",
            )


_METHODS: Mapping[str, str] = {
    "hello": "_hello",
    "tasks.list": "_list",
    "tasks.start": "_start",
    "tasks.grade": "_grade",
    "tasks.cancel": "_cancel",
}
"""The method of a connection that answers each request."""


class Connection:
    """One peer.

    Args:
        service: What is served.
        frames: What it sends.
        writer: Where its replies go.
    """

    def __init__(self, service: Service, frames: FrameReader, writer: asyncio.StreamWriter) -> None:
        self._service = service
        self._frames = frames
        self._writer = writer
        self._hud: HudSession = service.hud_sessions.open(self)
        self._known = service.token is None
        self._has_left = False
        self._call: asyncio.Task[None] | None = None
        self._calls: str = ""
        self._interrupted_by: str | None = None
        self._can_interrupt = False

    async def run(self, first: dict[str, Any]) -> None:
        """Answer the first frame and all that follow, until either side leaves.

        What the peer holds then stays held, and can be resumed at once. A task that is being
        started or graded goes on; a peer that has only ended its own direction is told of it.
        """
        frame: dict[str, Any] | None = first
        del first  # no frame is kept while the next one is waited for
        try:
            while frame is not None and await self._answer(frame):
                frame = None
                frame = await self._next()
        finally:
            self._has_left = True
            self._service.hud_sessions.park(self._hud, self)
            self._frames.close()
        if frame is None and self._is_busy and self._call is not None:
            await asyncio.wait({self._call})

    def lose(self) -> None:
        """End: another connection has taken the session over."""
        self._writer.transport.abort()

    @property
    def _is_busy(self) -> bool:
        """Whether a task is being started or graded for this peer."""
        return self._call is not None and not self._call.done()

    async def _next(self) -> dict[str, Any] | None:
        last_s = time.monotonic()
        while True:
            try:
                frame = await self._frames.read(first_s=self._service.touch_s)
            except BadFrame as exc:
                await self._send_error(None, exc.code, str(exc))
                if exc.fatal:
                    return None
                last_s = time.monotonic()
            except TimeoutError:
                if self._frames.has_begun:
                    await self._send_error(None, INVALID_REQUEST, "a frame did not come to an end")
                    return None
                self._hud.touch()
                if self._is_busy:
                    last_s = time.monotonic()
                elif time.monotonic() - last_s >= self._service.idle_s:
                    return None
            else:
                self._hud.touch()
                return frame

    async def _answer(self, frame: dict[str, Any]) -> bool:
        """Answer a request; return whether to go on."""
        if self._hud.speaker is not self:
            return False
        request_id = frame.get("id")
        if not isinstance(request_id, int | str | None) or isinstance(request_id, bool):
            await self._send_error(None, INVALID_REQUEST, "an id is a whole number or a string")
            return True
        try:
            method, given = read_request(frame)
            if not self._known:
                self._service.check_token(given)
                self._known = True
            await self._dispatch(request_id, method, given)
        except RpcError as exc:
            if request_id is not None or exc.code == UNAUTHORIZED:
                await self._send_error(request_id, exc.code, str(exc))
            return exc.code != UNAUTHORIZED
        return method != "bye"

    async def _dispatch(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        if method in ("tasks.cancel", "bye"):
            await self._interrupt(method, params)
            await self._reply(request_id, self._cancel if method != "bye" else self._bye, params)
            return
        run: Method | None = getattr(self, _METHODS[method]) if method in _METHODS else None
        if run is None and (operate := self._operation(method, params)) is not None:
            await self._operate(request_id, operate)
            return
        if run is None:
            raise RpcError(NO_METHOD, f"method not found: {method}")
        # A heartbeat, which is a hello with the session's own id, is no other request.
        is_beat = method == "hello" and params.get("session_id") == self._hud.id
        if self._is_busy and not is_beat:
            raise RpcError(INVALID_REQUEST, f"{method}: a task call is still running")
        if method not in ("tasks.start", "tasks.grade"):
            await self._reply(request_id, run, params)
            return
        self._calls, self._interrupted_by, self._can_interrupt = method, None, True
        call = asyncio.get_running_loop().create_task(self._reply(request_id, run, params))
        self._call = call
        self._service.calls.add(call)
        call.add_done_callback(self._forget_call)
        await asyncio.sleep(0)  # what fails at once is answered before the next frame is read

    def _forget_call(self, call: "asyncio.Task[None]") -> None:
        self._service.calls.discard(call)
        if self._call is call:
            self._call = None

    def _operation(
        self, method: str, params: dict[str, Any]
    ) -> Callable[[], Awaitable[dict[str, Any]]] | None:
        """What performs an operation, where its caller may; to others no such method exists."""
        operations = self._service.operations
        if operations is None or method not in OPERATIONS:
            return None
        if not operations.admits(params.get(CREDENTIAL)):
            return None
        return lambda: operations.perform(method, params)

    async def _operate(
        self, request_id: Any, perform: Callable[[], Awaitable[dict[str, Any]]]
    ) -> None:
        """Perform an operation; a failure says its class, which the operator's client raises."""
        try:
            answer: dict[str, Any] = {"result": await perform()}
        except HudMcpError as exc:
            answer = error(FAILED, str(exc))
            answer["error"]["data"] = {"kind": type(exc).__name__}
        except Exception:  # of this package alone: what an author's code raises is attributed
            logger.exception("an operation failed")
            answer = error(INTERNAL, "internal error; the server's log says more")
        if request_id is not None:
            await self._send({"jsonrpc": "2.0", "id": request_id, **answer})

    async def _interrupt(self, method: str, params: dict[str, Any]) -> None:
        """Cut off a task call that runs, and see to it that it is answered first."""
        call = self._call
        if call is None or call.done():
            return
        self._interrupted_by = method
        if self._calls == "tasks.start" and self._service.hud_sessions.begun(self._hud) is not None:
            await self._service.hud_sessions.cancel(self._hud, params)
        elif self._can_interrupt:
            call.cancel()
        await asyncio.wait({call}, timeout=_STOP_S)
        self._interrupted_by = None

    async def _reply(self, request_id: Any, run: Method, params: dict[str, Any]) -> None:
        try:
            answer = {"result": await run(params)}
        except asyncio.CancelledError:
            if self._interrupted_by is None:
                raise
            answer = error(FAILED, f"{self._interrupted_by} interrupted the task")
        except RpcError as exc:
            answer = error(exc.code, str(exc))
        except NoHudSession as exc:
            answer = error(INVALID_REQUEST, str(exc), known_of(exc.receipt))
        except (InvalidTask, InvalidContext) as exc:
            answer = error(INVALID_PARAMS, in_hud_words(str(exc)))
        except HudMcpError as exc:
            by = self._interrupted_by
            text = f"{by} interrupted the task" if by else in_hud_words(str(exc))
            answer = error(FAILED, text)
        except Exception:  # of this package alone: what an author's code raises is attributed
            logger.exception("a request could not be answered")
            answer = error(INTERNAL, "internal error; the server's log says more")
        self._can_interrupt = False
        if request_id is None:
            return
        was_sent = await self._send({"jsonrpc": "2.0", "id": request_id, **answer})
        if was_sent and not self._has_left:
            self._hud.tell()

    async def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        try:
            asked = check_greeting(params)
        except WrongGreeting as exc:
            raise RpcError(INVALID_PARAMS, f"hello: {exc}") from None
        if asked is not None:
            raise RpcError(FAILED, f"hello: this server cannot enforce '{asked}'; leave it out")
        wanted: str | None = params.get("session_id")
        if wanted is not None and wanted != self._hud.id:
            take_over = params.get("take_over") is True
            found = await self._service.hud_sessions.resume(wanted, self, take_over=take_over)
            self._service.hud_sessions.park(self._hud, self)
            self._hud = found
        environment = self._service.environment
        return {
            "session_id": self._hud.id,
            "env": {"name": environment.name, "version": environment.version},
            "bindings": await self._service.bindings(self._hud),
            "server": "hud-mcp",
        }

    async def _list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": self._service.hud_sessions.listed()}

    async def _start(self, params: dict[str, Any]) -> dict[str, Any]:
        task_id, args = params.get("id"), params.get("args")
        if not isinstance(task_id, str):
            raise RpcError(INVALID_PARAMS, "tasks.start: 'id' must be a string")
        if args is not None and not isinstance(args, dict):
            raise RpcError(INVALID_PARAMS, "tasks.start: 'args' must be an object")
        given = cast("dict[str, Any]", args or {})
        self._check_size("tasks.start: 'args'", given)
        return started(await self._service.hud_sessions.start(self._hud, task_id, given))

    async def _grade(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = params.get("answer")
        self._check_size("tasks.grade: 'answer'", answer)
        text = "" if answer is None else answer_text(answer)
        limit = self._service.argument_bytes
        return graded(await self._service.hud_sessions.grade(self._hud, text, max_bytes=limit))

    async def _cancel(self, params: dict[str, Any]) -> dict[str, Any]:
        await self._service.hud_sessions.cancel(self._hud, params)
        return {"cancelled": True}

    async def _bye(self, params: dict[str, Any]) -> dict[str, Any]:
        await self._service.hud_sessions.cancel(self._hud, params)
        self._service.hud_sessions.forget(self._hud)
        return {"goodbye": True}

    def _check_size(self, name: str, value: Any) -> None:
        try:
            size = len(encode_frame({"": value}))
        except RecursionError:
            raise RpcError(INVALID_PARAMS, f"{name} is nested too deeply") from None
        if size > self._service.argument_bytes:
            raise RpcError(
                INVALID_PARAMS,
                f"{name} has {size} bytes; at most {self._service.argument_bytes} are taken",
            )

    async def _send_error(self, request_id: Any, code: int, text: str) -> None:
        await self._send({"jsonrpc": "2.0", "id": request_id, **error(code, text)})

    async def _send(self, frame: dict[str, Any]) -> bool:
        """Send a reply; return whether it went on its way."""
        if self._writer.is_closing():
            return False
        try:
            self._writer.write(fitting(frame))
            transport = self._writer.transport
            if transport.get_write_buffer_size() or transport.is_closing():
                async with asyncio.timeout(_WRITE_S):
                    await self._writer.drain()
        except (TimeoutError, OSError):
            self._writer.transport.abort()
            return False
        return True

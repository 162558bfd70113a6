"""The conversations of a control connection: of a client, and of an agent of one session."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from hud_mcp.agents.agent import answer_text
from hud_mcp.base.reading import Reader
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidContext, InvalidTask
from hud_mcp.plugins.hud.operations import OPERATIONS, Operations
from hud_mcp.plugins.hud.wire.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.plugins.hud.wire.hud_session import HudSession
from hud_mcp.plugins.hud.wire.hud_sessions import HudSessions, NoHudSession
from hud_mcp.plugins.hud.wire.peer import Peer
from hud_mcp.plugins.hud.wire.requests import (
    FAILED,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_METHOD,
    UNAUTHORIZED,
    RpcError,
    check_greeting,
    error,
    fitting,
    graded,
    in_hud_words,
    known_of,
    read_request,
    started,
)
from hud_mcp.session.caller import CREDENTIAL, read_session_token

logger = logging.getLogger(__name__)

_STOP_S = 10.0
"""Seconds that an interrupted start or grade may take to end."""
_WRITE_S = 30.0
"""Seconds that an agent may leave its replies unread."""

_ARGS = Reader({"properties": {"args": {"type": "object"}}})
Method = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Service:
    """The state that all connections of a channel share.

    Attributes:
        environment: The environment of the channel.
        hud_sessions: The sessions, with the tasks that they hold.
        token: The token that a peer must send; None asks for none.
        bindings: Returns the capabilities of a session as the wire has them.
        argument_bytes: The longest arguments, and the longest answer.
        idle_s: Seconds that an agent's connection may be silent.
        calls: The running calls, also of peers that are gone.
        operations: The operator's calls; None allows none.
    """

    environment: Environment
    hud_sessions: HudSessions
    token: str | None
    bindings: Callable[[HudSession], Awaitable[list[dict[str, Any]]]]
    argument_bytes: int
    idle_s: float
    calls: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    operations: Operations | None = None

    def session_of(self, params: Mapping[str, Any]) -> str | None:
        """Return the digest of the session that a session's token opens; None for another token."""
        if self.token is None:
            return None
        read = read_session_token(params.get("token"), [self.token])
        return None if read is None else read[1]

    async def greeting(self, hud: HudSession) -> dict[str, Any]:
        """Return the reply to a `hello`."""
        return {
            "session_id": hud.id,
            "env": {"name": self.environment.name, "version": self.environment.version},
            "bindings": await self.bindings(hud),
            "server": "hud-mcp",
        }

    def check_token(self, params: Mapping[str, Any]) -> None:
        """Check the token of a request; RpcError says that it is missing or wrong."""
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
    "bye": "_bye",
}
"""The method of a connection that answers each request."""


class Connection:
    """One client's conversation. The end of its frames stops no task that it has started."""

    __slots__ = (
        "_call", "_call_method", "_can_interrupt", "_has_left", "_hud", "_interrupted_by",
        "_is_known", "_peer", "_service",
    )  # fmt: skip

    def __init__(self, service: Service, peer: Peer) -> None:
        self._service = service
        self._peer = peer
        self._hud: HudSession = service.hud_sessions.open(self)
        self._is_known = service.token is None
        self._has_left = False
        self._call: asyncio.Task[None] | None = None
        self._call_method = ""
        self._interrupted_by: str | None = None
        self._can_interrupt = False

    @property
    def is_busy(self) -> bool:
        """Whether a task is being started or graded for this client."""
        return self._call is not None and not self._call.done()

    def receive(self, frame: dict[str, Any]) -> bool:
        """Answer a request, and return whether the next one may follow at once."""
        # Another connection has taken the session over, and this one has not noticed yet.
        if self._hud.speaker is not self:
            self._peer.finish()
            return False
        self._hud.touch()
        request_id = frame.get("id")
        if not isinstance(request_id, int | str | None) or isinstance(request_id, bool):
            self._send_error(None, INVALID_REQUEST, "an id is a whole number or a string")
            return True
        try:
            method, given = read_request(frame)
            if not self._is_known:
                self._service.check_token(given)
                self._is_known = True
            return self._dispatch(request_id, method, given)
        except RpcError as exc:
            if request_id is not None or exc.code == UNAUTHORIZED:
                self._send_error(request_id, exc.code, str(exc))
            if exc.code == UNAUTHORIZED:
                self._peer.finish()
            return exc.code != UNAUTHORIZED

    def attend(self) -> None:
        """Keep the task from expiring as idle, because the client is still there."""
        self._hud.touch()

    def leave(self) -> None:
        """Note that the client sends nothing more. Its task stays held, and can be resumed."""
        self._has_left = True
        self._service.hud_sessions.park(self._hud, self)

    def lose(self) -> None:
        """End, because another connection has taken the session over."""
        self._peer.abort()

    def _dispatch(self, request_id: Any, method: str, params: dict[str, Any]) -> bool:
        """Begin to answer, and return whether the next request may follow at once."""
        run: Method | None = getattr(self, _METHODS[method]) if method in _METHODS else None
        if run is None and (operate := self._operation(method, params)) is not None:
            self._begin(self._operate(request_id, operate), self._go_on)
            return False
        if run is None:
            raise RpcError(NO_METHOD, f"method not found: {method}")
        if method in ("tasks.start", "tasks.grade"):
            self._refuse_if_busy(method)
            self._call_method, self._interrupted_by, self._can_interrupt = method, None, True
            # The next request may follow at once: a cancel has to reach a running start or grade.
            self._call = self._begin(self._make_call(request_id, run, params), self._forget_call)
            return True
        # A heartbeat, which is a hello with the session's own id, is no other request.
        is_beat = method == "hello" and params.get("session_id") == self._hud.id
        if method not in ("tasks.cancel", "bye") and not is_beat:
            self._refuse_if_busy(method)
        and_then = self._end if method == "bye" else self._go_on
        self._begin(self._reply(request_id, run, params), and_then)
        return False

    def _refuse_if_busy(self, method: str) -> None:
        if self.is_busy:
            raise RpcError(INVALID_REQUEST, f"{method}: a task call is still running")

    def _begin(
        self,
        work: Coroutine[Any, Any, None],
        and_then: Callable[["asyncio.Task[None]"], None],
    ) -> "asyncio.Task[None]":
        """Do work for this client; the work goes on after the client leaves."""
        task = asyncio.get_running_loop().create_task(work)
        self._service.calls.add(task)
        task.add_done_callback(and_then)
        return task

    def _go_on(self, task: "asyncio.Task[None]") -> None:
        self._service.calls.discard(task)
        self._peer.go_on()

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._service.calls.discard(task)
        self._peer.finish()

    def _forget_call(self, call: "asyncio.Task[None]") -> None:
        self._service.calls.discard(call)
        if self._call is call:
            self._call = None
        if self._peer.has_ended:
            self._peer.finish()

    def _operation(
        self, method: str, params: dict[str, Any]
    ) -> Callable[[], Awaitable[dict[str, Any]]] | None:
        """Return the handler of an operation; None for callers without the right to it."""
        operations = self._service.operations
        if operations is None or method not in OPERATIONS:
            return None
        if not operations.admits(params.get(CREDENTIAL)):
            return None
        return lambda: operations.perform(method, params)

    async def _operate(
        self, request_id: Any, perform: Callable[[], Awaitable[dict[str, Any]]]
    ) -> None:
        """Perform an operation. An error names its class, which the operator's client raises."""
        try:
            answer: dict[str, Any] = {"result": await perform()}
        except HudMcpError as exc:
            answer = error(FAILED, str(exc), {"kind": type(exc).__name__})
        except Exception:  # an error of this package: those of an author's code are attributed
            logger.exception("an operation failed")
            answer = error(INTERNAL, "internal error; the server's log says more")
        await self._send(request_id, answer)

    async def _interrupt(self, method: str, params: dict[str, Any]) -> None:
        """Cut off a running start or grade, and wait until it is answered."""
        call = self._call
        if call is None or call.done():
            return
        self._interrupted_by = method
        try:
            hud_sessions = self._service.hud_sessions
            # A setup is the author's code: its session ends it in order, and the start fails.
            if self._call_method == "tasks.start" and hud_sessions.begun(self._hud) is not None:
                await hud_sessions.cancel(self._hud, params)
            elif self._can_interrupt:
                call.cancel()
            await asyncio.wait({call}, timeout=_STOP_S)
        finally:
            self._interrupted_by = None

    async def _make_call(self, request_id: Any, run: Method, params: dict[str, Any]) -> None:
        try:
            answer = await self._answer(run, params, is_call=True)
        except asyncio.CancelledError:
            if self._interrupted_by is None:
                raise
            answer = error(FAILED, f"{self._interrupted_by} interrupted the task")
        # The answer is known from here on: an interruption would only lose it.
        self._can_interrupt = False
        if await self._send(request_id, answer) and not self._has_left:
            self._hud.tell()

    async def _reply(self, request_id: Any, run: Method, params: dict[str, Any]) -> None:
        await self._send(request_id, await self._answer(run, params))

    async def _answer(
        self, run: Method, params: dict[str, Any], *, is_call: bool = False
    ) -> dict[str, Any]:
        try:
            return {"result": await run(params)}
        except RpcError as exc:
            return error(exc.code, str(exc))
        except NoHudSession as exc:
            return error(INVALID_REQUEST, str(exc), known_of(exc.receipt))
        except (InvalidTask, InvalidContext) as exc:
            return error(INVALID_PARAMS, in_hud_words(str(exc)))
        except HudMcpError as exc:
            by = self._interrupted_by if is_call else None
            text = f"{by} interrupted the task" if by else in_hud_words(str(exc))
            return error(FAILED, text)
        except Exception:  # an error of this package: those of an author's code are attributed
            logger.exception("a request could not be answered")
            return error(INTERNAL, "internal error; the server's log says more")

    async def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = check_greeting(params)
        if wanted is not None and wanted != self._hud.id:
            take_over = params.get("take_over") is True
            found = await self._service.hud_sessions.resume(wanted, self, take_over=take_over)
            self._service.hud_sessions.park(self._hud, self)
            self._hud = found
        return await self._service.greeting(self._hud)

    async def _list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": self._service.hud_sessions.listed()}

    async def _start(self, params: dict[str, Any]) -> dict[str, Any]:
        task_id, args = params.get("id"), params.get("args")
        if not isinstance(task_id, str):
            raise RpcError(INVALID_PARAMS, "tasks.start: 'id' must be a string")
        self._check_size("tasks.start: 'args'", args)
        args = _ARGS.read({"args": args}).get("args", {})
        if not isinstance(args, dict):
            raise RpcError(INVALID_PARAMS, "tasks.start: 'args' must be an object")
        given = cast("dict[str, Any]", args)
        return started(await self._service.hud_sessions.start(self._hud, task_id, given))

    async def _grade(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = params.get("answer")
        self._check_size("tasks.grade: 'answer'", answer)
        text = "" if answer is None else answer_text(answer)
        limit = self._service.argument_bytes
        return graded(await self._service.hud_sessions.grade(self._hud, text, max_bytes=limit))

    async def _cancel(self, params: dict[str, Any]) -> dict[str, Any]:
        await self._interrupt("tasks.cancel", params)
        await self._service.hud_sessions.cancel(self._hud, params)
        return {"cancelled": True}

    async def _bye(self, params: dict[str, Any]) -> dict[str, Any]:
        await self._interrupt("bye", params)
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

    def _send_error(self, request_id: Any, code: int, text: str) -> None:
        self._peer.send(fitting({"jsonrpc": "2.0", "id": request_id, **error(code, text)}))

    async def _send(self, request_id: Any, answer: dict[str, Any]) -> bool:
        """Send a reply, and return whether the connection took it. A notification gets none."""
        if request_id is None:
            return False
        if not self._peer.send(fitting({"jsonrpc": "2.0", "id": request_id, **answer})):
            return False
        return await self._peer.is_read()


class Guest:
    """The conversation of an agent with the session that its runner holds, by the session's digest.

    The agent has the token of one session. It learns the session's bindings, and opens streams to
    them. Its runner starts the task and submits the answer; for the agent, no other method exists.
    """

    def __init__(
        self, service: Service, frames: FrameReader, writer: asyncio.StreamWriter, *, session: str
    ) -> None:
        self._service = service
        self._frames = frames
        self._writer = writer
        self._session = session

    async def run(self, first: dict[str, Any]) -> None:
        """Answer the first frame and all that follow, until either side leaves."""
        frame: dict[str, Any] | None = first
        while frame is not None and await self._answer(frame):
            try:
                frame = await self._frames.read(first_s=self._service.idle_s)
            except BadFrame as exc:
                await self._send(None, error(exc.code, str(exc)))
                return
            except TimeoutError:
                return

    async def _answer(self, frame: dict[str, Any]) -> bool:
        method = ""
        try:
            method, params = read_request(frame)
            answer = {"result": await self._result(method, params)}
        except RpcError as exc:
            answer = error(exc.code, str(exc))
        if frame.get("id") is not None:
            await self._send(frame["id"], answer)
        return method != "bye" and not self._writer.is_closing()

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "bye":  # the task is its runner's
            return {"goodbye": True}
        if method != "hello":
            raise RpcError(NO_METHOD, f"method not found: {method}")
        hud = self._service.hud_sessions.find(self._session)
        wanted = params.get("session_id")
        if hud is None or wanted not in (None, hud.id):
            raise RpcError(
                FAILED, "this token belongs to a session that has ended, or to another one"
            )
        hud.touch()
        return await self._service.greeting(hud)

    async def _send(self, request_id: Any, answer: dict[str, Any]) -> None:
        with suppress(TimeoutError, OSError):
            self._writer.write(encode_frame({"jsonrpc": "2.0", "id": request_id, **answer}))
            async with asyncio.timeout(_WRITE_S):
                await self._writer.drain()

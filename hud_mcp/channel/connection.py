"""One control connection: its conversation, from the first frame to the last reply."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hud_mcp.agents.agent import answer_text
from hud_mcp.channel.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.channel.held import Held, HeldTasks, NotHeld
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidContext, InvalidTask
from hud_mcp.grade import Outcome
from hud_mcp.session import Session
from hud_mcp.template import Prompt
from hud_mcp.trajectory import Receipt

__all__ = ["Connection", "RpcError", "Service"]

logger = logging.getLogger(__name__)

_WRITE_S = 30.0
"""How long a peer may not read its replies before it is taken for gone."""

_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32600, -32601, -32602
_FAILED, _UNAUTHORIZED = -32000, -32001

_ALONE = ("tasks.start", "tasks.grade")
"""What runs while the connection goes on reading, so that it can be cancelled."""


class RpcError(Exception):
    """What a request is answered with in place of a result."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Service:
    """What every connection of a channel shares.

    Attributes:
        environment: What is served.
        held: Who holds which task.
        token: What a peer must send first; None where none is asked for.
        bindings: The capabilities that are published now, as the wire has them.
        idle_s: How long a connection may say nothing.
        first_s: How long it may wait with its first frame.
        argument_bytes: How long a task's arguments and an answer may be.
    """

    environment: Environment
    held: HeldTasks
    token: str | None
    bindings: Callable[[], list[dict[str, Any]]]
    idle_s: float
    first_s: float
    argument_bytes: int

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
        if not known:
            raise RpcError(
                _UNAUTHORIZED,
                "this channel asks for a token; send it as `token` in hello or tunnel.open",
            )


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
        self._held: Held = service.held.open()
        self._known = service.token is None
        self._running: asyncio.Task[None] | None = None
        self._running_name = ""
        self._cancelled = False
        self._methods: Mapping[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "hello": self._hello,
            "tasks.list": self._list,
            "tasks.start": self._start,
            "tasks.grade": self._grade,
            "tasks.cancel": self._cancel,
        }

    async def run(self, first: dict[str, Any]) -> None:
        """Answer the first frame and all that follow, until either side leaves.

        What the peer holds then stays held. A task that is being started or graded goes on.
        """
        frame: dict[str, Any] | None = first
        try:
            while frame is not None and await self._answer(frame):
                frame = await self._next()
        finally:
            # A start or a grading that still runs keeps the session from being taken over.
            if self._running is not None and not self._running.done():
                self._running.add_done_callback(lambda _done: self._service.held.park(self._held))
            else:
                self._service.held.park(self._held)

    async def _next(self) -> dict[str, Any] | None:
        while True:
            try:
                return await self._frames.read(first_s=self._service.idle_s)
            except BadFrame as exc:
                await self._send_error(None, exc.code, str(exc))
                if exc.fatal:
                    return None

    async def _answer(self, frame: dict[str, Any]) -> bool:
        """Answer a request; return whether to go on."""
        request_id = frame.get("id")
        if not isinstance(request_id, int | str | None) or isinstance(request_id, bool):
            await self._send_error(None, _INVALID_REQUEST, "an id is a number or a string")
            return True
        try:
            method, given = _read(frame)
            if not self._known:
                self._service.check_token(given)
                self._known = True
            if method == "bye":
                await self._bye(request_id)
                return False
            await self._dispatch(request_id, method, given)
        except RpcError as exc:
            await self._send_error(request_id, exc.code, str(exc))
            return exc.code != _UNAUTHORIZED
        return True

    async def _dispatch(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        run = self._methods.get(method)
        if run is None:
            raise RpcError(_NO_METHOD, f"method not found: {method}")
        busy = self._running is not None and not self._running.done()
        if busy and method != "tasks.cancel":
            raise RpcError(_INVALID_REQUEST, f"{method}: a task call is still running")
        if method in _ALONE:
            self._cancelled = False
            self._running_name = method
            self._running = asyncio.ensure_future(self._reply(request_id, run, params))
            await asyncio.sleep(0)  # what fails at once is answered in order
        else:
            await self._reply(request_id, run, params)

    async def _reply(
        self,
        request_id: Any,
        run: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]],
        params: dict[str, Any],
    ) -> None:
        try:
            result = await run(params)
        except RpcError as exc:
            await self._send_error(request_id, exc.code, str(exc))
        except NotHeld as exc:
            await self._send_error(request_id, _INVALID_REQUEST, str(exc))
        except (InvalidTask, InvalidContext) as exc:
            await self._send_error(request_id, _INVALID_PARAMS, str(exc))
        except HudMcpError as exc:
            text = "tasks.cancel interrupted the task" if self._cancelled else str(exc)
            await self._send_error(request_id, _FAILED, text)
        else:
            await self._send({"jsonrpc": "2.0", "id": request_id, "result": result}, request_id)

    async def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params.get("session_id")
        if wanted is not None and not isinstance(wanted, str):
            raise RpcError(_INVALID_PARAMS, "hello: 'session_id' must be a string")
        for name in ("workspace_routes", "connections"):
            given = params.get(name)
            if given is not None and not isinstance(given, list):
                raise RpcError(_INVALID_PARAMS, f"hello: '{name}' must be a list")
            if given:
                raise RpcError(_FAILED, f"hello: this server cannot enforce '{name}'; leave it out")
        if wanted is not None and wanted != self._held.id:
            take_over = params.get("take_over") is True
            found = await self._service.held.resume(wanted, take_over=take_over)
            self._service.held.park(self._held)
            self._held = found
        environment = self._service.environment
        return {
            "session_id": self._held.id,
            "env": {"name": environment.name, "version": environment.version},
            "bindings": self._service.bindings(),
        }

    async def _list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": self._service.environment.manifest()["templates"]}

    async def _start(self, params: dict[str, Any]) -> dict[str, Any]:
        task_id, args = params.get("id"), params.get("args")
        if not isinstance(task_id, str):
            raise RpcError(_INVALID_PARAMS, "tasks.start: 'id' must be a string")
        if args is not None and not isinstance(args, dict):
            raise RpcError(_INVALID_PARAMS, "tasks.start: 'args' must be an object")
        given = cast("dict[str, Any]", args or {})
        self._check_size("tasks.start: 'args'", given)
        session = await self._service.held.start(self._held, task_id, given)
        return {"prompt": _prompt(session), "trajectory": session.trajectory_id}

    async def _grade(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = params.get("answer")
        self._check_size("tasks.grade: 'answer'", answer)
        text = "" if answer is None else answer_text(answer)
        return _graded(await self._service.held.grade(self._held, text))

    async def _cancel(self, _params: dict[str, Any]) -> dict[str, Any]:
        running = self._running
        if running is not None and not running.done():
            self._cancelled = True
        await self._service.held.cancel(self._held)
        if running is not None and not running.done():
            running.cancel() if self._running_name == "tasks.start" else None
            await asyncio.wait({running}, timeout=_WRITE_S)
        return {"cancelled": True}

    async def _bye(self, request_id: Any) -> None:
        await self._service.held.cancel(self._held)
        self._service.held.forget(self._held)
        await self._send(
            {"jsonrpc": "2.0", "id": request_id, "result": {"goodbye": True}}, request_id
        )

    def _check_size(self, name: str, value: Any) -> None:
        size = len(encode_frame({"": value}))
        if size > self._service.argument_bytes:
            raise RpcError(
                _INVALID_PARAMS,
                f"{name} has {size} bytes; at most {self._service.argument_bytes} are taken",
            )

    async def _send_error(self, request_id: Any, code: int, text: str) -> None:
        error = {"code": code, "message": text or "failed"}
        frame = {"jsonrpc": "2.0", "id": request_id, "error": error}
        await self._send(frame, request_id if code not in (-32700, -32600) else request_id or True)

    async def _send(self, frame: dict[str, Any], request_id: Any) -> None:
        """Send a reply; a notification gets none."""
        if request_id is None or self._writer.is_closing():
            return
        self._writer.write(encode_frame(frame))
        try:
            async with asyncio.timeout(_WRITE_S):
                await self._writer.drain()
        except (TimeoutError, OSError):
            self._writer.transport.abort()


def _read(frame: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A request's method and parameters.

    Raises:
        RpcError: It has none, or they are of the wrong kind.
    """
    method, params = frame.get("method"), frame.get("params")
    if not isinstance(method, str):
        raise RpcError(_INVALID_REQUEST, "a request has a `method`, a string")
    if params is not None and not isinstance(params, dict):
        raise RpcError(_INVALID_PARAMS, f"{method}: `params` is an object")
    return method, cast("dict[str, Any]", params or {})


def _prompt(session: Session) -> Any:
    """What is asked, as the wire has it: text, or messages."""
    prompt = session.prompt or Prompt(())
    if len(prompt.messages) == 1 and prompt.messages[0].role == "user":
        return prompt.messages[0].text
    return [{"role": m.role, "content": m.text} for m in prompt.messages]


def _graded(receipt: Receipt) -> dict[str, Any]:
    """A receipt as the wire has it: `score` is HUD's word for the reward."""
    if receipt.outcome is not Outcome.GRADED or receipt.reward is None:
        raise RpcError(_FAILED, f"the task ended without a grade: {receipt.outcome.value}")
    frame: dict[str, Any] = {
        "score": float(receipt.reward),
        "done": True,
        "info": receipt.info,
        "trajectory": receipt.trajectory,
        "graded_at": receipt.ended_at.isoformat(),
    }
    if receipt.content is not None:
        frame["content"] = receipt.content
    if receipt.subscores:
        frame["subscores"] = [s.model_dump(mode="json") for s in receipt.subscores]
    return frame

"""An agent's own connection: it works on the session that its runner holds, and nothing else.

It has the token of one session. With that it learns what the session publishes, and opens streams
to it; its runner starts the task and submits the answer. To it, no other method exists.
"""

import asyncio
from contextlib import suppress
from typing import Any

from hud_mcp.plugins.hud.wire.connection import Service
from hud_mcp.plugins.hud.wire.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.plugins.hud.wire.hud_session import HudSession
from hud_mcp.plugins.hud.wire.requests import RpcError, read_request

__all__ = ["Guest"]

_FAILED, _NO_METHOD = -32000, -32601
_WRITE_S = 30.0


class Guest:
    """One agent.

    Args:
        service: What is served.
        frames: What it sends.
        writer: Where its replies go.
        session: The digest of its session's id.
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
                await self._send(None, {"error": {"code": exc.code, "message": str(exc)}})
                return
            except TimeoutError:
                return

    async def _answer(self, frame: dict[str, Any]) -> bool:
        """Answer a request; return whether to go on."""
        method = ""
        try:
            method, params = read_request(frame)
            answer = {"result": await self._result(method, params)}
        except RpcError as exc:
            answer = {"error": {"code": exc.code, "message": str(exc)}}
        if frame.get("id") is not None:
            await self._send(frame["id"], answer)
        return method != "bye" and not self._writer.is_closing()

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "bye":  # what is held is its runner's
            return {"goodbye": True}
        if method != "hello":
            raise RpcError(_NO_METHOD, f"method not found: {method}")
        hud = self._service.hud_sessions.find(self._session)
        wanted = params.get("session_id")
        if hud is None or wanted not in (None, hud.id):
            raise RpcError(
                _FAILED, "this token belongs to a session that has ended, or to another one"
            )
        hud.touch()
        return await self._greeting(hud)

    async def _greeting(self, hud: HudSession) -> dict[str, Any]:
        environment = self._service.environment
        return {
            "session_id": hud.id,
            "env": {"name": environment.name, "version": environment.version},
            "bindings": await self._service.bindings(hud),
            "server": "hud-mcp",
        }

    async def _send(self, request_id: Any, answer: dict[str, Any]) -> None:
        with suppress(TimeoutError, OSError):
            self._writer.write(encode_frame({"jsonrpc": "2.0", "id": request_id, **answer}))
            async with asyncio.timeout(_WRITE_S):
                await self._writer.drain()

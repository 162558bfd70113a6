"""A client of OpenEnv's wire: a WebSocket, and nothing else."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from waiting import PATIENCE_S
from websockets.asyncio.client import ClientConnection, connect

__all__ = ["Talk", "talking"]


class Talk:
    """One connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def ask(self, kind: str, data: Any = None) -> dict[str, Any]:
        """Send a message, and return the reply to it."""
        message = {"type": kind} if data is None else {"type": kind, "data": data}
        with anyio.fail_after(PATIENCE_S):
            await self.socket.send(json.dumps(message))
            return json.loads(await self.socket.recv())

    async def reset(self, **given: Any) -> dict[str, Any]:
        """Begin an episode."""
        return self._seen(await self.ask("reset", given))

    async def step(self, **action: Any) -> dict[str, Any]:
        """Take a step."""
        return self._seen(await self.ask("step", action))

    async def refused(self, kind: str, data: Any = None) -> str:
        """Why a message is refused."""
        reply = await self.ask(kind, data)
        assert reply["type"] == "error", reply
        return reply["data"]["message"]

    def _seen(self, reply: dict[str, Any]) -> dict[str, Any]:
        assert reply["type"] == "observation", reply
        return reply["data"]


@asynccontextmanager
async def talking(
    url: str, query: str = "", headers: Mapping[str, str] | None = None
) -> AsyncIterator[Talk]:
    """Connect to the server of an MCP address."""
    place = url.replace("http://", "ws://").removesuffix("/mcp") + "/ws" + query
    async with connect(place, additional_headers=headers, open_timeout=PATIENCE_S) as socket:
        yield Talk(socket)

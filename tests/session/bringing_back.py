"""Sessions that a server left behind, and each call that may meet them as they come back."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from mcp.client import Client
from slate import registry

from hud_mcp.environment import Environment
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.server.app import build_server
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.action import TypeAction
from hud_mcp.values.observation import Look

ME = Caller()
REPLAYED = ("open", "setup", "act 0", "act 1", "look")
KEPT = ("open", "setup", "restore")
MOMENTS = [("replayed", m) for m in REPLAYED] + [("kept", m) for m in KEPT]


@dataclass
class Server:
    """A server's registry, an MCP client of it, and what its operator may call."""

    sessions: Sessions
    client: Client
    operations: Operations
    session: str

    async def tool(self, name: str, **arguments: Any) -> str:
        """Call a tool that must succeed, and return its text."""
        reply = await self.client.call_tool(name, {"session": self.session, **arguments})
        text = "\n".join(c.text for c in reply.content if c.type == "text")
        assert not reply.is_error, text
        return text

    async def operate(self, name: str, **params: Any) -> dict[str, Any]:
        """Perform an operation."""
        return await self.operations.perform(f"hud-mcp/{name}", {"session": self.session, **params})

    async def find(self) -> Session:
        """The session."""
        found = await self.sessions.find(self.session, self.caller)
        assert isinstance(found, Session)
        return found

    caller: Caller = ME


def typed(word: str) -> dict[str, Any]:
    """An action that writes."""
    return {"type": "type", "text": word}


async def left_behind(store: Path, env: Environment, caller: Caller = ME) -> tuple[str, str]:
    """A session that wrote tea and milk before its server stopped: its id and its record's."""
    async with registry(store, env) as sessions:
        session = await sessions.start(sessions.catalogue.mint("fill", {}), caller=caller)
        for word in ("tea", "milk"):
            await session.step((TypeAction(text=word),), Look())
        return session.id, session.trajectory_id


async def record(sessions: Sessions, trajectory: str) -> Trajectory:
    """What the store has of it."""
    return await sessions.store.load_trajectory(trajectory)


async def a_while() -> None:
    """Let whatever can happen, happen: a wait that is passed by would be over."""
    for _ in range(40):
        await anyio.lowlevel.checkpoint()


async def served(
    sessions: Sessions, session: str, caller: Caller, run: Callable[[Server], Awaitable[None]]
) -> None:
    """Run with a client of a server."""
    async with Client(build_server(sessions)) as client:
        await run(Server(sessions, client, Operations(sessions), session, caller))

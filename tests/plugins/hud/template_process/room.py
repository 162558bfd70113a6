"""Sessions of one author's file, and what an agent does in them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.observation import Look

AUTHORED = Path(__file__).resolve().parent / "authored"


@dataclass(frozen=True)
class Room:
    """Sessions of one environment.

    Attributes:
        name: The environment's.
        root: Its workspace.
        sessions: All of them.
        store: Where they are recorded.
    """

    name: str
    root: Path
    sessions: Sessions
    store: Store

    async def start(self, template: str, **args: Any) -> Session:
        """Start a session."""
        task = Task(id=template, env=self.name, template=template, args=args)
        return await self.sessions.start(task, caller=Caller(None, "test"))

    async def record(self, session: Session) -> Trajectory:
        """What is recorded of a session, once it has ended."""
        await session.closed()
        return await self.store.load_trajectory(session.trajectory_id)

    async def last(self) -> Trajectory:
        """What is recorded of the last session."""
        (row, *_) = await self.store.list_trajectories()
        return await self.store.load_trajectory(row.id)


async def command(session: Session, line: str) -> str:
    """What a command of the agent's writes."""
    tool = session.environment.tools["run_command"]
    stepped = await session.call_tool(tool, {"command": line}, Look())
    assert stepped.error is None, stepped.error
    return stepped.result.observation.text or ""

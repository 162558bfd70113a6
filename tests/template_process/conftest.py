"""Sessions of authors' files, in this process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hud_mcp.limits import Limits
from hud_mcp.observation import Look
from hud_mcp.session import Caller, Session
from hud_mcp.sessions import Sessions
from hud_mcp.source import load_environments
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.trajectory import Trajectory

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


Open = Callable[..., Any]


@pytest.fixture
def open_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens sessions of a copy of an author's file, so that each test has one of its own."""

    @asynccontextmanager
    async def open_one(
        name: str = "rooms", *, root: str | None = "work", **limits: Any
    ) -> AsyncIterator[Room]:
        place = tmp_path / root if root is not None else None
        for variable in ("ROOMS_ROOT", "REPAIR_ROOT"):
            monkeypatch.setenv(variable, str(place or ""))
        monkeypatch.setenv("ROOMS_STARTED", str(tmp_path / "started"))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        source = tmp_path / "files" / f"{name}.py"
        source.parent.mkdir(exist_ok=True)
        source.write_text((AUTHORED / f"{name}.py").read_text())
        (environment,) = load_environments([str(source)])
        store = Store(tmp_path / "store.sqlite3")
        sessions = Sessions([environment], store=store, limits=Limits(**limits))
        try:
            yield Room(name, environment.world.root, sessions, store)  # pyright: ignore[reportAttributeAccessIssue]  # a Workspace
        finally:
            await sessions.close()

    return open_one

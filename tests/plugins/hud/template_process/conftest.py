"""Sessions of authors' files, in this process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from room import AUTHORED, Room

from hud_mcp.loading.source import load_environments
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store

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

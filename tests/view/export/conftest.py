"""What the tests of exports share."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from recording import Recorded
from waiting import PATIENCE_S

from hud_mcp.store import Store


@pytest.fixture
async def record(tmp_path: Path) -> AsyncIterator[Recorded]:
    """An empty job in a store of its own."""
    folder = tmp_path / "store"
    folder.mkdir()
    store = Store(folder / "store.sqlite3")
    yield Recorded(store, folder)
    with anyio.fail_after(PATIENCE_S):
        await store.close()

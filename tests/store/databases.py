"""A store on each kind of database: nearly every claim is made of both."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from store_server import Server
from waiting import PATIENCE_S

from hud_mcp.store import Store

__all__ = ["data_folder", "open_store", "serve", "store", "url"]


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a store on PostgreSQL keeps on the machine, it keeps for this test alone."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be made; nothing is there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.sqlite3"
    return request.getfixturevalue("cluster").new_schema()


@pytest.fixture
async def open_store(url: str) -> AsyncIterator[Callable[..., Store]]:
    """Open the store, as often as there are servers; each is closed at the end."""
    opened: list[Store] = []

    def open_one(**options: float) -> Store:
        opened.append(Store(url, **options))
        return opened[-1]

    yield open_one
    with anyio.fail_after(PATIENCE_S):
        for store in opened:
            await store.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """A store, closed at the end."""
    return open_store()


@pytest.fixture
def serve(url: str) -> Iterator[Callable[..., Server]]:
    """Start servers on the store; all have ended at the end."""
    started: list[Server] = []

    def start(lease_s: float = 60, **options: object) -> Server:
        started.append(Server(url, lease_s, **options))
        return started[-1]

    yield start
    for server in started:
        server.end()

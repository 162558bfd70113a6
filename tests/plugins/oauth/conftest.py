"""A store, and people who may sign in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from signing_in import Clock, Face, face, password_lines

from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.store import Store


@pytest.fixture
def people(tmp_path: Path) -> PasswordFile:
    """Ann, and Olga, who is an operator."""
    path = tmp_path / "users"
    path.write_text(password_lines())
    return PasswordFile(path)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    store = Store(tmp_path / "store.sqlite3")
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    """The server's clock."""
    return Clock()


@pytest.fixture
async def at(kept: Store, people: PasswordFile, clock: Clock) -> AsyncIterator[Face]:
    """A server behind a public address."""
    async with face(kept, people, clock=clock, tokens={"the-token-of-a-file": "ann"}) as found:
        yield found

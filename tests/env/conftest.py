"""One set of tests over every place in which a live environment runs."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from places import BENCH, TOKEN, Place, serving, token_file

from hud_mcp.loading.source import load_environments
from hud_mcp.session.caller import OPERATOR_TOKEN


@pytest.fixture(scope="session")
def http_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server over HTTP."""
    folder = tmp_path_factory.mktemp("http")
    store = folder / "store.sqlite3"
    options = ["--store", str(store), "--operator-token-file", str(token_file(folder))]
    command = ["serve", str(BENCH), "qa", "--http", "127.0.0.1:0", *options]
    with serving(command, folder / "log") as (_, url):
        yield Place("http", url, store)


@pytest.fixture(scope="session")
def channel_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server on the control channel."""
    folder = tmp_path_factory.mktemp("channel")
    store = folder / "store.sqlite3"
    options = ["--store", str(store), "--operator-token-file", str(token_file(folder))]
    with serving(["channel", "serve", str(BENCH), *options], folder / "log") as (_, port):
        yield Place("channel", f"tcp://127.0.0.1:{port}", store)


STDIO = pytest.param("stdio", marks=pytest.mark.long)
"""A server for each test; `test_it_is_the_same_wherever_it_runs` has one in `make test`."""


@pytest.fixture(params=["here", STDIO, "http", "channel"])
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """Every place in turn; what a test leaves open there is closed."""
    load_environments([str(BENCH)])
    name: str = request.param
    if name in ("here", "stdio"):
        store = tmp_path / "store.sqlite3"
        monkeypatch.setenv("HUD_MCP_STORE", str(store))
        monkeypatch.delenv(OPERATOR_TOKEN, raising=False)
        found = Place(name, None if name == "here" else f"stdio:{BENCH}", store)
    else:
        monkeypatch.setenv(OPERATOR_TOKEN, TOKEN)
        found = request.getfixturevalue(f"{name}_place")
    yield found
    await found.close()


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """This process alone."""
    load_environments([str(BENCH)])
    store = tmp_path / "store.sqlite3"
    monkeypatch.setenv("HUD_MCP_STORE", str(store))
    found = Place("here", None, store)
    yield found
    await found.close()

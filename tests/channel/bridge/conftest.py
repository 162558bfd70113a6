"""HUD servers to bridge, and what the tests of bridges share."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "interaction"))  # its clients are these tests' too

from bridging import PAGES, QUESTIONS, WORKBENCH, Bridged, HudServer, bridged, hud_server  # noqa: E402


@pytest.fixture(scope="session")
def questions(hud_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudServer]:
    """One HUD server, for whatever leaves it as it was."""
    with hud_server(hud_python, QUESTIONS, tmp_path_factory.mktemp("questions")) as running:
        yield running


@pytest.fixture(scope="session")
def workbench(hud_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudServer]:
    """The same, of an environment with capabilities."""
    with hud_server(hud_python, WORKBENCH, tmp_path_factory.mktemp("workbench")) as running:
        yield running


@pytest.fixture(scope="session")
def pages(hud_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudServer]:
    """The same, of an environment with a browser."""
    with hud_server(hud_python, PAGES, tmp_path_factory.mktemp("pages")) as running:
        yield running


@pytest.fixture
def mortal(hud_python: Path, tmp_path: Path) -> Iterator[Callable[..., HudServer]]:
    """Starts HUD servers that a test may kill."""
    with ExitStack() as stack:

        def start(source: Path = QUESTIONS, port: int = 0) -> HudServer:
            return stack.enter_context(hud_server(hud_python, source, tmp_path, port))

        yield start


@pytest.fixture
async def asked(questions: HudServer, tmp_path: Path) -> AsyncIterator[Bridged]:
    """The questions, bridged in this process."""
    async with bridged(questions.url, tmp_path / "store.sqlite3") as running:
        yield running


@pytest.fixture
async def bench(workbench: HudServer, tmp_path: Path) -> AsyncIterator[Bridged]:
    """The workbench, bridged in this process."""
    async with bridged(workbench.url, tmp_path / "store.sqlite3") as running:
        yield running

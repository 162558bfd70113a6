"""The servers that tests share, and connections to them in every transport and era."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from asked_tasks import write
from peers import (
    BOARD,
    FAULTY,
    LEGACY,
    WAYS,
    Gate,
    HttpServer,
    Peer,
    Way,
    http_peer,
    http_server,
    stdio_peer,
)

SOURCES = (BOARD, FAULTY, "letter_count")
TASKS = Path(__file__).resolve().parent / "environments" / "board_tasks.jsonl"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server over HTTP, for whatever leaves it as it was."""
    folder = tmp_path_factory.mktemp("http")
    with http_server(folder, SOURCES, "--taskset", str(TASKS)) as running:
        yield running


@pytest.fixture(scope="session")
async def peers(
    server: HttpServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[Way, Peer]]:
    """A connection of each kind, to servers of the same environments.

    The modern ones negotiate, as the SDK's clients do by default; elsewhere the version is pinned.
    """
    found: dict[Way, Peer] = {}
    leave = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    for way in WAYS:
        mode = LEGACY if way.era == LEGACY else "auto"
        if way.transport == "http":
            opened = http_peer(server, era=mode)
        else:
            folder = tmp_path_factory.mktemp(str(way))
            opened = stdio_peer(folder, SOURCES, "--taskset", str(TASKS), era=mode)
        ready: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()
        tasks.append(asyncio.create_task(_hold(opened, ready, leave)))
        found[way] = replace(await ready, way=way)
    yield found
    leave.set()
    await asyncio.gather(*tasks)


async def _hold(
    opened: AbstractAsyncContextManager[Peer], ready: asyncio.Future[Peer], leave: asyncio.Event
) -> None:
    """Keep a connection open in a task of its own: if it breaks, it takes no other test with it."""
    try:
        async with opened as peer:
            ready.set_result(peer)
            await leave.wait()
    except BaseException as exc:
        if not ready.done():
            ready.set_exception(exc)
        raise


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """Every transport in every era."""
    return request.param


@pytest.fixture
def peer(way: Way, peers: dict[Way, Peer]) -> Peer:
    """A shared connection of each kind: sessions of other tests may live on it."""
    return peers[way]


@pytest.fixture
def http(peers: dict[Way, Peer]) -> Peer:
    """The shared 2026-era HTTP connection, for what no transport changes."""
    return peers[WAYS[3]]


@pytest.fixture
def gates(tmp_path: Path) -> Callable[[str], Gate]:
    """Makes places where the server stops until the test lets it go on."""
    return lambda name: Gate(tmp_path, name)


@pytest.fixture(scope="module")
def taskset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows of `asked_tasks`, in a file."""
    return write(tmp_path_factory.mktemp("rows") / "rows.jsonl")

"""A server process on a store: it does what it is told on a line, and answers on a line."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from records import AT, begin, receipt, step

import hud_mcp
import hud_mcp.store.lease
import hud_mcp.store.sql.sessions
from hud_mcp.errors import HudMcpError
from hud_mcp.store import Store

_context = multiprocessing.get_context("forkserver")


class Server:
    """Another server process.

    Args:
        url: Of the store.
        lease_s: The store's.
        machine: Another name than this machine's, for one that is elsewhere.
        folder: Where a store on PostgreSQL keeps what is the machine's.
    """

    def __init__(
        self, url: str, lease_s: float = 60, *, machine: str = "", folder: Path | None = None
    ) -> None:
        environment = dict(os.environ)
        if folder is not None:
            environment["XDG_DATA_HOME"] = str(folder)
        _start_forking()
        self._pipe, theirs = _context.Pipe()
        arguments = (theirs, sys.path, environment, url, lease_s, machine)
        self._process = _context.Process(target=_main, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def tell(self, *command: Any) -> None:
        """Have it do something, and do not wait."""
        self._pipe.send(command)

    async def answer(self) -> Any:
        """What came of it: a value, or the name of an exception."""
        return await anyio.to_thread.run_sync(self._pipe.recv)

    async def ask(self, *command: Any) -> Any:
        """Have it do something; return what came of it."""
        self.tell(*command)
        return await self.answer()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; one that is killed is gone afterwards."""
        os.kill(self.pid, number)
        if number is signal.SIGKILL:
            self._process.join(10)

    def end(self) -> None:
        """End it, whatever state it is in."""
        self._process.kill()
        self._process.join(10)
        self._process.close()
        self._pipe.close()


@cache
def _start_forking() -> None:
    """Start what each server is forked from: its imports, which take the longest, are made once."""
    here = [str(Path(__file__).parent), str(Path(hud_mcp.__file__).parent.parent)]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(here)
    try:
        _context.set_forkserver_preload(["store_server"])
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _main(  # noqa: PLR0917  # what a process is started with
    pipe: Connection,
    path: list[str],
    environment: dict[str, str],
    url: str,
    lease_s: float,
    machine: str,
) -> None:
    """Serve until the pipe is closed."""
    sys.path[:] = path
    os.environ.update(environment)
    if machine:
        hud_mcp.store.sql.sessions.machine = lambda: machine
    anyio.run(_serve, pipe, Store(url, lease_s=lease_s))


async def _serve(pipe: Connection, store: Store) -> None:
    commands: dict[str, Callable[..., Awaitable[Any]]] = {
        "begin": lambda name: begin(store, name),
        "begin apart": lambda names: _begin_apart(store, names),
        "claim": store.claim_session,
        "release": store.release_session,
        "step": lambda name, index: store.add_step(
            name, step(index, observation_text=f"by {os.getpid()}"), answers=True, snapshot=b"s"
        ),
        "log": lambda name, first: store.add_logs(name, [(AT, f"by {os.getpid()}")], first=first),
        "prompt": store.set_prompt,
        "end": lambda name, reward: _end(store, name, reward),
        "waiting": lambda: _waiting(store),
        "trajectories of": lambda job_id: _trajectories(store, job_id),
        "close": store.close,
        "block": _block,
        "write for": lambda name, seconds: _write_for(store, name, seconds),
        "set clock": _set_clock,
    }
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = await commands[name](*arguments)
        except HudMcpError as exc:
            answer = type(exc).__name__
        pipe.send(answer)


async def _begin_apart(store: Store, names: list[str]) -> None:
    """One server a session, all in this process."""
    for name in names:
        await begin(Store(store.url), name)


async def _end(store: Store, name: str, reward: float) -> float | None:
    return (await store.end_session(name, receipt(trajectory=name, reward=reward))).reward


async def _waiting(store: Store) -> list[str]:
    return [w.trajectory_id for w in await store.waiting_sessions(["e"])]


async def _trajectories(store: Store, job_id: str) -> list[str]:
    return [t.id for t in (await store.load_job(job_id))[1]]


async def _block(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251  # as a world would that does not let go of the loop


async def _write_for(store: Store, name: str, seconds: float) -> int:
    count, until_s = 0, time.monotonic() + seconds
    while time.monotonic() < until_s:
        await store.add_step(name, step(count))
        count += 1
    return count


async def _set_clock(hours: float) -> None:
    """Let this process's clock go wrong."""
    off = timedelta(hours=hours)
    hud_mcp.store.lease.utc_now = lambda: datetime.now(UTC) + off
    hud_mcp.store.sql.sessions.utc_now = lambda: datetime.now(UTC) + off

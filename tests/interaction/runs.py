"""Evaluations in processes of their own, and what their stores hold afterwards."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson
import psutil
from peers import ENVIRONMENTS, child_environment
from waiting import PATIENCE_S, wait_until

__all__ = ["MORTAL", "Evaluation", "evaluation", "finish", "query", "rows_of"]

MORTAL = str(ENVIRONMENTS / "mortal.py")
Row = Mapping[str, Any]


def rows_of(
    template: str, number: int, /, env: str = "mortal", **args: Any
) -> list[dict[str, Any]]:
    """Rows of one template; `{i}` in an argument is the row's number."""

    def filled(value: Any, i: int) -> Any:
        return value.replace("{i}", str(i)) if isinstance(value, str) else value

    return [
        {
            "id": f"{template}-{i}",
            "env": env,
            "template": template,
            "args": {k: filled(v, i) for k, v in args.items()},
        }
        for i in range(number)
    ]


@dataclass
class Evaluation:
    """A running `hud-mcp eval`.

    Attributes:
        process: Its process.
        store: Where it records.
        printed: What it has printed so far.
        killed: The servers that were ended, by process id.
    """

    process: "subprocess.Popen[str]"
    store: Path
    printed: str = ""
    killed: set[int] = field(default_factory=set[int])

    def read_until(self, stop: Callable[[str], bool]) -> str:
        """Read lines until one is as wanted, and return it."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, self.printed
            self.printed += line
            if stop(line):
                return line

    def servers(self) -> list[psutil.Process]:
        """The processes that it has started, and theirs."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill_server(self) -> None:
        """End its server as an operating system does that is out of memory.

        Where the last one was just ended and the next one is not there yet, that is waited for.
        """
        wait_until(self._has_killed)

    def _has_killed(self) -> int:
        """Kill what serves by now; return how many were killed."""
        assert self.process.poll() is None, f"the run has ended:\n{self.printed}"
        killed = 0
        for process in self.servers():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if process.pid not in self.killed and "serve" in process.cmdline():
                    process.kill()
                    self.killed.add(process.pid)
                    killed += 1
        return killed

    @property
    def job(self) -> str:
        """The job's id."""
        ((job,),) = query(self.store, "SELECT id FROM jobs ORDER BY created_at LIMIT 1")
        return job


@contextlib.contextmanager
def evaluation(
    folder: Path, rows: Sequence[Row] | None, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Evaluation]:
    """Start `hud-mcp eval`, on rows or on what the options resume; it is killed at the end."""
    command = [sys.executable, "-m", "hud_mcp", "eval"]
    if rows is not None:
        (folder / "rows.jsonl").write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
        command.append("rows.jsonl")
    store = folder / "store.sqlite3"
    process = subprocess.Popen(
        [*command, "--store", str(store), "--report", "report.html", *options],
        cwd=folder, env=child_environment(COLUMNS="200", **(env or {})), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    running = Evaluation(process, store)
    try:
        yield running
    finally:
        left = running.servers() if process.poll() is None else []
        process.kill()
        process.wait()
        for child in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        assert process.stdout is not None
        process.stdout.close()


async def finish(
    folder: Path, rows: Sequence[Row] | None, *options: str, within_s: float = 90, **more: Any
) -> tuple[int, str]:
    """Run `hud-mcp eval` to its end; return its status and what it printed."""
    with anyio.fail_after(within_s):
        return await anyio.to_thread.run_sync(
            lambda: _finish(folder, rows, *options, **more), abandon_on_cancel=True
        )


def _finish(
    folder: Path, rows: Sequence[Row] | None, *options: str, **more: Any
) -> tuple[int, str]:
    with evaluation(folder, rows, *options, **more) as running:
        printed = running.process.communicate()[0]
        return running.process.returncode, printed


def query(store: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask the store's file."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        return connection.execute(sql, values).fetchall()


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a moment."""
    return psutil.wait_procs(processes, timeout=PATIENCE_S)[1]

"""Values that the store's tests record, and children that record them in another process."""

import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from PIL import Image
from sqlalchemy import Connection, Engine, create_engine, event

import hud_mcp
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
TASK = Task(id="a", env="e", template="t", args={"n": [1]}, metadata={"k": "v"}, seed=-(2**63))


def trajectory(name: str = "traj-1", **fields: Any) -> Trajectory:
    """A record that begins."""
    return Trajectory.model_validate(
        {"id": name, "environment": "e", "task": TASK, "started_at": AT, **fields}
    )


def step(index: int, **fields: Any) -> TrajectoryStep:
    """A step of it."""
    return TrajectoryStep.model_validate(
        {"index": index, "kind": "step", "started_at": AT, "ended_at": AT, **fields}
    )


def receipt(**fields: Any) -> Receipt:
    """Its end."""
    return Receipt.model_validate(
        {
            "trajectory": "traj-1",
            "environment": "e",
            "task": "a",
            "template": "t",
            "outcome": Outcome.GRADED,
            "reward": 0.5,
            "started_at": AT,
            "ended_at": AT + timedelta(seconds=9),
            "reward_policy": "hidden",
            "package_version": "0",
            "task_digest": TASK.digest,
            "environment_digest": "0" * 64,
            **fields,
        }
    )


def picture(colour: str = "navy") -> Screenshot:
    """A small PNG."""
    out = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue(), scale=2.0)


async def begin(store: Store, name: str = "traj-1", **fields: Any) -> None:
    """Record that a session begins."""
    await store.add_session(
        trajectory(name, **fields), secret_digest=f"digest of {name}", principal=None
    )


@contextmanager
def write_lock(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold a SQLite file's write lock, as another process would."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        if other.in_transaction:
            other.rollback()
        other.close()


@contextmanager
def stalled(url: str) -> Iterator[None]:
    """Keep every write to a store waiting meanwhile; its tables are there."""
    if url.startswith("sqlite"):
        with write_lock(Path(url.removeprefix("sqlite:///"))):
            yield
        return
    with psycopg.connect(libpq(url)) as other:
        other.execute("LOCK TABLE sessions, steps, logs IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            other.rollback()


def libpq(url: str) -> str:
    """The same database as libpq names it."""
    return url.replace("+psycopg", "")


def execute(url: str, statement: str) -> list[Any]:
    """Do something to a store's tables by hand."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


def waits_for_a_lock(url: str) -> bool:
    """Whether a transaction waits for another one of this database."""
    # In a transaction of its own: one sees the activity of others as it was at its beginning.
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return execute(url, waiting) != [(0,)]


@contextmanager
def commits() -> Iterator[list[Connection]]:
    """The connection of every commit meanwhile."""
    seen: list[Connection] = []
    add = seen.append  # one object, by which it is found again
    event.listen(Engine, "commit", add)
    try:
        yield seen
    finally:
        event.remove(Engine, "commit", add)


def run_child(
    program: str, *arguments: str, environment: dict[str, str] | None = None, **options: Any
) -> "subprocess.Popen[str]":
    """Run a program in another process that finds this package and this module."""
    here = [str(Path(hud_mcp.__file__).parent.parent), str(Path(__file__).parent)]
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(here), **(environment or {})},
        **options,
    )

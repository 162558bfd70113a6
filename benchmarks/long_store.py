"""A store of a million steps: how long it takes to list, open, sum up, measure and prune.

    python benchmarks/long_store.py [STORE] [--sessions 25000] [--steps 40]

STORE is a path of a new SQLite file, or the URL of an empty PostgreSQL database; without it, a file
is made and removed. Some sessions more belong to a second job. The same steps are multiplied in the
database.

Beside each thing that reads or removes many rows stands one bare statement that does the same to
them and makes nothing of it; how busy the machine is changes both alike. What is removed so is
there again afterwards. Processor seconds are this process's: of SQLite all, and the ratio is of
them; of PostgreSQL the client's, and the ratio is of seconds.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from many_trajectories import LARGE, START, Size, make_pictures, make_record
from sqlalchemy import Connection, text

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import load_job
from hud_mcp.record.place import read_place
from hud_mcp.store import Store, sql

_PICTURES = 50

_RUNS = f"SELECT * FROM sessions WHERE job_id = '{LARGE}'"
_BARE = {
    "open a job": _RUNS,
    "statistics": _RUNS,
    "info": 'SELECT sum(length(CAST("row" AS TEXT))) FROM steps',
    "prune, grades kept": "DELETE FROM steps",
}
"""What does the same to the same rows, and makes nothing of them."""

_MULTIPLY = {
    "sqlite": """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :last)
        INSERT INTO steps (session_id, step, row, took_s)
        SELECT session_id, n.i, json_set(row, '$.index', n.i), 1.0 FROM steps, n
        WHERE step = 0
    """,
    "postgresql": """
        INSERT INTO steps (session_id, step, "row", took_s)
        SELECT session_id, i, jsonb_set("row"::jsonb, '{index}', to_jsonb(i))::json, 1.0
        FROM steps, generate_series(1, :last) AS n(i) WHERE step = 0
    """,
}


def make_long(store: str, sessions: int, steps: int) -> int:
    """Write so many sessions and some more, each with so many steps; return how many steps."""
    make_record(store, Size(sessions, 1, _PICTURES))
    make_pictures(Store(store).screenshots, _PICTURES)
    engine = sql.engine.open_engine(*read_place(store))
    try:
        with engine.begin() as connection:
            connection.execute(text(_MULTIPLY[engine.dialect.name]), {"last": steps - 1})
        with engine.connect() as connection:
            _analyse(connection)
            return connection.exec_driver_sql("SELECT count(*) FROM steps").scalar_one()
    finally:
        engine.dispose()


def _analyse(connection: Connection) -> None:
    """As PostgreSQL's own daemon does; SQLite's plans need none."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


async def measure(store: Store) -> None:
    """Print how long each thing takes, and the bare statement beside it."""
    job, upkeep = await load_job(LARGE, store), Upkeep(store)
    last = (await store.list_trajectories(job_id=job.id, limit=1))[0]
    things: dict[str, Callable[[], Awaitable[Any]]] = {
        "list jobs": store.list_jobs,
        "list a job's newest 1,000": lambda: store.list_trajectories(job_id=job.id),
        "open a job": lambda: Outlines(store.database).load_outline(job.id),
        "open a trajectory": lambda: store.load_trajectory(last.id),
        "find by its id": lambda: store.find_trajectory_id(last.id),
        "statistics": job.statistics,
        "means of all jobs": Outlines(store.database).count_rewards,
        "info": upkeep.measure,
        "verify": upkeep.verify,
        "prune, grades kept": lambda: upkeep.prune(START + timedelta(days=60), keep_grades=True),
        "statistics, pruned": job.statistics,
        "vacuum": upkeep.vacuum,
    }
    is_here = read_place(store.url)[1] is not None
    print("| what | seconds | processor | bare | processor | times the bare one |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, do in things.items():
        bare = _bare(store.url, _BARE[name]) if name in _BARE else None
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        await do()
        took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        beside = "| |"
        if bare is not None:
            ratio = cpu_s / bare[1] if is_here else took_s / bare[0]
            beside = f"{bare[0]:.2f} | {bare[1]:.2f} | {ratio:.1f}"
        print(f"| {name} | {took_s:.2f} | {cpu_s:.2f} | {beside} |", flush=True)


def _bare(store: str, statement: str) -> tuple[float, float]:
    """The seconds, and the processor's, of one statement, all of whose rows are fetched."""
    engine = sql.engine.open_engine(*read_place(store))
    try:
        with engine.connect() as connection:
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            done = connection.exec_driver_sql(statement)
            if done.returns_rows:
                done.all()
            took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
            connection.rollback()
            return took_s, cpu_s
    finally:
        engine.dispose()


async def main() -> None:
    """Make the record, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?")
    parser.add_argument("--sessions", type=int, default=25_000)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder  # a store on PostgreSQL has its pictures there
        place = given.store or str(Path(folder) / "store.sqlite3")
        began_s = time.perf_counter()
        made = make_long(place, given.sessions, given.steps)
        print(f"{made:,} steps made in {time.perf_counter() - began_s:.0f} s")
        store = Store(place)
        try:
            await measure(store)
        finally:
            await store.close()


if __name__ == "__main__":
    asyncio.run(main())

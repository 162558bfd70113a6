"""A store of a million steps: how long it takes to list, open, sum up, measure and prune.

    python benchmarks/long_store.py STORE [--sessions 25000] [--steps 40]

STORE is a path of a new SQLite file, or the URL of an empty PostgreSQL database. Some
sessions more belong to a second job. The same steps are multiplied in the database.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from many_trajectories import START, Size, make_record
from sqlalchemy import Connection, text

from hud_mcp.record.job import load_job
from hud_mcp.record.place import read_place
from hud_mcp.store import Store, sql

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
    make_record(store, Size(sessions, 1, 50))
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
    """Print how long each thing takes."""
    job = await load_job("job-many", store)
    last = (await store.list_trajectories(job_id=job.id, limit=1))[0]
    things: dict[str, Callable[[], Awaitable[Any]]] = {
        "list jobs": store.list_jobs,
        "list a job's newest 1,000": lambda: store.list_trajectories(job_id=job.id),
        "open a job": lambda: store.load_outline(job.id),
        "open a trajectory": lambda: store.load_trajectory(last.id),
        "find by its id": lambda: store.find_trajectory_id(last.id),
        "statistics": job.statistics,
        "means of all jobs": store.count_rewards,
        "info": store.measure,
        "verify": store.verify,
        "prune, grades kept": lambda: store.prune(START + timedelta(days=60), keep_grades=True),
        "statistics, pruned": job.statistics,
        "vacuum": store.vacuum,
    }
    print("| what | seconds |")
    print("|---|--:|")
    for name, do in things.items():
        began_s = time.perf_counter()
        await do()
        print(f"| {name} | {time.perf_counter() - began_s:.2f} |", flush=True)


async def main() -> None:
    """Make the record, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--sessions", type=int, default=25_000)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    began_s = time.perf_counter()
    made = make_long(given.store, given.sessions, given.steps)
    print(f"{made:,} steps made in {time.perf_counter() - began_s:.0f} s")
    store = Store(given.store)
    try:
        await measure(store)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())

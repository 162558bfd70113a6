"""A million steps on either database: no list, page or figure reads all of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from records import execute
from sqlalchemy import Engine, create_engine, event

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))

from long_store import make_long
from many_trajectories import START

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import load_job
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.scale]

SESSIONS, STEPS = 25_000, 40


@contextmanager
def selects() -> Iterator[list[tuple[str, Any]]]:
    """Every query meanwhile, with its parameters."""
    seen: list[tuple[str, Any]] = []

    def look(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if statement.lstrip().startswith("SELECT") and " steps" in statement:
            seen.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", look)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", look)


def reads_all_steps(url: str, queries: list[tuple[str, Any]]) -> list[str]:
    """Those of some queries whose plans go through the whole table of steps."""
    explain = "EXPLAIN QUERY PLAN" if url.startswith("sqlite") else "EXPLAIN"
    found: list[str] = []
    engine = create_engine(url)
    with engine.connect() as connection:
        for statement, parameters in queries:
            plan = connection.exec_driver_sql(f"{explain} {statement}", parameters)
            told = "\n".join(str(row[-1]) for row in plan)
            if "SCAN steps" in told or "Seq Scan on steps" in told:
                found.append(f"{statement}\n{told}")
    engine.dispose()
    return found


async def test_a_million_steps_are_listed_opened_summed_up_and_pruned_by_index(
    store: Store, url: str
) -> None:
    """Each through the keys of its own rows; a prune in transactions of a bounded size."""
    made = await anyio.to_thread.run_sync(make_long, url, SESSIONS, STEPS)
    assert made >= 1_000_000
    job = await load_job("job-fewer", store)
    with selects() as queries:
        assert len(await store.list_jobs()) >= 2
        newest = await store.list_trajectories(job_id="job-many", limit=20)
        assert [run.step_count for run in newest] == [STEPS] * 20
        assert len((await store.load_trajectory(newest[0].id)).steps) == STEPS
        assert await store.find_trajectory_id(newest[0].id) == newest[0].id
        before = str(await job.statistics())
        await Outlines(store.database).stamp_job("job-fewer")
    assert len(queries) >= 3
    assert await anyio.to_thread.run_sync(reads_all_steps, url, queries) == []
    told: list[int] = []
    cutoff = START + timedelta(days=60)
    with selects() as queries:
        done = await Upkeep(store).prune(
            cutoff, keep_grades=True, on_progress=lambda runs, _: told.append(runs)
        )
    batches = [one for one in queries if "count(" in one[0] and "IN (" in one[0]][:3]
    assert await anyio.to_thread.run_sync(reads_all_steps, url, batches) == []
    assert (done.runs, done.steps) == (made // STEPS, made)
    assert max(b - a for a, b in zip([0, *told], told, strict=False)) * STEPS <= 4000
    assert execute(url, "SELECT count(*) FROM steps") == [(0,)]
    assert str(await job.statistics()) == before

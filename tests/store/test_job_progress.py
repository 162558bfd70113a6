"""How far jobs are, as the database counts it."""

from datetime import timedelta

import pytest

from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import utc_now
from hud_mcp.store import Store
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio


async def test_a_job_runs_while_a_living_server_has_a_run_of_it(store: Store) -> None:
    """What has begun counts by its server's signs of life; a job without runs has its tasks."""
    tasks = [Task(id=name, env="shop", template="find") for name in ("a", "b")]
    begun, waiting = Job(name="Begun"), Job(name="Waiting")
    for job in (begun, waiting):
        await store.add_job(job, tasks)
    made = Trajectory(
        id="tr-1", job_id=begun.id, environment="shop", task=tasks[0], started_at=utc_now()
    )
    await store.add_session(made, secret_digest="1" * 64, principal=None)
    now = await Outlines(store.database).count_progress(utc_now() - timedelta(hours=1))
    later = await Outlines(store.database).count_progress(utc_now() + timedelta(hours=1))

    assert (now[begun.id].running, now[begun.id].tasks, now[begun.id].ended) == (1, 2, 0)
    assert later[begun.id].running == 0
    assert now[begun.id].begun_at == made.started_at
    assert (now[waiting.id].tasks, now[waiting.id].running) == (2, 0)

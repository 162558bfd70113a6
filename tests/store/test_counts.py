"""What a viewer asks of a whole store, on each kind of database."""

from datetime import timedelta

import pytest
from records import AT, TASK, begin, receipt

from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


async def test_rewards_are_counted_for_each_job_and_for_none(store: Store) -> None:
    """Only graded sessions are in the mean; the others are in the number of all."""
    first, second = Job(name="a"), Job(name="b")
    for job in (first, second):
        await store.add_job(job)
    ends = [(first, 1.0), (first, 0.5), (first, None), (None, 0.25)]
    for i, (job, reward) in enumerate(ends):
        await begin(store, f"traj-{i}", job_id=job.id if job else None)
        outcome = Outcome.GRADED if reward is not None else Outcome.LOST
        await store.end_session(f"traj-{i}", receipt(outcome=outcome, reward=reward))
    await begin(store, "traj-goes-on", job_id=second.id)
    assert await Outlines(store.database).count_rewards() == {
        first.id: (3, 2, 0.75),
        second.id: (1, 0, None),
        None: (1, 1, 0.25),
    }


async def test_runs_of_a_task_are_found_in_every_job(store: Store) -> None:
    """The newest first, as many as are wanted."""
    jobs = [Job(name="a"), Job(name="b")]
    other = Task(id='quoted "id"', env="e", template="t")
    for i, job in enumerate(jobs):
        await store.add_job(job)
        at = AT + timedelta(hours=i)
        await begin(store, f"traj-{i}", job_id=job.id, started_at=at)
        await begin(store, f"other-{i}", job_id=job.id, task=other, started_at=at)
    assert [run.id for run in await store.list_trajectories(task_id=TASK.id)] == [
        "traj-1",
        "traj-0",
    ]
    assert [run.id for run in await store.list_trajectories(task_id=other.id, limit=1)] == [
        "other-1"
    ]
    assert await store.list_trajectories(task_id="none") == []


async def test_a_log_is_read_from_a_line_on(store: Store) -> None:
    """What was read before is not read again, and another session's lines are not in it."""
    for name in ("traj-1", "traj-2"):
        await begin(store, name)
    await store.add_logs("traj-1", [(AT, "one"), (AT, "two")])
    await store.add_logs("traj-2", [(AT, "elsewhere")])
    before = await store.load_lines("traj-1")
    assert [text for _, text in before] == ["03:04:05 one", "03:04:05 two"]
    await store.add_logs("traj-1", [(AT, "three")])
    after = await store.load_lines("traj-1", before[-1][0])
    assert [text for _, text in after] == ["03:04:05 three"]

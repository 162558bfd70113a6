"""Runs in short and ids by their beginnings, on each kind of database."""

import pytest
from records import TASK, begin, execute, receipt

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

TASKS = [Task(id=f"task-{i}", env="e", template="t") for i in range(12)]


async def test_runs_in_short_agree_with_the_summaries(store: Store) -> None:
    """The quick way to the figures is a way to the same figures."""
    job, other = Job(name="a"), Job(name="b")
    await store.add_job(job, TASKS)
    await store.add_job(other)
    ends = [1.0, 0.0, 0.25, -1.5, *(o for o in Outcome if o is not Outcome.GRADED), None]
    for i, end in enumerate(ends):
        await begin(store, f"traj-{i}", job_id=job.id, task=TASKS[i])
        if isinstance(end, float):
            await store.end_session(f"traj-{i}", receipt(reward=end))
        elif end is not None:
            await store.end_session(f"traj-{i}", receipt(outcome=end, reward=None, error="why"))
    await begin(store, "traj-other", job_id=other.id)
    _, listed, rows = await Outlines(store.database).load_outline(job.id)
    _, tasks, summaries = await store.load_job_summary(job.id)
    assert [t.id for t in listed] == [t.id for t in tasks] == [t.id for t in TASKS]
    brief = {(r.id, r.task_id, r.outcome, r.cause, r.reward, r.started_at) for r in rows}
    assert brief == {
        (s.id, s.task_id, s.outcome, s.cause, s.reward, s.started_at) for s in summaries
    }
    assert len(rows) == len(ends)
    assert not any(r.damaged for r in rows)


@pytest.mark.parametrize(
    "value", ["""{"outcome": "passed", "reward": 1}""", """{"reward": "high"}""", "[1]", '"x"']
)
async def test_a_damaged_receipt_does_not_hide_the_runs_beside_it(
    store: Store, url: str, value: str
) -> None:
    """It is marked, and nothing that is made up stands in its place."""
    job = Job(name="a")
    await store.add_job(job, [TASK])
    for name in ("traj-1", "traj-2"):
        await begin(store, name, job_id=job.id)
        await store.end_session(name, receipt())
    execute(url, f"UPDATE sessions SET receipt = '{value}' WHERE id = 'traj-2'")
    _, _, rows = await Outlines(store.database).load_outline(job.id)
    by_id = {r.id: (r.outcome, r.reward, r.damaged) for r in rows}
    assert by_id == {"traj-1": (Outcome.GRADED, 0.5, False), "traj-2": (None, None, True)}


async def test_an_id_is_found_by_how_it_begins(store: Store) -> None:
    """Where no other one begins so; a whole id is never taken for a beginning."""
    for name in ("traj-12", "traj-123", "traj-2%", "Traj-3"):
        await begin(store, name)
    await store.add_job(Job(id="job-1", name="a"))
    found = [await store.find_trajectory_id(t) for t in ("traj-12", "traj-123", "traj-2", "T")]
    assert found == ["traj-12", "traj-123", "traj-2%", "Traj-3"]
    assert await store.find_job_id("j") == "job-1"
    with pytest.raises(SourceNotFound, match=r"^'traj-1' begins the ids of 2 trajectories: "):
        await store.find_trajectory_id("traj-1")


@pytest.mark.parametrize("text", ["traj-3", "TRAJ-12", "traj_12", "traj-%", ""])
async def test_an_id_that_is_not_there_is_not_found(store: Store, text: str) -> None:
    """Whatever the database would make of it."""
    await begin(store, "traj-12")
    await begin(store, "traj-22")
    with pytest.raises(SourceNotFound, match=r"The store has no trajectory .* lists those of a"):
        await store.find_trajectory_id(text)

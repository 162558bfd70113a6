"""Which sessions count in a job, in every database."""

from collections.abc import Callable

import pytest
from records import AT, execute, receipt, trajectory

from hud_mcp.errors import LimitReached, SourceNotFound
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio


async def add(store: Store, job: Job, number: int, **more: object) -> int:
    """A session of a job, which is graded 1; the how manieth start it is."""
    begun = trajectory(f"traj-{number}", job_id=job.id)
    attempt = await store.add_session(begun, secret_digest=f"{number:064}", principal="me", **more)  # type: ignore[arg-type]
    await store.end_session(begun.id, receipt(trajectory=begun.id))
    return attempt


async def test_a_planned_job_counts_what_its_plan_names(open_store: Callable[..., Store]) -> None:
    """Every reader tells the two apart; to plan a run again changes nothing."""
    store = open_store()
    job = Job(name="a", planned=True)
    await store.add_job(job)
    for _ in range(2):
        await store.plan_run(job.id, f"{1:064}")
    priced = ModelTurn(started_at=AT, ended_at=AT, cost_usd=0.25)
    for number in (1, 2):
        await add(store, job, number)
        await store.add_turns(f"traj-{number}", [priced], before_step=0)
    found, _, runs = await store.load_job_summary(job.id)
    assert (found.planned, [(r.id, r.foreign) for r in runs]) == (
        True, [("traj-1", False), ("traj-2", True)],
    )  # fmt: skip
    _, _, rows = await Outlines(store.database).load_outline(job.id)
    assert {row.id: row.foreign for row in rows} == {"traj-1": False, "traj-2": True}
    assert [t.foreign for t in (await store.load_job(job.id))[1]] == [False, True]
    assert (await store.load_job_ids(job.id))[1] == ["traj-1"]
    assert (await store.load_job_ids(job.id, foreign=True))[1] == ["traj-2"]
    assert (await Outlines(store.database).count_rewards())[job.id][0] == 1
    assert (await Outlines(store.database).count_progress(AT))[job.id].cost_usd == 0.25
    with pytest.raises(SourceNotFound):
        await store.plan_run("job-none", "0" * 64)


async def test_to_save_a_job_does_not_take_its_plan_away(open_store: Callable[..., Store]) -> None:
    """A job object of before its first run does not undo what the store knows since."""
    store = open_store()
    job = Job(name="a")
    await store.add_job(job)
    await store.plan_run(job.id, f"{1:064}")
    await store.update_job(job)
    assert (await store.load_job_ids(job.id))[0].planned is True


async def test_a_job_of_before_there_were_plans_keeps_what_it_had(
    url: str, open_store: Callable[..., Store]
) -> None:
    """All of its sessions count; once a run of it is planned, those go on counting, and no more."""
    store = open_store()
    job = Job(name="a", planned=None)
    await store.add_job(job)
    for number in (1, 2):
        await add(store, job, number)
    found, ids = await store.load_job_ids(job.id)
    assert (found.planned, ids) == (None, ["traj-1", "traj-2"])
    await store.plan_run(job.id, f"{3:064}")
    for number in (3, 4):
        await add(store, job, number)
    assert (await store.load_job_ids(job.id))[1] == ["traj-1", "traj-2", "traj-3"]
    assert (await store.load_job_ids(job.id, foreign=True))[1] == ["traj-4"]
    assert execute(url, "SELECT count(*) FROM job_runs") == [(3,)]


async def test_starts_are_numbered_and_bounded(open_store: Callable[..., Store]) -> None:
    """By their key alone; what is refused is not written, and fails nothing beside it."""
    store = open_store()
    job = Job(name="a")
    await store.add_job(job)
    assert [await add(store, job, n, start_key="k" * 64, tries=2) for n in (1, 2)] == [1, 2]
    assert await add(store, job, 3, start_key="l" * 64, tries=2) == 1
    with pytest.raises(LimitReached, match="try 3 of this task, and it may be started 2 times"):
        await add(store, job, 4, start_key="k" * 64, tries=2)
    assert len((await store.load_job_ids(job.id))[1]) == 3

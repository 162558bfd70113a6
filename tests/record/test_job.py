"""A job is recorded, found again with its trajectories, and amounts to figures."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import Job, Store, Task, Taskset, load_job
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASKS = [Task(id=i, env="e", template="t") for i in ("a", "b", "c")]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a fresh folder, closed at the end."""
    opened = Store(tmp_path / "store.sqlite3")
    yield opened
    with anyio.fail_after(PATIENCE_S):
        await opened.close()


async def run(
    store: Store, job: Job, name: str, task: Task, end: float | Outcome | None, *, after_s: int = 0
) -> None:
    """Record a run of a task in a job: its reward, or an outcome without one, or no end."""
    begun = AT + timedelta(seconds=after_s)
    await store.add_session(
        Trajectory(id=name, job_id=job.id, environment="e", task=task, started_at=begun),
        secret_digest=f"digest of {name}",
        principal=None,
    )
    if end is None:
        return
    graded = not isinstance(end, Outcome)
    receipt = Receipt(
        trajectory=name,
        environment="e",
        task=task.id,
        template="t",
        outcome=Outcome.GRADED if graded else end,
        reward=end if graded else None,
        error=None if graded else "it broke",
        started_at=begun,
        ended_at=begun + timedelta(seconds=2),
        reward_policy="on_submit",
        package_version="0",
        task_digest=task.digest,
        environment_digest="0" * 64,
    )
    await store.end_session(name, receipt)


async def test_a_job_that_was_created_is_loaded_as_it_was(tmp_path: Path) -> None:
    """By its id, in another store object on the same file, with its tasks in order."""
    path = tmp_path / "store.sqlite3"
    job = await Job.create(
        "nightly", taskset="shop", agent="me", metadata={"k": [1]}, tasks=TASKS, group=2, store=path
    )
    found = await load_job(job.id, store=str(path))
    assert found == job
    assert (found.name, found.taskset, found.agent) == ("nightly", "shop", "me")
    assert (found.metadata, found.group) == ({"k": [1]}, 2)
    assert await found.load_tasks() == TASKS
    assert await found.load_trajectories() == []


async def test_a_taskset_brings_its_name_and_its_tasks(store: Store) -> None:
    """Unless other tasks are given, as a part of it."""
    taskset = Taskset(TASKS, name="shop")
    whole = await Job.create("all", taskset=taskset, store=store)
    part = await Job.create("some", taskset=taskset, tasks=TASKS[:1], store=store)
    assert whole.taskset == part.taskset == "shop"
    assert await whole.load_tasks() == TASKS
    assert await part.load_tasks() == TASKS[:1]


async def test_without_a_store_the_default_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which `HUD_MCP_STORE` names; nothing of it stays open."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "default.sqlite3"))
    job = await Job.create("a")
    assert (await load_job(job.id)).name == "a"
    assert await job.load_trajectories() == []
    assert (tmp_path / "default.sqlite3").is_file()
    assert not (tmp_path / "default.sqlite3-wal").exists(), "the last connection has closed"


async def test_trajectories_come_in_the_order_in_which_they_began(store: Store) -> None:
    """Those of this job alone, whole, and those that go on too."""
    job = await Job.create("a", store=store)
    other = await Job.create("b", store=store)
    await run(store, job, "traj-2", TASKS[0], 1.0, after_s=2)
    await run(store, job, "traj-1", TASKS[1], Outcome.LOST, after_s=1)
    await run(store, job, "traj-3", TASKS[2], None, after_s=3)
    await run(store, other, "traj-4", TASKS[0], 1.0)
    first, second, third = await (await load_job(job.id, store)).load_trajectories()
    assert [t.id for t in (first, second, third)] == ["traj-1", "traj-2", "traj-3"]
    assert (first.outcome, first.reward, first.error) == (Outcome.LOST, None, "it broke")
    assert (second.outcome, second.reward, second.error) == (Outcome.GRADED, 1.0, None)
    assert (third.outcome, third.reward, third.trajectory) == (None, None, [])


async def test_statistics_are_those_of_the_group_that_was_recorded(store: Store) -> None:
    """With what was never begun in the denominator, and failures beside the mean."""
    job = await Job.create("a", tasks=TASKS, group=2, store=store)
    ends = [(0, 1.0), (0, 0.0), (1, Outcome.LOST), (1, 1.0), (1, 0.5)]
    for i, (task, end) in enumerate(ends):
        await run(store, job, f"traj-{i}", TASKS[task], end, after_s=i)
    found = await job.statistics()
    assert found.mean is not None
    assert (found.mean.value, found.mean.runs) == (0.625, 4)
    assert (found.wanted, found.ended, found.earlier_tries) == (6, 4, 1)
    assert found.outcomes["not_begun"] == 2
    assert found == await (await load_job(job.id, store)).statistics()
    assert (await job.statistics(threshold=0.5)).tasks[1].passed == 2


async def test_a_job_is_found_by_how_its_id_begins(store: Store) -> None:
    """Where no other one begins so; a whole id is never taken for a beginning."""
    for name in ("job-12", "job-123", "job-2%"):
        await store.add_job(Job(id=name, name=name))
    assert (await load_job("job-2", store)).id == "job-2%"
    assert (await load_job("job-12", store)).id == "job-12"
    with pytest.raises(SourceNotFound, match=r"'job-1' begins the ids of 2 jobs: job-1\S+, job-1"):
        await load_job("job-1", store)


@pytest.mark.parametrize("text", ["job-x", "JOB-12", "job-%", "job_12", ""])
def test_what_no_id_begins_with_is_not_found(text: str, tmp_path: Path) -> None:
    """Whatever a database would make of it; a close one is named, and how to see the others."""

    async def look() -> None:
        await Job.create("a", store=tmp_path / "store.sqlite3")
        store = Store(tmp_path / "store.sqlite3")
        await store.add_job(Job(id="job-12", name="a"))
        await store.close()
        await load_job(text, tmp_path / "store.sqlite3")

    with pytest.raises(SourceNotFound, match=r"no job .* `hud-mcp jobs` lists them\.") as raised:
        anyio.run(look)
    assert ("Did you mean 'job-12'?" in str(raised.value)) == (text != "")


async def test_looking_for_a_job_makes_no_store(tmp_path: Path) -> None:
    """A path that was mistyped stays empty, and the error names it."""
    path = tmp_path / "stroe.sqlite3"
    with pytest.raises(SourceNotFound, match=r"There is no store at .*stroe\.sqlite3\."):
        await load_job("job-1", path)
    assert not path.exists()


async def test_a_job_that_no_store_has_says_so(store: Store) -> None:
    """It is not a job without trajectories."""
    job = Job(name="never recorded").kept_in(store)
    await Job.create("another", store=store)
    for ask in (job.load_trajectories, job.load_tasks, job.statistics):
        with pytest.raises(SourceNotFound, match=job.id):
            await ask()


async def test_runs_in_short_agree_with_the_summaries(store: Store) -> None:
    """The quick way to the figures is a way to the same figures."""
    job = await Job.create("a", tasks=TASKS, store=store)
    ends = [1.0, 0, 0.25, *(o for o in Outcome if o is not Outcome.GRADED), None]
    for i, end in enumerate(ends):
        await run(store, job, f"traj-{i}", TASKS[i % 3], end, after_s=i)
    _, listed, rows = await Outlines(store.database).load_outline(job.id)
    _, tasks, summaries = await store.load_job_summary(job.id)
    assert [t.id for t in listed] == [t.id for t in tasks] == ["a", "b", "c"]
    brief = {(r.id, r.task_id, r.outcome, r.reward, r.started_at) for r in rows}
    assert brief == {(s.id, s.task_id, s.outcome, s.reward, s.started_at) for s in summaries}
    assert len(rows) == len(ends)


@pytest.mark.parametrize(
    "change",
    [
        "receipt = '{nonsense'",
        """receipt = json_set(receipt, '$.outcome', 'passed')""",
        """receipt = json_set(receipt, '$.reward', 'high')""",
        "task = '{nonsense'",
        "task = '[]'",
        "started_at = 'noon'",
    ],
)
async def test_a_damaged_row_does_not_hide_the_runs_beside_it(store: Store, change: str) -> None:
    """It is marked, and nothing that is made up stands in its place."""
    job = await Job.create("a", tasks=TASKS, store=store)
    await run(store, job, "traj-1", TASKS[0], 1.0)
    await run(store, job, "traj-2", TASKS[1], 1.0)
    path = store.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE sessions SET {change} WHERE id = 'traj-2'")
        connection.commit()
    _, _, (sound, damaged) = await Outlines(store.database).load_outline(job.id)
    assert (sound.outcome, sound.reward, sound.damaged) == (Outcome.GRADED, 1.0, False)
    assert (damaged.id, damaged.damaged) == ("traj-2", True)
    if "receipt" in change:
        assert (damaged.outcome, damaged.reward) == (None, None)
        found = await job.statistics()
        assert found.mean is not None
        assert found.mean.runs == 1


def test_a_job_is_what_was_recorded_not_where() -> None:
    """Two looks at one job are equal; another one is not."""
    job = Job(name="a")
    assert job.kept_in("elsewhere") == job
    assert hash(job.kept_in("elsewhere")) == hash(job)
    assert job != Job(name="a")
    assert job != "a"


def test_a_job_of_an_older_program_has_groups_of_one() -> None:
    """Rows that were written before there were groups are read."""
    row = {"id": "job-1", "name": "a", "created_at": "2026-01-02T03:04:05Z"}
    assert Job.model_validate(row).group == 1

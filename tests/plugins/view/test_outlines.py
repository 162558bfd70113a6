"""Jobs of very many runs in short, on each kind of database."""

from datetime import timedelta

import pytest
from records import AT, TASK, begin, execute, receipt, step

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio

TASKS = [
    Task(id=f"task-{i}", env="e", template="t", description=f"Buy lamp {i} (100%)")
    for i in range(12)
]


@pytest.fixture
def outlines(store: Store) -> Outlines:
    """The jobs of the store."""
    return Outlines(store.database)


async def test_an_outline_agrees_with_the_summaries(store: Store, outlines: Outlines) -> None:
    """Figures of a long job are made of the same values as those of a short one."""
    job = Job(name="a")
    await store.add_job(job, TASKS)
    ends = [1.0, 0.0, 0.25, -1.5, *(o for o in Outcome if o is not Outcome.GRADED), None]
    for i, end in enumerate(ends):
        await begin(store, f"traj-{i}", job_id=job.id, task=TASKS[i], context={"width": i})
        if isinstance(end, float):
            await store.end_session(f"traj-{i}", receipt(reward=end))
        elif end is not None:
            await store.end_session(f"traj-{i}", receipt(outcome=end, reward=None, error="why"))
    await begin(store, "traj-other")
    found, tasks, brief = await outlines.load_outline(job.id)
    same, same_tasks, summaries = await store.load_job_summary(job.id)
    assert (found, tasks) == (same, same_tasks)
    names = ("id", "task", "environment", "started_at", "ended_at", "outcome", "cause", "reward",
             "overloaded", "context", "foreign", "step_count", "use")  # fmt: skip
    assert [[getattr(run, name) for name in names] for run in brief] == [
        [getattr(run, name) for name in names] for run in summaries
    ]
    assert [run.id for run in (await outlines.load_outline(None))[2]] == ["traj-other"]
    with pytest.raises(SourceNotFound, match="no job"):
        await outlines.load_outline("job-none")


async def test_a_stamp_changes_with_every_change_that_a_page_shows(
    store: Store, outlines: Outlines
) -> None:
    """A run's beginning, step, end and late turn each give another stamp; nothing else does."""
    job = Job(name="a")
    await store.add_job(job, TASKS)
    stamps = [await outlines.stamp_job(job.id)]
    await begin(store, "traj-1", job_id=job.id)
    stamps.append(await outlines.stamp_job(job.id))
    await store.add_step("traj-1", step(0), None)
    stamps.append(await outlines.stamp_job(job.id))
    await store.end_session("traj-1", receipt())
    stamps.append(await outlines.stamp_job(job.id))
    turn = ModelTurn(started_at=AT, ended_at=AT, text="done")
    await store.add_turns("traj-1", [turn])  # a report may come after the end
    stamps.append(await outlines.stamp_job(job.id))
    assert [count for count, _ in stamps] == [0, 1, 1, 1, 1]
    assert len({stamp for _, stamp in stamps}) == len(stamps)
    await begin(store, "traj-other")
    assert await outlines.stamp_job(job.id) == stamps[-1]


async def test_a_run_has_its_neighbours_within_its_job(store: Store, outlines: Outlines) -> None:
    """Runs that began at one time are in the order of their ids; other jobs' are in none."""
    job, other = Job(name="a"), Job(name="b")
    for each in (job, other):
        await store.add_job(each, TASKS)
    for name, of, at_s in (("b", job, 0), ("a", job, 0), ("x", other, 0), ("c", job, 1)):
        begun = AT + timedelta(seconds=at_s)
        await begin(store, f"traj-{name}", job_id=of.id, started_at=begun)
    await begin(store, "traj-alone")
    found = {name: await outlines.find_place(f"traj-{name}") for name in ("a", "b", "c", "x")}
    assert {name: (place.previous, place.next) for name, (place, _) in found.items()} == {
        "a": (None, "traj-b"),
        "b": ("traj-a", "traj-c"),
        "c": ("traj-b", None),
        "x": (None, None),
    }
    assert [of and of.name for _, of in found.values()] == ["a", "a", "a", "b"]
    place, of = await outlines.find_place("traj-alone")
    assert (place.job_id, place.previous, place.next, of) == (None, None, None, None)
    with pytest.raises(SourceNotFound, match="no trajectory"):
        await outlines.find_place("traj-none")


async def test_runs_are_found_by_what_tables_show_of_them(store: Store, outlines: Outlines) -> None:
    """A search finds ids, descriptions and errors, takes no sign for a pattern, and one job's."""
    job = Job(name="a")
    await store.add_job(job, TASKS)
    for i in range(4):
        await begin(store, f"traj-{i}", job_id=job.id, task=TASKS[i])
    await begin(store, "traj-other", task=TASKS[1])
    lost = receipt(outcome=Outcome.LOST, reward=None, error="The Browser\nhas died")
    await store.end_session("traj-2", lost)
    searches = {"TRAJ-3": {3}, "buy LAMP 1": {1}, "the browser": {2}, "100%": {0, 1, 2, 3},
                "_": set[int](), "1%": set[int](), "'": set[int](), "\0": set[int]()}  # fmt: skip
    for text, numbers in searches.items():
        assert await outlines.find_runs(job.id, text) == {f"traj-{n}" for n in numbers}, text
    assert await outlines.find_runs(None, "lamp 1") == {"traj-other"}


async def test_a_damaged_row_hides_no_others(store: Store, outlines: Outlines, url: str) -> None:
    """Of a row that a hand has changed, what can be read is there."""
    job = Job(name="a")
    await store.add_job(job, [TASK])
    for i in range(2):
        await begin(store, f"traj-{i}", job_id=job.id)
    await store.end_session("traj-0", receipt())
    execute(url, "UPDATE sessions SET receipt = '{\"outcome\": [3]}' WHERE id = 'traj-0'")
    _, _, brief = await outlines.load_outline(job.id)
    assert [(run.id, run.outcome, run.reward) for run in brief] == [
        ("traj-0", None, None), ("traj-1", None, None)]  # fmt: skip


async def test_rows_are_loaded_in_the_order_that_is_asked_for(
    store: Store, outlines: Outlines
) -> None:
    """What is gone is left out, and the others keep their order."""
    for i in range(3):
        await begin(store, f"traj-{i}")
    found = await outlines.load_rows(["traj-2", "traj-none", "traj-0"])
    assert [run.id for run in found] == ["traj-2", "traj-0"]

"""What a job's runs amount to by set, difficulty and skill."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hud_mcp.analysis.groups import DIMENSIONS, Dimension, Grouping, RunGroup, group_runs
from hud_mcp.analysis.statistics import job_statistics
from hud_mcp.loading.provenance import clusters_of
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.values import Receipt
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.model_turn import ModelUse

START = datetime(2026, 3, 1, tzinfo=UTC)
_NUMBERS = itertools.count()


def row(name: str, *, env: str = "shop", template: str = "find", **metadata: Any) -> Task:
    """A row and what it says of itself."""
    return Task(id=name, env=env, template=template, metadata=metadata)


def run(task: Task, end: float | Outcome | None, **more: Any) -> TrajectorySummary:
    """One run of a row, which took ten seconds: a reward, an outcome without one, or no end."""
    number = next(_NUMBERS)
    begun = START + timedelta(seconds=number)
    graded = not isinstance(end, Outcome)
    receipt = None if end is None else Receipt(
        trajectory=f"tr-{number}", environment=task.env, task=task.id, template=task.template,
        outcome=Outcome.GRADED if graded else end, reward=end if graded else None,
        cause=more.pop("cause", None), reward_policy="on_submit", package_version="0",
        task_digest="0" * 64, environment_digest="0" * 64, started_at=begun,
        ended_at=begun + timedelta(seconds=10),
    )  # fmt: skip
    return TrajectorySummary(
        id=f"tr-{number}", environment=task.env, task=task, receipt=receipt, started_at=begun,
        ended_at=receipt.ended_at if receipt else None, **more,
    )  # fmt: skip


def grouped(
    tasks: list[Task], runs: list[TrajectorySummary], by: Dimension, **options: Any
) -> Grouping:
    """One grouping."""
    return group_runs(tasks, runs, [by], **options)[0]


def names(found: Grouping) -> list[str]:
    """Its groups, in order."""
    return [group.name for group in found.groups]


def ends_of(group: RunGroup) -> tuple[float, float]:
    """The ends of the interval of its mean."""
    assert group.mean is not None
    assert group.mean.low is not None
    assert group.mean.high is not None
    return group.mean.low, group.mean.high


def test_difficulty_goes_from_easy_to_hard_whatever_the_order_of_rows() -> None:
    """Other words follow, and rows that say nothing come last, under a title that says so."""
    tasks = [
        row("a", difficulty="hard"), row("b"), row("c", difficulty="Easy"),
        row("d", difficulty="odd"), row("e", difficulty="medium"),
    ]  # fmt: skip
    found = grouped(tasks, [], "difficulty")
    assert names(found) == ["Easy", "medium", "hard", "odd", ""]
    assert found.title_of(found.groups[-1]) == "no difficulty"
    assert [group.tasks for group in found.groups] == [("c",), ("e",), ("a",), ("d",), ("b",)]
    levels = grouped([row(str(n), difficulty=n) for n in (10, 2, 1)], [], "difficulty")
    assert names(levels) == ["1", "2", "10"]


def test_a_group_has_the_figures_that_a_job_of_its_tasks_alone_has() -> None:
    """Mean, interval, pass rate and outcomes are those of `job_statistics`."""
    tasks = [row(f"t{i}", difficulty=["easy", "hard"][i % 2]) for i in range(12)]
    ends: list[float | Outcome | None] = [
        1, 0, 1, 0.5, Outcome.CANCELLED, Outcome.LOST, 1, Outcome.EXPIRED, None, 0.25, 1,
    ]  # fmt: skip
    runs = [run(task, end) for task, end in zip(tasks, ends, strict=False)]
    runs += [run(tasks[0], 0.75)]
    found = grouped(tasks, runs, "difficulty")
    for group in found.groups:
        alone = job_statistics(
            group.tasks,
            [each for each in runs if each.task_id in group.tasks],
            clusters=clusters_of(tasks),
        )
        assert group.mean == alone.mean
        assert group.pass_rate == alone.passes[0].pass_at_k
        assert group.outcomes == alone.outcomes
        assert group.wanted == alone.wanted == 6
    easy, hard = found.groups
    assert (easy.graded, easy.passed, easy.unrewarded, easy.runs) == (4, 3, 0, 6)
    assert (hard.graded, hard.passed, hard.unrewarded, hard.runs) == (3, 0, 1, 5)
    assert easy.ends == "4 graded, 1 cancelled, 1 unfinished"
    assert hard.ends == "3 graded, 1 expired, 1 lost, 1 not begun"
    assert easy.seconds == 50


def test_a_task_under_several_contexts_is_one_cluster() -> None:
    """Five contexts of one task make a group no surer than one of them."""
    tasks = [
        row(f"{base}@{i}", base_task=base, difficulty=difficulty)
        for base, difficulty in (("a", "easy"), ("b", "easy"), ("c", "hard"))
        for i in range(5)
    ]
    runs = [run(task, 1.0 if task.id.startswith("a") else 0.0) for task in tasks]
    easy, hard = grouped(tasks, runs, "difficulty").groups
    assert easy.mean is not None
    assert (easy.mean.runs, easy.mean.tasks, easy.mean.clusters) == (10, 10, 2)
    twice = [row("a", difficulty="easy"), row("b", difficulty="easy"), row("c", difficulty="hard")]
    once = grouped(
        twice, [run(twice[0], 1.0), run(twice[1], 0.0), run(twice[2], 0.0)], "difficulty"
    )
    assert ends_of(easy) == pytest.approx(ends_of(once.groups[0]))
    assert ends_of(hard) == pytest.approx((0, 0.975))


def test_a_run_counts_in_each_skill_of_its_task() -> None:
    """Then the groups add up to more than the job, and the grouping says so."""
    tasks = [
        row("a", skills=["search", "sort"]), row("b", skills=["sort", "sort"]), row("c"),
        row("d", skills="read"), row("e", skills=[]), row("f", skills=[{"no": "name"}, None]),
    ]  # fmt: skip
    runs = [run(tasks[0], 1.0), run(tasks[1], 0.0)]
    found = grouped(tasks, runs, "skill")
    assert found.overlapping
    assert {group.name: group.tasks for group in found.groups} == {
        "read": ("d",), "search": ("a",), "sort": ("a", "b"), "": ("c", "e", "f"),
    }  # fmt: skip
    assert names(found) == ["sort", "read", "search", ""]  # those with the most tasks first
    sort, _, search, _ = found.groups
    assert search.mean is not None
    assert sort.mean is not None
    assert (search.mean.value, sort.mean.value, sort.graded) == (1.0, 0.5, 2)
    assert str(found).endswith("A run counts in each skill that its task has.")
    single = grouped(tasks[1:], runs[1:], "skill")
    assert not single.overlapping
    assert "counts in each" not in str(single)


def test_a_set_is_named_by_the_job() -> None:
    """In the order in which the job has them."""
    tasks = [row(name) for name in "abcd"]
    several = Job(name="n", taskset="all", metadata={"tasksets": {"web": ["a", "c"], "sh": ["b"]}})
    found = grouped(tasks, [], "set", set_of=several.set_of)
    assert [(group.name, group.tasks) for group in found.groups] == [
        ("web", ("a", "c")), ("sh", ("b",)), ("all", ("d",)),
    ]  # fmt: skip
    assert names(grouped(tasks, [], "set", set_of=Job(name="n", taskset="mine").set_of)) == ["mine"]
    assert names(grouped(tasks, [], "set", set_of=Job(name="n").set_of)) == [""]
    assert names(grouped(tasks, [], "set")) == [""]


def test_a_set_has_the_figures_that_it_has_alone() -> None:
    """One task under six contexts is no single cluster, and no other set takes the interval."""
    tasks = [row(f"pole@{i}", base_task="pole", context=f"c{i}", difficulty="x") for i in range(6)]
    others = [row("lander", env="moon", difficulty="x")]
    runs = [run(task, i / 5) for i, task in enumerate(tasks)]
    sets = {"poles": [task.id for task in tasks], "landers": ["lander"]}
    job = Job(name="n", metadata={"tasksets": sets})
    whole = [*runs, run(others[0], 200.0)]
    poles, landers = grouped([*tasks, *others], whole, "set", set_of=job.set_of).groups
    alone = job_statistics([task.id for task in tasks], runs, clusters=clusters_of(tasks))
    assert poles.mean == alone.mean
    assert poles.pass_rate == alone.passes[0].pass_at_k
    assert poles.mean is not None
    assert poles.mean.clusters == 6
    assert landers.mean is not None
    assert landers.mean.reason == "rewards lie outside 0 to 1"
    shop, _ = grouped([*tasks, *others], whole, "environment").groups
    assert shop.mean == alone.mean
    (both,) = grouped([*tasks, *others], whole, "difficulty").groups
    assert both.mean is not None
    assert (both.mean.clusters, both.mean.low) == (2, None)


def test_templates_of_several_environments_are_told_apart() -> None:
    """Two environments may each have a template of one name."""
    tasks = [row("a"), row("b", env="mail"), row("c", template="buy")]
    assert names(grouped(tasks, [], "template")) == ["shop find", "mail find", "shop buy"]
    assert names(grouped(tasks[::2], [], "template")) == ["find", "buy"]
    assert names(grouped(tasks, [], "environment")) == ["shop", "mail"]


def test_splits_have_training_first() -> None:
    """As reward by context has them."""
    tasks = [row("a", split="test"), row("b"), row("c", split="train"), row("d", split="dev")]
    assert names(grouped(tasks, [], "split")) == ["train", "dev", "test", ""]


def test_rows_that_say_nothing_are_one_group_without_a_name() -> None:
    """Then there is nothing to show."""
    for by in DIMENSIONS:
        found = grouped([row("a", difficulty=True, skills=7.5e300)], [], by)
        assert found.is_told is (by in ("environment", "template", "skill"))
    assert group_runs([], [], DIMENSIONS)[0].groups == ()


def test_one_reward_out_of_range_leaves_no_group_an_interval() -> None:
    """Nothing bounds the rewards of the others either."""
    tasks = [row("a", difficulty="easy"), row("b", difficulty="hard")]
    found = grouped(tasks, [run(tasks[0], 1.0), run(tasks[1], 7.0)], "difficulty")
    for group in found.groups:
        assert group.mean is not None
        assert group.mean.low is None
        assert group.mean.reason == "rewards lie outside 0 to 1"
    assert "1.000 (no interval: rewards lie outside 0 to 1) over 1 graded of 1" in str(found)


def test_what_does_not_count_in_a_job_does_not_count_in_a_group() -> None:
    """Foreign sessions and earlier tries are in no figure; what the model used for a try is."""
    task = row("a", difficulty="easy")
    used = ModelUse(turns=2, input=10, output=5, priced=2, cost_usd=0.5)
    stopped = run(task, Outcome.CANCELLED, cause=Cause.OPERATOR, use=used)
    runs = [stopped, run(task, 0.5, use=used), run(task, 1.0, foreign=True)]
    (easy,) = grouped([task], runs, "difficulty").groups
    assert easy.mean is not None
    assert (easy.mean.value, easy.graded, easy.seconds) == (0.5, 1, 10)
    assert easy.use == ModelUse(turns=4, input=20, output=10, priced=4, cost_usd=1.0)


def test_runs_of_a_group_and_a_threshold_are_as_in_the_job() -> None:
    """Several runs of a task count, and a pass is where the caller says."""
    task = row("a", difficulty="easy")
    runs = [run(task, 0.5), run(task, 1.0)]
    (easy,) = grouped([task], runs, "difficulty", group=3, threshold=0.5).groups
    assert (easy.wanted, easy.graded, easy.passed, easy.outcomes["not_begun"]) == (3, 2, 2, 1)


def test_a_grouping_is_read_back_from_its_json() -> None:
    """What `hud-mcp jobs --json` prints is the value itself."""
    tasks = [row("a", skills=["x", "y"])]
    found = grouped(tasks, [run(tasks[0], 0.5)], "skill")
    assert Grouping.model_validate_json(found.model_dump_json()) == found


def test_only_what_is_wanted_is_computed() -> None:
    """Of a dimension by its groups' names, and without pass rates where these are not."""
    tasks = [row("lamp", difficulty="easy"), row("rug", difficulty="hard")]
    runs = [run(tasks[0], 1.0), run(tasks[1], 0.0)]
    found = group_runs(tasks, runs, wanted=lambda _by, names: len(names) > 1, passes=False)
    assert [grouping.by for grouping in found] == ["difficulty"]
    assert [group.pass_rate for group in found[0].groups] == [None, None]
    every = group_runs(tasks, runs, ["difficulty"])[0]
    bare = [group.model_copy(update={"pass_rate": None}) for group in every.groups]
    assert list(found[0].groups) == bare
    assert all(group.pass_rate for group in every.groups)

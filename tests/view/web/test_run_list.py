"""Which runs of a job a table lists, and in which order: nothing but values."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tables import each_of

from hud_mcp.analysis.tries import BriefRun
from hud_mcp.plugins.view.web.jobs import figure_job
from hud_mcp.plugins.view.web.run_list import ListedRun, RowQuery, RunList, list_runs
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.outcome import outcome_classes

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ENDS: list[float | Outcome | None] = [
    1.0, 0.5, None, 0.0, Outcome.LOST, 0.5, 1.0, Outcome.EXPIRED, 0.25, 1e-9]  # fmt: skip
LEVELS = ("easy", "hard")


def run(number: int, end: float | Outcome | None, **fields: Any) -> BriefRun:
    """A run of a task of its own, which took as many seconds as its number."""
    outcome = Outcome.GRADED if isinstance(end, float) else end
    task = Task(
        id=f"task-{number:02}", env="shop", template="find",
        metadata={"difficulty": LEVELS[number % 2]},
    )  # fmt: skip
    begun = AT + timedelta(minutes=number)
    told = {
        "id": f"tr-{number}", "task": task, "environment": "shop", "started_at": begun,
        "ended_at": None if outcome is None else begun + timedelta(seconds=number % 4),
        "outcome": outcome, "cause": outcome and Cause.AGENT,
        "reward": end if isinstance(end, float) else None, "step_count": number % 3,
    }  # fmt: skip
    return BriefRun(**{**told, **fields})


def listed(runs: list[BriefRun], **fields: Any) -> RunList:
    """The list of a job whose plan is their tasks."""
    tasks = [each.task for each in runs if not each.foreign]
    job = Job(name="a", planned=True, **fields)
    return list_runs(runs, figure_job(job, tasks, runs), None)


def ids(of: RunList, **query: Any) -> list[int]:
    """The numbers of the runs that are listed."""
    lines = of.lines(RowQuery(**query)).lines
    return [int(line.id.removeprefix("tr-")) for line in lines if isinstance(line, ListedRun)]


RUNS = [run(number, end) for number, end in enumerate(ENDS)]


@each_of("sort", ["reward", "seconds", "steps", "task", "outcome", "number"])
def test_what_has_no_value_is_last_in_either_order(sort: str) -> None:
    """Runs of equal value are in the order of the job, upwards and downwards."""
    found = listed(RUNS)
    values = {
        "reward": lambda n: ENDS[n] if isinstance(ENDS[n], float) else None,
        "seconds": lambda n: None if ENDS[n] is None else n % 4,
        "steps": lambda n: n % 3,
        "task": lambda n: n,
        "outcome": lambda n: found.runs[n].outcome.words and _place(found.runs[n]),
        "number": lambda n: n,
    }[sort]
    there = [n for n in range(len(ENDS)) if values(n) is not None]
    none = [n for n in range(len(ENDS)) if values(n) is None]
    assert ids(found, sort=sort) == [*sorted(there, key=lambda n: (values(n), n)), *none]
    down = sorted(there, key=lambda n: (-values(n), n))
    assert ids(found, sort=sort, descending=True) == [*down, *none]


def _place(run: ListedRun) -> int:
    return [each.value for each in outcome_classes()].index(run.outcome.value)


def test_the_bars_hold_each_reward_once_and_list_what_they_count() -> None:
    """Exactly 0 and exactly 1 stand alone; a bar that is picked has as many runs as it says."""
    found = listed(RUNS)
    tally = found.tally()
    bars = tally["bars"]
    assert sum(bar["count"] for bar in bars) == tally["graded"] == 7
    assert [bars[0]["count"], bars[-1]["count"]] == [1, 2]
    for bar in bars:
        assert len(ids(found, pick=bar["pick"])) == bar["count"], bar
    for outcome, count in tally["outcomes"].items():
        assert len(ids(found, pick=outcome)) == count
    assert (tally["runs"], tally["passed"], tally["unrewarded"]) == (10, 2, 1)


def test_rewards_beyond_one_are_in_bars_too() -> None:
    """Where a reward lies outside of 0 to 1, the last bar holds the largest."""
    found = listed([run(n, end) for n, end in enumerate([-2.0, 0.0, 1.0, 3.0])])
    bars = found.tally()["bars"]
    assert (bars[0]["low"], bars[-1]["high"]) == (-2.0, 3.0)
    assert sum(bar["count"] for bar in bars) == 4
    assert [n for bar in bars for n in ids(found, pick=bar["pick"])] == [0, 1, 2, 3]


def test_groups_have_their_heads_and_the_runs_of_those_that_are_open() -> None:
    """A folded group is one line; a filter leaves out what it leaves empty; strays are last."""
    stray = run(99, 1.0, foreign=True)
    found = listed([*RUNS, stray])
    lines = found.lines(RowQuery(by="difficulty", open=frozenset({1}))).lines
    heads = [line for line in lines if isinstance(line, tuple)]
    assert heads == [(0, 5), (1, 5), (2, 1)]
    assert [line.id for line in lines if isinstance(line, ListedRun)] == [
        f"tr-{n}" for n in range(1, 10, 2)]  # fmt: skip
    filtered = RowQuery(by="difficulty", outcome="lost", hides_empty=True)
    assert found.lines(filtered).lines == [(0, 1)]
    assert found.has_strays("difficulty")
    assert not listed(RUNS).has_strays("difficulty")


def test_a_search_finds_outcomes_by_their_words() -> None:
    """What the database has found is listed, and what is shown as such an outcome."""
    found = listed(RUNS)
    assert ids(found, found=frozenset({"tr-3"}), find="Expi") == [3, 7]
    assert ids(found, found=frozenset(), find="nothing has this") == []


@each_of("query", [{"sort": "x"}, {"pick": "x"}, {"pick": "[a,b)"},
                                   {"pick": "[nan,1]"}, {"pick": "[0,1"}])  # fmt: skip
def test_an_unknown_column_or_bar_is_named(query: dict[str, str]) -> None:
    """The error says what was given, and what there is."""
    with pytest.raises(ValueError, match=next(iter(query.values()))[:1].replace("[", r"\[")):
        listed(RUNS).lines(RowQuery(**query))


def test_an_earlier_try_is_no_part_of_the_plot() -> None:
    """It is listed, and marked; only what counts is drawn."""
    again = run(0, 1.0, id="tr-50", started_at=AT + timedelta(hours=2))
    found = listed([*RUNS, again])
    assert [each.id for each in found.runs if each.earlier] == ["tr-0"]
    assert found.tally()["runs"] == 10
    assert len(found) == 11

"""All runs of a job as its page lists them: filtered, sorted, grouped, and counted in a plot.

Here are only the facts that decide which lines there are; a line's contents come from the store.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hud_mcp.analysis.tries import PASS_REWARD, BriefRun
from hud_mcp.plugins.view.web.jobs import REPEATED, JobFigures
from hud_mcp.plugins.view.web.pages import Json, finite
from hud_mcp.plugins.view.web.trajectory import shown_outcome
from hud_mcp.values.outcome import UNFINISHED, OutcomeClass, outcome_classes

LATEST = 8
"""Runs that failed last, which the page of a running job names."""

_BINS = 10

_Line = TypeVar("_Line")

_RANGE = re.compile(r"([\[(])([^,]{1,32}),([^,]{1,32})([\])])")


@dataclass(slots=True)
class ListedRun:
    """The facts of a run that a list filters and sorts by."""

    number: int  # its place in the job, from 1
    id: str
    task: str
    environment: str
    outcome: OutcomeClass
    reward: float | None  # None unless it was graded
    seconds: float | None  # None while it goes on
    step_count: int
    expected: float | None  # the reward that it should get; None if any will do
    surprise: bool  # it got another reward
    earlier: bool  # a later try stands in for it
    foreign: bool  # not in the job's plan
    erased: bool  # its grade was pruned
    groups: Mapping[str, Sequence[int]]  # the places of its groups, by the name of the grouping

    @property
    def title(self) -> str:
        """Its task's id, or its own."""
        return self.task or self.id

    @property
    def counts(self) -> bool:
        """Whether it is in the plot."""
        return not (self.earlier or self.foreign or self.erased)

    @property
    def failed(self) -> bool:
        """Whether it has ended without passing."""
        passed = self.reward is not None and self.reward >= PASS_REWARD
        return self.outcome is not UNFINISHED and not passed


_ORDER = {each.value: place for place, each in enumerate(outcome_classes())}


_KEYS: dict[str, Callable[[ListedRun], Any]] = {
    "number": lambda run: run.number,
    "task": lambda run: run.title.lower(),
    "environment": lambda run: run.environment,
    "outcome": lambda run: _ORDER.get(run.outcome.value, len(_ORDER)),
    "reward": lambda run: run.reward,
    "steps": lambda run: run.step_count,
    "seconds": lambda run: run.seconds,
    "expected": lambda run: run.expected,
}

_TASK_KEYS: dict[str, Callable[[Json], Any]] = {
    "task": lambda group: group["title"],
    "reward": lambda group: group["mean"] and group["mean"]["value"],
    "seconds": lambda group: group["seconds"],
}
"""The columns that sort the tasks of repeated runs; else the plan's order holds."""

SortKey = str
"""The name of a column that sorts."""


@dataclass(frozen=True)
class RowQuery:
    """A query of a table: its filters and its order."""

    found: frozenset[str] | None = None  # the ids that a search has found; None without a search
    find: str = ""  # the searched text; outcomes are searched by their words here
    outcome: str = ""
    surprises: bool = False  # only those with another reward than expected
    pick: str = ""  # a bar of the plot: rewards such as `[0.1,0.2)`, or an outcome
    sort: SortKey = "number"
    descending: bool = False  # missing values are last either way
    by: str | None = None
    # the places of the listed groups; None for all but the folded ones
    open: frozenset[int] | None = frozenset()
    folded: frozenset[int] = frozenset()
    hides_empty: bool = False  # leave out groups without these runs

    def opens(self, place: int) -> bool:
        """Whether the runs of a group are listed."""
        return place not in self.folded if self.open is None else place in self.open


@dataclass(frozen=True)
class Lines:
    """The lines of a table: each a run, or the place of a group and how many of its runs pass."""

    shown: int
    lines: Sequence[ListedRun | tuple[int, int]]


class RunList:
    """The runs of a job, in the order in which they began."""

    def __init__(self, runs: Sequence[ListedRun], groups: Mapping[str, Sequence[Json]]) -> None:
        self.runs = runs
        self._groups = groups
        self.by_id = {run.id: run for run in runs}

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.runs)

    def lines(self, query: RowQuery) -> Lines:
        """Return the lines of a table.

        Raises:
            ValueError: The column or the bar of the plot is none.
        """
        if query.sort not in _KEYS:
            raise ValueError(f"There is no column {query.sort!r}; there are {', '.join(_KEYS)}.")
        wanted = _filter(query)
        found = [run for run in self.runs if wanted(run)]
        shown = _sorted(found, _KEYS[query.sort], descending=query.descending)
        if query.by is None or query.by not in self._groups:
            return Lines(len(shown), shown)
        return Lines(len(shown), list(self._grouped(shown, query.by, query)))

    def _grouped(
        self, shown: Sequence[ListedRun], by: str, query: RowQuery
    ) -> Iterable[ListedRun | tuple[int, int]]:
        count = len(self._groups[by])
        inside: list[list[ListedRun]] = [[] for _ in range(count + 1)]
        for run in shown:
            for place in run.groups.get(by) or (count,):  # what the plan has not is the last group
                inside[place].append(run)
        for place in self._in_order(by, query):
            runs = inside[place]
            if not runs and (query.hides_empty or (place == count and not self.has_strays(by))):
                continue
            yield place, len(runs)
            if query.opens(place):
                yield from runs

    def _in_order(self, by: str, query: RowQuery) -> Iterable[int]:
        groups = self._groups[by]
        value = _TASK_KEYS.get(query.sort) if by == REPEATED else None
        places: Sequence[int] = range(len(groups))
        if value is not None:
            value_of, descending = value, query.descending
            places = _sorted(places, lambda place: value_of(groups[place]), descending=descending)
        return (*places, len(groups))

    def failures(self, by: str, places: Iterable[int]) -> dict[int, list[str]]:
        """Return the ids of the failed runs of groups, by the place of the group."""
        found: dict[int, list[str]] = {place: [] for place in places}
        for run in self.runs:
            if run.failed:
                for place in run.groups.get(by, ()):
                    if place in found:
                        found[place].append(run.id)
        return found

    def has_strays(self, by: str) -> bool:
        """Whether some run is in no group, as its task is not in the plan."""
        return any(not run.groups.get(by) for run in self.runs)

    def tally(self) -> Json:
        """Return the counts of the plot, by outcome and reward."""
        counted = [run for run in self.runs if run.counts]
        rewards = [run.reward for run in counted if run.reward is not None]
        unrewarded = Counter(run.outcome.value for run in counted if run.reward is None)
        first = counted[0] if counted else None
        return {
            "runs": len(counted),
            "graded": len(rewards),
            "passed": sum(reward >= PASS_REWARD for reward in rewards),
            "unrewarded": sum(reward <= 0 for reward in rewards),
            "outcomes": unrewarded,
            "varied": len(set(rewards)) + bool(unrewarded) > 1,
            "alike": first is not None
            and all(
                (run.reward, run.outcome) == (first.reward, first.outcome) and not run.surprise
                for run in counted
            )
            and {"reward": first.reward, "outcome": first.outcome.value},
            "bars": _bars(rewards),
        }

    def met(self) -> list[str]:
        """Return the ways in which runs ended, in the order in which they are shown."""
        return sorted({run.outcome.value for run in self.runs}, key=lambda o: _ORDER.get(o, 0))

    def latest_failures(self) -> list[ListedRun]:
        """Return the runs that failed last, the newest first."""
        failed = (run for run in reversed(self.runs) if run.failed)
        return [run for run, _ in zip(failed, range(LATEST), strict=False)]


def list_runs(
    runs: Sequence[BriefRun], figures: JobFigures, expected: Mapping[str, float | None] | None
) -> RunList:
    """Return the list of a job's runs; `expected` has the reward that each task should get."""
    groups: dict[str, dict[str, Sequence[int]]] = {}  # one object for all runs of a task
    listed: list[ListedRun] = []
    for number, run in enumerate(runs, 1):
        task = run.task.id
        if task not in groups:
            groups[task] = figures.groups_of(task)
        reward, wanted = finite(run.reward), finite((expected or {}).get(task))
        met = wanted is None or (reward is not None and math.isclose(reward, wanted, abs_tol=1e-9))
        listed.append(
            ListedRun(
                number=number,
                id=run.id,
                task=task,
                environment=run.environment,
                outcome=shown_outcome(run.outcome, run.cause, run.reward),
                reward=reward,
                seconds=run.seconds,
                step_count=run.step_count,
                expected=wanted,
                surprise=not met and not run.foreign and not run.erased,
                earlier=figures.is_earlier(run.id, left_out=run.foreign or run.erased),
                foreign=run.foreign,
                erased=run.erased,
                groups=groups[task],
            )
        )
    by_name = {each["by"]: each["groups"] for each in figures.head["groupings"]}
    return RunList(listed, by_name)


def _filter(query: RowQuery) -> Callable[[ListedRun], bool]:
    checks: list[Callable[[ListedRun], bool]] = []
    if query.found is not None:
        found, text = query.found, query.find.lower()
        named = {each.value for each in outcome_classes() if text in each.words.lower()}
        checks.append(lambda run: run.id in found or run.outcome.value in named)
    if query.outcome:
        checks.append(lambda run: run.outcome.value == query.outcome)
    if query.surprises:
        checks.append(lambda run: run.surprise)
    if query.pick:
        checks.append(_picks(query.pick))
    return lambda run: all(check(run) for check in checks)


def _picks(pick: str) -> Callable[[ListedRun], bool]:
    if pick in _ORDER:
        return lambda run: run.reward is None and run.outcome.value == pick
    parts = _RANGE.fullmatch(pick)
    try:
        low, high = (float(parts[2]), float(parts[3])) if parts else (math.nan, math.nan)
    except ValueError:
        low = high = math.nan
    if parts is None or math.isnan(low) or math.isnan(high):
        raise ValueError(f"There is no bar {pick!r}; give an outcome, or rewards as in '[0,0.5)'.")
    after = float.__ge__ if parts[1] == "[" else float.__gt__
    before = float.__le__ if parts[4] == "]" else float.__lt__

    def picks(run: ListedRun) -> bool:
        if run.reward is None:
            return False
        reward = float(run.reward)
        return after(reward, low) and before(reward, high)

    return picks


def _sorted(
    lines: Sequence[_Line], value: Callable[[_Line], Any], *, descending: bool
) -> list[_Line]:
    """Sort lines by a value. Ties keep the job's order, and lines without a value are last."""
    there = [line for line in lines if value(line) is not None]
    none = [line for line in lines if value(line) is None]
    if descending:  # which keeps the order of ties
        there.reverse()
        there.sort(key=value)
        there.reverse()
    else:
        there.sort(key=value)
    return there + none


def _bars(rewards: Sequence[float]) -> list[Json]:
    """Return ranges of rewards with their counts. Exactly 0 and 1 stand alone if they can."""
    low, high = min(0.0, *rewards, 0.0), max(1.0, *rewards, 1.0)
    unit = (low, high) == (0.0, 1.0)
    width = (high - low) / _BINS
    edges = [float(f"{low + place * width:.12g}") for place in range(_BINS)] + [high]
    ranges = [
        ("(" if unit and place == 0 else "[", edges[place], edges[place + 1],
         "]" if not unit and place == _BINS - 1 else ")")
        for place in range(_BINS)
    ]  # fmt: skip
    if unit:
        ranges = [("[", 0.0, 0.0, "]"), *ranges, ("[", 1.0, 1.0, "]")]
    bars: list[Json] = []
    for opened, start, end, closed in ranges:
        pick = f"{opened}{start!r},{end!r}{closed}"
        within = sum(
            (start <= reward if opened == "[" else start < reward)
            and (reward <= end if closed == "]" else reward < end)
            for reward in rewards
        )
        bars.append({"low": start, "high": end, "pick": pick, "count": within})
    return bars

"""The report of a job: its spending and its other figures, for all that show them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import median, quantiles
from typing import Any, Protocol

from hud_mcp.analysis.generalisation import Generalisation, generalisation
from hud_mcp.analysis.groups import DIMENSIONS, Dimension, Grouping, Wanted, group_runs
from hud_mcp.analysis.intervals import Estimate
from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.analysis.tries import PASS_REWARD, Try, counting
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import clusters_of, recorded_left_out, recorded_unused

SLOWEST = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over the runs that have it: sum, extremes and quartiles."""

    name: str  # seconds, steps, turns, input, output, cached, cost_usd, model_s, environment_s
    runs: int
    total: float
    least: float
    low: float
    median: float
    high: float
    most: float
    most_run: str  # the id of the run that has it


@dataclass(frozen=True, slots=True)
class SlowTask:
    """A task whose runs took long."""

    task: str
    title: str
    runs: int  # that have ended
    median_s: float
    most_s: float
    most_run: str  # the id of the longest


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of a job's runs."""

    runs: int  # that have ended
    open: int  # that go on
    elapsed_s: float  # from the first start to the last end
    at_once: float | None  # the average number of runs at once
    unpriced: int  # runs with turns whose cost is not recorded
    cost_per_pass: float | None  # of all runs; None if the cost is unknown, or none passed
    figures: tuple[Spread, ...]
    slowest: tuple[SlowTask, ...]  # the longest first; none if all took as long


def spending_of(runs: Iterable[Try], *, threshold: float = PASS_REWARD) -> Spending | None:
    """Sum up the spending of runs; None if none has ended."""
    every = counting(runs)
    ended = [(run, run.ended_at) for run in every if run.ended_at is not None]
    if not ended:
        return None
    done = [run for run, _ in ended]
    seconds = {run.id: _seconds(run.started_at, at) for run, at in ended}
    elapsed = _seconds(min(run.started_at for run in done), max(at for _, at in ended))
    having_use = any(run.use is not None for run in done)
    told = [
        _spread(name, done, figure) for name, figure in _figures(seconds, having_use=having_use)
    ]
    figures = tuple(spread for spread in told if spread is not None)
    cost = next((each.total for each in figures if each.name == "cost_usd"), None)
    passed = sum(run.reward is not None and run.reward >= threshold for run in done)
    return Spending(
        runs=len(done),
        open=len(every) - len(done),
        elapsed_s=elapsed,
        at_once=sum(seconds.values()) / elapsed if elapsed else None,
        unpriced=sum(_is_unpriced(run) for run in done),
        cost_per_pass=cost / passed if cost is not None and passed else None,
        figures=figures,
        slowest=_slowest(done, seconds),
    )


def _seconds(start: datetime, end: datetime) -> float:
    """Return the seconds between two times; 0 if the clock was set back."""
    return max(0.0, (end - start).total_seconds())


_Figure = Callable[[Try], float | None]


_OF_USE = ("turns", "input", "output", "cached", "cost_usd", "model_s", "environment_s")


def _figures(seconds: dict[str, float], *, having_use: bool) -> list[tuple[str, _Figure]]:
    def of_use(name: str) -> _Figure:
        return lambda run: getattr(run.use, name, None)

    return [
        ("seconds", lambda run: seconds[run.id]),
        ("steps", lambda run: run.step_count),
        *((name, of_use(name)) for name in _OF_USE if having_use),
    ]


def _spread(name: str, runs: Sequence[Try], figure: _Figure) -> Spread | None:
    told = [(value, run.id) for run in runs if (value := figure(run)) is not None]
    if not told:
        return None
    values = sorted(value for value, _ in told)
    low, middle, high = _quartiles(values)
    most, most_run = max(told, key=lambda each: each[0])
    return Spread(
        name=name,
        runs=len(values),
        total=sum(values),
        least=values[0],
        low=low,
        median=middle,
        high=high,
        most=most,
        most_run=most_run,
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _is_unpriced(run: Try) -> bool:
    return run.use is not None and run.use.priced < run.use.turns


def _slowest(runs: Sequence[Try], seconds: dict[str, float]) -> tuple[SlowTask, ...]:
    of_task: dict[str, list[Try]] = {}
    for run in runs:
        of_task.setdefault(run.task_id, []).append(run)
    found = [
        SlowTask(
            task=task_id,
            title=mine[0].task.title,
            runs=len(mine),
            median_s=median(seconds[run.id] for run in mine),
            most_s=max(seconds[run.id] for run in mine),
            most_run=max(mine, key=lambda run: seconds[run.id]).id,
        )
        for task_id, mine in of_task.items()
    ]
    if len({each.median_s for each in found}) == 1:
        return ()
    return tuple(sorted(found, key=lambda each: -each.median_s)[:SLOWEST])


class ReportedJob(Protocol):
    """The facts of a job that its figures depend on; a `Job` is one."""

    @property
    def group(self) -> int:
        """The number of runs of each task that count."""
        ...

    @property
    def planned(self) -> bool | None:
        """Whether it has a plan."""
        ...

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata, with the rows that were left out."""
        ...

    @property
    def is_proof(self) -> bool:
        """Whether its runs prove tasks; no mean is made of them."""
        ...

    @property
    def trusts_agent(self) -> bool:
        """Whether its agent ran in the evaluation's own process."""
        ...

    def set_of(self, task_id: str) -> str | None:
        """Return the name of a task's set."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One figure by its name, such as `pass@1`: an estimate, or a count or text."""

    name: str
    value: float | str
    estimate: Estimate | None = None


class JobReport:
    """The figures of a job. Each is computed when it is first asked for.

    The runs are in any order, foreign and earlier ones too. Intervals take most of the time.
    """

    def __init__(
        self,
        job: ReportedJob,
        tasks: Iterable[Task],
        runs: Sequence[Try],
        *,
        threshold: float = PASS_REWARD,
        intervals: bool = True,
    ) -> None:
        self.job = job
        self.tasks = list(tasks)
        self.runs = runs
        self._threshold = threshold
        self._intervals = intervals

    @cached_property
    def statistics(self) -> JobStatistics:
        """The mean reward, the pass rates and the outcomes."""
        clusters = None
        if self._intervals:
            clusters = clusters_of([*self.tasks, *(run.task for run in counting(self.runs))])
        return job_statistics(
            [task.id for task in self.tasks],
            self.runs,
            group=self.job.group,
            threshold=self._threshold,
            intervals=self._intervals,
            planned=self.job.planned,
            clusters=clusters,
        )

    @property
    def mean(self) -> Estimate | None:
        """The mean reward; None if nothing is graded, or if the job proves tasks."""
        return None if self.job.is_proof else self.statistics.mean

    @cached_property
    def by_context(self) -> Generalisation | None:
        """Reward by context; None if no context varies."""
        unused = recorded_unused(self.job.metadata)
        return generalisation(self.runs, group=self.job.group, tasks=self.tasks, unused=unused)

    @cached_property
    def spending(self) -> Spending | None:
        """Time, steps, tokens and cost; None if no run has ended."""
        return spending_of(self.runs, threshold=self._threshold)

    def groupings(
        self,
        by: Iterable[Dimension] = DIMENSIONS,
        *,
        wanted: Wanted | None = None,
        passes: bool = True,
    ) -> tuple[Grouping, ...]:
        """Return the figures by groups of tasks, as `group_runs` does."""
        return group_runs(
            self.tasks,
            self.runs,
            by,
            group=self.job.group,
            threshold=self._threshold,
            set_of=self.job.set_of,
            wanted=wanted,
            passes=passes,
        )

    @property
    def rows(self) -> list[Row]:
        """The figures below the outcomes, in order; none of a job that proves tasks."""
        if self.job.is_proof:
            return []
        figures = self.statistics
        return [
            *(Row(name, each.value, each) for name, each in figures.estimates if each is not None),
            *(Row(f"model, {name}", text) for name, text in figures.usage),
            *([Row("user, in all", str(figures.user))] if figures.user is not None else []),
            *(Row(each.title, each.number) for each in figures.asides),
            *self._plan(),
        ]

    def _plan(self) -> list[Row]:
        left_out = recorded_left_out(self.job.metadata)
        rows = [Row(f"left out, not counted: {each.reason}", each.count) for each in left_out]
        if self.statistics.planned is False:
            rows.insert(0, Row("unplanned", "every session begun in it counts"))
        if self.job.trusts_agent:
            rows.append(Row("agent in the evaluation's own process", "trusted"))
        return rows

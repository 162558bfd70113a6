"""The report of a job: its figures in the terminal, JSON, the pages and notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from hud_mcp.analysis.generalisation import Generalisation, generalisation
from hud_mcp.analysis.groups import DIMENSIONS, Dimension, Grouping, TimedRun, Wanted, group_runs
from hud_mcp.analysis.intervals import Estimate
from hud_mcp.analysis.spending import Spending, spending_of
from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.analysis.tries import PASS_REWARD, counting
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import clusters_of, recorded_left_out, recorded_unused

__all__ = ["JobReport", "ReportedJob", "ReportedRun", "Row"]


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


class ReportedRun(TimedRun, Protocol):
    """One run of a job with its context; a `TrajectorySummary` is one."""

    @property
    def context(self) -> Mapping[str, Any]:
        """The values of its context."""
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
        runs: Sequence[ReportedRun],
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

"""The results of `hud-mcp eval`: a row for each task, the figures, and the unexpected runs."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from hud_mcp.analysis.generalisation import Generalisation
from hud_mcp.analysis.groups import Grouping
from hud_mcp.analysis.report import JobReport
from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.analysis.tries import TaskStatistics, outcome_class
from hud_mcp.base.text import clip
from hud_mcp.cli.job_tables import print_means
from hud_mcp.cli.options import in_store
from hud_mcp.cli.output import WHY_CHARS, cell, make_table, print_table, tone_style
from hud_mcp.environment.task import Task
from hud_mcp.loading.protocols import recorded_protocol
from hud_mcp.loading.provenance import recorded_left_out
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.transcript import visible
from hud_mcp.store import Store
from hud_mcp.values.outcome import NOT_BEGUN, Counts

_TOLERANCE = 1e-6
_NAMED = 4
"""Tasks that are named beside the reason that they share."""
_EXPECTED = "expected: what the taskset's `validation` says that this agent gets."
_REASONS = 8
"""The number of printed reasons for tasks that were left out. The job's page has all."""
_ROWS = 20
"""A longer table is not read; then only failures are shown, up to as many rows."""


@dataclass(frozen=True)
class Results:
    """The results of a job, and whether they were expected.

    Attributes:
        job: The job.
        figures: Its statistics.
        runs: Its runs by id.
        expected: The reward that each task should get, by its id; None if any will do.
        failed_agents: The failures of the agent, by the run's id, as far as they are known.
        refused: The reasons why a task's runs could not begin, by its id, as far as known.
        by_context: The reward by context; None if no context varies.
        groupings: The figures of the job by set and by difficulty.
        must_not_fail: Whether an agent that failed is unexpected, whatever reward it got.
    """

    job: Job
    figures: JobStatistics
    runs: Mapping[str, TrajectorySummary]
    expected: Mapping[str, float | None]
    failed_agents: Mapping[str, str]
    refused: Mapping[str, str]
    by_context: Generalisation | None
    groupings: Sequence[Grouping]
    must_not_fail: bool

    @property
    def wanted(self) -> int:
        """The number of planned runs."""
        return self.figures.wanted

    @property
    def unexpected(self) -> int:
        """The number of runs that did not end as expected, or did not begin."""
        return sum(self.unexpected_of(row) for row in self.figures.tasks)

    @property
    def to_resume(self) -> int:
        """The number of runs that a resumed job runs again."""
        return self.figures.to_resume

    def unexpected_of(self, row: TaskStatistics) -> int:
        """Return the number of a task's runs that did not end as expected, or did not begin."""
        return row.not_begun + sum(not self._is_expected(self.runs[i]) for i in row.runs)

    def failures_of(self, row: TaskStatistics) -> int:
        """Return the number of a task's unexpected runs; else of those that did not pass."""
        missed = row.scored - row.passed if self.expected.get(row.task) is None else 0
        return max(self.unexpected_of(row), missed)

    def is_telling(self, row: TaskStatistics) -> bool:
        """Whether there is more to say of a task than that it had no turn yet."""
        return bool(row.runs) or row.task in self.refused

    def _is_expected(self, run: TrajectorySummary) -> bool:
        if outcome_class(run).counts is not Counts.MEAN:
            return False
        if self.must_not_fail and run.id in self.failed_agents:
            return False
        wanted = self.expected.get(run.task_id)
        return wanted is None or abs((run.reward or 0.0) - wanted) <= _TOLERANCE


async def load_results(
    store: Store,
    job_id: str,
    *,
    agent: str | None,
    failed_agents: Mapping[str, str],
    refused: Mapping[str, str],
) -> Results:
    """Read the results of a job.

    `agent` is the built-in agent that ran it, if rows say which reward it gets. `failed_agents` and
    `refused` are as in `Results`.

    Raises:
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
    """
    job, tasks, runs = await store.load_job_summary(job_id)
    report = JobReport(job, tasks, runs)
    return Results(
        job=job,
        figures=report.statistics,
        runs={run.id: run for run in runs},
        expected={task.id: _expected(task, agent) for task in tasks},
        failed_agents=failed_agents,
        refused=refused,
        by_context=report.by_context,
        groupings=report.groupings(("set", "difficulty")),
        must_not_fail=agent is not None,
    )


def print_results(
    console: Console,
    results: Results,
    *,
    told: Collection[tuple[str, str]] = (),
    store: str | None = None,
) -> None:
    """Print a row a task, the figures with their denominators, and what to do next.

    `told` has the lines printed while the job ran, each a task's id and a reason. They are not
    printed again.
    """
    every = results.figures.tasks
    rows = list(every)
    if len(rows) > _ROWS:
        rows = [row for row in rows if results.failures_of(row) and results.is_telling(row)]
    _print_table(console, results, rows[:_ROWS], told)
    jobs = in_store(f"hud-mcp jobs {results.job.id}", store)
    if hidden := len(every) - len(rows[:_ROWS]):
        more = len(rows) - _ROWS
        like = f", {more} of them like these" if more > 0 else ""
        console.print(cell(f"{hidden} tasks are not shown{like}; `{jobs}` has all.", "dim"))
    if (protocol := recorded_protocol(results.job.metadata)) is not None:
        console.print("\n", cell(str(protocol)), sep="", soft_wrap=True)
    console.print(f"\n{results.figures}\n", markup=False, soft_wrap=True)
    print_means(console, results.groupings)
    if left_out := recorded_left_out(results.job.metadata):
        number = sum(each.count for each in left_out)
        noun = "task is" if number == 1 else "tasks are"
        console.print(f"{number} {noun} left out, and not counted:")
        for each in left_out[:_REASONS]:
            console.print(cell(f"  {each}"), soft_wrap=True)
        if (more := len(left_out) - _REASONS) > 0:
            console.print(f"  … {more} more reasons")
        console.print(cell(f"`{jobs}` names them.\n", "dim"))
    if results.by_context is not None:
        rewards = visible(str(results.by_context))
        console.print(f"Reward by context\n{rewards}\n", markup=False, soft_wrap=True)


def _print_table(
    console: Console,
    results: Results,
    rows: Sequence[TaskStatistics],
    told: Collection[tuple[str, str]],
) -> None:
    if not rows:
        return
    group = results.figures.group
    names = ["task", "outcome", "reward", "expected", "steps", "seconds"]
    table = make_table(*names, right=("reward", "expected", "steps", "seconds"))
    for row in rows:
        runs = [results.runs[run_id] for run_id in row.runs]
        wanted = results.expected.get(row.task)
        style = tone_style("bad" if results.unexpected_of(row) else "good")
        table.add_row(
            cell(row.task),
            cell(_outcomes(runs, row.not_begun, group), style),
            "" if row.mean is None else f"{row.mean:g}" if group == 1 else f"{row.mean:.3f}",
            "" if wanted is None else f"{wanted:g}",
            _mean([float(run.step_count) for run in runs], 0 if group == 1 else 1),
            _mean([s for run in runs if (s := _seconds(run)) is not None], 1),
        )
    print_table(console, table, whole="task", least=("seconds", "steps"))
    if any(results.expected.get(row.task) is not None for row in rows):
        console.print(cell(_EXPECTED, "dim"))
    _print_reasons(console, results, rows, told)


def _print_reasons(
    console: Console,
    results: Results,
    rows: Sequence[TaskStatistics],
    told: Collection[tuple[str, str]],
) -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for style, text in _reasons(results, row):
            tasks = found.setdefault((style, text), [])
            if row.task not in tasks:
                tasks.append(row.task)
    untold = {
        key: tasks
        for key, tasks in found.items()
        if any((each, key[1]) not in told for each in tasks)
    }
    if untold:
        console.print()
    for (style, text), tasks in untold.items():
        more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
        names = ", ".join(tasks[:_NAMED]) + more
        console.print(cell(f"{names}: {clip(text, WHY_CHARS)}", style), soft_wrap=True)
    if any(len(text) > WHY_CHARS for _, text in found):
        line = "What is shortened, `hud-mcp trace TRAJECTORY` shows whole."
        console.print(line, style="dim")


def _reasons(results: Results, row: TaskStatistics) -> Iterator[tuple[str, str]]:
    for run_id in row.runs:
        run = results.runs[run_id]
        if (why := results.failed_agents.get(run.id) or _why(run)) is not None:
            yield "red", why
        for note in run.receipt.notes if run.receipt else ():
            yield "yellow", note
    if row.not_begun and row.task in results.refused:
        yield "red", results.refused[row.task]


def _outcomes(runs: Sequence[TrajectorySummary], not_begun: int, group: int) -> str:
    counts = Counter(outcome_class(run) for run in runs)
    if not_begun:
        counts[NOT_BEGUN] = not_begun
    if group == 1:
        return next(iter(counts), NOT_BEGUN)
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _why(run: TrajectorySummary) -> str | None:
    receipt = run.receipt
    if receipt is None or receipt.error is None:
        return None
    said = receipt.said_cause
    return f"{f'{said}: ' if said else ''}{receipt.error}"


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{sum(values) / len(values):.{digits}f}" if values else ""


def _seconds(run: TrajectorySummary) -> float | None:
    return None if run.ended_at is None else (run.ended_at - run.started_at).total_seconds()


def _expected(task: Task, agent: str | None) -> float | None:
    if task.validation is None or agent is None:
        return None
    return task.validation.oracle if agent == "oracle" else task.validation.nop

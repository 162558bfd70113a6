"""The tables of `hud-mcp jobs`: differences between jobs, and groups of one job's runs."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from hud_mcp.analysis.comparison import (
    Comparison,
    Difference,
    JobDifference,
    JobRuns,
    TaskResult,
    compare_jobs,
)
from hud_mcp.analysis.groups import Grouping, RunGroup
from hud_mcp.analysis.intervals import Estimate, interval_text
from hud_mcp.cli.output import cell, make_console, make_table, number, print_table
from hud_mcp.record.job import Job
from hud_mcp.registry import service
from hud_mcp.store import Store
from hud_mcp.values.outcome import Outcome

_SIGNS = {1: "up", -1: "down", 0: ""}


async def load_comparison(
    store: Store, names: Sequence[str], threshold: float
) -> tuple[list[Job], Comparison]:
    """Read jobs by unique beginnings of their ids, and compare each with the first.

    Raises:
        UsageError: One is named twice, or proves tasks.
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
    """
    ids = [await store.find_job_id(name) for name in names]
    if twice := next((each for each in ids if ids.count(each) > 1), None):
        raise click.UsageError(f"{twice} is named twice; name different jobs.")
    jobs: list[Job] = []
    runs: list[JobRuns] = []
    for job_id in ids:
        job, tasks, found = await service("job outlines")(store.database).load_outline(job_id)
        if job is None or job.is_proof:
            raise click.UsageError(
                f"The runs of {job_id} prove tasks and are no agent's results; name jobs of agents."
            )
        jobs.append(job)
        runs.append(JobRuns(tasks=tasks, runs=found, group=job.group))
    return jobs, compare_jobs(runs, threshold=threshold)


def comparison_json(jobs: Sequence[Job], found: Comparison) -> dict[str, Any]:
    """Return the jobs, their differences to the first and each task as JSON values."""
    known = {"id", "name", "agent", "taskset", "created_at", "group"}
    differences = (None, *found.differences)
    return {
        "confidence": found.confidence,
        "jobs": [
            {
                **job.model_dump(mode="json", include=known),
                "difference": None if difference is None else asdict(difference),
            }
            for job, difference in zip(jobs, differences, strict=True)
        ],
        "tasks": [asdict(task) for task in found.tasks],
    }


def print_comparison(jobs: Sequence[Job], found: Comparison) -> None:
    """Print a line for each job, then the tasks that flipped."""
    console = make_console()
    right = ("tasks", "pass rate", "difference", "up", "down", "p")
    table = make_table(
        "job", "agent", "tasks", "pass rate", "difference", "interval", "up", "down", "p",
        right=right,
    )  # fmt: skip
    differences = (None, *found.differences)
    for place, (job, difference) in enumerate(zip(jobs, differences, strict=True)):
        if difference is None:
            rate, scored = found.pass_rate(place)
            told = [str(scored), number(rate), "", "", "", "", ""]
        else:
            told = _beside(difference)
        table.add_row(cell(job.id), cell(job.agent or job.name), *told)
    print_table(console, table, whole="job", least=("up", "down", "tasks", "agent"))
    for job, difference in zip(jobs[1:], found.differences, strict=True):
        if difference.rewards is not None:
            said = f"{job.id}: mean reward {_words(difference.rewards)}"
            console.print(cell(said, "dim"), soft_wrap=True)
    text = (
        "Each job is compared with the first, over tasks that both ran; each task counts the same. "
        f"Intervals ({found.confidence:.0%}) are of differences within tasks; p is that of the "
        "exact sign test."
    )
    console.print(text, style="dim", soft_wrap=True)
    _print_flips(console, jobs, found)


def _beside(difference: JobDifference) -> list[str]:
    passes = difference.passes
    if passes is None:
        return ["0", "", "", "no task of both", "", "", ""]
    chance = difference.chance
    return [
        str(passes.tasks),
        f"{passes.first:.3f} → {passes.second:.3f}",
        f"{passes.value:+.3f}",
        _interval(passes),
        str(len(difference.up)),
        str(len(difference.down)),
        "" if chance is None else "< 0.001" if chance < 0.001 else f"{chance:.3f}",  # noqa: PLR2004  # the least that is shown
    ]


def _interval(of: Difference | Estimate, sign: str = "+") -> str:
    if of.low is None or of.high is None:
        return f"none: {of.reason}"
    return interval_text(of.low, of.high, sign=sign)


def _words(of: Difference) -> str:
    tasks = "1 task" if of.tasks == 1 else f"{of.tasks} tasks"
    return f"{of.first:.3f} → {of.second:.3f}, {of.value:+.3f} ({_interval(of)}) over {tasks}"


def _print_flips(console: Console, jobs: Sequence[Job], found: Comparison) -> None:
    flips = found.flips
    console.print()
    if not flips:
        console.print("No task flipped.", style="dim")
    else:
        heads = [f"{place}. {job.agent or job.name}" for place, job in enumerate(jobs, 1)]
        table = make_table("task", *(cell(head).plain for head in heads))
        for task in found.tasks:
            if task.id in flips:
                sides = zip(task.results, flips[task.id], strict=True)
                said = [f"{_result(result)} {_SIGNS[sign]}".rstrip() for result, sign in sides]
                table.add_row(cell(task.id), *map(cell, said))
        print_table(console, table, whole="task")
    differing = sum(task.differs for task in found.tasks)
    if differing:
        some = "1 task differs" if differing == 1 else f"{differing} tasks differ"
        console.print(f"{some} between these jobs, so no difference counts it.", style="dim")


def _result(found: TaskResult | None) -> str:
    if found is None:
        return "-"
    if found.wanted > 1:
        return f"{found.passed} of {found.scored} passed"
    end = "passed" if found.passed else "failed" if found.graded else next(iter(found.outcomes), "")
    return f"{end} {number(found.mean)}".rstrip()


_RIGHT = ("tasks", "graded", "mean", "pass@1")


def print_groupings(console: Console, groupings: Iterable[Grouping]) -> None:
    """Print a row for each group, with the figures that the job has of all its runs."""
    for grouping in groupings:
        if not grouping.is_told:
            console.print(f"No row says its {grouping.by}.\n", style="dim")
            continue
        columns = ["tasks", "graded", "mean", "interval", "pass@1", "others"]
        if any(group.use for group in grouping.groups):
            columns.append("model")
        table = _group_table(grouping, *columns)
        print_table(console, table, whole=grouping.by, least=("others", "model"))
        if grouping.overlapping:
            console.print(f"A run counts in each {grouping.by} that its task has.", style="dim")
        console.print()
    console.print("mean: over graded runs, with its 95% interval over tasks.", style="dim")


def print_means(console: Console, groupings: Iterable[Grouping]) -> None:
    """Print the mean and the pass rate of each group. A grouping with one group is left out."""
    for grouping in groupings:
        if len(grouping.groups) < 2:  # noqa: PLR2004  # one says what the job's own figures say
            continue
        table = _group_table(grouping, "tasks", "graded", "mean", "pass@1")
        print_table(console, table, whole=grouping.by)
        console.print()


def _group_table(grouping: Grouping, *columns: str) -> Table:
    table = make_table(grouping.by, *columns, right=_RIGHT)
    for group in grouping.groups:
        cells = {
            "tasks": str(len(group.tasks)),
            "graded": f"{group.graded}/{group.wanted}",
            "mean": number(group.mean.value if group.mean else None),
            "interval": _interval(group.mean, sign="") if group.mean else "",
            "pass@1": number(group.pass_rate.value if group.pass_rate else None),
            "others": cell(_others(group)),
            "model": cell(str(group.use or "")),
        }
        title = cell(grouping.title_of(group), "" if group.name else "dim")
        table.add_row(title, *(cells[name] for name in columns))
    return table


def _others(group: RunGroup) -> str:
    names = (item for item in group.outcomes.items() if item[0] != Outcome.GRADED)
    return ", ".join(f"{count} {name}" for name, count in names if count)

"""The output of `hud-mcp jobs JOB --by`: a table for each grouping of the runs."""

from collections.abc import Iterable

from rich.console import Console

from hud_mcp.analysis.groups import Grouping, RunGroup
from hud_mcp.analysis.intervals import Estimate, interval_text
from hud_mcp.cli.output import cell, make_table, number, print_table
from hud_mcp.values.outcome import Outcome

__all__ = ["print_groupings", "print_means"]

_RIGHT = ("tasks", "graded", "mean", "pass@1")


def print_groupings(console: Console, groupings: Iterable[Grouping]) -> None:
    """Print a row for each group, with the figures that the job has of all its runs."""
    for grouping in groupings:
        if not grouping.is_told:
            console.print(f"No row says its {grouping.by}.\n", style="dim")
            continue
        _print_table(console, grouping)
        if grouping.overlapping:
            console.print(f"A run counts in each {grouping.by} that its task has.", style="dim")
        console.print()
    console.print("mean: over graded runs, with its 95% interval over tasks.", style="dim")


def print_means(console: Console, groupings: Iterable[Grouping]) -> None:
    """Print the mean and the pass rate of each group. A grouping with one group is left out."""
    for grouping in groupings:
        if len(grouping.groups) < 2:  # noqa: PLR2004  # one says what the job's own figures say
            continue
        table = make_table(grouping.by, "tasks", "graded", "mean", "pass@1", right=_RIGHT)
        for group in grouping.groups:
            table.add_row(
                cell(grouping.title_of(group), "" if group.name else "dim"),
                str(len(group.tasks)),
                f"{group.graded}/{group.wanted}",
                number(group.mean.value if group.mean else None),
                number(group.pass_rate.value if group.pass_rate else None),
            )
        print_table(console, table, whole=grouping.by)
        console.print()


def _print_table(console: Console, grouping: Grouping) -> None:
    columns = [grouping.by, "tasks", "graded", "mean", "interval", "pass@1", "others"]
    has_use = any(group.use for group in grouping.groups)
    table = make_table(*columns, *(["model"] if has_use else []), right=_RIGHT)
    for group in grouping.groups:
        table.add_row(
            cell(grouping.title_of(group), "" if group.name else "dim"),
            str(len(group.tasks)),
            f"{group.graded}/{group.wanted}",
            number(group.mean.value if group.mean else None),
            _interval(group.mean),
            number(group.pass_rate.value if group.pass_rate else None),
            cell(_others(group)),
            *([cell(str(group.use or ""))] if has_use else []),
        )
    print_table(console, table, whole=grouping.by, least=("others", "model"))


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return f"none: {estimate.reason}"
    return interval_text(estimate.low, estimate.high)


def _others(group: RunGroup) -> str:
    names = (item for item in group.outcomes.items() if item[0] != Outcome.GRADED)
    return ", ".join(f"{count} {name}" for name, count in names if count)

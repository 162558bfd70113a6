"""`hud-mcp tasks`: the sets of tasks, and their rows."""

from collections.abc import Iterator, Sequence

import click
import orjson

from hud_mcp.base.lines import json_lines
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import complete_tasksets, filter_option, json_option, split_option
from hud_mcp.cli.output import cell, make_console, make_table, print_table
from hud_mcp.cli.process import without_collecting
from hud_mcp.cli.sources import environments_of, print_needs, print_sets
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.sets import find_sets
from hud_mcp.record.transcript import visible_line

_COLUMNS = ("task", "environment", "template", "description")
_FOLDED = 200
"""Rows of a table whose cells are folded; a longer list has a line for each task."""
_AT_ONCE = 1_000


@click.command(cls=Command)
@click.argument(
    "tasksets", nargs=-1, metavar="[TASKSET]... [TASK]", shell_complete=complete_tasksets
)
@filter_option("--filter")
@split_option
@click.option("--show", metavar="ID", help="Show one full row, as TASK does.")
@json_option
def command(
    tasksets: tuple[str, ...],
    pattern: str | None,
    split: str | None,
    show: str | None,
    *,
    as_json: bool,
) -> None:
    """List the available sets of tasks, or the tasks of TASKSETS; or show one TASK of them.

    A TASKSET is a .jsonl, .json or .py file, or the name of a shipped or public set. `all` names
    every shipped set that needs no further software. `hud-mcp functions` explains the functions
    that `setup` and `evaluate` of tasks name.
    """
    if not tasksets:
        if pattern is not None or split is not None or show is not None:
            raise click.UsageError("Name a TASKSET whose tasks are meant, such as quickstart.")
        print_sets(as_json=as_json)
        return
    if show is None:
        tasksets, show = _split_off_task(tasksets)
    found = find_sets(tasksets)
    with without_collecting():
        read = found.read()
    tasks = read.tasks
    if not len(tasks):
        raise InvalidTask(f"{found.name} holds no tasks. Write one as JSON on each line.")
    if show is not None:
        task = tasks[show]
        row = task.model_dump(mode="json") if as_json else task.row
        click.echo(orjson.dumps(row, option=orjson.OPT_INDENT_2 * (not as_json)))
        return
    chosen = tasks if split is None else tasks.split(split)
    chosen = chosen if pattern is None else chosen.filter(pattern)
    if as_json:
        for begin in range(0, len(chosen), _AT_ONCE):  # each echo waits for its reader
            part = chosen[begin : begin + _AT_ONCE]
            click.echo(json_lines(task.row for task in part), nl=False)
        return
    _print_list(chosen, tasks)
    print_needs(make_console(), environments_of(chosen, list(read.files.values())))
    if found.left_out:
        make_console().print(cell(found.left_out, "dim"), soft_wrap=True)


def _split_off_task(names: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Return the sets, and the task after them: a last name that is no set's."""
    *sets, last = names
    if not sets:
        return names, None
    try:
        find_sets([last])
    except SourceNotFound:
        return tuple(sets), last
    return names, None


def _print_list(chosen: Taskset, tasks: Taskset) -> None:
    console = make_console()
    rows = [(task.id, task.env, task.template, task.title) for task in chosen]
    if len(rows) > _FOLDED:
        click.echo("\n".join(_lines([_COLUMNS, *rows], console.width)))
    else:
        table = make_table(*_COLUMNS)
        for row in rows:
            table.add_row(*map(cell, row))
        print_table(console, table, whole="task", least=("template", "environment"))
    console.print(f"{len(chosen)} of {len(tasks)} tasks; --show ID prints one.", style="dim")
    if not len(chosen):
        text = f"Nothing is like that; * matches anything. Some ids: {', '.join(tasks.ids[:5])}."
        console.print(text, style="dim", markup=False)


def _lines(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    shown = [[visible_line(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        line = "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True)).rstrip()
        yield line if len(line) <= width else f"{line[: width - 1].rstrip()}…"

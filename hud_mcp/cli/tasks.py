"""`hud-mcp tasks`: what is in a taskset."""

import click
import orjson
from rich.console import Console
from rich.table import Table

from hud_mcp.loading.source import find_taskset
from hud_mcp.taskset import Taskset

__all__ = ["command"]


@click.command()
@click.argument("taskset")
@click.option(
    "--filter", "pattern", metavar="PATTERN", help="Only ids, environments or templates like this."
)
@click.option("--split", help="Only tasks of one split.")
@click.option("--show", metavar="ID", help="Show one row, whole.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines.")
def command(
    taskset: str,
    pattern: str | None,
    split: str | None,
    show: str | None,
    *,
    as_json: bool,
) -> None:
    """List the tasks of a TASKSET: a .jsonl, .json or .py file, or a shipped or public set's name.

    What their `setup` and `evaluate` name, `hud-mcp functions` explains.
    """
    tasks = Taskset.from_file(find_taskset(taskset))
    if show is not None:
        task = tasks[show]
        row = task.model_dump(mode="json") if as_json else task.row
        click.echo(orjson.dumps(row, option=orjson.OPT_INDENT_2 * (not as_json)))
        return
    chosen = tasks if split is None else tasks.split(split)
    chosen = chosen if pattern is None else chosen.filter(pattern)
    if as_json:
        for task in chosen:
            click.echo(orjson.dumps(task.row))
        return
    _print_table(chosen, tasks)


def _print_table(chosen: Taskset, tasks: Taskset) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("task", "environment", "template", "description"):
        table.add_column(name, overflow="fold")
    for task in chosen:
        table.add_row(task.id, task.env, task.template, task.title)
    console = Console()
    console.print(table)
    console.print(f"{len(chosen)} of {len(tasks)} tasks; --show ID prints one.", style="dim")
    if not len(chosen):
        text = f"Nothing is like that; * matches anything. Some ids: {', '.join(tasks.ids[:5])}."
        console.print(text, style="dim", markup=False)

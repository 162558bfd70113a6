"""The sets of tasks that can be named here, as `hud-mcp tasks` lists them."""

from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from hud_mcp.cli.output import cell, make_console, make_table
from hud_mcp.cli.startup import without_collecting
from hud_mcp.loading.sets import ALL, ListedSet, list_sets

__all__ = ["print_sets"]

_ANY_WIDTH = 100_000
_LEVELS = ("easy", "medium", "hard")
_COLUMNS = ("set", "tasks", "difficulty", "environments", "needs", "description")


def print_sets(*, as_json: bool) -> None:
    """Print the sets of the package and of the working folder, and what to type next.

    Args:
        as_json: Whether each is a line of JSON.

    Raises:
        InvalidTask: What is said of the sets of a folder is wrong.
    """
    with without_collecting():
        sets = list_sets()
    if as_json:
        for each in sets:
            click.echo(each.model_dump_json())
        return
    console = make_console()
    table = make_table(*_COLUMNS, right=("tasks",))
    for each in sets:
        row = (each.name, str(each.tasks), _difficulty(each), _environments(each))
        table.add_row(*map(cell, (*row, ", ".join(each.needs), _said(each))))
    unbounded = console.options.update(max_width=_ANY_WIDTH)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
    else:
        for each in sets:
            _print_narrow(console, each)
    _print_next(console, sets)


def _print_narrow(console: Console, each: ListedSet) -> None:
    """Print a set as two lines, where the table would be too wide."""
    levels = f" ({text})" if (text := _difficulty(each)) else ""
    inside = f" in {text}" if (text := _environments(each)) else ""
    noun = "task" if each.tasks == 1 else "tasks"
    console.print(
        Text.assemble(cell(each.name, "bold"), cell(f"  {each.tasks} {noun}{levels}{inside}")),
        soft_wrap=True,
    )
    needs = f"Needs {', '.join(each.needs)}." if each.needs else ""
    if said := " ".join(filter(None, (_said(each), needs))):
        console.print(cell(f"  {said}"), soft_wrap=True)


def _print_next(console: Console, sets: Sequence[ListedSet]) -> None:
    ready = ", ".join(each.name for each in sets if each.in_all)
    for line in (
        f"`{ALL}` stands for {ready}: they need nothing beside hud-mcp.",
        "hud-mcp tasks SET lists its tasks; hud-mcp eval SET --agent oracle runs them.",
        "hud-mcp taskset list has the public sets, which are fetched.",
    ):
        console.print(cell(line, "dim"), soft_wrap=True)


def _difficulty(each: ListedSet) -> str:
    """How many tasks are how hard: the usual words first, and in their order."""
    ordered = [*_LEVELS, *(name for name in each.difficulties if name not in _LEVELS)]
    return ", ".join(
        f"{count} {name}" for name in ordered if (count := each.difficulties.get(name))
    )


def _environments(each: ListedSet) -> str:
    return ", ".join(each.environments)


def _said(each: ListedSet) -> str:
    return each.problem or each.description

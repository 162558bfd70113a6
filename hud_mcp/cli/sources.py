"""The sources of a command: environments, tasksets and limits, by what people write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from hud_mcp.cli import surfaces
from hud_mcp.cli.output import cell, make_console, make_table
from hud_mcp.cli.process import without_collecting
from hud_mcp.environment import Environment
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.sets import ALL, ListedSet, list_sets
from hud_mcp.loading.source import Source
from hud_mcp.session.spec import Limits

__all__ = [
    "environments_of",
    "load",
    "only_environment",
    "print_needs",
    "print_sets",
    "read_limits",
]


def load(
    sources: Sequence[str], tasksets: Sequence[str], *, split: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Load environments and the tasks that go with them.

    Without a taskset, the offered tasks are those that authors' own files declare, and the
    quickstart's tasks of the served shipped environments. With `split`, only its rows of each set
    are.

    Raises:
        SourceNotFound, InvalidEnvironment, InvalidTask: Loading one of them failed.
    """
    plain = [source for source in sources if not Source(source).is_remote]
    environments = surfaces.load_environments(plain if sources else surfaces.default_sources())
    if tasksets:
        found = [surfaces.find_sets([name]).read().tasks for name in tasksets]
        return environments, found if split is None else [each.split(split) for each in found]
    shipped = {path.resolve() for path in surfaces.shipped_environments().values()}
    names = {e.name for e in environments if e.file.resolve() in shipped}
    own = surfaces.declared_tasks(e for e in environments if e.name not in names)
    offered = [surfaces.Taskset(own, name="The tasks of the source")] if own else []
    quickstart = surfaces.shipped_folder("taskset_data") / "quickstart.jsonl"
    if names and quickstart.is_file():
        offered.append(surfaces.Taskset.load(quickstart).filter(lambda task: task.env in names))
    return environments, offered


def only_environment(environments: Sequence[Any], what: str) -> Any:
    """Return the one environment of several that a channel can serve.

    Raises:
        HudMcpError: There are several.
    """
    if len(environments) == 1:
        return environments[0]
    names = ", ".join(e.name for e in environments)
    raise HudMcpError(
        f"{what} serves one environment, and there are {len(environments)}: {names}. Name one as "
        "path/to/env.py:name."
    )


_ANY_WIDTH = 100_000
_LEVELS = ("easy", "medium", "hard")
_COLUMNS = ("set", "tasks", "difficulty", "environments", "needs", "description")


def print_sets(*, as_json: bool) -> None:
    """Print the sets of the package and of the working folder, and what to type next.

    Raises:
        InvalidTask: The description of the sets of a folder is wrong.
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
    ordered = [*_LEVELS, *(name for name in each.difficulties if name not in _LEVELS)]
    return ", ".join(
        f"{count} {name}" for name in ordered if (count := each.difficulties.get(name))
    )


def _environments(each: ListedSet) -> str:
    return ", ".join(each.environments)


def _said(each: ListedSet) -> str:
    return each.problem or each.description


def environments_of(tasks: Taskset, files: Sequence[Path]) -> list[Environment]:
    """Return the environments of tasks from these files; an empty list if one cannot be loaded."""
    try:
        found = find_sources((), tasks, files[0] if len(files) == 1 else Path.cwd())
        loaded = surfaces.load_environments([s for s in found if not Source(s).is_remote])
    except HudMcpError:  # a list of tasks is not the place to say what eval says
        return []
    named = set(tasks.environment_names)
    return [each for each in loaded if each.name in named]


def print_needs(console: Console, environments: Sequence[Environment]) -> None:
    """Print what a session of each environment needs."""
    for each in environments:
        text = f"A session of {each.name} needs {each.needs}."
        console.print(cell(text, "dim"), soft_wrap=True)


def read_limits(given: Sequence[str]) -> Limits:
    """Read `NAME=VALUE` limits.

    Raises:
        HudMcpError: A name is unknown, or a value out of range.
    """
    values: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in Limits.model_fields:
            hint = did_you_mean(name, Limits.model_fields)
            raise HudMcpError(
                f"--limit {item}: write NAME=VALUE.{hint} The limits are: "
                f"{', '.join(Limits.model_fields)}."
            )
        values[name] = value
    try:
        return Limits.model_validate(values)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        said = first["msg"].partition(",")[0].removeprefix("Input ")
        name = first["loc"][0]
        raise HudMcpError(f"--limit {name}={first['input']}: it {said}.") from None

"""`hud-mcp taskset`: import public sets, and look at, check, split and sample sets of tasks."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson

from hud_mcp.cli.help import Group
from hud_mcp.cli.options import WholeNumber, json_option
from hud_mcp.cli.output import cell, make_console, make_table, print_table
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import SETS, Choice, Counted, Imported, count, import_set
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import load_environments, shipped_folder
from hud_mcp.plugins.sets.inspect_sets import inspect_command
from hud_mcp.registry import names_of
from hud_mcp.session.catalogue import Catalogue

_SHOWN_REASONS = 12


@click.group("taskset", Group)
def command() -> None:
    """Import public sets of tasks; show, check, split and sample sets."""


command.add_command(inspect_command)


@command.command("import")
@click.argument("name")
@click.option(
    "--from",
    "place",
    metavar="FOLDER|URL",
    help="Where the set's files are. Default: the folder HUD_MCP_DATASETS, then the place of "
    "publication.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file to write."
)
@click.option("--split", metavar="NAME", help="Only the rows of one split.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST=PLACE",
    help="Replace a host or a placeholder in the rows, such as www.imdb.com=http://127.0.0.1:8001.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="The address of a site of WebArena, such as shopping=http://127.0.0.1:7770.",
)
@click.option(
    "--gym", metavar="NAME", help="The environment of the rows, for a set that names none."
)
@click.option(
    "--seed", type=WholeNumber(), metavar="N", default=0, help="The seed of a generated set."
)
@click.option(
    "--size",
    hidden=True,
    type=WholeNumber(1),
    metavar="N",
    default=100,
    help="The number of rows of a generated set.",
)
@click.option(
    "--refresh", hidden=True, is_flag=True, help="Fetch the set's files again, and accept changes."
)
def import_command(name: str, **options: Any) -> None:
    """Import a public set by its NAME, such as WebVoyager or GAIA-level1.

    The command writes a taskset; each row states its origin.
    """
    choice = Choice(
        hosts=_places("--host HOST=PLACE", options["hosts"])
        | _places("--site NAME=ADDRESS", options["sites"]),
        gym=options["gym"],
        seed=options["seed"],
        size=options["size"],
    )
    imported = import_set(
        name, choice, place=options["place"], refresh=options["refresh"], report=_progress()
    )
    tasks = Taskset(imported.tasks, name=imported.name)
    if options["split"]:
        tasks = tasks.split(options["split"])
    path: Path = options["output"] or Path(f"{imported.name}.jsonl")
    tasks.to_file(path)
    _print_import(imported, tasks, path)


@command.command("list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the shipped sets, and the public sets that `hud-mcp taskset import` can import."""
    rows = [
        {"name": path.stem, "kind": "shipped", "about": f"{_lines_of(path)} tasks", "licence": ""}
        for path in sorted(shipped_folder("taskset_data").glob("*.jsonl"))
    ]
    rows += [
        {
            "name": each.title,
            "kind": "public, fetched" if each.is_fetched else "public",
            "about": each.about,
            "licence": each.licence,
        }
        for each in map(SETS.__getitem__, names_of("sets"))
    ]
    if as_json:
        for row in rows:
            click.echo(orjson.dumps(row))
        return
    table = make_table("set", "kind", "what", "licence")
    for row in rows:
        table.add_row(row["name"], row["kind"], row["about"], row["licence"])
    print_table(make_console(), table, whole="set", least=("kind", "licence"))


@command.command("show")
@click.argument("taskset")
@click.argument("task", required=False)
def show_command(taskset: str, task: str | None) -> None:
    """Summarise a TASKSET, or show one full TASK of it."""
    tasks = Taskset.from_file(find_taskset(taskset))
    if task is not None:
        click.echo(orjson.dumps(tasks[task].row, option=orjson.OPT_INDENT_2))
        return
    console = make_console()
    console.print(cell(f"{tasks.name}: {_counts(count(tasks))}"))
    for title, values in (
        ("environments", {name: sum(t.env == name for t in tasks) for name in _names(tasks)}),
        ("splits", tasks.splits),
    ):
        if values:
            console.print(cell(f"{title}: {_listed(values)}"), soft_wrap=True)
    _print_reasons(console.print, count(tasks))


@command.command("validate")
@click.argument("taskset")
@click.option(
    "--env", "sources", multiple=True, metavar="SOURCE", help="The source of the environments."
)
def validate_command(taskset: str, sources: tuple[str, ...]) -> None:
    """Check that every row of a TASKSET fits its environment. Nothing runs."""
    path = find_taskset(taskset)
    tasks = Taskset.from_file(path)
    found = find_sources(sources, tasks, path)
    bound = Catalogue(load_environments(found), [tasks]).tasks
    make_console().print(cell(f"{tasks.name}: {len(list(bound))} rows fit their environments."))


@command.command("split")
@click.argument("taskset")
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME=SHARE",
    help="A split and its share of the rows, such as train=0.8. The last split gets the rest.",
)
@click.option(
    "--seed",
    type=WholeNumber(),
    metavar="N",
    default=0,
    help="The seed of the draw. The same seed draws the same rows.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder to write to.",
)
def split_command(taskset: str, parts: tuple[str, ...], seed: int, folder: Path) -> None:
    """Write each split of a TASKSET to its own file.

    The default splits are those of the rows. --part draws splits at random instead.
    """
    tasks = Taskset.from_file(find_taskset(taskset))
    found = _drawn(tasks, _shares(parts), seed) if parts else _own(tasks)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in found.items():
        path = folder / f"{tasks.name}-{name}.jsonl"
        part.to_file(path)
        make_console().print(cell(f"{path}: {len(part)} rows"), soft_wrap=True)


@command.command("sample")
@click.argument("taskset")
@click.argument("rows", type=WholeNumber(1))
@click.option(
    "--seed",
    type=WholeNumber(),
    metavar="N",
    default=0,
    help="The seed of the draw. The same seed draws the same rows.",
)
@click.option("--runnable", is_flag=True, help="Only rows that this machine can run.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file to write."
)
def sample_command(
    taskset: str, rows: int, seed: int, *, runnable: bool, output: Path | None
) -> None:
    """Draw this number of ROWS from a TASKSET; without a file, print them."""
    tasks = Taskset.from_file(find_taskset(taskset))
    if runnable:
        tasks = tasks.filter(lambda task: why_not_runnable(task) is None)
    drawn = tasks.sample(rows, seed=seed)
    if output is None:
        for task in drawn:
            click.echo(orjson.dumps(task.row))
        return
    drawn.to_file(output)
    make_console().print(cell(f"{output}: {len(drawn)} of {len(tasks)} rows"), soft_wrap=True)


def _places(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return the places that stand for hosts and sites; raise HudMcpError for another form."""
    name, _, form = option.partition(" ")
    found: dict[str, str] = {}
    for each in given:
        host, equals, place = each.partition("=")
        if not (host and equals and place):
            raise HudMcpError(f"{name} {each}: write {form}, such as imdb.com=127.0.0.1:8001.")
        found[host] = place
    return found


def _progress() -> Callable[[str], None] | None:
    """Return a function that shows the progress of a file on one line; None without a terminal."""
    if not sys.stderr.isatty():
        return None
    return lambda line: click.echo(f"\r\x1b[K{line}", nl=False, err=True)


def _print_import(imported: Imported, tasks: Taskset, path: Path) -> None:
    console = make_console()
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    published = imported.published
    console.print(cell(f"{published.title}: {published.page} ({published.licence})"))
    counted = count(tasks)
    console.print(cell(_counts(counted)), soft_wrap=True)
    _print_reasons(console.print, counted)
    for note in imported.notes:
        console.print(cell(note, "yellow"), soft_wrap=True)
    console.print(cell(f"Written to {path}"), soft_wrap=True)


def _counts(counted: Counted) -> str:
    needs = ", ".join(f"{name} ({number})" for name, number in counted.needs.items())
    more = f" They need: {needs}." if needs else ""
    return f"{counted.rows} rows, {counted.runnable} runnable here.{more}"


def _print_reasons(show: Callable[..., None], counted: Counted) -> None:
    if not counted.reasons:
        return
    show(cell(f"{counted.rows - counted.runnable} rows do not run here:"))
    for why, number in list(counted.reasons.items())[:_SHOWN_REASONS]:
        show(cell(f"  {number}  {why}"), soft_wrap=True)
    if (more := len(counted.reasons) - _SHOWN_REASONS) > 0:
        show(cell(f"  … {more} more reasons; the rows say them."))
    if besides := list(counted.besides.items()):
        shown = _listed(dict(besides[:_SHOWN_REASONS]))
        rest = f" and {len(besides) - _SHOWN_REASONS} more" if besides[_SHOWN_REASONS:] else ""
        show(cell(f"Of these rows, some lack more: {shown}{rest}."), soft_wrap=True)


def _names(tasks: Taskset) -> tuple[str, ...]:
    return tasks.environment_names


def _listed(values: dict[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in values.items())


def _lines_of(path: Path) -> int:
    return sum(bool(line.strip()) for line in path.read_bytes().splitlines())


def _own(tasks: Taskset) -> dict[str, Taskset]:
    """Return the splits that rows have; raise InvalidTask if they have none."""
    if not tasks.splits:
        raise InvalidTask(
            f"The rows of {tasks.name} have no splits; draw some with --part train=0.8 --part test."
        )
    return {name: tasks.split(name) for name in tasks.splits}


def _shares(parts: tuple[str, ...]) -> dict[str, float]:
    """Return the shares of splits to draw; the last one may be left out.

    Raise HudMcpError if a text is not a share, or the shares are not from 0 to 1 in all.
    """
    found: dict[str, float] = {}
    for number, each in enumerate(parts, 1):
        name, equals, share = each.partition("=")
        try:
            found[name] = float(share) if equals or number < len(parts) else 1 - sum(found.values())
        except ValueError:
            raise HudMcpError(f"--part {each}: write NAME=SHARE, such as train=0.8.") from None
    if min(found.values()) < 0 or sum(found.values()) > 1 + 1e-9:
        raise HudMcpError(f"--part: shares are from 0 to 1 in all, not {sum(found.values()):g}.")
    return found


def _drawn(tasks: Taskset, shares: dict[str, float], seed: int) -> dict[str, Taskset]:
    """Return drawn splits: each row is in one of them at most, and names it."""
    ids = list(tasks.ids)
    random.Random(seed).shuffle(ids)  # noqa: S311  # no secret
    found: dict[str, Taskset] = {}
    begin, share_so_far = 0, 0.0
    for name, share in shares.items():
        share_so_far += share
        end = round(share_so_far * len(ids))
        wanted = frozenset(ids[begin:end])
        begin = end
        found[name] = Taskset(
            (
                task.model_copy(update={"metadata": {**task.metadata, "split": name}})
                for task in tasks
                if task.id in wanted
            ),
            name=tasks.name,
        )
    return found

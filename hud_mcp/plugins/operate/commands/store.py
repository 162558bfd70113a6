"""`hud-mcp store`: the contents of a store, its damage, its pruning and its copies."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import anyio
import click

from hud_mcp.cli.completion import complete_jobs
from hud_mcp.cli.help import Group
from hud_mcp.cli.options import json_option, store_option
from hud_mcp.cli.output import Telling, asks_here, cell, make_console
from hud_mcp.plugins.operate import commands
from hud_mcp.plugins.operate.upkeep.values import Copied, Finding, Holdings, Pruned, Vacuumed
from hud_mcp.record.place import check_place, default_store_url, read_place
from hud_mcp.record.transcript import visible_line
from hud_mcp.record.values import utc_now
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store

__all__ = ["command"]

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,6})([hdw])")


class _Age(click.ParamType[timedelta]):
    """A number with its unit."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read the age."""
        if isinstance(value, timedelta):
            return value
        found = _AGE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no age; give hours, days or weeks, as in 90d.", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


_beside_option = click.option(
    "--beside",
    "beside",
    multiple=True,
    metavar="URL",
    help="Another store that keeps its pictures in the same folder, if it needs a password.",
)


@click.group("store", Group)
def command() -> None:
    """Look after a store over the years: measure, verify, shrink, prune and copy it."""
    configure_logging("warning")


@command.command("info")
@json_option
@store_option
def info(*, store: str | None, as_json: bool) -> None:
    """Show what a store holds, the space that it takes, and who uses it now."""
    check_place(store)
    found = anyio.run(_measure, store)
    if as_json:
        click.echo(json.dumps(_fields(found), indent=2))
        return
    console = make_console()
    width = max(len(name) for name, _ in _facts(found))
    for name, text in _facts(found):
        console.print(cell(f"{name.ljust(width)}  {text}"), soft_wrap=True)


async def _measure(url: str | None) -> Holdings:
    opened = Store(url)
    try:
        return await commands.Upkeep(opened).measure()
    finally:
        await opened.close()


def _fields(found: Holdings) -> dict[str, Any]:
    row = asdict(found)
    row |= {name: row[name] and row[name].isoformat() for name in ("oldest", "newest")}
    return {**row, "folder": str(found.folder)}


def _facts(found: Holdings) -> list[tuple[str, str]]:
    total = sum(found.sessions.values())
    ended = ", ".join(f"{number:,} {name}" for name, number in found.sessions.items())
    free = "" if not found.free_bytes else f", {_size(found.free_bytes)} of it free"
    unused = f", {found.unused:,} of them unused ({_size(found.unused_bytes)})"
    unused = unused if found.unused else ""
    span = "" if found.oldest is None or found.newest is None else (
        f"{found.oldest:%Y-%m-%d %H:%M} to {found.newest:%Y-%m-%d %H:%M} UTC"
    )  # fmt: skip
    facts = [
        ("store", found.url),
        ("version", str(found.version)),
        ("jobs", f"{found.jobs:,}"),
        ("sessions", f"{total:,}{f': {ended}' if ended else ''}"),
        ("begun", span),
        ("steps", f"{found.steps:,}"),
        ("turns", f"{found.turns:,}"),
        ("lines of log", f"{found.lines:,}"),
        ("pruned", f"{found.pruned:,} sessions" if found.pruned else ""),
        ("database", f"{_size(found.database_bytes)}{free}"),
        ("pictures", f"{found.pictures:,}, {_size(found.picture_bytes)}{unused}"),
        ("folder", str(found.folder)),
        *(("folder of", other) for other in found.shared_with),
        ("servers", f"{found.servers} alive, with {found.held} sessions"),
        ("waiting", f"{found.waiting} sessions that no living server runs"),
    ]  # fmt: skip
    return [(name, text) for name, text in facts if text]


@command.command("verify", epilog="Exit status: 0 if all is sound, else 1.")
@store_option
def verify(*, store: str | None) -> None:
    """Look for damage in the database and among the pictures, and say what to do about it.

    Nothing is changed: not even an old store is brought up to date.
    """
    if shown_problem := _folder_problem(store):
        raise click.UsageError(shown_problem)
    found = anyio.run(_verify, store)
    for each in found:
        click.echo(f"{each.kind}: {visible_line(each.what)}. To do: {each.remedy}.")
    if found:
        harmless = sum(each.harmless for each in found)
        click.echo(f"{_count(len(found) - harmless, 'damage')}, {harmless} left over.", err=True)
        sys.exit(1)
    click.echo("All is sound.")


def _folder_problem(store: str | None) -> str | None:
    """Return the fault of a place that is no file; None for a file, which may be damaged."""
    path = read_place(store or default_store_url())[1]
    return f"{path} is a folder. Name the file in it." if path and path.is_dir() else None


async def _verify(url: str | None) -> list[Finding]:
    opened = Store(url)
    telling = Telling("looked at")
    try:
        return await commands.Upkeep(opened).verify(on_progress=telling.show)
    finally:
        telling.clear()
        await opened.close()


@command.command("copy")
@click.argument("target", metavar="URL")
@store_option
def copy(*, target: str, store: str | None) -> None:
    """Copy a store and its pictures to URL: from SQLite to PostgreSQL, or back.

    The target must be new or empty. A copy that was interrupted goes on if you call it again.
    At the end, all rows of both sides are counted and compared. Stop all servers first.
    """
    for place in (store, target):
        check_place(place)
    done = anyio.run(_copy, store, target)
    rows = ", ".join(f"{number:,} {name}" for name, number in done.rows.items())
    goes_on = "Finished an earlier copy. " if done.resumed else ""
    click.echo(f"{goes_on}Both sides are the same: {rows}; {_count(done.pictures, 'picture')}.")
    if done.missing:
        click.echo(f"{_count(done.missing, 'picture')} were missing or damaged.", err=True)


async def _copy(url: str | None, target: str) -> Copied:
    opened, other = Store(url), Store(target)
    telling = Telling("rows copied and compared")
    try:
        return await commands.Upkeep(opened).copy_to(other, on_progress=telling.show)
    finally:
        telling.clear()
        await opened.close()
        await other.close()


@command.command("vacuum")
@_beside_option
@store_option
def vacuum(*, store: str | None, beside: tuple[str, ...]) -> None:
    """Remove pictures that no step refers to, and give back the database's free space.

    It is safe beside a living server: pictures of the last hour stay.
    """
    check_place(store)
    done = anyio.run(_vacuum, store, beside)
    pictures = _count(done.pictures, "picture")
    click.echo(
        f"Removed {pictures} that no step refers to ({_size(done.picture_bytes)}). "
        f"The database is {_size(done.database_bytes)} smaller."
    )
    _print_notes(done.notes)


async def _vacuum(url: str | None, beside: Sequence[str]) -> Vacuumed:
    opened = Store(url)
    try:
        return await commands.Upkeep(opened).vacuum(beside=beside)
    finally:
        await opened.close()


@command.command(
    "prune",
    epilog="Sessions that have not ended stay whole. Exports that were made before stay as they "
    "are. `hud-mcp store vacuum` gives the space back to the system.",
)
@click.option(
    "--older-than",
    "age",
    type=_Age(),
    required=True,
    metavar="AGE",
    help="Prune runs that ended longer ago: a number with h, d or w for hours, days or weeks.",
)
@click.option(
    "--keep-grades",
    is_flag=True,
    help="Keep tasks, receipts and grades, so that the figures of jobs stay right.",
)
@click.option("--job", metavar="JOB", shell_complete=complete_jobs, help="Only this job.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Remove it without a question.")
@_beside_option
@store_option
def prune(**options: Any) -> None:
    """Remove the steps, pictures, turns, logs and prompts of old trajectories, for good.

    Each keeps a marker: what was removed, when, and by which rule. Without --keep-grades, a job
    loses its tasks and grades too if all its runs are old enough. Its name and the markers stay.
    """
    check_place(options["store"])
    sys.exit(anyio.run(_prune, options))


async def _prune(options: dict[str, Any]) -> int:
    opened = Store(options["store"])
    age: timedelta = options["age"]
    hours = round(age / timedelta(hours=1))
    rule = f"older than {hours // 24}d" if hours % 24 == 0 else f"older than {hours}h"
    try:
        opened.look_for_it()
        job = options["job"] and await opened.find_job_id(options["job"])
        wanted: dict[str, Any] = {
            "keep_grades": options["keep_grades"],
            "job_id": job,
            "rule": f"{rule}, of {job}" if job else rule,
            "beside": options["beside"],
        }
        before = utc_now() - age
        found = await commands.Upkeep(opened).prune(before, dry_run=True, **wanted)
        if options["dry_run"] or not found.runs:
            would = "Would remove" if found.runs else "Nothing ended so long ago, or is left"
            click.echo(f"{would}: {_removed(found)}." if found.runs else f"{would} to remove.")
            return 0
        if not options["yes"] and not _agrees(found, keeps=options["keep_grades"]):
            return 1
        telling = Telling("pruned")
        try:
            done = await commands.Upkeep(opened).prune(before, on_progress=telling.show, **wanted)
        finally:
            telling.clear()
    finally:
        await opened.close()
    pictures = f"{_count(done.pictures, 'picture')} ({_size(done.picture_bytes)})"
    click.echo(f"Removed {_removed(done)}, and {pictures} that nothing else refers to.")
    _print_notes(done.notes)
    return 0


def _agrees(found: Pruned, *, keeps: bool) -> bool:
    """Whether a person agrees to the removal; if nobody can be asked, it is refused."""
    grades = "Grades stay." if keeps else "Grades are removed too."
    if not asks_here():
        raise click.UsageError(
            f"This would remove {_removed(found)}. {grades} Give --yes to do so, or --dry-run to "
            "look only."
        )
    text = f"Remove {_removed(found)}, for good? {grades}"
    return click.confirm(text, err=True)


def _removed(found: Pruned) -> str:
    parts = [(found.steps, "step"), (found.turns, "turn"), (found.lines, "log line")]
    what = ", ".join(_count(number, noun) for number, noun in parts)
    return f"{what} of {_count(found.runs, 'trajectory')}"


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(note, err=True)


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def _size(number: int) -> str:
    value, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:  # noqa: PLR2004  # of each unit make one of the next
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"  # noqa: PLR2004  # three digits are enough

"""`hud-mcp store` and `redact`: the contents of a store, its damage, its pruning and its copies."""

import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import click

from hud_mcp.cli.help import Command, Group
from hud_mcp.cli.options import complete_jobs, complete_records, json_option, store_option
from hud_mcp.cli.output import Telling, asks_here, cell, make_console
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.operate import surfaces
from hud_mcp.plugins.operate.values import Copied, Holdings, Pruned
from hud_mcp.record.place import check_place, default_store_url, read_place
from hud_mcp.record.transcript import visible_line
from hud_mcp.record.values import utc_now
from hud_mcp.registry import service
from hud_mcp.session.log import configure_logging
from hud_mcp.store import opened_store
from hud_mcp.values.model_turn import REDACTABLE, RedactedField

if TYPE_CHECKING:
    from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep

ResultT = TypeVar("ResultT")

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,6})([hdw])")


class _Age(click.ParamType[timedelta]):
    """A number with its unit."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
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


def _upkeep(url: str | None, work: Callable[["Upkeep"], Awaitable[ResultT]]) -> ResultT:
    """Run an operation of the upkeep of a store, which is opened for it."""

    async def run() -> ResultT:
        async with opened_store(url) as store:
            return await work(surfaces.Upkeep(store))

    return anyio.run(run)


@command.command("info")
@json_option
@store_option
def info(*, store: str | None, as_json: bool) -> None:
    """Show what a store holds, the space that it takes, and who uses it now."""
    check_place(store)
    found = _upkeep(store, lambda upkeep: upkeep.measure())
    if as_json:
        click.echo(json.dumps(_fields(found), indent=2))
        return
    console = make_console()
    width = max(len(name) for name, _ in _facts(found))
    for name, text in _facts(found):
        console.print(cell(f"{name.ljust(width)}  {text}"), soft_wrap=True)


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
    with Telling("looked at") as telling:
        found = _upkeep(store, lambda upkeep: upkeep.verify(on_progress=telling.show))
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

    async def work(upkeep: "Upkeep") -> Copied:
        async with opened_store(target) as other:
            return await upkeep.copy_to(other, on_progress=telling.show)

    with Telling("rows copied and compared") as telling:
        done = _upkeep(store, work)
    rows = ", ".join(f"{number:,} {name}" for name, number in done.rows.items())
    goes_on = "Finished an earlier copy. " if done.resumed else ""
    click.echo(f"{goes_on}Both sides are the same: {rows}; {_count(done.pictures, 'picture')}.")
    if done.missing:
        click.echo(f"{_count(done.missing, 'picture')} were missing or damaged.", err=True)


@command.command("vacuum")
@_beside_option
@store_option
def vacuum(*, store: str | None, beside: tuple[str, ...]) -> None:
    """Remove pictures that no step refers to, and give back the database's free space.

    It is safe beside a living server: pictures of the last hour stay.
    """
    check_place(store)
    done = _upkeep(store, lambda upkeep: upkeep.vacuum(beside=beside))
    pictures = _count(done.pictures, "picture")
    click.echo(
        f"Removed {pictures} that no step refers to ({_size(done.picture_bytes)}). "
        f"The database is {_size(done.database_bytes)} smaller."
    )
    _print_notes(done.notes)


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
    age: timedelta = options["age"]
    hours = round(age / timedelta(hours=1))
    rule = f"older than {hours // 24}d" if hours % 24 == 0 else f"older than {hours}h"
    async with opened_store(options["store"]) as opened:
        opened.look_for_it()
        job = options["job"] and await opened.find_job_id(options["job"])
        wanted: dict[str, Any] = {
            "keep_grades": options["keep_grades"],
            "job_id": job,
            "rule": f"{rule}, of {job}" if job else rule,
            "beside": options["beside"],
        }
        before = utc_now() - age
        found = await surfaces.Upkeep(opened).prune(before, dry_run=True, **wanted)
        if options["dry_run"] or not found.runs:
            would = "Would remove" if found.runs else "Nothing ended so long ago, or is left"
            click.echo(f"{would}: {_removed(found)}." if found.runs else f"{would} to remove.")
            return 0
        if not options["yes"] and not _agrees(found, keeps=options["keep_grades"]):
            return 1
        with Telling("pruned") as telling:
            done = await surfaces.Upkeep(opened).prune(before, on_progress=telling.show, **wanted)
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


class _Fields(click.ParamType[tuple[RedactedField, ...]]):
    """Names with commas between them."""

    name = "fields"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[RedactedField, ...]:
        if not isinstance(value, str):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        unknown = [name for name in names if name not in REDACTABLE]
        if unknown or not names:
            what = repr(unknown[0]) if unknown else "nothing"
            self.fail(f"{what} is none of {', '.join(REDACTABLE)}.", param, ctx)
        return tuple(name for name in REDACTABLE if name in names)


@click.command(
    "redact",
    Command,
    epilog="Actions, observations, answers and figures stay, because resuming and grading read "
    "them. The command does not change exported files.",
)
@click.argument("job", shell_complete=complete_records)
@click.option(
    "--fields",
    type=_Fields(),
    required=True,
    help=f"The fields to remove, separated by commas: {', '.join(REDACTABLE)}.",
)
@store_option
def redact_command(job: str, fields: tuple[RedactedField, ...], store: str | None) -> None:
    """Remove a model's words or reasoning from a JOB, or from one trajectory, for good.

    Each turn keeps a marker that says what was removed, and when. The removal cannot be undone.
    """
    configure_logging("warning")
    anyio.run(_run, job, fields, store)


async def _run(source_id: str, fields: tuple[RedactedField, ...], url: str | None) -> None:
    check_place(url)
    async with opened_store(url) as store:
        ids = await service("find trajectories")(store, source_id)
        count, changed = await surfaces.Upkeep(store).redact(ids, fields)
    if not count:
        raise SourceNotFound(f"{source_id} has no model turns; nothing was removed.")
    turns = "1 turn" if count == 1 else f"{count} turns"
    click.echo(f"Removed {', '.join(fields)} of {changed} of {turns}; the others had none.")

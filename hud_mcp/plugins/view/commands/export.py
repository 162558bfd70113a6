"""`hud-mcp export`: a job or a trajectory as files."""

import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from inspect import Parameter
from pathlib import Path
from typing import Any

import anyio
import click
from click.core import ParameterSource

from hud_mcp.cli.help import Command
from hud_mcp.cli.options import WholeNumber, complete_records, store_option
from hud_mcp.cli.output import Telling
from hud_mcp.errors import HudMcpError, did_you_mean, sole_cause
from hud_mcp.plugins.view.export.exporting import Export, ExportSummary, Option, find_export, select
from hud_mcp.record.place import check_place
from hud_mcp.registry import names_of, table
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store


@cache
def _built_in() -> tuple[Export, ...]:
    return tuple(find_export(name) for name in table("exports"))


class _Format(click.ParamType[Export]):
    """The name of a format. One of another distribution loads only if it is named."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names of all formats."""
        del param, ctx
        others = sorted(set(names_of("exports")) - set(table("exports")))
        return f"[{'|'.join([*table('exports'), *others])}]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Export:
        """Find the format."""
        if not _is_format(value):
            known = list(names_of("exports"))
            hint = did_you_mean(value, known)
            self.fail(f"{value!r} is not one of {', '.join(map(repr, known))}.{hint}", param, ctx)
        return find_export(value)


class _ExportCommand(Command):
    """The command. A format of another distribution adds its options if it is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the named format first: it decides which options there are."""
        named = _named(args)
        if named and named not in table("exports") and _is_format(named):
            ctx.meta[__name__] = find_export(named)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options, with those of a format of another distribution before `--help`."""
        *own, help_option = super().get_params(ctx)
        other = ctx.meta.get(__name__)
        known = {each.name for each in own}
        added = [each for each in _options(other) if each.name not in known] if other else []
        return [*own, *added, help_option]


def _is_format(name: str) -> bool:
    # Entry points take a while to read: only a name that no built-in table has needs them.
    return name in table("exports") or name in names_of("exports")


def _named(arguments: Sequence[str]) -> str:
    """Return the value of `--to` in arguments that are not parsed yet."""
    found = ""
    for number, each in enumerate(arguments):
        if each.startswith("--to="):
            found = each.removeprefix("--to=")
        elif each == "--to":
            found = next(iter(arguments[number + 1 :]), "")
    return found


def _options(export: Export) -> Iterator[click.Option]:
    for name, option in export.options.items():
        yield _option(export.name, name, option, export.parameters[name])


def _option(of: str, name: str, option: Option, parameter: Parameter) -> click.Option:
    details: dict[str, Any] = {"metavar": option.metavar, "default": parameter.default}
    if isinstance(parameter.default, bool):
        details = {"is_flag": True}
    elif option.between is not None:
        details["type"] = WholeNumber(*option.between)
    return click.Option([option.flag, name], help=f"{of}: {option.help}", **details)


@click.command("export", _ExportCommand)
@click.argument("job", shell_complete=complete_records)
@click.option(
    "--to",
    type=_Format(),
    default="jsonl",
    help=" ".join(f"{each.name}: {each.sentence}" for each in _built_in()),
)
@click.option(
    "--out",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    help="The file or folder to write. Default: its name is the id.",
)
@store_option
@click.option("--force", is_flag=True, help="Replace the files of an earlier export.")
@click.pass_context
def command(
    ctx: click.Context, job: str, to: Export, out: Path | None, store: str | None, **options: Any
) -> None:
    """Export a JOB, or one trajectory. A unique beginning of its id is enough.

    It may still run. The exit status is 1 if the export left out a damaged trajectory.
    """
    configure_logging("warning")
    force = options.pop("force")
    given = {
        name: value
        for name, value in options.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    for name in given:
        if name not in to.options:
            (owner,) = [each for each in _built_in() if name in each.options]
            raise click.UsageError(f"{owner.options[name].flag} is for --to {owner.name}.")
    if out is not None and to.kind == "sent":
        raise click.UsageError(f"--to {to.name} writes no file. Leave out --out.")
    if to.kind != "sent":
        given["force"] = force
    sys.exit(anyio.run(_export, job, to, out, store, given))


for _each in _built_in():
    command.params += _options(_each)


async def _export(
    source_id: str, to: Export, out: Path | None, place: str | None, options: Mapping[str, Any]
) -> int:
    check_place(place)
    store = Store(place)
    path = out
    try:
        if out is not None and not out.name:
            raise HudMcpError(f"--out {out}: name the file to write, as in {out}/job.")
        selection = await select(store, source_id)
        if to.kind != "sent":
            path = out or to.default_path(selection)
        with Telling(f"exporting as {to.name}") as telling:
            work = partial(to, store, selection.id, path, on_progress=telling.show, **options)
            summary = await _until_signalled(work)
    except OSError as exc:
        raise HudMcpError(
            f"{path} cannot be written: {exc.strerror or exc}. No part of the file is left."
        ) from exc
    finally:
        await store.close()
    if selection.foreign:
        these = "1 session that is" if selection.foreign == 1 else f"{selection.foreign} that are"
        text = f"Left out: {these} not in the job's plan. Export it by its own id."
        click.echo(text, err=True)
    for line in summary.damaged:
        click.echo(f"Left out: {line}", err=True)
    click.echo(f"{summary.path}: {summary}")
    return 1 if summary.damaged else 0


async def _until_signalled(work: Callable[[], Awaitable[ExportSummary]]) -> ExportSummary:
    """Run an export. At Ctrl-C or SIGTERM, cancel it, and end as the signal asks."""
    if sys.platform == "win32":  # there, only Ctrl-C comes, as an exception
        return await work()
    done: list[ExportSummary] = []
    caught = signal.SIGINT
    try:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                nonlocal caught
                with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                    async for number in signals:
                        caught = number
                        group.cancel_scope.cancel()

            group.start_soon(watch)
            done.append(await work())
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failed:
        raise sole_cause(failed) from None
    if not done:
        raise SystemExit(128 + caught)
    return done[0]

"""`hud-mcp export`: a job or a trajectory as files for other programs, or for people."""

import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from hud_mcp.cli.completion import complete_records
from hud_mcp.cli.finite import WholeNumber
from hud_mcp.cli.help import Command
from hud_mcp.cli.recording import store_option
from hud_mcp.cli.telling import Telling
from hud_mcp.errors import HudMcpError, sole_cause
from hud_mcp.plugins.view.export import (
    ExportSummary,
    export_atif,
    export_gif,
    export_html,
    export_jsonl,
    export_otel,
    export_parquet,
)
from hud_mcp.plugins.view.export.gif import WIDTH_PX
from hud_mcp.plugins.view.export.selection import select
from hud_mcp.record.place import check_place
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store

__all__ = ["command"]

_ENDINGS = {"jsonl": ".jsonl", "parquet": "-parquet", "atif": "-atif", "html": ".html"}
"""What a default path ends in, after the id."""


@click.command("export", Command)
@click.argument("job", shell_complete=complete_records)
@click.option(
    "--to",
    "kind",
    type=click.Choice([*_ENDINGS, "gif", "otel"]),
    default="jsonl",
    help="jsonl: everything, one line for each trajectory. parquet: two tables for training. "
    "atif: ATIF v1.7, one file for each trajectory. html: a page in one file. gif: one "
    "moving picture for each trajectory. otel: send OpenTelemetry spans.",
)
@click.option(
    "--out",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    help="The file or folder to write. Default: its name is the id.",
)
@store_option
@click.option("--force", is_flag=True, help="Replace the files of an earlier export.")
@click.option(
    "--inline-images", is_flag=True, help="jsonl: put pictures into the lines, as base64."
)
@click.option(
    "--width",
    "width_px",
    type=WholeNumber(120, 1920),
    metavar="N",
    default=WIDTH_PX,
    help="gif: the largest width, in pixels.",
)
@click.option(
    "--endpoint",
    metavar="URL",
    help="otel: the endpoint of OTLP over HTTP. Default: the variable OTEL_EXPORTER_OTLP_ENDPOINT.",
)
@click.option(
    "--content",
    is_flag=True,
    help="otel: also send messages, reasoning, arguments and observations.",
)
def command(job: str, kind: str, out: Path | None, **options: Any) -> None:
    """Export a JOB, or one trajectory. A unique beginning of its id is enough.

    It may still run. The exit status is 1 if the export left out a damaged trajectory.
    """
    configure_logging("warning")
    if options["inline_images"] and kind != "jsonl":
        raise click.UsageError("--inline-images is for --to jsonl.")
    if (options["endpoint"] or options["content"]) and kind != "otel":
        raise click.UsageError("--endpoint and --content are for --to otel.")
    if out is not None and kind == "otel":
        raise click.UsageError("--to otel writes no file; --endpoint names the receiver.")
    sys.exit(anyio.run(_export, job, kind, out, options))


async def _export(source_id: str, kind: str, out: Path | None, options: dict[str, Any]) -> int:
    check_place(options["store"])
    store = Store(options["store"])
    path = out
    try:
        if out is not None and not out.name:
            raise HudMcpError(f"--out {out}: name the file to write, as in {out}/job.")
        selection = await select(store, source_id)
        path = out or Path(f"{selection.id}{_suffix(kind, whole_job=selection.whole_job)}")
        if kind == "otel":
            sent = {"endpoint": options["endpoint"], "content": options["content"]}
            work = partial(export_otel, store, selection.id, **sent)
        else:
            work = partial(_exporter(kind, options), store, selection.id, path)
            work = partial(work, force=options["force"])
        telling = Telling(f"exporting as {kind}")
        try:
            summary = await _until_signalled(partial(work, on_progress=telling.show))
        finally:
            telling.clear()
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


def _exporter(kind: str, options: dict[str, Any]) -> Callable[..., Awaitable[ExportSummary]]:
    known: dict[str, Callable[..., Awaitable[ExportSummary]]] = {
        "jsonl": partial(export_jsonl, inline_images=options["inline_images"]),
        "parquet": export_parquet,
        "atif": export_atif,
        "html": export_html,
        "gif": partial(export_gif, width_px=options["width_px"]),
    }
    return known[kind]


async def _until_signalled(work: Callable[[], Awaitable[ExportSummary]]) -> ExportSummary:
    """Run; at Ctrl-C or SIGTERM, take back what was written, and end as it asks."""
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


def _suffix(kind: str, *, whole_job: bool) -> str:
    if kind == "gif":
        return "-gif" if whole_job else ".gif"
    return _ENDINGS[kind]

"""`hud-mcp redact`: the model's side of a job or a trajectory, removed for good."""

from typing import Any

import anyio
import click

from hud_mcp.cli.completion import complete_records
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import store_option
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.operate import commands
from hud_mcp.record.place import check_place
from hud_mcp.registry import service
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store
from hud_mcp.values.model_turn import REDACTABLE, RedactedField

__all__ = ["command"]


class _Fields(click.ParamType[tuple[RedactedField, ...]]):
    """Names with commas between them."""

    name = "fields"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[RedactedField, ...]:
        """Read the names; each once, in the order of the record."""
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
def command(job: str, fields: tuple[RedactedField, ...], store: str | None) -> None:
    """Remove a model's words or reasoning from a JOB, or from one trajectory, for good.

    Each turn keeps a marker that says what was removed, and when. The removal cannot be undone.
    """
    configure_logging("warning")
    anyio.run(_run, job, fields, store)


async def _run(source_id: str, fields: tuple[RedactedField, ...], url: str | None) -> None:
    check_place(url)
    store = Store(url)
    try:
        ids = await service("find trajectories")(store, source_id)
        count, changed = await commands.Upkeep(store).redact(ids, fields)
    finally:
        await store.close()
    if not count:
        raise SourceNotFound(f"{source_id} has no model turns; nothing was removed.")
    turns = "1 turn" if count == 1 else f"{count} turns"
    click.echo(f"Removed {', '.join(fields)} of {changed} of {turns}; the others had none.")

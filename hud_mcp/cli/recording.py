"""The option that says how steps are recorded."""

import click

from hud_mcp.task import RECORD_MODES

__all__ = ["record_option"]

record_option = click.option(
    "--record",
    type=click.Choice(RECORD_MODES),
    help="When steps are written: `durable`, the default, before each is answered; `batched` "
    "within 50 ms, and a session is lost where the server dies before the answer.",
)

"""The options that say where a record is, and how steps are recorded."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hud_mcp.record.place import STORE_VARIABLE, default_store_file, is_store_named
from hud_mcp.task import RECORD_MODES

if TYPE_CHECKING:
    from hud_mcp.store import Store

__all__ = ["is_there", "record_option", "store_option"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

record_option = click.option(
    "--record",
    type=click.Choice(RECORD_MODES),
    show_default="as the environment says, else durable",
    help="When the server writes a step: `durable` before it replies, `batched` within 50 ms. "
    "With `batched`, a session is lost if the server dies before the task's answer.",
)


def store_option(function: FunctionT) -> FunctionT:
    """Give a command `--store`."""
    option = click.option(
        "--store",
        metavar="URL",
        show_default=f"{STORE_VARIABLE}, else {_shown(default_store_file())}",
        help="The store of the record: a SQLite file, or the URL of a PostgreSQL database.",
    )
    return option(function)


def is_there(store: "Store", named: str | None) -> bool:
    """Whether there is a store to read; the user's own may not be there yet.

    Args:
        store: What is to be read.
        named: What the user has called it.

    Raises:
        SourceNotFound: It was named, and is not there.
    """
    if is_store_named(named):
        store.look_for_it()
    return store.exists


def _shown(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)

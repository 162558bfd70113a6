"""The options that say where a record is, and how steps are recorded."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hud_mcp.record.place import STORE_VARIABLE, is_store_named
from hud_mcp.task import RECORD_MODES

if TYPE_CHECKING:
    from hud_mcp.store import Store

__all__ = ["in_store", "is_there", "record_option", "store_option"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

record_option = click.option(
    "--record",
    type=click.Choice(RECORD_MODES),
    show_default="as the environment says, else durable",
    help="Write each step before its reply, or within 50 ms.",
)


def store_option(function: FunctionT) -> FunctionT:
    """Give a command `--store`."""
    option = click.option(
        "--store",
        metavar="URL",
        show_default=f"{STORE_VARIABLE}, else your own",
        help="The record: a SQLite file, or a PostgreSQL URL.",
    )
    return option(function)


def in_store(command: str, named: str | None) -> str:
    """A command as a person types it next, so that it reads the store of this one.

    Args:
        command: Without `--store`.
        named: What `--store` named here, or None.
    """
    return command if named is None else f"{command} --store {shlex.quote(named)}"


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

"""The options that say where a record is."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hud_mcp.cli.options import CommandT

from hud_mcp.record.place import STORE_VARIABLE, is_store_named

if TYPE_CHECKING:
    from hud_mcp.store import Store

__all__ = ["in_store", "is_there", "no_record_option", "store_option"]


def _refuse_record(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    """Say that `--record` is needed no more."""
    if given is not None:
        raise click.UsageError(
            "There is no --record any more: every step is written before its reply, and waits "
            "for no disk. Leave it out."
        )


no_record_option = click.option(
    "--record", hidden=True, expose_value=False, callback=_refuse_record
)


def store_option(function: CommandT) -> CommandT:
    """Give a command `--store`."""
    option = click.option(
        "--store",
        metavar="URL",
        hidden=True,
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

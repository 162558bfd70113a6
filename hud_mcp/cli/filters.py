"""The options that choose tasks and seeds, the same for each command that plays tasks."""

from collections.abc import Callable
from typing import Any

import click

from hud_mcp.cli.options import CommandT

from hud_mcp.cli.finite import WholeNumber

__all__ = ["SEED", "filter_option", "split_option"]

SEED = WholeNumber(0, 2**63 - 1)
"""A seed as a record can hold it."""

split_option = click.option(
    "--split", metavar="NAME", help="Only tasks of one split or difficulty, such as hard."
)
"""The option that chooses tasks by the split or the difficulty in their metadata."""


def filter_option(*names: str) -> Callable[[CommandT], CommandT]:
    """Give a command the option that chooses tasks by a pattern, under these names."""
    return click.option(
        *names,
        "pattern",
        metavar="PATTERN",
        help="Only tasks whose id, environment or template matches a shell pattern or contains "
        "this text.",
    )

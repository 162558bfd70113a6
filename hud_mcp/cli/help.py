"""The help of commands: options in groups, and every line within a terminal's 80 columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

__all__ = ["Command", "Group"]

_ANY_LENGTH = 1_000
_WIDE = (None, 2**63 - 1)
"""The ends of ranges that bound nothing which a person would write."""
_TERM_CHARS = 24
"""Columns for an option's name: the other two thirds of a line are for its sentence."""


class Command(click.Command):
    """A command whose help lists its options in groups.

    Args:
        *args: As click's.
        groups: The parameters of each group, by its heading. The other options come last.
        **kwargs: As click's.

    Attributes:
        groups: The parameters of each group, by its heading.
    """

    def __init__(
        self, *args: Any, groups: Mapping[str, Sequence[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = dict(groups or {})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its heading."""
        last = "Other options" if self.groups else "Options"
        heading_of = {name: each for each, names in self.groups.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.groups, last)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                heading = heading_of.get(param.name or "", last)
                rows[heading].append((record[0], _without_bound(record[1], param, ctx)))
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=_TERM_CHARS)


class Group(click.Group):
    """A group whose help has the whole first sentence of each command, in the order of use."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which the commands were added."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line or two for each command; nothing is cut."""
        rows = [
            (name, self.commands[name].get_short_help_str(_ANY_LENGTH))
            for name in self.list_commands(ctx)
            if not self.commands[name].hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _without_bound(text: str, option: click.Option, ctx: click.Context) -> str:
    """Leave out a bound that any number of the kind has, such as `x>=1`; an error names it."""
    bound = option.get_help_extra(ctx).get("range", "")
    if not bound or getattr(option.type, "max", None) in _WIDE:
        return text.replace(f"; {bound}]", "]").replace(f"  [{bound}]", "") if bound else text
    return text

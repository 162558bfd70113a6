"""How commands print: tables that fit a terminal, and whole lines where nobody looks."""

import os
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hud_mcp.cli.process import discard_output
from hud_mcp.outcome import Tone
from hud_mcp.show.transcript import visible_line

__all__ = [
    "WHY_CHARS",
    "asks_here",
    "cell",
    "make_console",
    "make_table",
    "number",
    "print_table",
    "tone_style",
    "when",
]

WHY_CHARS = 240
"""Of a reason: it takes three lines of a terminal."""

_NARROW = 72
"""Columns below which a table with ids is not a table any more."""

_UNFOLDED = 100_000
"""Columns of a pipe: a line that is folded cannot be searched or cut."""


def asks_here() -> bool:
    """Whether a person is there to be asked: who types and who reads are at a terminal."""
    try:
        return os.isatty(0) and os.isatty(2)
    except OSError:  # one is closed
        return False


class _LastingConsole(Console):
    """A console of work that goes on when nobody reads any more, as behind `| head`."""

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True
        discard_output()


def make_console(*, lasting: bool = False, stderr: bool = False) -> Console:
    """A console on standard output, as wide as the terminal; a pipe folds nothing.

    Args:
        lasting: Whether the work goes on where whoever read the output has left; else the command
            ends then.
        stderr: Whether it is on standard error, as standard output is for data.
    """
    console = (_LastingConsole if lasting else Console)(highlight=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNFOLDED
    return console


def make_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A plain table with these columns.

    Args:
        columns: Their headings.
        right: Those that hold numbers.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        justify = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in right)
    return table


def print_table(console: Console, table: Table, *, whole: str) -> None:
    """Print a table in which no id is broken, so that it can be copied.

    Args:
        console: Where to. Where it is narrow, each row is an id and a line for the rest, which
            the terminal folds itself.
        table: As `make_table` makes it.
        whole: The column of ids.
    """
    named = next(column for column in table.columns if column.header == whole)
    if console.width >= _NARROW:
        named.no_wrap = True
        console.print(table)
        return
    others = [column for column in table.columns if column is not named]
    rows = zip(named.cells, *(column.cells for column in others), strict=True)
    for shown, *cells in rows:
        said = [
            Text.assemble((f"{column.header} ", "dim"), _as_text(each))
            for column, each in zip(others, cells, strict=True)
            if _as_text(each).plain
        ]
        if _as_text(shown).plain:
            console.print(_as_text(shown), soft_wrap=True)
        console.print(Text("  ") + Text("  ").join(said), soft_wrap=True)


def _as_text(shown: object) -> Text:
    return shown if isinstance(shown, Text) else Text(str(shown))


def cell(text: str, style: str = "") -> Text:
    """A text that others chose, as it is: no markup in it is obeyed, and no escape."""
    return Text(visible_line(text), style=style)


def tone_style(tone: Tone) -> str:
    """The colour in which a terminal shows how something ended."""
    return {"good": "green", "warning": "yellow", "open": "yellow", "bad": "red"}[tone]


def number(value: float | None) -> str:
    """A reward as tables show it; nothing where there is none."""
    return "" if value is None else f"{value:.3f}"


def when(at: datetime) -> str:
    """A time to the minute; records are in UTC."""
    return f"{at:%Y-%m-%d %H:%M}"

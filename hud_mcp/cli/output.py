"""The output of commands: tables that fit a terminal, and whole lines in a pipe."""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self, TextIO

import click
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Column, Table
from rich.text import Text

from hud_mcp.cli.process import discard_output
from hud_mcp.record.transcript import visible_line
from hud_mcp.values.outcome import Tone

WHY_CHARS = 240
"""The length of a printed reason: three lines of a terminal."""

_BETWEEN = 2
_LEAST_CHARS = 10
"""A text that is cut to fewer says nothing; then a table is not a table any more."""
_AT_ONCE_CHARS = 4
"""The step of a cut. Small steps cut several long texts alike."""

_UNFOLDED = 100_000
"""Columns of a pipe: a line that is folded cannot be searched or cut."""


def asks_here() -> bool:
    """Whether a person is there to be asked: both input and errors are a terminal."""
    try:
        return os.isatty(0) and os.isatty(2)
    except OSError:  # one is closed
        return False


class _LastingConsole(Console):
    """A console of work that goes on when nobody reads any more, as behind `| head`."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_output()


def make_console(*, lasting: bool = False, stderr: bool = False) -> Console:
    """Create a console that is as wide as the terminal. In a pipe, it folds nothing.

    Args:
        lasting: Whether the work goes on after the reader of the output has left. Otherwise the
            command ends then.
        stderr: Whether it prints to standard error, because standard output is for data.
    """
    console = (_LastingConsole if lasting else Console)(highlight=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNFOLDED
    return console


def make_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return a plain table. The columns in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        justify = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in right)
    return table


def print_table(console: Console, table: Table, *, whole: str, least: Sequence[str] = ()) -> None:
    """Print a line for each row, in which no id is broken, so that it can be copied.

    An empty table and columns without values are left out. On a narrow terminal, so are the columns
    in `least`, the first one first. Then texts are cut. If ids alone are too wide, each row is an
    id and a line for the rest.

    Args:
        console: The console that prints.
        table: A table from `make_table`.
        whole: The column of ids.
        least: The headings of the columns that are missed least.
    """
    if not table.row_count:
        return
    columns = [each for each in map(_Shown.of, table.columns) if each.width or each.name == whole]
    for name in least:
        if _width(columns) > console.width:
            columns = [each for each in columns if each.name != name]
    fitting = _cut_to(columns, console.width, whole)
    if fitting is None:
        _print_blocks(console, [_Shown.of(each) for each in table.columns], whole)
        return
    shown = Table(box=None, pad_edge=False, header_style=table.header_style)
    for each in fitting:
        shown.add_column(
            each.name, justify=each.justify, width=each.wide, no_wrap=True, overflow="ellipsis"
        )
    for row in zip(*(each.cells for each in fitting), strict=True):
        shown.add_row(*row)
    console.print(shown)


@dataclass(frozen=True)
class _Shown:
    """A printed column. `wide` is the width of its heading and cells, or the room that is left."""

    name: str
    cells: Sequence[Text]
    justify: JustifyMethod
    wide: int

    @classmethod
    def of(cls, column: Column) -> Self:
        cells = [_as_text(each) for each in column.cells]
        name = str(column.header)
        widest = max((each.cell_len for each in cells), default=0)
        return cls(name, cells, column.justify, max(widest, cell_len(name)))

    @property
    def width(self) -> int:
        """The width of its widest cell; 0 without a value."""
        return max((each.cell_len for each in self.cells), default=0)


def _width(columns: Sequence[_Shown]) -> int:
    return sum(each.wide + _BETWEEN for each in columns) - _BETWEEN


def _cut_to(columns: list[_Shown], width: int, whole: str) -> list[_Shown] | None:
    """Cut texts, the widest first, to fit a width. Return None if ids and numbers are wider.

    A number is never cut: half of one is another one.
    """
    columns = list(columns)
    while (excess := _width(columns) - width) > 0:
        texts = [each for each in columns if each.name != whole and each.justify == "left"]
        place = columns.index(max(texts, key=lambda each: each.wide)) if texts else -1
        if place < 0 or columns[place].wide <= _LEAST_CHARS:
            return None
        cut = max(_LEAST_CHARS, columns[place].wide - min(excess, _AT_ONCE_CHARS))
        columns[place] = replace(columns[place], wide=cut)
    return columns


def _print_blocks(console: Console, columns: Sequence[_Shown], whole: str) -> None:
    named = next(each for each in columns if each.name == whole)
    others = [each for each in columns if each.name != whole]
    for shown, *cells in zip(named.cells, *(each.cells for each in others), strict=True):
        said = [
            Text.assemble((f"{column.name} ", "dim"), each)
            for column, each in zip(others, cells, strict=True)
            if each.plain
        ]
        if shown.plain:
            console.print(shown, soft_wrap=True)
        console.print(Text("  ") + Text("  ").join(said), soft_wrap=True)


def _as_text(shown: object) -> Text:
    return shown if isinstance(shown, Text) else Text(str(shown))


def cell(text: str, style: str = "") -> Text:
    """Show untrusted text literally. Markup and escape codes are not interpreted."""
    return Text(visible_line(text), style=style)


def print_line(console: Console, text: str, style: str) -> None:
    """Print an untrusted text, as `cell` gives it.

    To a pipe it is written at once: Rich's layout takes longer than a short run.
    """
    line = visible_line(text)
    if console.quiet or console.is_terminal or len(line) > console.width:
        console.print(Text(line, style=style))
        return
    try:
        console.file.write(f"{line}\n")
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def tone_style(tone: Tone) -> str:
    """Return the colour in which a terminal shows how something ended."""
    return {"good": "green", "warning": "yellow", "open": "yellow", "bad": "red"}[tone]


def number(value: float | None) -> str:
    """Return a reward for a table; an empty text for None."""
    return "" if value is None else f"{value:.3f}"


def when(at: datetime) -> str:
    """Return a time to the minute; records are in UTC."""
    return f"{at:%Y-%m-%d %H:%M}"


_EVERY_S = 2.0


class Telling:
    """The progress of a task on standard error while a block runs. A quick task prints nothing.

    Args:
        what: The name of the task, as in `exporting as jsonl`.
        target: The stream to print to; standard error by default.
        every_s: The shortest time between two lines, if nobody sees a line change.
    """

    def __init__(
        self, what: str, *, target: TextIO | None = None, every_s: float = _EVERY_S
    ) -> None:
        self._what = what
        self._target = target or sys.stderr
        self._changes = self._target.isatty()
        self._every_s = 0.1 if self._changes else every_s
        self._told_s = time.monotonic()
        self._has_told = False

    def show(self, done: int, total: int, note: str = "") -> None:
        """Print the progress, unless it was printed a moment ago."""
        now_s = time.monotonic()
        if now_s - self._told_s < self._every_s:
            return
        self._told_s, self._has_told = now_s, True
        line = f"{self._what}: {done}/{total}{f'; {note}' if note else ''}"
        begin, end = ("\r\x1b[K", False) if self._changes else ("", True)
        click.echo(f"{begin}{line}", file=self._target, nl=end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._changes and self._has_told:
            click.echo("\r\x1b[K", file=self._target, nl=False)


@contextmanager
def telling_in_pipes(
    say: Callable[[float], None], *, every_s: float, is_wanted: bool = True
) -> Generator[None]:
    """Call `say` on a thread every `every_s` during the body, with the seconds that passed."""
    if not is_wanted:
        yield
        return
    over = threading.Event()
    began_s = time.monotonic()

    def tell() -> None:
        while not over.wait(every_s):
            say(time.monotonic() - began_s)

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

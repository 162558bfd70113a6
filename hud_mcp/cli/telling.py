"""How far a long work is: one line that changes on a terminal, else a line every few seconds."""

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

import click

__all__ = ["Telling", "telling_in_pipes"]

_EVERY_S = 2.0


class Telling:
    """Says on standard error how far something is; nothing where it is soon done.

    Args:
        what: What is done, as in `exporting as jsonl`.
        target: Where to; standard error by default.
        every_s: How often at most, where nobody sees a line change.
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
        """Say it, unless it was said a moment ago."""
        now_s = time.monotonic()
        if now_s - self._told_s < self._every_s:
            return
        self._told_s, self._has_told = now_s, True
        line = f"{self._what}: {done}/{total}{f'; {note}' if note else ''}"
        begin, end = ("\r\x1b[K", False) if self._changes else ("", True)
        click.echo(f"{begin}{line}", file=self._target, nl=end)

    def clear(self) -> None:
        """Leave an empty line on a terminal."""
        if self._changes and self._has_told:
            click.echo("\r\x1b[K", file=self._target, nl=False)


@contextmanager
def telling_in_pipes(
    say: Callable[[float], None], *, every_s: float, is_wanted: bool = True
) -> Generator[None]:
    """Call a function again and again while the body runs, with the seconds that have passed.

    Args:
        say: Prints a line; called on another thread.
        every_s: How often.
        is_wanted: Whether it is called at all.
    """
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

"""Lines that people read: labelled, indented, shortened, and obeyed by no terminal."""

import json
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

__all__ = [
    "Line",
    "block",
    "indented",
    "json_text",
    "labelled",
    "seconds_between",
    "shortened",
    "visible",
    "visible_line",
]

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the direction of text, so that it reads as another one."""

_SHORT_LINES = 12
_SHORT_CHARS = 1_000

Style = Literal["title", "heading", "label", "text", "action", "error", "cut", "model"]


class Line(NamedTuple):
    """One line of a transcript, without control characters."""

    style: Style
    text: str


def visible(text: str) -> str:
    r"""Replace characters that a terminal obeys or reorders by their escapes, such as ``\x1b``.

    Line feeds and tabs stay; a carriage return before a line feed goes.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(c if c in "\n\t" or not _is_unsafe(c) else ascii(c)[1:-1] for c in text)


def visible_line(text: str) -> str:
    """Return the same in one line, for a cell of a table."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def labelled(name: str, value: str, *, indent: str = "") -> Iterator[Line]:
    """Yield a name and its value."""
    first, *rest = visible(value).split("\n")
    yield Line("error" if name == "error" else "label", f"{indent}{name.ljust(11)}  {first}")
    for line in rest:
        yield Line("text", f"{indent}{' ' * 13}{line}")


def block(
    name: str, text: str, *, full: bool, indent: str = "", style: Style = "label"
) -> Iterator[Line]:
    """Yield a heading, and a text below it."""
    yield Line(style, f"{indent}{name}")
    yield from indented(text, full=full, indent=f"{indent}  ")


def indented(text: str, *, full: bool, indent: str = "    ") -> Iterator[Line]:
    """Yield a text line by line; only its beginning unless `full`."""
    shown, left = (text, 0) if full else shortened(text)
    for line in visible(shown).rstrip("\n").split("\n"):
        yield Line("text", f"{indent}{line}".rstrip())
    if left:
        yield Line("cut", f"{indent}… {left:,} more characters")


def shortened(text: str) -> tuple[str, int]:
    """Return the first lines of a text, and how many characters are left out."""
    kept = "\n".join(text[: _SHORT_CHARS + 1].split("\n")[:_SHORT_LINES])
    if len(kept) > _SHORT_CHARS:
        kept = kept[:_SHORT_CHARS]
    left = len(text) - len(kept)
    return (text, 0) if not text[len(kept) :].strip() else (kept, left)


def json_text(value: Any) -> str:
    """Return a value as JSON that people read."""
    return json.dumps(value, ensure_ascii=False, default=str)


def seconds_between(start: datetime, end: datetime) -> str:
    """Return the time between two moments, in words."""
    return f"{(end - start).total_seconds():.1f} s"


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS

"""The lines of a page's text: their pieces, what stands below them, and what is left out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Self

from hud_mcp.base.text import clip_and_count
from hud_mcp.worlds.browser.phrases import quoted
from hud_mcp.worlds.browser.tree import Node

__all__ = ["Piece", "after", "counted", "cut", "indented", "joined"]

_NOTICES_CHARS = 240
"""The room for what is said of the lines that are left out."""
_LONG_CHARS = 1_000
"""The longest line that is left out whole."""
_CLOSING = tuple(",.;:!?)]}…")


class Line(str):
    """A line that is one of several of a kind, such as a row of a table.

    Attributes:
        kind: The kind, in the plural.
        part: The name and the ref of the whole.
    """

    __slots__ = ("kind", "part")

    kind: str
    part: tuple[str, str]

    @classmethod
    def of(cls, text: str, kind: str, whole: Node) -> Self:
        """Return a line of an element that has several."""
        line = cls(text)
        line.kind, line.part = kind, (whole.name, whole.ref)
        return line

    def indented(self) -> Self:
        """Return the line one step further in."""
        line = type(self)(f" {self}")
        line.kind, line.part = self.kind, self.part
        return line


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    is_text: bool = True
    starts_block: bool = False
    ends_line: bool = False


def cut(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines, as many characters as there is room for, and what is left out."""
    shown, size = 0, _NOTICES_CHARS
    while shown < len(lines) and size + len(lines[shown]) < room:
        size += len(lines[shown]) + 1
        shown += 1
    if len(lines[shown]) <= _LONG_CHARS:
        return [*lines[:shown], *_left_out(lines[shown:])]
    # A line that is a page of its own is divided, for else nothing of it could be read.
    begun = clip_and_count(lines[shown], max(0, room - size))
    return [*lines[:shown], begun, *_left_out(lines[shown + 1 :])]


def _left_out(lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    first = lines[0].lstrip() if not isinstance(lines[0], Line) else lines[0]
    if isinstance(first, Line):
        same = list(takewhile(lambda line: getattr(line, "part", None) == first.part, lines))
        name, ref = first.part
        whole = f" of {quoted(name)}" if name else ""
        observe = f", or observe {ref}" if ref else ""
        yield f"… {_more(len(same), first.kind)}{whole}; scroll{observe}"
        lines = lines[len(same) :]
    if lines:
        titles = [line.strip() for line in lines if line.lstrip().startswith("# ")]
        titles = titles or [line.strip() for line in lines if line.lstrip().startswith("#")]
        below = f", with {', '.join(title[:40] for title in titles[:3])}" if titles else ""
        yield f"… {_more(len(lines), 'lines')}{below}; scroll to see more"


def _more(count: int, kind: str) -> str:
    return f"{count} more {kind if count > 1 else kind.removesuffix('s')}"


def joined(pieces: Sequence[Piece]) -> str:
    """Return a line of pieces. A dot stands between texts of two blocks."""
    text = ""
    was_text = False
    for piece in pieces:
        sticks = piece.is_text and piece.text.startswith(_CLOSING)
        if text and not (sticks and (was_text or text.endswith(("]", '"')))):
            text += " · " if piece.starts_block and piece.is_text and was_text else " "
        text += piece.text
        was_text = piece.is_text
    return text


def counted(line: str, kind: str, whole: Node, start: str) -> str:
    """Return a line as one of several of an element, if it starts as those do."""
    if line.startswith(start) and not isinstance(line, Line):
        return Line.of(line, kind, whole)
    return line


def after(head: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the first line behind a head, and the others below."""
    first, *others = [*lines] or [""]
    yield f"{head} {first}".rstrip()
    yield from indented(others)


def indented(lines: Collection[str]) -> Iterator[str]:
    """Yield lines one step further in."""
    return (line.indented() if isinstance(line, Line) else f" {line}" for line in lines)

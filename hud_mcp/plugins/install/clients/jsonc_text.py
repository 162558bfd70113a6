"""Where the values of a text of JSON with comments stand in it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hud_mcp.errors import InvalidConfiguration

__all__ = ["Member", "Node", "comments_of", "parse"]

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_DEEPEST = 200
"""More levels than any settings have."""


@dataclass(frozen=True)
class Member:
    """A name and a value of an object.

    Attributes:
        name: The name.
        start: Where the name begins.
        node: The value.
        comma: Where the comma behind it is; None where there is none.
    """

    name: str
    start: int
    node: "Node"
    comma: int | None


@dataclass(frozen=True)
class Node:
    """A value and its place.

    Attributes:
        start: Where it begins.
        end: Behind its last character.
        value: What it is.
        is_object: Whether it can have members.
        members: Those that it has, in order.
    """

    start: int
    end: int
    value: Any
    is_object: bool = False
    members: list[Member] = field(default_factory=list[Member])

    def member(self, name: str) -> Member | None:
        """The last member of a name, which is the one that counts."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def parse(text: str) -> Node | None:
    """Read a text; None where there is nothing in it but blanks and comments.

    Raises:
        InvalidConfiguration: It is not JSON; the text says where, and what was expected.
    """
    reader = _Reader(text)
    at = reader.skip(0)
    if at == len(text):
        return None
    node = reader.value(at, 0)
    rest = reader.skip(node.end)
    if rest != len(text):
        raise reader.fault(rest, "the end of the file")
    return node


def comments_of(text: str) -> Iterator[tuple[int, int]]:
    """Where each comment of a text that can be read begins and ends."""
    at = 0
    while at < len(text):
        if text[at] == '"':
            at = _DECODER.raw_decode(text, at)[1]
        elif (found := _COMMENT.match(text, at)) is not None:
            yield found.span()
            at = found.end()
        else:
            at += 1


class _Reader:
    """Reads one text from any place of it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Behind blanks and comments."""
        found = _BLANK.match(self._text, at)
        return found.end() if found else at

    def fault(self, at: int, expected: str) -> InvalidConfiguration:
        """What is wrong at a place."""
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        rest = self._text[at:].split("\n", 1)[0].strip()[:20]
        found = repr(rest) if rest else "the end"
        return InvalidConfiguration(
            f"line {line}, column {column}: {expected} is expected, and {found} is there."
        )

    def value(self, at: int, depth: int) -> Node:
        """The value that begins at a place."""
        first = self._text[at : at + 1]
        if depth > _DEEPEST:
            raise self.fault(at, f"no more than {_DEEPEST} levels")
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        if first == '"':
            text, end = self._string(at)
            return Node(at, end, text)
        found = _SCALAR.match(self._text, at)
        if found is None:
            raise self.fault(at, "a value")
        return Node(at, found.end(), json.loads(found[0]))

    def _string(self, at: int) -> tuple[str, int]:
        try:
            return _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as exc:
            raise self.fault(exc.pos, "a text that ends on its line") from None

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "}":
            if members and members[-1].comma is None:
                raise self.fault(at, "a comma or }")
            if self._text[at : at + 1] != '"':
                raise self.fault(at, "a name in double quotes")
            name, end = self._string(at)
            colon = self.skip(end)
            if self._text[colon : colon + 1] != ":":
                raise self.fault(colon, "a colon")
            node = self.value(self.skip(colon + 1), depth + 1)
            comma = self._comma(node.end)
            members.append(Member(name, at, node, comma))
            at = self.skip(node.end if comma is None else comma + 1)
        value = {each.name: each.node.value for each in members}
        return Node(start, at + 1, value, is_object=True, members=members)

    def _list(self, start: int, depth: int) -> Node:
        values: list[Any] = []
        at, comma = self.skip(start + 1), -1
        while self._text[at : at + 1] != "]":
            if comma is None:
                raise self.fault(at, "a comma or ]")
            node = self.value(at, depth + 1)
            values.append(node.value)
            comma = self._comma(node.end)
            at = self.skip(node.end if comma is None else comma + 1)
        return Node(start, at + 1, values)

    def _comma(self, end: int) -> int | None:
        at = self.skip(end)
        return at if self._text[at : at + 1] == "," else None

"""Edit JSON with comments: add or remove one member, and leave the rest of the text unchanged.

An edit is a few characters at one place; the rest is compared afterwards.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hud_mcp.errors import InvalidConfiguration

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_DEEPEST = 200
"""More levels than any settings have."""


@dataclass(frozen=True)
class Member:
    """One member of an object, with the offsets of its name and of the comma after it."""

    name: str
    start: int
    node: "Node"
    comma: int | None


@dataclass(frozen=True)
class Node:
    """A value, and the offsets of its first character and behind its last one."""

    start: int
    end: int
    value: Any
    is_object: bool = False
    members: list[Member] = field(default_factory=list[Member])

    def member(self, name: str) -> Member | None:
        """Return the last member of a name, which JSON readers use."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def _parse(text: str) -> Node | None:
    """Read a text; None if it has only blanks and comments.

    Raise InvalidConfiguration, with the place and the expected text, if it is not JSON.
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
    """Yield the start and the end of each comment of a valid text."""
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
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Return the offset behind blanks and comments."""
        found = _BLANK.match(self._text, at)
        return found.end() if found else at

    def fault(self, at: int, expected: str) -> InvalidConfiguration:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        rest = self._text[at:].split("\n", 1)[0].strip()[:20]
        found = repr(rest) if rest else "the end"
        return InvalidConfiguration(
            f"line {line}, column {column}: {expected} is expected, and {found} is there."
        )

    def value(self, at: int, depth: int) -> Node:
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


_UNIT = "  "


def read(text: str) -> Any:
    """Return the value of a text. An empty text is an empty object.

    Raises:
        InvalidConfiguration: It is not JSON, even with comments; the text has line and column.
    """
    node = _parse(text)
    return {} if node is None else node.value


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Put a value at a path of objects, from the outermost one. Missing objects are made.

    Raises:
        InvalidConfiguration: The text is not JSON, or something on the path is not an object.
    """
    before = read(text)
    root = _parse(text)
    edited = _put_first(text, path, value) if root is None else _put(text, root, path, value)
    wanted = _with(before, path, value)
    if read(edited) != wanted:
        raise InvalidConfiguration(f"{path[-1]!r} cannot be added without changing other settings.")
    return edited


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path. A text without it stays unchanged.

    Raises:
        InvalidConfiguration: The text is not JSON.
    """
    node = _parse(text)
    for name in path[:-1]:
        member = node.member(name) if node is not None else None
        node = member.node if member is not None else None
    if node is None or node.member(path[-1]) is None:
        return text
    edited = text
    while (found := _parse(edited)) is not None and (holder := _holder(found, path)) is not None:
        edited = _without_member(edited, *holder)
    if read(edited) != _without(read(text), path):
        raise InvalidConfiguration(f"{path[-1]!r} cannot be taken away without other settings.")
    return edited


def _holder(root: Node, path: Sequence[str]) -> tuple[Node, int] | None:
    """Return the object that holds the last member of a path, and the member's number."""
    node = root
    for name in path[:-1]:
        member = node.member(name)
        if member is None:
            return None
        node = member.node
    numbers = [n for n, each in enumerate(node.members) if each.name == path[-1]]
    return (node, numbers[-1]) if numbers else None


def _put_first(text: str, path: Sequence[str], value: Any) -> str:
    nested = _nested(path, value)
    eol = _line_end(text)
    lead = "" if not text.strip() or text.endswith("\n") else eol
    body = json.dumps(nested, indent=_UNIT, ensure_ascii=False).replace("\n", eol)
    return (text if text.strip() else "") + lead + body + eol


def _put(text: str, node: Node, path: Sequence[str], value: Any) -> str:
    if not node.is_object:
        line, column = _place(text, node.start)
        raise InvalidConfiguration(
            f"line {line}, column {column}: {{…}} is expected there, with {path[0]!r} in it."
        )
    member = node.member(path[0])
    if member is None:
        return _add(text, node, path[0], _nested(path[1:], value))
    if len(path) > 1:
        return _put(text, member.node, path[1:], value)
    old = member.node
    if old.value == value:
        return text
    rendered = _render(text, value, _indent_at(text, member.start))
    return text[: old.start] + rendered + text[old.end :]


def _add(text: str, node: Node, name: str, value: Any) -> str:
    """Add a member at the end of an object, behind the comments of the line before."""
    eol = _line_end(text)
    if not node.members:
        indent = _indent_at(text, node.start) + _unit(text)
        at = _end_of_line(text, node.start + 1, node.end - 1)
        rest = text[at : node.end - 1]
        close = rest if "\n" in rest else eol + _indent_at(text, node.start)
        rendered = f"{json.dumps(name)}: {_render(text, value, indent)}"
        return f"{text[:at]}{eol}{indent}{rendered}{close}{text[node.end - 1 :]}"
    last = node.members[-1]
    key = json.dumps(name, ensure_ascii=False)
    if "\n" not in text[node.start : node.end]:
        end = last.node.end if last.comma is None else last.comma + 1
        member = f" {key}: {json.dumps(value, ensure_ascii=False)}"
        if last.comma is None:
            return f"{text[:end]},{member}{text[end:]}"
        return f"{text[:end]}{member},{text[end:]}"
    indent = _member_indent(text, node)
    end = last.node.end if last.comma is None else last.comma + 1
    at = _end_of_line(text, end, node.end - 1)
    member = f"{eol}{indent}{key}: {_render(text, value, indent)}"
    if last.comma is None:
        return f"{text[:end]},{text[end:at]}{member}{text[at:]}"
    return f"{text[:at]}{member},{text[at:]}"


def _without_member(text: str, node: Node, number: int) -> str:
    member = node.members[number]
    end = member.node.end if member.comma is None else member.comma + 1
    start = _start_of_lead(text, member, end)
    comma = node.members[number - 1].comma if number and member.comma is None else None
    if comma is None:
        kept = text[:start] + text[end:]
        closing = node.end - (end - start)
    else:
        kept = text[:comma] + text[comma + 1 : start] + text[end:]
        closing = node.end - (end - start) - 1
    inside = kept[node.start + 1 : closing - 1]
    if not inside.strip():
        return f"{kept[: node.start + 1]}{kept[closing - 1 :]}"
    return kept


def _start_of_lead(text: str, member: Member, end: int) -> int:
    """Return the start of a member's white space. The line before keeps its end."""
    start = member.start
    while start and text[start - 1] in " \t":
        start -= 1
    if not start or text[start - 1] != "\n":
        return start
    line_end = start - (2 if text[start - 2 : start] == "\r\n" else 1)
    # What follows on the member's line would become part of such a comment.
    in_comment = any(
        stop == line_end and text.startswith("//", begin) for begin, stop in comments_of(text)
    )
    rest = text[end:].split("\n", 1)[0]
    return start if in_comment and rest.strip() else line_end


def _end_of_line(text: str, at: int, limit: int) -> int:
    """Return the offset behind the comments that follow a place on its line."""
    for start, end in comments_of(text):
        if start < at or end > limit or text[at:start].strip(" \t"):
            continue
        if "\n" in text[at:start]:
            break
        at = end
    return at


def _render(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{indent}".join(lines)


def _member_indent(text: str, node: Node) -> str:
    for member in node.members:
        line = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if not line.strip():
            return line
    return _indent_at(text, node.start) + _unit(text)


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    for line in text.splitlines():
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if blank and line.lstrip().startswith('"'):
            return blank
    return _UNIT


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _with(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        return new
    return {**value, path[0]: _with(value.get(path[0], {}), path[1:], new)}


def _without(value: Any, path: Sequence[str]) -> Any:
    if len(path) > 1:
        return {**value, path[0]: _without(value[path[0]], path[1:])}
    return {name: each for name, each in value.items() if name != path[0]}

"""The tree of a page: the elements and texts of Playwright's snapshot, as objects.

A line is `- role "name" [state] [ref=e1]: text`, in YAML's quotes where the text needs them.
A property, such as a link's address, is a line `- /url: …` below its element. A line that starts
with `#` is a notice of ours.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote

__all__ = ["NOTICE", "TEXT", "Node", "depth_of", "parse", "text_of", "unquoted"]

TEXT, NOTICE = "text", "#"
"""The roles of nodes that are no elements."""

MOST_DEPTH = 80
"""The deepest nesting of a tree. What is in it further down stands there beside each other."""

_CACHED_CHARS = 300
"""The longest line whose reading is kept."""

_NOTHING: Mapping[str, str] = MappingProxyType({})

_KEY = re.compile(
    r'(/?[\w-]+)(?: ("(?:[^"\\]|\\.)*"))?((?: \[[^\]]*\])*)(?::(?: (.*))?)?$', re.DOTALL
)
_QUOTED = re.compile(r"'((?:[^']|'')*)'(.*)$", re.DOTALL)
_STATE = re.compile(r" \[([\w-]+)(?:=([^\]]*))?\]")
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|.)")


class Node:
    """One element, text or notice of a page.

    Attributes:
        role: The ARIA role, `generic` for an element without one, `text` or `#`.
        name: The accessible name; the text itself, if the node is a text or a notice.
        states: The states that are on, each with its value or an empty text.
        props: The properties, such as `url`.
        children: The nodes in it, in the order of reading.
    """

    __slots__ = ("children", "name", "props", "role", "states")

    def __init__(
        self,
        role: str,
        name: str = "",
        states: Mapping[str, str] = _NOTHING,
        children: "Sequence[Node]" = (),
    ) -> None:
        self.role = role
        self.name = name
        self.states = states
        self.props: Mapping[str, str] = _NOTHING
        self.children = [*children]

    @property
    def ref(self) -> str:
        """The reference, empty if no action can name the element."""
        return self.states.get("ref", "")

    def walk(self) -> "list[Node]":
        """Return the nodes below, in the order of reading."""
        found: list[Node] = []
        waiting = self.children[::-1]
        while waiting:
            node = waiting.pop()
            found.append(node)
            if node.children:
                waiting += node.children[::-1]
        return found


def text_of(node: Node) -> str:
    """Return an element's name, or the texts in it if it has none."""
    return node.name or " ".join(each.name for each in node.walk() if each.role == TEXT)


def parse(lines: Sequence[str]) -> Node:
    """Return the root of the tree that lines of Playwright's snapshot describe."""
    root = Node("root")
    path: list[tuple[int, Node]] = [(-1, root)]
    for line in lines:
        told = line.lstrip(" ")
        depth = len(line) - len(told)
        while path[-1][0] >= depth:
            path.pop()
        parent = path[min(len(path), MOST_DEPTH) - 1][1]
        read = _read if len(told) <= _CACHED_CHARS else _read.__wrapped__
        role, name, states, text = read(told)
        if role.startswith("/"):
            parent.props = {**parent.props, role[1:]: name}
            continue
        node = Node(role, name, states)
        if text is not None:
            node.children.append(Node(TEXT, text))
        parent.children.append(node)
        path.append((depth, node))
    return root


@lru_cache(maxsize=8192)  # most lines of a page are those of the look before
def _read(told: str) -> tuple[str, str, Mapping[str, str], str | None]:
    """Return the role, the name, the states and the text of a line without its indentation."""
    if told.startswith(NOTICE):
        return NOTICE, told[1:].strip(), _NOTHING, None
    told = told.removeprefix("- ")
    match = _KEY.match(told)
    if match is None and (quoted := _QUOTED.match(told)):
        match = _KEY.match(quoted[1].replace("''", "'") + quoted[2])
    if match is None:
        return TEXT, told, _NOTHING, None
    role, name, states, value = match.groups()
    if role == TEXT or role.startswith("/"):
        return role, unquoted(value or ""), _NOTHING, None
    known = {each[1]: unquote(each[2] or "") for each in _STATE.finditer(states)}
    return role, json.loads(name) if name else "", known, value and unquoted(value)


def depth_of(line: str) -> int:
    """Return the number of blanks before a line."""
    return len(line) - len(line.lstrip(" "))


def unquoted(told: str) -> str:
    """Return a value without YAML's double quotes and what they escape."""
    if len(told) > 1 and told.startswith('"') and told.endswith('"'):
        return str(json.loads(_ESCAPE.sub(_as_json, told), strict=False))
    return told


def _as_json(escape: re.Match[str]) -> str:
    return f"\\u00{escape[1]}" if escape[1] else escape[0]

"""A page's accessibility tree in words, from Chromium itself."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hud_mcp.worlds.browser.devtools import send

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

__all__ = ["read_accessible"]

_SILENT = frozenset({"none", "generic", "InlineTextBox", "LineBreak", "RootWebArea", "StaticText"})
"""Roles that have nothing to tell but the text in them."""

Nodes = Mapping[str, Mapping[str, Any]]


async def read_accessible(cdp: "CDPSession") -> str:
    """Read the tree of a page and of its frames of the same process, a line for each element.

    Raises:
        Error: Playwright's, where the page is gone or goes away.
    """
    tree = await send(cdp, "Page.getFrameTree")
    lines: list[str] = []
    for frame in _frames(tree["frameTree"]):
        answer = await send(cdp, "Accessibility.getFullAXTree", {"frameId": frame})
        nodes = {node["nodeId"]: node for node in answer["nodes"]}
        roots = [node for node in answer["nodes"] if node.get("parentId") not in nodes]
        for root in roots:
            lines += _lines(root, nodes, 0)
    return "\n".join(lines)


def _frames(tree: Mapping[str, Any]) -> Iterator[str]:
    yield tree["frame"]["id"]
    for child in tree.get("childFrames", ()):
        yield from _frames(child)


def _lines(root: Mapping[str, Any], nodes: Nodes, depth: int) -> Iterator[str]:
    waiting = [(root, depth)]
    while waiting:
        node, depth = waiting.pop()
        line = None if node.get("ignored") else _line(node)
        if line is not None:
            yield "  " * depth + line
            depth += 1
        if _text(node, "role") != "StaticText":
            children = (nodes.get(each) for each in reversed(node.get("childIds", ())))
            waiting += [(child, depth) for child in children if child is not None]


def _line(node: Mapping[str, Any]) -> str | None:
    role, name, value = (_text(node, field) for field in ("role", "name", "value"))
    if role == "StaticText":
        return name or None
    if role in _SILENT:
        return None
    said = f"{role} {name}" if name else role
    return f"{said}: {value}" if value else said


def _text(node: Mapping[str, Any], field: str) -> str:
    value = node.get(field, {}).get("value", "")
    return " ".join(str(value).split())

"""The reading of a page: Playwright's `aria_snapshot(mode="ai")`, as much of it as fits."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.driver import NEAR, SEEN, TRACKER
from hud_mcp.worlds.browser.outline import outline
from hud_mcp.worlds.browser.seen import add_facts, name_links, unmark
from hud_mcp.worlds.browser.tree import depth_of, parse

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

__all__ = ["Reading", "read_accessible", "read_page"]


READ_BOUND_S = 5.0

MOST_ELEMENTS = 10_000
"""The most elements of a document that is read whole. 60,000 would take seconds."""

MAX_MESSAGE = 200
"""The longest live message that is told after it is gone."""

BARE = "# The document has no body: the page took it away, or has not made it yet."

_BOX = re.compile(r" \[box=(-?[\d.]+),(-?[\d.]+),([\d.]+),([\d.]+)\]")
_TABLE = re.compile(r" *- '?(?:table|grid|treegrid)\b")
_ROLE = re.compile(r"- '?([\w-]+)")

_FACTS = f"""() => {{
  const root = document.scrollingElement || document.documentElement;
  if (!root || (root.tagName === 'HTML' && !document.body)) {{
    return {{ title: '', y: 0, height: 0, x: 0, width: 0, born: 0, bare: true }};
  }}
  const tracker = window['{TRACKER}'];
  return {{ title: document.title, elements: document.getElementsByTagName('*').length,
    y: Math.round(root.scrollTop), height: root.scrollHeight,
    x: Math.round(root.scrollLeft), width: root.scrollWidth,
    gone: tracker ? tracker.messages().slice(-3) : [],
    inside: !!tracker && tracker.scrolled().some(each => each !== document && each.scrollTop > 0),
    born: tracker ? tracker.born : performance.timeOrigin }};
}}"""


@dataclass(frozen=True)
class Reading:
    """The content of a page's document at one moment.

    Attributes:
        title: The document's title.
        url: The page's address.
        document: The document's mark. Another value means that another document was loaded.
        scrolled: The scroll position, such as `800 of 3200 px down`; empty if all is in view.
        lines: The lines of the tree, one element or text each.
        long: Whether the page's text was over its limit.
        limit: The most characters of the text that could be shown.
        gone: The last live messages that appeared and vanished before.
        links: The selectors behind refs that are not Playwright's.
        status: The HTTP status of the document, if it is an error.
        at_end: Whether the page was scrolled, and cannot be scrolled further down.
    """

    title: str
    url: str
    document: float
    scrolled: str
    lines: tuple[str, ...]
    long: bool
    limit: int
    gone: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    status: int | None = None
    at_end: bool = False

    @cached_property
    def outline(self) -> tuple[str, ...]:
        """The lines of the text."""
        return tuple(outline(parse(self.lines), self.url))


async def read_page(
    page: "Page", *, max_chars: int, long: bool = False, patience: float = 1.0
) -> Reading:
    """Read the page's tree and its scroll position.

    A text over `max_chars` is cut at its end while the page stands at its top. Further down, or
    if a part of the page is scrolled, the tree is reduced to the lines in view. Of a document of
    more than `MOST_ELEMENTS`, nothing is read that is more than a view's size out of view.

    Args:
        page: The page to read.
        max_chars: The most characters of the tree that can be shown.
        long: Whether to expect a tree over that limit, which saves reading it twice.
        patience: The factor of the bounds on a busy machine.

    Raises:
        Error: Playwright's, when the page is closed or navigates meanwhile.
        TimeoutError: The page did not answer.
    """
    bound_s = READ_BOUND_S * patience
    with anyio.fail_after(bound_s):
        facts: dict[str, Any] = await page.evaluate(_FACTS)
        height = _viewport_height(page)
        if facts.get("bare"):
            return Reading("", page.url, 0, "", (BARE,), long=False, limit=max_chars)
        near = facts["elements"] > MOST_ELEMENTS
        whole = facts["y"] == 0 and facts["height"] > height and not facts["inside"]
        lines = await _tree(page, bound_s, boxes=long and not whole, near=near)
        size = _size(_without_boxes(lines), page.url, max_chars)
        if size > max_chars and not whole:
            boxed = lines if long else await _tree(page, bound_s, boxes=True, near=near)
            lines = _in_view(boxed, height)
        lines, links = name_links(unmark(_without_boxes(lines)))
        if near:
            lines = await _tell_skipped(page, lines)
    return Reading(
        title=" ".join(facts["title"].encode("utf-8", "replace").decode().split()),
        url=page.url,
        document=facts["born"],
        scrolled=_scrolled(page, facts),
        lines=tuple(lines),
        gone=tuple(str(told)[:MAX_MESSAGE] for told in facts["gone"]),
        links=links,
        long=size > max_chars,
        limit=max_chars,
        at_end=0 < facts["y"] >= facts["height"] - height - 1,
    )


async def _tree(page: "Page", bound_s: float, *, boxes: bool, near: bool = False) -> list[str]:
    root = page.locator(f"{NEAR if near else SEEN}=body")
    tree = await root.aria_snapshot(mode="ai", boxes=boxes, timeout=bound_s * 1000)
    return add_facts(tree.split("\n"))  # a text may hold other characters that end lines


def _size(lines: Sequence[str], url: str, enough: int) -> int:
    """Return the size of the text of a tree; any bound of it if that is no more than `enough`."""
    size = sum(map(len, lines)) + len(lines)  # a line of the text is shorter than its line here
    if size <= enough:
        return size
    return sum(len(line) + 1 for line in outline(parse(unmark(lines)), url))


def _without_boxes(lines: Sequence[str]) -> list[str]:
    return [_BOX.sub("", line) if "[box=" in line else line for line in lines]


async def _tell_skipped(page: "Page", lines: list[str]) -> list[str]:
    """Add the number of elements of a large document that were out of view and not read."""
    before, after = [await page.locator(f"{NEAR}={side}").count() for side in ("before", "after")]
    large = "This page is large, and only what is near the view was read."
    told = [f"# {large}"] if before or after else []
    if before:
        told.append(f"# {before} elements above or to the left were left out; scroll to see them.")
    if after:
        told.append(f"# {after} elements below or to the right were left out; scroll to see them.")
    return [*told, *lines]


def _viewport_height(page: "Page") -> int:
    return (page.viewport_size or {"height": 0})["height"]


def _scrolled(page: "Page", facts: dict[str, Any]) -> str:
    size = page.viewport_size or {"width": 0, "height": 0}
    parts: list[str] = []
    if facts["height"] > size["height"] + 1:
        parts.append(f"{facts['y']} of {facts['height'] - size['height']} px down")
    if facts["width"] > size["width"] + 1:
        parts.append(f"{facts['x']} of {facts['width'] - size['width']} px to the right")
    return ", ".join(parts)


def _in_view(lines: Sequence[str], height: int) -> list[str]:
    """Return the lines of elements in view and of their parents, and a count of the others."""
    kept: list[bool] = [False] * len(lines)
    parents: list[tuple[int, float]] = []  # with where the document begins that they are of
    visible = True
    for i, line in enumerate(lines):
        depth = depth_of(line)
        while parents and depth_of(lines[parents[-1][0]]) >= depth:
            parents.pop()
        origin = parents[-1][1] if parents else 0.0
        box = _BOX.search(line)
        if box:
            top, tall = origin + float(box[2]), float(box[4])
            visible = top < height and top + tall > 0
            origin = top if line.lstrip().startswith("- iframe") else origin
        elif parents:
            visible = kept[parents[-1][0]]
        if visible:
            kept[i] = True
            for parent, _origin in parents:
                kept[parent] = True
        parents.append((i, origin))
    _keep_headings(lines, kept)
    return _with_counts(lines, kept)


def _keep_headings(lines: Sequence[str], kept: list[bool]) -> None:
    """Keep the headings of each table of which something is kept."""
    around: list[int] = []
    for i, line in enumerate(lines):
        while around and depth_of(lines[around[-1]]) >= depth_of(line):
            around.pop()
        around.append(i)
        is_heading = any("- columnheader" in lines[each] for each in around)
        if is_heading and any(kept[each] and _TABLE.match(lines[each]) for each in around):
            for each in around:
                kept[each] = True


def _with_counts(lines: Sequence[str], kept: Sequence[bool]) -> list[str]:
    """Return the kept lines, and in place of others the number of them, by their kind."""
    out: list[str] = []
    skipped: list[str] = []
    for line, keep in zip([*lines, ""], [*kept, True], strict=True):
        if not keep:
            skipped.append(line)
            continue
        if skipped:
            depth = min(map(depth_of, skipped))
            out.append(f"{' ' * depth}# {_kinds(skipped, depth)} out of view")
            skipped = []
        out.append(line)
    if (last := out[-2:-1]) and last[0].lstrip().startswith("#"):
        out[-2] += "; scroll to see them"
    return out[:-1]


def _kinds(lines: Sequence[str], depth: int) -> str:
    """Return the number of elements of each kind at a depth, such as `84 rows`."""
    roles = [
        match[1] for line in lines if depth_of(line) == depth and (match := _ROLE.search(line))
    ]
    counts = Counter(_KINDS.get(role, "elements") for role in roles)
    return " and ".join(
        f"{count} {kind if count > 1 else kind.removesuffix('s')}" for kind, count in counts.items()
    )


_NAMED = ("article", "button", "heading", "link", "option", "paragraph", "row")
_KINDS = {"listitem": "items", **{role: f"{role}s" for role in _NAMED}}


_SILENT = frozenset({"none", "generic", "InlineTextBox", "LineBreak", "RootWebArea", "StaticText"})
"""The roles that say nothing beside the text in them."""

Nodes = Mapping[str, Mapping[str, Any]]


async def read_accessible(cdp: "CDPSession") -> str:
    """Read the tree of a page and of its frames of the same process, a line for each element.

    Raises:
        Error: Playwright's, if the page is gone or goes away.
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

"""A page in words: its accessibility tree with refs, as much of it as fits.

This module owns the form of the text, and of the changes in it. The tree itself is
Playwright's `aria_snapshot(mode="ai")`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base.text import clip_text
from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.driver import NEAR, SEEN, TRACKER
from hud_mcp.worlds.browser.seen import name_links, unmark

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

__all__ = ["Reading", "changes_between", "new_refs", "read_accessible", "read_page", "render"]


READ_BOUND_S = 5.0

MOST_ELEMENTS = 10_000
"""The most elements of a document that is read whole. 60,000 would take seconds."""

MAX_NAMED = 20
"""The most refs that are named one by one."""

_NOTICE_CHARS = 200
"""The room for the notices in a text that is cut at both ends."""

BARE = "# The document has no body: the page took it away, or has not made it yet."

_BOX = re.compile(r" \[box=(-?[\d.]+),(-?[\d.]+),([\d.]+),([\d.]+)\]")
_REF = re.compile(r"\[ref=(\w+)\]")

_FACTS = f"""() => {{
  const root = document.scrollingElement || document.documentElement;
  if (!root || (root.tagName === 'HTML' && !document.body)) {{
    return {{ title: '', y: 0, height: 0, x: 0, width: 0, born: 0, bare: true }};
  }}
  const tracker = window['{TRACKER}'];
  return {{ title: document.title, elements: document.getElementsByTagName('*').length,
    y: Math.round(root.scrollTop), height: root.scrollHeight,
    x: Math.round(root.scrollLeft), width: root.scrollWidth,
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
        long: Whether the tree was over its limit.
        limit: The most characters of the tree that could be shown.
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
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    status: int | None = None
    at_end: bool = False


async def read_page(
    page: "Page", *, max_chars: int, long: bool = False, patience: float = 1.0
) -> Reading:
    """Read the page's tree and its scroll position.

    A tree over `max_chars` is cut at its end while the page stands at its top. Further
    down, or if a part of the page is scrolled, it is reduced to the lines in view. So
    scrolling shows the rest. In a document of more than `MOST_ELEMENTS`, nothing is read
    that is more than a view's size out of view. The lines say how much that is.

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
        size = sum(map(len, _without_boxes(lines))) + len(lines)
        if size > max_chars and not whole:
            lines = _in_view(
                lines if long else await _tree(page, bound_s, boxes=True, near=near), height
            )
        lines, links = name_links(unmark(_without_boxes(lines)))
        if near:
            lines = await _tell_skipped(page, lines)
    return Reading(
        title=" ".join(facts["title"].encode("utf-8", "replace").decode().split()),
        url=page.url,
        document=facts["born"],
        scrolled=_scrolled(page, facts),
        lines=tuple(lines),
        links=links,
        long=size > max_chars,
        limit=max_chars,
        at_end=0 < facts["y"] >= facts["height"] - height - 1,
    )


async def _tree(page: "Page", bound_s: float, *, boxes: bool, near: bool = False) -> list[str]:
    root = page.locator(f"{NEAR if near else SEEN}=body")
    tree = await root.aria_snapshot(mode="ai", boxes=boxes, timeout=bound_s * 1000)
    return tree.split("\n")  # a text may hold other characters that end lines


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


def render(reading: Reading, notes: Sequence[str], *, max_chars: int) -> str:
    """Return a reading as text: its head, the notes, then the tree, cut at a line's end."""
    head = _head(reading, notes)
    text = "\n".join([*head, "", *reading.lines])
    over = len(text) - max_chars
    if over <= 0 or not reading.at_end:
        return clip_text(text, max_chars)
    # Nothing is left to scroll: the end of what is in view is shown, and not its beginning.
    told = [line for line in reading.lines if line.startswith("#")]
    left = _without_first(reading.lines, over + _NOTICE_CHARS)
    return clip_text("\n".join([*head, "", *told, *left]), max_chars)


def _without_first(lines: Sequence[str], chars: int) -> list[str]:
    sizes = [0, *accumulate(len(line) + 1 for line in lines)]
    cut, size = next(((i, n) for i, n in enumerate(sizes) if n >= chars), (len(lines), sizes[-1]))
    return [f"# {size} more characters above; scroll up to see them", *lines[cut:]]


def changes_between(
    old: Reading | None, new: Reading, notes: Sequence[str], *, max_chars: int
) -> str:
    """Return the differences from an earlier reading, or the whole text if it is not longer.

    A line that starts with `+` is new or changed; a line with `-` is gone. The lines above them
    that start with `@` name the place.
    """
    full = render(new, notes, max_chars=max_chars)
    if old is None or old.document != new.document:
        return full
    changed = _diff(old.lines, new.lines)
    head = _head(new, notes)
    if not changed:
        same = "Nothing changed in the text." if old.scrolled == new.scrolled else "Scrolled."
        return clip_text("\n".join([*head, "", same]), max_chars)
    text = clip_text("\n".join([*head, "", "Changed since the last text:", *changed]), max_chars)
    return text if len(text) < len(full) else full


def new_refs(old: Reading | None, new: Reading) -> str:
    """Return a sentence on the refs that are new since an earlier text, after a refused action."""
    if old is None:
        return ""
    if old.document != new.document:
        return "This is another document than in the last text: each ref in it is new."
    known = set(_REF.findall("\n".join(old.lines)))
    fresh = [ref for line in new.lines for ref in _REF.findall(line) if ref not in known]
    gone = known.difference(_REF.findall("\n".join(new.lines)))
    if not fresh and not gone:
        return ""
    parts = [f"New refs: {_list(fresh)}." if fresh else "", f"Gone: {_list(gone)}." if gone else ""]
    return " ".join(part for part in parts if part)


def _list(refs: Collection[str]) -> str:
    shown = sorted(refs, key=lambda ref: (len(ref), ref))
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return ", ".join(shown[:MAX_NAMED]) + more


def _head(reading: Reading, notes: Sequence[str]) -> list[str]:
    head = [f"Page: {reading.title or '(no title)'}", f"URL: {reading.url}"]
    if reading.status is not None:
        head.append(f"Status: {reading.status} {_phrase(reading.status)}".rstrip())
    if reading.scrolled:
        head.append(f"Scrolled: {reading.scrolled}")
    return [*head, *notes]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _diff(old: Sequence[str], new: Sequence[str]) -> list[str]:
    out: list[str] = []
    place: str | None = None
    was, now = [_unfocused(line) for line in old], [_unfocused(line) for line in new]
    for kind, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if kind == "equal":
            # Focus moves with every click: only where it went is worth a line.
            went = [line for line in new[c:d] if "[active]" in line and line not in old[a:b]]
            out += [f"+ {_bare(line)}" for line in went if not line.startswith("- generic")]
            continue
        where = _parent(new, c) if c < len(new) else None
        if where and where != place:
            out.append(f"@ {where}")
            place = where
        added = new[c:d]
        refs = {ref for line in added for ref in _REF.findall(line)}
        # An element that is still there with other words needs no second line for the old ones.
        out += [f"- {_bare(s)}" for s in old[a:b] if not refs.intersection(_REF.findall(s))]
        out += [f"+ {_bare(line)}" for line in added]
    return out


def _unfocused(line: str) -> str:
    return line.replace(" [active]", "")


def _parent(lines: Sequence[str], index: int) -> str | None:
    depth = _depth(lines[index])
    for line in reversed(lines[:index]):
        if _depth(line) < depth:
            return _bare(line).rstrip(":")
    return None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _bare(line: str) -> str:
    return line.strip().removeprefix("- ")


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
        depth = _depth(line)
        while parents and _depth(lines[parents[-1][0]]) >= depth:
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
    return _with_counts(lines, kept)


def _with_counts(lines: Sequence[str], kept: Sequence[bool]) -> list[str]:
    out: list[str] = []
    skipped = 0
    for line, keep in zip(lines, kept, strict=True):
        if not keep:
            skipped += 1
            continue
        if skipped:
            out.append(f"{' ' * _depth(line)}# {skipped} lines out of view")
            skipped = 0
        out.append(line)
    if skipped:
        out.append(f"# {skipped} lines out of view; scroll to see them")
    return out


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

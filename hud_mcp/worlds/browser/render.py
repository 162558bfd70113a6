"""The text of a page for an agent: all of it that fits, a part, or what has changed."""

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from http import HTTPStatus
from itertools import accumulate

from hud_mcp.base.text import clip_text
from hud_mcp.worlds.browser.lines import cut
from hud_mcp.worlds.browser.outline import outline
from hud_mcp.worlds.browser.phrases import safe
from hud_mcp.worlds.browser.text import Reading
from hud_mcp.worlds.browser.tree import Node, depth_of, parse

__all__ = ["changes_between", "new_refs", "render", "render_part"]

MAX_NAMED = 20
"""The most refs that are named one by one."""

_NOTICE_CHARS = 200
"""The room for the notices in a text that is cut at both ends."""

_REF = re.compile(r"(?<!\\)\[((?:f\d+)?e\d+|link\d+)(?=[ \]])")
_FOCUSED = re.compile(r" focused(?=[ \]])")
_PART = re.compile(r"[\[\s@]*(?:ref=)?((?:f\d+)?e\d+|link\d+)\]?(?::(\d{1,6}))?\s*")


def render(reading: Reading, notes: Sequence[str], *, max_chars: int) -> str:
    """Return a reading as text: its head, the notes, then its lines, cut at the end of one."""
    head = [*_head(reading, notes), ""]
    lines: Sequence[str] = reading.outline
    room = max_chars - sum(len(line) + 1 for line in head)
    over = sum(len(line) + 1 for line in lines) - room
    if over > 0 and reading.at_end:
        # Nothing is left to scroll: the end of what is in view is shown, and not its beginning.
        told = [line for line in lines if line.startswith("…")]
        lines = [*told, *_without_first(lines, over + _NOTICE_CHARS)]
    elif over > 0:
        lines = cut(lines, room)
    return clip_text("\n".join([*head, *lines]), max_chars)


def render_part(reading: Reading, part: str, notes: Sequence[str], *, max_chars: int) -> str:
    """Return the text of one element of a page: of `e29`, or of `e29:40` from its 40th line on."""
    match = _PART.fullmatch(part)
    ref, first = (match[1], int(match[2] or 1)) if match else (part, 1)
    node = next((each for each in parse(reading.lines).walk() if each.ref == ref), None)
    head = [*_head(reading, notes), ""]
    if node is None:
        told = f"There is no {ref!r} in the page now: observe full shows the refs that there are."
        return "\n".join([*head, told])
    every = outline(Node("root", children=[node]), reading.url, whole=True)
    lines = every[max(0, first - 1) :]
    if not lines:
        return "\n".join([*head, f"{ref} has {len(every)} lines now: observe {ref} shows them."])
    room = max_chars - sum(len(line) + 1 for line in head) - _NOTICE_CHARS
    ends = list(accumulate(len(line) + 1 for line in lines))
    shown = next((i for i, size in enumerate(ends) if size > room), len(lines)) or 1
    if left := len(lines) - shown:
        lines = [*lines[:shown], f"… {left} more lines; observe {ref}:{first + shown} shows them"]
    return clip_text("\n".join([*head, *lines]), max_chars)


def _without_first(lines: Sequence[str], chars: int) -> list[str]:
    sizes = [0, *accumulate(len(line) + 1 for line in lines)]
    first, size = next(((i, n) for i, n in enumerate(sizes) if n >= chars), (len(lines), sizes[-1]))
    return [f"… {size} more characters above; scroll up to see them", *lines[first:]]


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
    changed = _diff(old.outline, new.outline)
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
    known = set(_REF.findall("\n".join(old.outline)))
    fresh = [ref for line in new.outline for ref in _REF.findall(line) if ref not in known]
    gone = known.difference(_REF.findall("\n".join(new.outline)))
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
    return [safe(line) for line in (*head, *notes)]  # titles and dialogs are the page's own words


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
            went = [line for line in new[c:d] if _FOCUSED.search(line) and line not in old[a:b]]
            out += [f"+ {line.strip()}" for line in went]
            continue
        where = _parent(new, c) if c < len(new) else None
        if where and where != place:
            out.append(f"@ {where}")
            place = where
        added = new[c:d]
        refs = {ref for line in added for ref in _REF.findall(line)}
        # An element that is still there with other words needs no second line for the old ones.
        out += [f"- {s.strip()}" for s in old[a:b] if not refs.intersection(_REF.findall(s))]
        out += [f"+ {line.strip()}" for line in added]
    return out


def _unfocused(line: str) -> str:
    return _FOCUSED.sub("", line)


def _parent(lines: Sequence[str], index: int) -> str | None:
    """Return the line that a line stands below: of what is around it, else the last heading."""
    depth = depth_of(lines[index])
    for line in reversed(lines[:index]):
        if depth_of(line) < depth or (depth == 0 and line.startswith("#")):
            return line.strip().rstrip(":")
    return None

"""The wiki's markup, as far as its server has to understand it."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

__all__ = [
    "categories_of",
    "differences",
    "field_of",
    "headings_of",
    "links_of",
    "plain",
    "redirect_of",
    "tidy_title",
    "undone",
]

_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_REDIRECT = re.compile(r"\s*#REDIRECT\s*\[\[([^\[\]|]+)\]\]", re.IGNORECASE)
_CATEGORY = "Category:"
_CONTEXT = 2


def tidy_title(text: str) -> str:
    """A title as it is stored: without underscores or blanks too many, with a capital first."""
    words = " ".join(text.replace("_", " ").split())
    return words[:1].upper() + words[1:]


def redirect_of(text: str) -> str | None:
    """Where a page leads on to, if it is a redirect."""
    found = _REDIRECT.match(text)
    return tidy_title(found[1]) if found else None


def links_of(text: str) -> list[str]:
    """The titles that a page links to, without its categories, each once."""
    found = dict.fromkeys(tidy_title(each[1]) for each in _LINK.finditer(text))
    return [title for title in found if not title.startswith(_CATEGORY)]


def categories_of(text: str) -> list[str]:
    """The categories that a page is in."""
    found = dict.fromkeys(tidy_title(each[1]) for each in _LINK.finditer(text))
    return [title.removeprefix(_CATEGORY) for title in found if title.startswith(_CATEGORY)]


def headings_of(text: str) -> list[str]:
    """The headings of a page, from its first to its last."""
    return re.findall(r"^=+\s*(.+?)\s*=+\s*$", text, re.MULTILINE)


def field_of(text: str, name: str) -> str | None:
    """What an infobox says."""
    found = re.search(rf"^\|\s*{re.escape(name)}\s*=\s*(.*?)\s*$", text, re.MULTILINE)
    return found[1] if found else None


def plain(text: str) -> str:
    """What a reader sees of a page, the infobox last: for search and its snippets."""
    text = re.sub(r"<ref>.*?</ref>", "", text)
    text = _LINK.sub(
        lambda m: "" if m[1].startswith(_CATEGORY) else (m[2] or m[1]),
        text.replace("'''", "").replace("''", ""),
    )
    box = re.search(r"^\{\{Infobox.*?^\}\}$", text, re.MULTILINE | re.DOTALL)
    if box:
        fields = re.findall(r"^\|\s*(.*?)\s*$", box[0], re.MULTILINE)
        text = f"{text.replace(box[0], '')} {'; '.join(f.replace(' = ', ': ') for f in fields)}"
    text = re.sub(r"^=+|=+$|^\{\|.*|^\|[}-]*|^!", " ", text, flags=re.MULTILINE)
    return " ".join(text.replace("||", " ").replace("!!", " ").split())


def differences(old: str, new: str) -> list[dict[str, Any]]:
    """The lines that differ, with two around them: `kind`, `old`, `new`, and their numbers."""
    before, after = old.split("\n"), new.split("\n")
    rows: list[dict[str, Any]] = []
    matcher = SequenceMatcher(a=before, b=after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        rows.append({"kind": "place", "old": group[0][1] + 1, "new": group[0][3] + 1})
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                rows += [{"kind": "same", "old": line, "new": line} for line in before[i1:i2]]
                continue
            for place in range(max(i2 - i1, j2 - j1)):
                left = before[i1 + place] if i1 + place < i2 else None
                right = after[j1 + place] if j1 + place < j2 else None
                rows.append({"kind": "changed", **_words(left, right)})
    return rows


def _words(left: str | None, right: str | None) -> dict[str, Any]:
    """A changed line on both sides, in parts of which every second one differs."""
    if left is None or right is None:
        return {
            "old": None if left is None else ["", left],
            "new": None if right is None else ["", right],
        }
    a, b = (re.findall(r"\w+|\s+|[^\w\s]", side) for side in (left, right))
    sides: tuple[list[str], list[str]] = ([""], [""])
    for kind, i1, i2, j1, j2 in SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes():
        for side, part in zip(sides, ("".join(a[i1:i2]), "".join(b[j1:j2])), strict=True):
            if (kind != "equal") != (len(side) % 2 == 0):
                side.append("")
            side[-1] += part
    return {"old": sides[0], "new": sides[1]}


def undone(before: str, edited: str, now: str) -> str | None:
    """The text of now without one edit; None where a later edit touched the same lines."""
    old, new, current = (_lines(text) for text in (before, edited, now))
    edits = SequenceMatcher(a=new, b=old, autojunk=False).get_opcodes()
    kept = _places(new, current)
    result: list[str] = list(current)
    for kind, i1, i2, j1, j2 in reversed(edits):
        if kind == "equal":
            continue
        # The lines of the edit, and those beside it, must stand together as they did.
        first, last = max(i1 - 1, 0), min(i2 + 1, len(new))
        spots = [kept.get(line) for line in range(first, last)]
        if None in spots or spots != list(range(spots[0], spots[0] + len(spots))):  # type: ignore[operator]
            return None
        start = spots[0] + (i1 - first)  # type: ignore[operator]
        result[start : start + (i2 - i1)] = old[j1:j2]
    return "\n".join(result)


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _places(one: Iterable[str], other: Iterable[str]) -> dict[int, int]:
    """Where the lines of one text stand in another that came of it."""
    blocks = SequenceMatcher(a=list(one), b=list(other), autojunk=False).get_matching_blocks()
    return {b.a + step: b.b + step for b in blocks for step in range(b.size)}

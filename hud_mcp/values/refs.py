"""The refs in a world's text: names of elements, such as `e12`, in brackets behind what they name.

The text of a page has `button "Buy" [e12 disabled]`. Texts of other worlds, and older records,
have `button "Buy" [disabled] [ref=e12]`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Named", "find_ref", "named_refs", "refs_in"]

_REF = re.compile(r"(?<!\\)\[(?:ref=(\w+)|((?:f\d+)?e\d+|link\d+))(?=[ \]])")
_STATE = re.compile(r" \[([\w-]+)\]")
_NAME = re.compile(r'((?:[\w-]+ )?"(?:[^"\\]|\\.)*"|[\w-]+)(?: \[[^\]]*\])* $')


def refs_in(text: str) -> list[str]:
    """Return the refs of a text in their order."""
    return [match[1] or match[2] for match in _REF.finditer(text)]


class Named(NamedTuple):
    """A ref with what a text says of its element.

    Attributes:
        ref: The ref.
        name: The role and the name, such as `button "Buy"`.
        states: The states that are on, such as `checked`.
    """

    ref: str
    name: str
    states: frozenset[str]


def named_refs(text: str) -> Iterator[Named]:
    """Yield each ref of a text with the name and the states of its element."""
    for line in text.splitlines():
        start = 0
        for match in _REF.finditer(line):
            end = line.find("]", match.end())
            before, inside = line[start : match.start()], line[match.end() : end]
            name, rest = _NAME.search(before), line[end + 1 :].strip(" :")
            states = inside.split() + (_STATE.findall(name[0]) if name else [])
            said = name[1] if name else f'"{rest}"' if rest else "element"
            yield Named(match[1] or match[2], said, frozenset(states))
            start = end


def find_ref(text: str, wanted: str, nth: int = 0) -> str | None:
    """Return the ref of an element that a text names by some words; None if there is none.

    Args:
        text: The text.
        wanted: Part of the element's line, from its role or name on, such as `button "Buy`.
        nth: Which one, if several elements match.
    """
    found: list[str] = []
    for line in text.splitlines():
        places = list(_REF.finditer(line))
        at = line.find(wanted)
        while at >= 0 and places:
            behind = next((each for each in places if each.end() > at), places[-1])
            ref = behind[1] or behind[2]
            if ref not in found:
                found.append(ref)
            at = line.find(wanted, at + 1)
    return found[nth] if nth < len(found) else None

"""The refs of a restored page: the agent's names for elements that Playwright renamed.

Playwright numbers the elements of a document as it first reads them, and the documents of a
tab as they come. So a page that is loaded again gets other numbers than those in the agent's
text. This module pairs each of Playwright's refs with one of the agent's. If the page reads as
before, that is the ref of the agent's last text. Otherwise the agent has never seen it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Refs", "Renumbered", "highest_refs"]

_REF = re.compile(r"\[ref=((?:f\d+)?)e(\d+)\]")
_MARKS = re.compile(r" \[(?:ref=\w+|active)\]")


def highest_refs(lines: Iterable[str]) -> dict[str, int]:
    """Return the highest numbers in a tree's refs, by frame: `f3`, or empty for the first."""
    found: dict[str, int] = {}
    for frame, number in _REF.findall("\n".join(lines)):
        found[frame] = max(found.get(frame, 0), int(number))
    return found


class Refs:
    """The refs of one tab.

    Args:
        highest: The highest number that the agent has seen, by frame.
        told: The tree in the agent's last text, if that was of this document.
        now: The tree of the document as Playwright reads it now.
    """

    def __init__(self, highest: Mapping[str, int], told: Sequence[str], now: Sequence[str]) -> None:
        self._numbers = dict(highest)
        self._frames: dict[str, str] = {}
        self._taken = max([0, *(int(f[1:]) for f in highest if f)])
        self._shown: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        for old, new in _pairs(told, now):
            self._pair(old, new)
        for line in now:
            self.translate(line)

    def translate(self, line: str) -> str:
        """Return a line of Playwright's tree with the agent's ref in it."""
        return _REF.sub(lambda match: f"[ref={self._told(match[1], match[2])}]", line)

    def find(self, ref: str) -> str | None:
        """Return Playwright's ref for the agent's; None if it names no element."""
        return self._meant.get(ref)

    def _told(self, frame: str, number: str) -> str:
        ref = f"{frame}e{number}"
        if ref not in self._shown:
            self._shown[ref] = self._new(frame, number)
            self._meant[self._shown[ref]] = ref
        return self._shown[ref]

    def _new(self, frame: str, number: str) -> str:
        mine = self._frames.get(frame)
        if mine is None:
            self._taken += 1
            mine = self._frames[frame] = f"f{self._taken}"
        if mine not in self._numbers:  # no document that the agent knows: its numbers are free
            return f"{mine}e{number}"
        self._numbers[mine] += 1
        return f"{mine}e{self._numbers[mine]}"

    def _pair(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        known = self._frames.setdefault(new[0], old[0])
        told, ref = "e".join(old), "e".join(new)
        if known == old[0] and told not in self._meant and ref not in self._shown:
            self._shown[ref] = told
            self._meant[told] = ref


class Renumbered(Refs):
    """The refs of a page that serves several sessions in turn, numbered anew for each.

    Playwright counts a page's documents on from one session to the next. In these refs, the
    first document that a session reads has no number, on a new page or a used one.

    Args:
        lines: The tree that is read first.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__({}, (), ())
        own = next((match[1] for line in lines if (match := _REF.search(line))), "")
        self._first = int(own[1:] or 0)

    def translate(self, line: str) -> str:
        """Return a line of Playwright's tree with the agent's ref in it."""
        return _REF.sub(lambda match: f"[ref={_moved(match[1], -self._first)}e{match[2]}]", line)

    def find(self, ref: str) -> str | None:
        """Return Playwright's ref for the agent's; None if the text is no ref."""
        match = _REF.fullmatch(f"[ref={ref}]")
        return None if match is None else f"{_moved(match[1], self._first)}e{match[2]}"


def _moved(frame: str, by: int) -> str:
    number = int(frame[1:] or 0) + by
    return f"f{number}" if number else ""


def _pairs(
    told: Sequence[str], now: Sequence[str]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the refs of the same elements in two trees, if the trees read the same; else none.

    If they differ, no line is safe by its words: the one "Delete" that is left may stand
    beside another name now.
    """
    if [_MARKS.sub("", line) for line in told] != [_MARKS.sub("", line) for line in now]:
        return []
    found = [(_REF.search(old), _REF.search(new)) for old, new in zip(told, now, strict=True)]
    return [((a[1], a[2]), (b[1], b[2])) for a, b in found if a and b]

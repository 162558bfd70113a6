"""Who wrote what, and when: edits in the making, before they are numbered."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["Draft", "Story"]

_DAY = 24 * 60
_LATE_DAY = 1_480
"""What is odd happened lately; `TODAY` is day 1561."""


@dataclass(frozen=True)
class Draft:
    """An edit; minutes are counted from the wiki's first day."""

    title: str
    user: str
    minute: int
    text: str
    summary: str
    minor: bool


class Story:
    """The edits of all pages, in the order in which they are told.

    Attributes:
        draw: What chance decides.
        drafts: The edits so far.
    """

    def __init__(self, editors: Sequence[str], draw: Random) -> None:
        self.draw = draw
        self.drafts: list[Draft] = []
        self._editors = tuple(editors)
        self._latest: dict[str, int] = {}

    @property
    def titles(self) -> set[str]:
        """The pages that have been told of."""
        return set(self._latest)

    def editors(self, count: int) -> list[str]:
        """So many different people who edit."""
        return self.draw.sample(self._editors, count)

    def add(
        self,
        title: str,
        text: str,
        summary: str,
        user: str | None = None,
        *,
        late: bool = False,
        minor: bool = False,
    ) -> None:
        """Tell the next edit of a page; a late one is of the last months."""
        day = self._latest.get(title)
        if late:
            day = max(_LATE_DAY, day or 0) + self.draw.randint(1, 12)
        else:
            day = self.draw.randint(0, 500) if day is None else day + self.draw.randint(9, 150)
        self._latest[title] = day
        minute = day * _DAY + self.draw.randint(7 * 60, 23 * 60)
        author = user or self.draw.choice(self._editors)
        self.drafts.append(Draft(title, author, minute, text, summary, minor))

    def misstate(self, text: str) -> str | None:
        """The text with another number in one line of its infobox, for every second text."""
        lines = text.split("\n")
        places = [
            place
            for place, line in enumerate(lines)
            if re.match(r"\| (length|height|founded|opened|completed) = [\d,]+", line)
        ]
        if not places or self.draw.random() < 0.5:  # noqa: PLR2004  # every second one
            return None
        place = self.draw.choice(places)
        number = re.search(r"= ([\d,]+)", lines[place])
        if number is None:
            return None
        value = int(number[1].replace(",", "")) + self.draw.choice((-7, -3, 4, 9))
        shown = f"{value:,}" if "," in number[1] else str(value)
        lines[place] = lines[place].replace(number[1], shown, 1)
        return "\n".join(lines)

"""A timetable between islands whose clocks differ, with footnotes."""

import random
import re
from dataclasses import dataclass
from typing import Literal

from questions_case import NUMBER, TIME, Case, differing, drawing

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["arrival", "journey"]

_ISLANDS = ("Askel", "Brenna", "Corvo", "Dunmor", "Eldey", "Falster")
_NOTES = {"": "daily", "a": "not on Sundays", "b": "only on Saturdays and Sundays"}
_DAYS = ("Wednesday", "Saturday", "Sunday")
CHANGE_MIN = 20


@dataclass(frozen=True)
class _Boat:
    """One boat: minutes of the day by the clock of the port where it is read."""

    start: str
    end: str
    leaves: int
    takes: int
    note: str

    def sails(self, day: str) -> bool:
        """Whether its footnote lets it sail on a day."""
        return (self.note != "a" or day != "Sunday") and (
            self.note != "b" or day in ("Saturday", "Sunday")
        )


@dataclass(frozen=True)
class _Table:
    boats: tuple[_Boat, ...]
    ahead: dict[str, int]
    route: tuple[str, str, str]
    day: str
    after: int

    def journey(
        self, *, notes: bool = True, clocks: bool = True, change: int = CHANGE_MIN
    ) -> tuple[int, int] | None:
        """Departure and arrival in minutes by the first port's clock; None where it is too late."""
        ready, begun = self.after, None
        for start, end in ((0, 1), (1, 2)):
            shift = self.ahead[self.route[start]] - self.ahead[self.route[0]] if clocks else 0
            boats = [
                (boat.leaves - shift, boat.takes)
                for boat in self.boats
                if (boat.start, boat.end) == (self.route[start], self.route[end])
                and (boat.sails(self.day) or not notes)
                and boat.leaves - shift >= ready
            ]
            if not boats:
                return None
            leaves, takes = min(boats)
            begun = leaves if begun is None else begun
            ready = leaves + takes + change
        return (begun or 0), ready - change

    def local(self, minutes: int) -> str:
        """A time by the last port's clock."""
        shown = minutes + self.ahead[self.route[2]] - self.ahead[self.route[0]]
        return _clock(shown)


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _table(rng: random.Random) -> _Table:
    islands = rng.sample(_ISLANDS, 4)
    ahead = dict(zip(islands, rng.sample((0, 30, 60, 90, 120), 4), strict=True))
    boats: list[_Boat] = []
    for start, end in ((0, 1), (1, 2), (0, 3), (3, 2), (1, 3)):
        takes = rng.randrange(45, 140, 5)
        for hour in range(7 + start, 20, 2):
            leaves = hour * 60 + rng.randrange(0, 60, 5)
            note = rng.choice(("", "", "a", "b"))
            boats.append(_Boat(islands[start], islands[end], leaves, takes, note))
    route = (islands[0], islands[1], islands[2])
    return _Table(tuple(boats), ahead, route, rng.choice(_DAYS), rng.randrange(480, 660, 15))


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a timetable."""
    rng = drawing(f"ferry-{ask}", seed)
    while True:
        made = _table(rng)
        right = made.journey()
        hasty = [made.journey(notes=False), made.journey(clocks=False), made.journey(change=0)]
        known = [each for each in hasty if each]
        if right is None or len(known) < 2 or right[1] > 20 * 60 or known[0] == right:  # noqa: PLR2004  # two of them
            continue
        if ask == "arrival":
            truth = made.local(right[1])
            wrong = [made.local(end) for _, end in known] + [_clock(right[1])]
        else:
            truth = str(right[1] - right[0])
            shift = made.ahead[made.route[2]] - made.ahead[made.route[0]]
            wrong = [str(right[1] - right[0] + shift), *(str(b - a) for a, b in known)]
        if len(differing(truth, wrong)) > 1:
            break
    first, change, last = made.route
    begin = (
        "timetable.txt has the boats between four islands. Every time in it is by the clock of the "
        f"port where the boat then is. Somebody is in {first} on a {made.day} at "
        f"{_clock(made.after)}, takes the first boat to {change}, and from there the first boat to "
        f"{last} that can be reached. A change takes at least {CHANGE_MIN} minutes. "
    )
    if ask == "arrival":
        question = (
            f"{begin}At what time, by the clocks there, does the boat arrive in {last}? {TIME}"
        )
    else:
        question = (
            f"{begin}How many minutes pass between leaving {first} and arriving in {last}? {NUMBER}"
        )
    data = _text(made).encode()
    return Case(question, truth, differing(truth, wrong), lambda: {"timetable.txt": data})


def _text(made: _Table) -> str:
    lines = ["BOATS BETWEEN THE ISLANDS, SUMMER 2026", ""]
    for start, end in dict.fromkeys((boat.start, boat.end) for boat in made.boats):
        lines += [f"{start} - {end}", "  leaves  arrives"]
        shift = made.ahead[end] - made.ahead[start]
        for boat in made.boats:
            if (boat.start, boat.end) == (start, end):
                arrives = boat.leaves + boat.takes + shift
                lines.append(f"  {_clock(boat.leaves)}   {_clock(arrives)}  {boat.note}".rstrip())
        lines.append("")
    lines += [f"{note}  {said}" for note, said in _NOTES.items() if note]
    lines += ["", "Clocks"]
    lines += [
        f"  {island}: UTC{'+' if ahead else ' '}{ahead // 60}:{ahead % 60:02d}".replace(" 0:00", "")
        for island, ahead in made.ahead.items()
    ]
    return "\n".join([*lines, ""])


def _minutes(text: str) -> int:
    return int(text[:-3]) * 60 + int(text[-2:])


async def solve(agent: Agent, ask: Ask) -> str:
    """Read the table, then look for the two boats by one clock."""
    text = await agent.tool("read_file", path="timetable.txt")
    ahead = {
        island: _minutes(shift) if shift else 0
        for island, shift in re.findall(r"^  (\w+): UTC\+?([\d:]*)$", text, re.MULTILINE)
    }
    boats: list[_Boat] = []
    for start, end, block in re.findall(r"^(\w+) - (\w+)\n.*\n((?:  \d.*\n)+)", text, re.MULTILINE):
        for leaves, arrives, note in re.findall(r"(\d\d:\d\d)   (\d\d:\d\d) *([ab]?)\n", block):
            takes = _minutes(arrives) - _minutes(leaves) - ahead[end] + ahead[start]
            boats.append(_Boat(start, end, _minutes(leaves), takes % 1440, note))
    found = re.findall(
        r"in (\w+) on a (\w+) at (\d\d:\d\d), takes the first boat to (\w+), .*? to (\w+) that",
        agent.prompt,
    )
    first, day, after, change, last = found[0]
    made = _Table(tuple(boats), ahead, (first, change, last), day, _minutes(after))
    begun, ended = made.journey() or (0, 0)
    return made.local(ended) if ask == "arrival" else str(ended - begun)

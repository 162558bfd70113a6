"""A number that is dialled: the tones of a telephone, a list of numbers, a calendar."""

import csv
import io
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from questions_case import NAME, Case, differing, drawing
from questions_sound import hear, silence, tone, write_wav

from hud_mcp import Agent

__all__ = ["HIGH", "LOW", "Ask", "draw", "solve"]

Ask = Literal["number", "person", "visit"]

LOW, HIGH = (697, 770, 852, 941), (1209, 1336, 1477)
_KEYS = ("123", "456", "789", "*0#")
_PEOPLE = (
    "Ada Brandt", "Bo Lindqvist", "Cleo Marsh", "Dov Peretz", "Elif Aydin", "Finn Moller",
    "Greta Nowak", "Hugo Silva", "Ines Costa", "Jun Tanaka", "Kofi Mensah", "Lena Vogel",
)  # fmt: skip
_NOTE = """The handset in the workshop

Digits are dialled as they are pressed. The star key takes back the digit before it.
The number is called when the hash key is pressed.
"""


@dataclass(frozen=True)
class _Call:
    keys: str
    number: str
    people: dict[str, str]
    person: str
    slip: str
    visits: tuple[tuple[str, datetime], ...]
    visit: datetime


def _call(rng: random.Random, *, corrected: bool) -> _Call:
    number = f"0{rng.randint(100000, 999999)}"
    keys = number
    people = {name: f"0{rng.randint(100000, 999999)}" for name in rng.sample(_PEOPLE, 9)}
    person, other = rng.sample(sorted(people), 2)
    people[person] = number
    if corrected:
        at = rng.randint(2, 5)
        slip = rng.choice([digit for digit in "123456789" if digit != number[at]])
        keys = f"{number[:at]}{slip}*{number[at:]}"
        # Whoever leaves out the star alone has the number of somebody else.
        people[other] = (number[:at] + slip + number[at + 1 :])[:7]
    first = datetime(2026, 5, 4, 8)  # noqa: DTZ001  # a calendar of one town
    visits = [
        (name, first + timedelta(days=rng.randrange(25), minutes=15 * rng.randrange(36)))
        for name in people
        for _ in range(3)
    ]
    rng.shuffle(visits)
    after = datetime(2026, 5, 12)  # noqa: DTZ001  # the same
    own = sorted(when for name, when in visits if name == person and when >= after)
    slip = other if corrected else ""
    return _Call(keys + "#", number, people, person, slip, tuple(visits), own[0] if own else first)


def _drawn(seed: int, ask: Ask) -> _Call:
    rng = drawing(f"dial-{ask}", seed)
    while True:
        made = _call(rng, corrected=ask != "number")
        own = [when for name, when in made.visits if name == made.person]
        distinct = len({when for _, when in made.visits}) == len(made.visits)
        if ask != "visit" or (distinct and min(own) < made.visit < max(own)):
            return made


def _short(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a call."""
    made = _drawn(seed, ask)
    files = {"call.wav": lambda: write_wav(_tones(made.keys))}
    begin = "call.wav has the tones (DTMF) of keys that are pressed on a telephone. "
    if ask == "number":
        question = (
            f"{begin}Which number is dialled before the hash key is pressed? Answer with its "
            "digits alone, without spaces."
        )
        truth, wrong = made.number, (made.number[::-1], made.number[:-1], f"9{made.number}")
        return Case(question, truth, differing(truth, wrong), lambda: _made(files))
    files |= {
        "handset.txt": _NOTE.encode,
        "people.csv": lambda: _people(made.people),
    }
    if ask == "person":
        question = (
            f"{begin}handset.txt says how the handset works, and people.csv whose number is "
            f"which. Who is called? {NAME}"
        )
        truth, wrong = made.person, (made.slip, *[n for n in made.people if n != made.person][:2])
        return Case(question, truth, differing(truth, wrong), lambda: _made(files))
    files["visits.ics"] = lambda: _calendar(made.visits)
    question = (
        f"{begin}handset.txt says how the handset works, people.csv whose number is which, and "
        "visits.ics when the workshop expects whom. It is 12 May 2026, before opening. When is "
        "the next visit of the person who is called? Answer with date and time alone, as "
        "YYYY-MM-DD HH:MM."
    )
    truth = _short(made.visit)
    own = sorted(when for name, when in made.visits if name == made.person)
    other = sorted(when for name, when in made.visits if name == made.slip)
    wrong = [_short(own[0]), _short(own[-1]), *map(_short, other)]
    return Case(question, truth, differing(truth, wrong)[:4], lambda: _made(files))


def _made(files: Mapping[str, Callable[[], bytes]]) -> dict[str, bytes]:
    return {name: make() for name, make in files.items()}


def _tones(keys: str) -> list[list[float]]:
    parts: list[list[float]] = []
    for key in keys:
        row = next(i for i, line in enumerate(_KEYS) if key in line)
        parts += [tone((LOW[row], HIGH[_KEYS[row].index(key)]), 0.14), silence(0.09)]
    return parts


def _people(people: dict[str, str]) -> bytes:
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(("name", "number"))
    lines.writerows(sorted(people.items()))
    return out.getvalue().encode()


def _calendar(visits: tuple[tuple[str, datetime], ...]) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Workshop//Visits//EN"]
    for n, (name, when) in enumerate(visits):
        lines += [
            "BEGIN:VEVENT",
            f"UID:visit-{n}@workshop.example",
            "DTSTAMP:20260401T080000Z",
            f"DTSTART:{when:%Y%m%dT%H%M%S}",
            "DURATION:PT30M",
            f"SUMMARY:Visit: {name}",
            "END:VEVENT",
        ]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


async def solve(agent: Agent, ask: Ask) -> str:
    """Hear the keys, take back what the star takes back, and look the number up."""
    await agent.tool("run_command", command="ls -l")
    pressed = ""
    for _, _, found in await hear(agent, "call.wav", LOW + HIGH):
        row, column = LOW.index(min(found)), HIGH.index(max(found))
        pressed += _KEYS[row][column]
    if ask == "number":
        return pressed.removesuffix("#")
    await agent.tool("read_file", path="handset.txt")
    number = ""
    for key in pressed.removesuffix("#"):
        number = number[:-1] if key == "*" else number + key
    line = await agent.tool("run_command", command=f"grep ',{number}' people.csv")
    person = line.strip().partition(",")[0]
    if ask == "person":
        return person
    command = f"grep -B 2 'Visit: {person}' visits.ics"
    text = await agent.tool("run_command", command=command)
    times = sorted(re.findall(r"DTSTART:(\d{8}T\d{4})", text))
    when = datetime.strptime(next(t for t in times if t >= "20260512"), "%Y%m%dT%H%M")  # noqa: DTZ007  # as above
    return _short(when)

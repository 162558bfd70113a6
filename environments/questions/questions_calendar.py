"""A calendar as ICS: meetings that recur, with days left out, moved and cancelled."""

import random
import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Literal

from questions_case import NUMBER, Case, differing, drawing

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["count", "minutes", "days"]

_WEEK = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = {3: "March", 4: "April", 5: "May", 9: "September", 10: "October", 11: "November"}
_WISH = (
    "Please put the chairs back when you are done. Who comes last locks the door and brings the "
    "key to number 7."
)
_NAMES = ("Choir", "Chess club", "Boat repair", "Language table")


@dataclass
class _Series:
    """A weekly meeting: when it is by its rule, and what was changed of that."""

    name: str
    first: datetime
    minutes: int
    until: date
    left_out: set[date] = field(default_factory=set)
    moved: dict[date, datetime] = field(default_factory=dict)
    cancelled: set[date] = field(default_factory=set)
    interval: int = 1

    def by_rule(self) -> list[date]:
        day, found = self.first.date(), []
        while day <= self.until:
            found.append(day)
            day += timedelta(weeks=self.interval)
        return found

    def held(self) -> list[datetime]:
        """When it really takes place."""
        gone = self.left_out | self.cancelled
        days = [day for day in self.by_rule() if day not in gone]
        at = self.first.time()
        return sorted(self.moved.get(day) or datetime.combine(day, at) for day in days)


def _series(rng: random.Random, year: int, month: int) -> list[_Series]:
    begin = date(year, month, 1) - timedelta(days=21)
    every: list[_Series] = []
    for name, weekday in zip(_NAMES, rng.sample(range(5), 4), strict=True):
        day = begin + timedelta(days=(weekday - begin.weekday()) % 7)
        first = datetime.combine(day, time(rng.randint(15, 19), rng.choice((0, 30))))
        until = date(year, month, 1) + timedelta(days=45)
        one = _Series(name, first, rng.choice((45, 60, 75, 90, 120)), until)
        days = [each for each in one.by_rule() if each.month == month]
        out, moved, cancelled = rng.sample(days[:4], 3)
        one.left_out, one.cancelled = {out}, {cancelled}
        # To the weekend after it, or past the month's end.
        away = moved + timedelta(days=5 - weekday if rng.random() < 2 / 3 else 28)
        one.moved = {moved: datetime.combine(away, time(10, 0))}
        every.append(one)
    every[-1].interval = 2
    every[-1].left_out, every[-1].moved, every[-1].cancelled = set(), {}, set()
    return every


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a calendar."""
    rng = drawing(f"calendar-{ask}", seed)
    year, month = rng.choice((2026, 2027)), rng.choice(sorted(_MONTHS))
    every = _series(rng, year, month)
    one, two = rng.sample(every[:3], 2)
    said = f"{_MONTHS[month]} {year}"
    if ask == "count":
        question = f"How many meetings, of whatever kind, really take place in {said}? {NUMBER}"
        truth, *wrong = (str(sum(map(len, each))) for each in _read_ways(every, month))
    elif ask == "minutes":
        question = f"How many minutes does {one.name} take in {said} in all? {NUMBER}"
        counts = [len(days) for (days,) in _read_ways([one], month)]
        truth, *wrong = (str(count * one.minutes) for count in counts)
    else:
        question = (
            f"On which days in {said} does {one.name} or {two.name} really take place? Answer "
            "with the days of the month alone, as a comma separated list in ascending order, such "
            "as '2, 9, 16, 30'."
        )
        truth, *wrong = (_listed(each) for each in _read_ways([one, two], month))
    asked = f"calendar.ics is the calendar of a community hall. {question}"
    return Case(asked, truth, differing(truth, wrong), lambda: {"calendar.ics": _ics(every)})


def _read_ways(every: list[_Series], month: int) -> list[list[list[date]]]:
    """The days of each series in a month: the right ones, then as hasty readers have them."""
    whole = [[when.date() for when in one.held()] for one in every]
    rule = [one.by_rule() for one in every]
    without_out = [[d for d in one.by_rule() if d not in one.left_out] for one in every]
    unmoved = [[d for d in one.by_rule() if d not in one.left_out | one.cancelled] for one in every]
    gone = [
        [d for d in days if d not in one.moved] for one, days in zip(every, unmoved, strict=True)
    ]
    ways = [whole, rule, without_out, unmoved, gone]
    return [[[d for d in days if d.month == month] for days in way] for way in ways]


def _listed(series: list[list[date]]) -> str:
    return ", ".join(str(n) for n in sorted({day.day for days in series for day in days}))


def _ics(every: list[_Series]) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Community Hall//Rooms//EN"]
    for n, one in enumerate(every):
        uid = f"series-{n}@hall.example"
        at = one.first.time()
        weekday = _WEEK[one.first.weekday()]
        rule = f"RRULE:FREQ=WEEKLY;INTERVAL={one.interval};BYDAY={weekday}"
        lines += [
            *_begin(uid, one.first, one.minutes, one.name),
            f"{rule};UNTIL={datetime.combine(one.until, time(23)):%Y%m%dT%H%M%S}",
            *(f"EXDATE:{datetime.combine(day, at):%Y%m%dT%H%M%S}" for day in sorted(one.left_out)),
            f"DESCRIPTION:{_WISH}",
            "END:VEVENT",
        ]
        for day in sorted({*one.moved, *one.cancelled}):
            then = datetime.combine(day, at)
            lines += _begin(uid, one.moved.get(day, then), one.minutes, one.name)
            lines.append(f"RECURRENCE-ID:{then:%Y%m%dT%H%M%S}")
            lines += ["STATUS:CANCELLED"] if day in one.cancelled else []
            lines.append("END:VEVENT")
    folded = [re.sub(r"(.{74})(?=.)", "\\1\r\n ", line) for line in [*lines, "END:VCALENDAR"]]
    return "\r\n".join([*folded, ""]).encode()


def _begin(uid: str, when: datetime, minutes: int, name: str) -> list[str]:
    hours, rest = divmod(minutes, 60)
    length = f"PT{hours}H{rest}M" if hours and rest else f"PT{hours}H" if hours else f"PT{rest}M"
    return [
        "BEGIN:VEVENT",
        f"UID:{uid}",
        "DTSTAMP:20260101T090000Z",
        f"DTSTART:{when:%Y%m%dT%H%M%S}",
        f"DURATION:{length}",
        f"SUMMARY:{name}",
    ]


def _when(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M%S")  # noqa: DTZ007  # local time, as the file has it


def _read(text: str) -> list[_Series]:
    """The series of a calendar, with what was changed of them."""
    unfolded = re.sub(r"\n ", "", text.replace("\r", ""))
    series: dict[str, _Series] = {}
    for block in re.findall(r"BEGIN:VEVENT\n(.*?)END:VEVENT", unfolded, re.DOTALL):
        of = dict(line.split(":", 1) for line in block.splitlines())
        begin = _when(of["DTSTART"])
        if "RRULE" in of:
            rule = dict(each.split("=") for each in of["RRULE"].split(";"))
            hours, minutes = re.findall(r"PT(?:(\d+)H)?(?:(\d+)M)?", of["DURATION"])[0]
            length = int(hours or 0) * 60 + int(minutes or 0)
            one = _Series(of["SUMMARY"], begin, length, _when(rule["UNTIL"]).date())
            one.interval = int(rule["INTERVAL"])
            one.left_out = {_when(of["EXDATE"]).date()} if "EXDATE" in of else set()
            series[of["UID"]] = one
            continue
        day = _when(of["RECURRENCE-ID"]).date()
        if of.get("STATUS") == "CANCELLED":
            series[of["UID"]].cancelled.add(day)
        else:
            series[of["UID"]].moved[day] = begin
    return list(series.values())


async def solve(agent: Agent, ask: Ask) -> str:
    """Read the calendar, and apply each exception to its series."""
    await agent.tool("run_command", command="ls -l; wc calendar.ics")
    every = _read(await agent.tool("read_file", path="calendar.ics"))
    name = re.findall(r"in (\w+) 202\d", agent.prompt)[0]
    month = next(number for number, each in _MONTHS.items() if each == name)
    asked = [one for one in every if one.name in agent.prompt] or every
    held = [[when.date() for when in one.held() if when.month == month] for one in asked]
    if ask == "days":
        return _listed(held)
    return str(len(held[0]) * asked[0].minutes if ask == "minutes" else sum(map(len, held)))

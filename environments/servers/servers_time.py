"""Tasks on the time of places, over the reference server for time, and a calendar of our own.

All places keep one time through the year, so that no answer depends on the day of the run.
"""

import json
from collections.abc import AsyncGenerator
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field
from servers_outcome import Seed, draws, graded, read_left

from hud_mcp import Agent, BrokenByAgent, Environment, Grade, ToolServer, ToolServerWorld

__all__ = ["declare"]

SERVER = "mcp-server-time==2026.10.19"
FILE = "calendar.json"
ZONES = {
    "Pacific/Honolulu": -600, "America/Phoenix": -420, "America/Bogota": -300, "Africa/Lagos": 60,
    "Africa/Nairobi": 180, "Asia/Dubai": 240, "Asia/Karachi": 300, "Asia/Kolkata": 330,
    "Asia/Kathmandu": 345, "Asia/Yangon": 390, "Asia/Singapore": 480, "Asia/Tokyo": 540,
    "Australia/Darwin": 570, "Australia/Brisbane": 600,
}  # fmt: skip
"""The minutes of each place before UTC, which has no summer time."""
PEOPLE = ("Ada", "Bruno", "Chloe", "Dmitri")

Entry = tuple[str, str, str, str]
"""A day, a time, a place and a title."""


async def add_entry(
    server: ToolServerWorld,
    day: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", description="YYYY-MM-DD, there.")],
    time: Annotated[str, Field(pattern=r"^\d\d:\d\d$", description="HH:MM, there.")],
    timezone: Annotated[str, Field(max_length=60, description="IANA's name of the place.")],
    title: Annotated[str, Field(max_length=80)],
) -> str:
    """Add an entry to the calendar, at a place's own day and time. Nothing removes one."""
    entries = json.loads(await server.shell.read(FILE))
    entries.append([day, time, timezone, title])
    await server.shell.write(FILE, json.dumps(entries))
    return f"The calendar has {len(entries)} entries."


async def ended(server: ToolServerWorld, wanted: list[Entry]) -> Grade:
    """Grade what the calendar has."""
    try:
        found = [tuple(map(str, each)) for each in json.loads(await read_left(server, FILE))]
    except (ValueError, TypeError) as exc:
        raise BrokenByAgent(f"The calendar cannot be read: {exc}") from exc
    return graded({"the calendar": sorted(found) == sorted(wanted)})


def shown(minutes: int) -> str:
    """Minutes of a day as a time."""
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def there(moment: datetime, zone: str) -> tuple[str, str]:
    """The day and the time of a moment in UTC at a place."""
    local = moment + timedelta(minutes=ZONES[zone])
    return local.strftime("%Y-%m-%d"), local.strftime("%H:%M")


def meeting(seed: int, level: str) -> tuple[dict[str, str], str, str, Entry]:
    """The places of people, the day, the place that counts, and the entry of the meeting."""
    draw = draws(f"meeting/{level}", seed)
    while True:
        zones = draw.sample(sorted(ZONES), 3)
        own = zones[0]
        for start in range(0, 24 * 60, 15):
            local = [start + ZONES[zone] - ZONES[own] for zone in zones]
            is_free = all(9 * 60 <= each <= 16 * 60 for each in local)
            eats = any(11 * 60 < each < 13 * 60 for each in local)
            if is_free and not (level == "lunch" and eats):
                break
        else:
            continue
        # No meeting at the beginning of the organizer's own day, nor one near its own noon alone.
        if start > 10 * 60:
            break
    day = (date(2024, 1, 1) + timedelta(days=draw.randint(0, 300))).isoformat()
    title = f"Review {draw.randint(10, 99)}"
    people = dict(zip(draw.sample(PEOPLE, 3), zones, strict=True))
    return people, day, title, (day, shown(start), own, title)


async def book_meeting(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "lunch"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for the first hour at which three people work."""
    people, day, title, entry = meeting(seed, level)
    await server.shell.write(FILE, "[]")
    living = "; ".join(f"{name} in {zone}" for name, zone in people.items())
    lunch = " Nobody meets between 12:00 and 13:00 there." if level == "lunch" else ""
    yield (
        f"Find a time for the meeting {title!r} of one hour on {day}, as that day is in {entry[2]}."
        f" It begins at a quarter of an hour, as early as possible. Working hours are 09:00 to "
        f"17:00 at each one's own place, and the whole meeting lies within them.{lunch} "
        f"People: {living}. Add it to the calendar once, with the day and the time in {entry[2]}."
    )
    yield await ended(server, [entry])


async def solve_meeting(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Convert the hours of each, and book."""
    people, _, _, entry = meeting(seed, level)
    for zone in people.values():
        if zone != entry[2]:
            for time in ("09:00", "17:00", entry[1]):
                there, here = (zone, entry[2]) if time != entry[1] else (entry[2], zone)
                await agent.call(
                    "convert_time", source_timezone=there, time=time, target_timezone=here
                )
    await book(agent, entry)
    return "done"


async def book(agent: Agent, entry: Entry) -> None:
    """Add an entry."""
    day, time, zone, title = entry
    await agent.call("add_entry", day=day, time=time, timezone=zone, title=title)


def journey(seed: int) -> tuple[list[tuple[str, str, str, str, int]], list[Entry]]:
    """Legs, each with its places, its own day and time of departure, and its minutes; arrivals."""
    draw = draws("journey", seed)
    zones = draw.sample(["Pacific/Honolulu", "Asia/Tokyo", "Asia/Kathmandu", "America/Bogota",
                         "Australia/Darwin", "Africa/Lagos"], 4)  # fmt: skip
    moment = datetime(2024, draw.randint(1, 12), draw.randint(1, 28), draw.randint(0, 23), 35)  # noqa: DTZ001  # UTC
    legs: list[tuple[str, str, str, str, int]] = []
    wanted: list[Entry] = []
    for place, (start, end) in enumerate(pairwise(zones), 1):
        minutes = draw.randint(400, 840)
        legs.append((start, end, *there(moment, start), minutes))
        moment += timedelta(minutes=minutes)
        wanted.append((*there(moment, end), end, f"Arrival {place}"))
        moment += timedelta(minutes=draw.randint(2, 20) * 60 + 5)
    return legs, wanted


async def note_arrivals(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for the local times at which flights arrive."""
    legs, wanted = journey(seed)
    await server.shell.write(FILE, "[]")
    lines = [
        f"{place}. from {start} on {day} at {time}, local time, to {end}: {minutes // 60} h "
        f"{minutes % 60} min"
        for place, (start, end, day, time, minutes) in enumerate(legs, 1)
    ]
    yield (
        "Add the arrival of each of these flights to the calendar, with the day and the time at "
        "the place where it lands, and that place's time zone. The titles are 'Arrival 1' and so "
        "on.\n" + "\n".join(lines)
    )
    yield await ended(server, wanted)


async def solve_arrivals(agent: Agent, seed: int = 0) -> str:
    """Convert each time, and note it."""
    legs, wanted = journey(seed)
    for (start, end, _, time, _), entry in zip(legs, wanted, strict=True):
        await agent.call("convert_time", source_timezone=start, time=time, target_timezone=end)
        await book(agent, entry)
    return "done"


def shifts(seed: int) -> tuple[str, list[tuple[str, str]], list[Entry]]:
    """The day of a watch in UTC, its sites with their times in UTC, and the entries."""
    draw = draws("shifts", seed)
    sites = draw.sample(sorted(ZONES), 4)
    day = date(2024, 2, 26) + timedelta(days=draw.randint(0, 5))
    first = draw.randint(0, 5)
    told: list[tuple[str, str]] = []
    wanted: list[Entry] = []
    for place, zone in enumerate(sites):
        moment = datetime(day.year, day.month, day.day, first + 6 * place, 30)  # noqa: DTZ001  # UTC
        told.append((zone, moment.strftime("%H:%M")))
        wanted.append((*there(moment, zone), zone, "Watch"))
    return day.isoformat(), told, wanted


async def plan_watch(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for the local beginnings of a watch around the world."""
    day, told, wanted = shifts(seed)
    await server.shell.write(FILE, "[]")
    lines = [f"- {time} UTC: {zone}" for zone, time in told]
    yield (
        f"On {day} in UTC, four sites keep watch one after the other:\n" + "\n".join(lines) + "\n"
        "Add an entry 'Watch' for each site, with the day and the time at which its watch begins "
        "at that site, and the site's time zone."
    )
    yield await ended(server, wanted)


async def solve_watch(agent: Agent, seed: int = 0) -> str:
    """Convert each time, and note it."""
    _, told, wanted = shifts(seed)
    for (zone, time), entry in zip(told, wanted, strict=True):
        await agent.call("convert_time", source_timezone="UTC", time=time, target_timezone=zone)
        await book(agent, entry)
    return "done"


def declare() -> Environment:
    """Declare the environment, its templates and the calendar's tool."""
    world = ToolServer([SERVER, "--local-timezone=UTC"])
    env = Environment("servers-time", version="0.1.0", world=world)
    env.tool()(add_entry)
    for template, oracle in (
        (book_meeting, solve_meeting),
        (note_arrivals, solve_arrivals),
        (plan_watch, solve_watch),
    ):
        env.template()(template).oracle(oracle)
    return env

"""What a guest does on the booking site's pages, and reads there, for the oracles."""

import re
from datetime import date
from typing import Any

from web_booking_draws import Search
from web_steps import check, choose, fill, follow, heading, press_button, see

from hud_mcp import Agent

__all__ = [
    "ask_for_stay",
    "check_out",
    "day_words",
    "find_place",
    "gather",
    "narrow",
    "place_names",
    "read_rooms",
    "reserve",
    "search",
]

_MOST_SCROLLS = 10
_PLACE = re.compile(r"link \"([^\"]+)\" \[\w+ /booking/place/")
_ROOM = re.compile(r"^ *- (?:### )?([A-Z][\w -]*)(?: · |$)", re.MULTILINE)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day_words(day: date) -> str:
    """A day as a guest writes it, such as "4 Jun 2027"."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


async def gather(agent: Agent, *, until: str | None = None, top: bool = True) -> str:
    """Everything that the page says, read by scrolling down to its end.

    Args:
        agent: Who reads.
        until: Words after which nothing more is needed.
        top: Whether to begin at the page's top.
    """
    if not agent.text:
        await agent.look()
    if top and not re.search(r"Scrolled: 0 of", agent.text) and "Scrolled: " in agent.text:
        await agent.step({"type": "scroll", "scroll_y": -9000})
    texts = [agent.text]
    for _ in range(_MOST_SCROLLS):
        place = re.search(r"Scrolled: (\d+) of (\d+) px", agent.text)
        if not place or place[1] == place[2] or (until and until in agent.text):
            break
        await agent.step({"type": "scroll", "scroll_y": 650})
        texts.append(agent.text)
    return "\n".join(texts)


def place_names(text: str) -> list[str]:
    """The names of the places in a list, in order, each once."""
    return list(dict.fromkeys(_PLACE.findall(text)))


async def search(
    agent: Agent, town: str, stay: tuple[date, date] | None = None, party: tuple[int, int] = (2, 0)
) -> None:
    """Search for places in a town, for days and people where they are given."""
    await choose(agent, "Where", town)
    if stay:
        await fill(agent, **_stay_fields(stay, party))
    await press_button(agent, "Search")
    await see(agent, "Loading", gone=True)


def _stay_fields(stay: tuple[date, date], party: tuple[int, int]) -> dict[str, str]:
    start, end = stay
    return {
        "Check-in": day_words(start),
        "Check-out": day_words(end),
        "Adults": str(party[0]),
        "Children": str(party[1]),
    }


async def narrow(agent: Agent, asked: Search) -> None:
    """Set the filters beside the list, one after the other."""
    if asked.kind:
        await _filter(agent, "Kind", asked.kind)
    if asked.stars:
        await _filter(agent, "Stars", f"{asked.stars} or more")
    if asked.rating:
        await _filter(agent, "Guests' rating", f"{asked.rating:.1f} or more")
    if asked.near:
        far = {1000: "1 km", 1500: "1.5 km", 2000: "2 km"}[asked.near]
        await _filter(agent, "Distance from the centre", f"up to {far}")
    for box in (*asked.facilities, *(["Free cancellation"] if asked.free else [])):
        await check(agent, box)
        await see(agent, "Loading", gone=True)


async def _filter(agent: Agent, label: str, option: str) -> None:
    await choose(agent, label, option)
    await see(agent, "Loading", gone=True)


async def find_place(agent: Agent, name: str) -> None:
    """Search for a place by its name, and open its page."""
    await agent.type(name, 'internal:label="Name of the place"s', enter=True)
    await see(agent, "1 place")
    await follow(agent, name)
    await see(agent, heading("Rooms and prices"))


async def ask_for_stay(agent: Agent, stay: tuple[date, date], party: tuple[int, int]) -> None:
    """Ask on a place's page which rooms are free, and what they cost."""
    await fill(agent, **_stay_fields(stay, party))
    await press_button(agent, "Show prices")
    await see(agent, f"{day_words(stay[0])} to ")


async def read_rooms(agent: Agent) -> dict[str, dict[str, Any]]:
    """By name, each kind of room on a place's page: who sleeps there, what is free, the total."""
    text = await gather(agent, until="## Prices by night", top=False)
    of_rooms = text.partition("## Rooms and prices")[2].partition("## Prices by night")[0]
    parts = _ROOM.split(of_rooms)
    rooms: dict[str, dict[str, Any]] = {}
    for name, own in zip(parts[1::2], parts[2::2], strict=True):
        total = re.search(r"Total for one room: €([\d,.]+)", own)
        sleeps = re.search(r"sleeps up to (\d+)", own)
        known = rooms.setdefault(name, {"sleeps": 0, "free": [], "total": None})
        known["sleeps"] = int(sleeps[1]) if sleeps else known["sleeps"]
        known["total"] = float(total[1].replace(",", "")) if total else known["total"]
        units = {int(unit) for unit in re.findall(r"no\. (\d+)\"", own)}
        known["free"] = sorted(units | set(known["free"]))
    return rooms


async def reserve(agent: Agent, room: str, units: list[int]) -> None:
    """Choose rooms of a kind by their numbers, and go on to the checkout."""
    for unit in units:
        await check(agent, f"{room} no. {unit}")
    await press_button(agent, f"Reserve {room}")
    await see(agent, 'button "Book now"')


async def check_out(
    agent: Agent,
    mains: dict[int, str],
    contact: dict[str, str],
    arrival: str,
    *,
    request: str = "",
    voucher: str = "",
) -> tuple[str, str]:
    """Fill in the checkout and book; returns the booking's number and its total."""
    fields = {f"Main guest of room {unit}": name for unit, name in mains.items()}
    fields |= {
        "Full name": contact["name"],
        "E-mail": contact["email"],
        "Telephone": contact["phone"],
    }
    if request:
        fields["Request to the house (optional)"] = request
    await fill(agent, **fields)
    await choose(agent, "Time of arrival", arrival)
    if voucher:
        await fill(agent, Voucher_code=voucher)
        await press_button(agent, "Apply")
        await see(agent, f"{voucher} is used")
    await check(agent, "I accept the rules of the house")
    await press_button(agent, "Book now")
    await see(agent, "Your booking is confirmed")
    number = re.search(r"confirmed: (RS-\d{5})", agent.text)
    total = re.search(r"\bTotal: €([\d,.]+)", agent.text)
    return (number[1] if number else "", total[1] if total else "")

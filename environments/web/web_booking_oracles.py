"""How the booking site's tasks are solved: the steps of somebody who travels."""

import re
from datetime import date, datetime, timedelta

import web_booking_draws as draws
import web_booking_trips as trips
from web_booking_state import catalogue_of, new_booking_site
from web_booking_steps import (
    ask_for_stay,
    check_out,
    day_words,
    find_place,
    gather,
    narrow,
    place_names,
    read_rooms,
    reserve,
    search,
)
from web_steps import check, choose, fill, follow, heading, pick, press_button, see

from hud_mcp import Agent

__all__ = [
    "book_best",
    "book_families",
    "book_with_voucher",
    "cancel",
    "cheapest",
    "count",
    "day_words",
    "deadlines",
    "favourites",
    "guest",
    "move",
    "reviews",
    "total",
    "weekend",
]

_WEEK = timedelta(days=7)
_REVIEW = re.compile(r"(\d+) of 10 (· .+? · \w{3} \d+ \w{3} \d{4})(?: · |\n *)(?!…)([^\n]+)")


async def total(agent: Agent, seed: int, nights: int) -> str:
    """Open the place, ask for the stay, and read the total of the room."""
    stay = draws.draw_stay(seed, nights)
    await find_place(agent, stay.place["name"])
    await ask_for_stay(agent, (stay.start, stay.end), (stay.adults, stay.children))
    rooms = await read_rooms(agent)
    return f"{rooms[stay.room['name']]['total']:.2f}"


async def cheapest(agent: Agent, seed: int, nights: int) -> str:
    """Search, filter, and open every place to compare the totals."""
    case = draws.draw_cheapest(seed, nights)
    party = (case.adults, case.children)
    await search(agent, case.search.town, (case.start, case.end), party)
    await narrow(agent, case.search)
    found: dict[str, float] = {}
    for name in place_names(await gather(agent)):
        await follow(agent, name)
        await see(agent, f"{day_words(case.start)} to ")
        rooms = await read_rooms(agent)
        found[name] = min(
            r["total"] for r in rooms.values() if r["total"] and r["sleeps"] >= sum(party)
        )
        await agent.custom("back")
        await see(agent, "Sort by")
        await see(agent, "Loading", gone=True)
    return min(found, key=lambda name: found[name])


async def count(agent: Agent, seed: int, filters: int) -> str:
    """Set the filters, and read how many places there are."""
    await narrow(agent, draws.draw_count(seed, filters).search)
    found = re.search(r"status: (\d+) place", await gather(agent, until="Sort by"))
    return found[1] if found else ""


async def reviews(agent: Agent, seed: int, ask: str) -> str:
    """Read all pages of reviews: of a kind of travellers, or for a complaint."""
    if ask == "mean":
        place, kind, _ = draws.draw_review_mean(seed)
        await find_place(agent, place["name"])
        await choose(agent, "Written by", kind)
        found = await _read_reviews(agent)
        scores = [score for score, head, _ in found if f"· {kind} ·" in head]
        return f"{sum(scores) / len(scores):.1f}"
    place, trouble, _ = draws.draw_review_trouble(seed)
    await find_place(agent, place["name"])
    return str(sum(trouble in text for _, _, text in await _read_reviews(agent)))


async def _read_reviews(agent: Agent) -> list[tuple[int, str, str]]:
    """The score, the head and the text of each review, over all pages."""
    found: dict[str, tuple[int, str, str]] = {}
    await see(agent, "Loading", gone=True)
    while True:
        text = await gather(agent, top=False)
        for score, head, said in _REVIEW.findall(text):
            found[head] = (int(score), head, said)
        page = re.search(r"reviews?, page (\d+) of (\d+)", text)
        if not page or page[1] == page[2]:
            return list(found.values())
        await agent.click('role=navigation[name="Pages of reviews"] >> role=button[name="Next"]')
        await see(agent, f"page {int(page[1]) + 1} of")


async def weekend(agent: Agent, seed: int) -> str:
    """Ask for one weekend after the other, until the room is free."""
    case = draws.draw_weekend(seed)
    await find_place(agent, case.place["name"])
    friday = case.month + timedelta(days=(4 - case.month.weekday()) % 7)
    while True:
        await ask_for_stay(agent, (friday, friday + timedelta(days=2)), (1, 0))
        if (await read_rooms(agent))[case.room["name"]]["free"]:
            return day_words(friday)
        friday += _WEEK


def _day(text: str) -> date:
    return datetime.strptime(text, "%d %b %Y").date()  # noqa: DTZ007  # a day has no zone


async def _coming(agent: Agent) -> list[tuple[str, str, date, int | None]]:
    """Of each booking to come: the place, its number, check-in, and days for free cancellation."""
    text = await gather(agent)
    today = _day(re.search(r"Today is \w{3} (\d+ \w{3} \d{4})", text)[1])
    rows: dict[str, tuple[str, str, date, int | None]] = {}
    for part in re.split(r"^ *- ### ", text, flags=re.MULTILINE)[1:]:
        name = re.search(r"link \"([^\"]+)\"", part)
        start = re.search(r"\w{3} (\d+ \w{3} \d{4}) to ", part)
        number = re.search(r"RS-\d{5}", part)
        if not name or not start or not number or _day(start[1]) <= today:
            continue
        days = re.search(r"18:00, (\d+) days? before", part)
        first = _day(start[1])
        rows[number[0]] = (name[1], number[0], first, int(days[1]) if days else None)
    return list(rows.values())


async def deadlines(agent: Agent, seed: int) -> str:
    """Work out the last free day of each booking, and take the first that is not over."""
    today = catalogue_of(new_booking_site(seed)).today
    last = [
        (start - timedelta(days=days), number)
        for _, number, start, days in await _coming(agent)
        if days is not None
    ]
    day, number = min(each for each in last if each[0] >= today)
    return f"{number}, {day_words(day)}"


async def cancel(agent: Agent, seed: int) -> str:
    """Open one booking after the other, until one says that it is free of charge."""
    del seed
    for name, number, _, _ in await _coming(agent):
        await _open_trip(agent, name)
        await press_button(agent, "Cancel the booking")
        await see(agent, "Keep the booking")
        if "To cancel it today is free of charge." in agent.text:
            await press_button(agent, "Cancel this booking")
            await see(agent, "This booking is cancelled")
            return number
        await press_button(agent, "Keep the booking")
        await follow(agent, "My bookings")
        await see(agent, heading("To come"))
    raise LookupError("every booking costs something to cancel")


async def _open_trip(agent: Agent, place: str) -> None:
    await follow(agent, place)
    await see(agent, 'button "Cancel the booking"')


async def guest(agent: Agent, seed: int, kind: str) -> str:
    """Add the guest, and read the total."""
    site, booking, person = trips.draw_guest(seed)
    await _open_trip(agent, catalogue_of(site).places[booking["place"]]["name"])
    await press_button(agent, "Add a guest")
    await fill(agent, Full_name_of_the_guest=person["name"])
    await pick(agent, kind.capitalize())
    await press_button(agent, "Add this guest")
    await see(agent, "The guest is added.")
    return re.findall(r"\bTotal: €([\d,.]+)", agent.text)[0]


async def move(agent: Agent, seed: int, sold_out: int) -> str:
    """Try the days a week later, and then each day after, until a room is free."""
    case = trips.draw_move(seed, sold_out)
    start, end = (date.fromisoformat(case.booking[name]) for name in ("from", "to"))
    await _open_trip(agent, catalogue_of(case.site).places[case.booking["place"]]["name"])
    await press_button(agent, "Change the days")
    later = start + _WEEK
    while True:
        days = {"New check-in": day_words(later), "New check-out": day_words(later + (end - start))}
        await fill(agent, **days)
        await press_button(agent, "Check")
        await see(agent, "Please wait", gone=True)
        if "New total" in agent.text:
            break
        later += timedelta(days=1)
    await press_button(agent, "Save the new days")
    await see(agent, "The new days are saved.")
    return re.findall(r"\bTotal: €([\d,.]+)", agent.text)[0]


async def favourites(agent: Agent, seed: int) -> str:
    """Search and filter; save the first place to a new list, and the others to it."""
    case = trips.draw_favourites(seed)
    await search(agent, case.search.town)
    await narrow(agent, case.search)
    for at, name in enumerate(place_names(await gather(agent))):
        await agent.click(f"role=button[name=/^Saved?: {re.escape(name)}$/]")
        await see(agent, 'button "Create and save"')
        if at:
            await check(agent, case.name)
        else:
            await fill(agent, New_list=case.name)
            await press_button(agent, "Create and save")
        await see(agent, f"saved to “{case.name}”")
        await press_button(agent, "Done")
    return "done"


async def book_with_voucher(agent: Agent, seed: int, nights: int) -> str:
    """Read the vouchers, choose the best that holds, and book with it."""
    stay = trips.draw_voucher_stay(seed, nights)
    await follow(agent, "Vouchers")
    await see(agent, "off the nights")
    kind = stay.place["kind"]
    able: list[tuple[int, str]] = []
    for part in re.split(r"^ *- (?:#+ )?(?=[A-Z]+\d)", agent.text, flags=re.MULTILINE)[1:]:
        code = re.match(r"\w+", part)[0]
        least = re.search(r"from (\d+) nights", part)
        only = re.search(r"of the kind “([^”]+)”", part)
        if "Ended on" in part or (least and int(least[1]) > nights) or (only and only[1] != kind):
            continue
        able.append((int(re.search(r"(\d+) % off", part)[1]), code))
    await follow(agent, "Stays")
    await see(agent, "Sort by")
    await find_place(agent, stay.place["name"])
    await ask_for_stay(agent, (stay.start, stay.end), (stay.adults, stay.children))
    unit = (await read_rooms(agent))[stay.room["name"]]["free"][0]
    await reserve(agent, stay.room["name"], [unit])
    user = new_booking_site(seed)["user"]
    _, paid = await check_out(
        agent, {unit: user["name"]}, user, "17:00 to 19:00", voucher=max(able)[1]
    )
    return paid


async def book_best(agent: Agent, seed: int) -> str:
    """Search, filter, sort by rating, and book the cheapest fitting room of the first."""
    case = trips.draw_best(seed)
    stay = case.stay
    party = (stay.adults, stay.children)
    await search(agent, case.search.town, (stay.start, stay.end), party)
    await narrow(agent, case.search)
    await choose(agent, "Sort by", "Guests' rating")
    await see(agent, "Loading", gone=True)
    await follow(agent, place_names(await gather(agent, until="/booking/place/"))[0])
    await see(agent, f"{day_words(stay.start)} to ")
    rooms = await read_rooms(agent)
    able = {n: r for n, r in rooms.items() if r["total"] and r["sleeps"] >= sum(party)}
    name = min(able, key=lambda each: able[each]["total"])
    unit = able[name]["free"][0]
    await reserve(agent, name, [unit])
    mains = {unit: case.contact["name"]}
    number, _ = await check_out(agent, mains, case.contact, case.arrival, request=case.request)
    return number


async def book_families(agent: Agent, seed: int) -> str:
    """Find two free rooms whose numbers follow one another, and book both."""
    case = trips.draw_families(seed)
    stay = case.stay
    await find_place(agent, stay.place["name"])
    await ask_for_stay(agent, (stay.start, stay.end), (stay.adults, stay.children))
    free = (await read_rooms(agent))["Family room"]["free"]
    first = next(unit for unit in free if unit + 1 in free)
    await reserve(agent, "Family room", [first, first + 1])
    mains = {first: case.contact["name"], first + 1: case.other}
    number, _ = await check_out(agent, mains, case.contact, case.arrival)
    return number

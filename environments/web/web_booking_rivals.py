"""A booking of rooms that sell out, or become dearer, while one fills in the form."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Any, Literal

import web_booking_grading as grading
from pydantic import Field
from web_booking_data import Catalogue, key_of, room_of
from web_booking_draws import Stay, draw_stay, party_text
from web_booking_prices import free_units, money_text, quote
from web_booking_state import catalogue_of, new_booking_site
from web_booking_steps import ask_for_stay, check_out, day_words, find_place, read_rooms, reserve
from web_steps import follow, see

from hud_mcp import Agent, Before, BrowserWorld, Environment, Grade

__all__ = ["ARRIVAL", "booking_rival", "case_of", "declare", "show_stay"]

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="From which all content is drawn.")]
Change = Annotated[
    Literal["sold_out", "dearer"], Field(description="The change to the rooms while one books.")
]
ARRIVAL = "17:00 to 19:00"
RISE = 40
"""The rise of the price of nights, in per cent."""


def _other(catalogue: Catalogue, site: dict[str, Any], stay: Stay) -> dict[str, Any] | None:
    """Another kind of room of the place that is free and large enough."""
    people = stay.adults + stay.children
    able = [
        room
        for room in stay.place["rooms"]
        if room["id"] != stay.room["id"]
        and room["sleeps"] >= people
        and free_units(catalogue, site, room, stay.start, stay.end)
    ]
    return min(able, key=lambda room: room["base"]) if able else None


def _total(site: dict[str, Any], stay: Stay) -> int:
    """The total of the stay at a site, in cents."""
    catalogue = catalogue_of(site)
    place = catalogue.places[stay.place["id"]]
    room = room_of(place, stay.room["id"]) or stay.room
    return quote(catalogue, place, room, stay.start, stay.end, adults=stay.adults)["total"]


def _most(site: dict[str, Any], stay: Stay) -> int:
    """The most that the stay may cost, in cents: what it costs at first, in tens of euros."""
    return -(-_total(site, stay) // 1000) * 1000


def case_of(seed: int, change: str) -> tuple[Stay, dict[str, Any]]:
    """A stay, and the kind of room to take where the first one is sold out, or too dear."""
    site = new_booking_site(seed)

    def fits(catalogue: Catalogue, stay: Stay) -> bool:
        changed = {**site, "dearer": {stay.room["id"]: RISE}}
        is_plain = change == "sold_out" or _total(changed, stay) > _most(site, stay)
        return is_plain and _other(catalogue, site, stay) is not None

    stay = draw_stay(seed, 3, purpose="rival", fits=fits)
    other = _other(catalogue_of(site), site, stay)
    if other is None:
        raise AssertionError
    return stay, other


async def booking_rival(
    browser: BrowserWorld, seed: Seed = 0, change: Change = "sold_out"
) -> AsyncGenerator[str | Grade, str]:
    """Ask for a kind of room that changes once the form is open, or else for another kind."""
    stay, other = case_of(seed, change)
    site = new_booking_site(seed)
    known = {b["id"] for b in site["bookings"]}
    contact = site["user"]
    browser.state["booking"] = site
    await browser.goto("/booking/")
    await browser.page.locator("#places .card").first.wait_for(timeout=30_000)
    before = Before(browser.state, allowed=["booking.compare", "booking.closed", "booking.dearer"])
    limit = "is sold out"
    if change == "dearer":
        limit = f"costs more than {money_text(_most(site, stay))} in all"
    answer: str = yield (
        f"Book one {stay.room['name'].lower()} at {stay.place['name']} on Roost from "
        f"{day_words(stay.start)} to {day_words(stay.end)}, for "
        f"{party_text(stay.adults, stay.children)}; any number of that kind will do. If it {limit} "
        f"when you book, take one {other['name'].lower()} there instead. The main guest and "
        f"contact is {contact['name']}, {contact['email']}, telephone {contact['phone']}. Arrival "
        f"is {ARRIVAL}. There is no request to the house, and no voucher. Answer with the "
        "booking's number."
    )
    is_changed = any(browser.state["booking"].get(name) for name in ("closed", "dearer"))
    wanted = replace(stay, room=other) if is_changed else stay
    form = {"mains": [contact["name"]], "contact": contact, "arrival": ARRIVAL, "request": ""}
    yield grading.grade_booking(
        browser.state["booking"], before, known, wanted, form=form,
        answered=lambda booking: grading.names_only(answer, booking["id"]),
    )  # fmt: skip


def is_at_the_form(browser: BrowserWorld, seed: int, change: str) -> bool:
    """Whether the checkout of the first kind of room is open."""
    stay, _ = case_of(seed, change)
    url = browser.page.url
    return "/booking/checkout/" in url and f"room={stay.room['id']}&" in f"{url}&"


def rooms_change(browser: BrowserWorld, seed: int, change: str) -> None:
    """Make that kind of room dearer, or have other guests take all for the last night."""
    stay, _ = case_of(seed, change)
    if change == "dearer":
        browser.state["booking"]["dearer"] = {stay.room["id"]: RISE}
        return
    night = stay.end.fromordinal(stay.end.toordinal() - 1).isoformat()
    closed = {key_of(stay.room, unit): [night] for unit in stay.room["units"]}
    browser.state["booking"]["closed"] = closed


async def book_what_is_right(agent: Agent, seed: int, change: str) -> str:
    """Reserve, look again, and take the other kind where the first is gone, or too dear."""
    stay, other = case_of(seed, change)
    most = _most(new_booking_site(seed), stay) / 100
    for room in (stay.room["name"], other["name"]):
        await show_stay(agent, stay)
        unit = (await read_rooms(agent))[room]["free"][0]
        await reserve(agent, room, [unit])
        await show_stay(agent, stay)
        seen = (await read_rooms(agent))[room]
        if unit in seen["free"] and (change == "sold_out" or seen["total"] <= most):
            break
    await reserve(agent, room, [unit])
    user = new_booking_site(seed)["user"]
    number, _ = await check_out(agent, {unit: user["name"]}, user, ARRIVAL)
    return number


async def show_stay(agent: Agent, stay: Stay) -> None:
    """Show what is free at the place."""
    await follow(agent, "Stays")
    await see(agent, "Sort by")
    await find_place(agent, stay.place["name"])
    await ask_for_stay(agent, (stay.start, stay.end), (stay.adults, stay.children))


def declare(env: Environment) -> None:
    """Declare the template, what happens in it, and its solution."""
    rival = env.template(description="Book rooms that change meanwhile")(booking_rival)
    rival.oracle(book_what_is_right)
    rival.when(is_at_the_form)(rooms_change)

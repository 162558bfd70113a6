"""A booking of rooms that another guest takes while one fills in the form."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Any

import web_booking_grading as grading
from pydantic import Field
from web_booking_data import Catalogue, key_of
from web_booking_draws import Stay, draw_stay, party_text
from web_booking_prices import free_units
from web_booking_state import catalogue_of, new_booking_site
from web_booking_steps import ask_for_stay, check_out, day_words, find_place, read_rooms, reserve
from web_steps import follow, see

from hud_mcp import Agent, Before, BrowserWorld, Environment, Grade

__all__ = ["booking_rival", "declare"]

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="From which all content is drawn.")]
ARRIVAL = "17:00 to 19:00"


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


def _case(seed: int) -> tuple[Stay, dict[str, Any]]:
    """A stay, and the kind of room that is to be taken where the first one is sold out."""
    site = new_booking_site(seed)

    def fits(catalogue: Catalogue, stay: Stay) -> bool:
        return _other(catalogue, site, stay) is not None

    stay = draw_stay(seed, 3, purpose="rival", fits=fits)
    other = _other(catalogue_of(site), site, stay)
    if other is None:
        raise AssertionError
    return stay, other


async def booking_rival(browser: BrowserWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade, str]:
    """Ask for a kind of room that is sold out once the form is open, or else for another kind."""
    stay, other = _case(seed)
    site = new_booking_site(seed)
    known = {b["id"] for b in site["bookings"]}
    contact = site["user"]
    browser.state["booking"] = site
    await browser.goto("/booking/")
    await browser.page.locator("#places .card").first.wait_for(timeout=30_000)
    before = Before(browser.state, allowed=["booking.compare", "booking.closed"])
    answer: str = yield (
        f"Book one {stay.room['name'].lower()} at {stay.place['name']} on Roost from "
        f"{day_words(stay.start)} to {day_words(stay.end)}, for "
        f"{party_text(stay.adults, stay.children)}; any number of that kind will do. If it is sold "
        f"out when you book, take one {other['name'].lower()} there instead. The main guest and "
        f"contact is {contact['name']}, {contact['email']}, telephone {contact['phone']}. Arrival "
        f"is {ARRIVAL}. There is no request to the house, and no voucher. Answer with the "
        "booking's number."
    )
    sold_out = bool(browser.state["booking"]["closed"])
    wanted = replace(stay, room=other) if sold_out else stay
    form = {"mains": [contact["name"]], "contact": contact, "arrival": ARRIVAL, "request": ""}
    yield grading.grade_booking(
        browser.state["booking"], before, known, wanted, form=form,
        answered=lambda booking: grading.names_only(answer, booking["id"]),
    )  # fmt: skip


def is_at_the_form(browser: BrowserWorld, seed: int) -> bool:
    """Whether the checkout of the first kind of room is open."""
    stay, _ = _case(seed)
    url = browser.page.url
    return "/booking/checkout/" in url and f"room={stay.room['id']}&" in f"{url}&"


def rooms_sell_out(browser: BrowserWorld, seed: int) -> None:
    """Have other guests take every room of that kind for the last night."""
    stay, _ = _case(seed)
    night = stay.end.fromordinal(stay.end.toordinal() - 1).isoformat()
    closed = {key_of(stay.room, unit): [night] for unit in stay.room["units"]}
    browser.state["booking"]["closed"] = closed


async def book_what_is_free(agent: Agent, seed: int) -> str:
    """Reserve, look again before booking, and take the other kind where the first is gone."""
    stay, other = _case(seed)
    for room in (stay.room["name"], other["name"]):
        await _show(agent, stay)
        unit = (await read_rooms(agent))[room]["free"][0]
        await reserve(agent, room, [unit])
        await _show(agent, stay)
        if unit in (await read_rooms(agent))[room]["free"]:
            break
    await reserve(agent, room, [unit])
    user = new_booking_site(seed)["user"]
    number, _ = await check_out(agent, {unit: user["name"]}, user, ARRIVAL)
    return number


async def _show(agent: Agent, stay: Stay) -> None:
    """Show what is free at the place."""
    await follow(agent, "Stays")
    await see(agent, "Sort by")
    await find_place(agent, stay.place["name"])
    await ask_for_stay(agent, (stay.start, stay.end), (stay.adults, stay.children))


def declare(env: Environment) -> None:
    """Declare the template, what happens in it, and its solution."""
    rival = env.template(description="Book rooms that sell out meanwhile")(booking_rival)
    rival.oracle(book_what_is_free)
    rival.when(is_at_the_form)(rooms_sell_out)

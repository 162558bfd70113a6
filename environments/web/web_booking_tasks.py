"""The booking site's templates: what is asked, and how it is graded."""

from collections.abc import AsyncGenerator
from typing import Annotated, Literal

import web_booking_draws as draws
import web_booking_grading as grading
import web_booking_oracles as oracles
import web_booking_trips as trips
from pydantic import Field
from web_booking_prices import quote
from web_booking_state import catalogue_of, new_booking_site

from hud_mcp import (
    Before,
    BrowserWorld,
    Environment,
    Grade,
    exact_match,
    grade_checks,
    numeric_match,
)

__all__ = ["declare"]

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="From which all content is drawn.")]
Nights = Annotated[int, Field(ge=1, le=14)]
NOTHING = "Book nothing and change nothing."
_KINDS = {"Hotel": "hotels", "Guest house": "guest houses", "Cabin": "cabins", "": "places"}
_CENT = 0.004

Asked = AsyncGenerator[str | Grade, str]


async def _open(
    browser: BrowserWorld, site: grading.Site, path: str = "", shows: str = ""
) -> Before:
    """Open a page of the site in a state, and wait until it is ready."""
    browser.state["booking"] = site
    await browser.goto(f"/booking/{path}")
    await browser.page.locator(shows or "#places .card").first.wait_for(timeout=30_000)
    return Before(browser.state, allowed=["booking.compare"])


def _is_sum(answer: str, cents: int) -> bool:
    return numeric_match(answer, cents / 100, tolerance=_CENT) == 1


def _span(stay: draws.Stay) -> str:
    return f"from {oracles.day_words(stay.start)} to {oracles.day_words(stay.end)}"


async def booking_total(browser: BrowserWorld, seed: Seed = 0, nights: Nights = 3) -> Asked:
    """Ask what a stay costs in all."""
    stay = draws.draw_stay(seed, nights)
    before = await _open(browser, new_booking_site(seed))
    answer: str = yield (
        f"On Roost, what does a stay at {stay.place['name']} {_span(stay)} cost in all, for "
        f"{draws.party_text(stay.adults, stay.children)} in one {stay.room['name'].lower()}? All "
        f"fees, taxes and discounts count, but no voucher. Answer with the sum in euros. {NOTHING}"
    )
    catalogue = catalogue_of(browser.state["booking"])
    price = quote(catalogue, stay.place, stay.room, stay.start, stay.end, adults=stay.adults)
    yield grade_checks({"sum": _is_sum(answer, price["total"])}, before.changes())


async def booking_cheapest(browser: BrowserWorld, seed: Seed = 0, nights: Nights = 3) -> Asked:
    """Ask which place is the cheapest in all, where another has the lowest price of a night."""
    case = draws.draw_cheapest(seed, nights)
    before = await _open(browser, new_booking_site(seed))
    town = catalogue_of(browser.state["booking"]).towns[case.search.town]["name"]
    answer: str = yield (
        f"We are {draws.party_text(case.adults, case.children)} and need one room on Roost in "
        f"{town}, from {oracles.day_words(case.start)} to {oracles.day_words(case.end)}. Of the "
        f"places there that {case.search.words()}, which costs least in all, with cleaning fee, "
        "city tax and discounts, in its cheapest room for us, and without a voucher? Answer with "
        f"the name of the place alone. {NOTHING}"
    )
    right = exact_match(answer, case.best["name"]) == 1
    yield grade_checks({"name": right}, before.changes())


async def booking_count(
    browser: BrowserWorld, seed: Seed = 0, filters: Literal[2, 3, 4] = 2
) -> Asked:
    """Ask how many places pass some filters."""
    case = draws.draw_count(seed, filters)
    before = await _open(browser, new_booking_site(seed))
    answer: str = yield (
        f"How many {_KINDS[case.search.kind]} on Roost, in all towns together, "
        f"{case.search.words()}? Answer with the number alone. {NOTHING}"
    )
    right = numeric_match(answer, case.number) == 1
    yield grade_checks({"number": right}, before.changes())


async def booking_reviews(
    browser: BrowserWorld, seed: Seed = 0, ask: Literal["mean", "trouble"] = "mean"
) -> Asked:
    """Ask about what guests wrote of a place."""
    if ask == "mean":
        place, kind, number = draws.draw_review_mean(seed)
        question = (
            f"What is the mean of the scores that reviewers of the kind “{kind}” gave to "
            f"{place['name']} on Roost? Answer with the number, rounded to one decimal."
        )
    else:
        place, trouble, number = draws.draw_review_trouble(seed)
        question = (
            f"How many reviews of {place['name']} on Roost say “{trouble}”? "
            "Answer with the number alone."
        )
    before = await _open(browser, new_booking_site(seed))
    answer: str = yield f"{question} {NOTHING}"
    right = numeric_match(answer, round(number, 1), tolerance=_CENT) == 1
    yield grade_checks({"number": right}, before.changes())


async def booking_weekend(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask for the first free weekend of a month."""
    case = draws.draw_weekend(seed)
    before = await _open(browser, new_booking_site(seed))
    answer: str = yield (
        f"On Roost, which is the first weekend that begins in {case.month:%B %Y} on which one "
        f"and the same {case.room['name'].lower()} of {case.place['name']} is free for two "
        "nights, from Friday to Sunday? Answer with the date of that Friday, day, month and "
        f"year. {NOTHING}"
    )
    yield grade_checks({"day": grading.names_day(answer, case.friday)}, before.changes())


async def booking_deadline(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask which booking's free cancellation ends first."""
    site, booking, day = trips.draw_deadlines(seed)
    before = await _open(browser, site, "trips/", "#trips .card")
    answer: str = yield (
        "Of my bookings to come on Roost, some can still be cancelled free of charge today. Of "
        "these, for which one does free cancellation end first, and which is its last day? "
        "Answer with the booking's number and the date of that day, such as 'RS-01234, "
        f"2 Jan 2026'. {NOTHING}"
    )
    number = grading.names_only(answer, booking["id"])
    right = {"number and day": number and grading.names_day(answer, day)}
    yield grade_checks(right, before.changes())


async def booking_favourites(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask for a new list with all places that pass some filters."""
    case = trips.draw_favourites(seed)
    before = await _open(browser, new_booking_site(seed))
    town = catalogue_of(browser.state["booking"]).towns[case.search.town]["name"]
    yield (
        f"Among my favourites on Roost, make a new list called “{case.name}”. Save to it all "
        f"places in {town} that {case.search.words()}, and no others. Leave my other list as it "
        "is. Answer 'done'."
    )
    yield grading.grade_favourites(browser.state["booking"], before, case.name, case.places)


async def booking_guest(
    browser: BrowserWorld, seed: Seed = 0, kind: Literal["adult", "child"] = "adult"
) -> Asked:
    """Ask to add a guest to a booking, and for its price then."""
    site, booking, person = trips.draw_guest(seed)
    before = await _open(browser, site, "trips/", "#trips .card")
    catalogue = catalogue_of(site)
    place = catalogue.places[booking["place"]]
    more = catalogue.town_of(place)["tax"] * booking["price"]["count"] if kind == "adult" else 0
    total = booking["price"]["total"] + more
    answer: str = yield (
        f"{person['name']} comes along to {place['name']}: add this guest, as {_one(kind)}, to "
        "my booking there on Roost. What is the total of the booking then? Answer with the sum "
        "in euros, and change nothing else."
    )
    yield grading.grade_guest(
        browser.state["booking"],
        before,
        booking["id"],
        (person["name"], kind),
        right=_is_sum(answer, total),
    )


def _one(kind: str) -> str:
    return "an adult" if kind == "adult" else "a child"


async def booking_cancel(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask to cancel the one booking that is free to cancel."""
    site, booking = trips.draw_cancel(seed)
    before = await _open(browser, site, "trips/", "#trips .card")
    answer: str = yield (
        "I have to give up one of my trips, and I do not want to pay for that. Only one of my "
        "bookings to come on Roost can be cancelled free of charge today. Cancel that one, keep "
        "the others, and answer with its booking number."
    )
    yield grading.grade_cancelled(browser.state["booking"], before, booking["id"], answer)


async def booking_move(
    browser: BrowserWorld, seed: Seed = 0, sold_out: Annotated[int, Field(ge=0, le=2)] = 1
) -> Asked:
    """Ask to move a booking by a week, where a night of those days is sold out."""
    case = trips.draw_move(seed, sold_out)
    before = await _open(browser, case.site, "trips/", "#trips .card")
    place = catalogue_of(case.site).places[case.booking["place"]]
    answer: str = yield (
        f"Move my booking at {place['name']} on Roost: check in exactly one week later, and stay "
        "as many nights as now. If that is sold out, check in on the first later day on which "
        "as many nights are free. Save the new days, and answer with the booking's new total in "
        "euros. Make no new booking, and cancel none."
    )
    yield grading.grade_moved(
        browser.state["booking"],
        before,
        case.booking["id"],
        (case.start, case.end),
        right=_is_sum(answer, case.total),
    )


async def booking_best(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask to book the best rated place that has a room free."""
    case = trips.draw_best(seed)
    site = new_booking_site(seed)
    known = {b["id"] for b in site["bookings"]}
    before = await _open(browser, site)
    stay, catalogue = case.stay, catalogue_of(site)
    town = catalogue.towns[case.search.town]["name"]
    answer: str = yield (
        f"Book a stay on Roost in {town} {_span(stay)} for "
        f"{draws.party_text(stay.adults, stay.children)} in one room. Of the places that "
        f"{case.search.words()} and have such a room free, take the one with the highest rating "
        "by guests. There, take the kind of room that costs least in all, any number of it. "
        f"{_checkout_words(case.contact, case.arrival)} The request to the house is: "
        f"“{case.request}”. Use no voucher. Answer with the booking's number."
    )
    form = {
        "mains": [case.contact["name"]],
        "contact": case.contact,
        "arrival": case.arrival,
        "request": case.request,
    }
    yield grading.grade_booking(
        browser.state["booking"], before, known, stay, form=form,
        answered=lambda booking: grading.names_only(answer, booking["id"]),
    )  # fmt: skip


def _checkout_words(contact: dict[str, str], arrival: str) -> str:
    return f"The main guest and contact is {trips.contact_text(contact)}. Arrival is {arrival}."


async def booking_voucher(browser: BrowserWorld, seed: Seed = 0, nights: Nights = 2) -> Asked:
    """Ask to book a stay with the voucher that saves most."""
    stay = trips.draw_voucher_stay(seed, nights)
    site = new_booking_site(seed)
    known = {b["id"] for b in site["bookings"]}
    catalogue = catalogue_of(site)
    code = trips.best_voucher(catalogue, stay)
    before = await _open(browser, site)
    contact = site["user"]
    answer: str = yield (
        f"Book one {stay.room['name'].lower()} at {stay.place['name']} on Roost {_span(stay)}, "
        f"for {draws.party_text(stay.adults, stay.children)}; any number of that kind will do. "
        f"{_checkout_words(contact, '17:00 to 19:00')} There is no request to the house. Of "
        "the vouchers on the page Vouchers, use the one that saves most on this stay. Answer "
        "with the total that I pay, in euros."
    )
    form = {
        "mains": [contact["name"]],
        "contact": contact,
        "arrival": "17:00 to 19:00",
        "request": "",
    }
    yield grading.grade_booking(
        browser.state["booking"], before, known, stay, form=form, voucher=code,
        answered=lambda booking: _is_sum(answer, booking["price"]["total"]),
    )  # fmt: skip


async def booking_families(browser: BrowserWorld, seed: Seed = 0) -> Asked:
    """Ask to book two rooms side by side for two families."""
    case = trips.draw_families(seed)
    site = new_booking_site(seed)
    known = {b["id"] for b in site["bookings"]}
    before = await _open(browser, site)
    stay, contact = case.stay, case.contact
    answer: str = yield (
        f"Two families, {draws.party_text(stay.adults, stay.children)} in all, travel together. "
        f"In one booking on Roost, book two family rooms at {stay.place['name']} {_span(stay)} "
        f"that are next to each other. {contact['name']} is the main guest of one room, and "
        f"{case.other} of the other. The contact is {trips.contact_text(contact)}. Arrival is "
        f"{case.arrival}. There is no request and no voucher. Answer with the booking's number."
    )
    form = {
        "mains": [contact["name"], case.other],
        "contact": contact,
        "arrival": case.arrival,
        "request": "",
    }
    yield grading.grade_booking(
        browser.state["booking"], before, known, stay, form=form, units=case.pairs,
        answered=lambda booking: grading.names_only(answer, booking["id"]),
    )  # fmt: skip


def declare(env: Environment) -> None:
    """Declare the booking site's templates, each with its solution."""
    for function, description, oracle in (
        (booking_total, "Find out what a stay costs in all", oracles.total),
        (booking_count, "Count places by filters", oracles.count),
        (booking_reviews, "Answer a question on reviews", oracles.reviews),
        (booking_guest, "Add a guest to a booking", oracles.guest),
        (booking_favourites, "Save places to a new list", oracles.favourites),
        (booking_weekend, "Find the first free weekend", oracles.weekend),
        (booking_deadline, "Compare cancellation deadlines", oracles.deadlines),
        (booking_cancel, "Cancel what is free to cancel", oracles.cancel),
        (booking_cheapest, "Find the place that is cheapest in all", oracles.cheapest),
        (booking_move, "Change a booking's days", oracles.move),
        (booking_voucher, "Book with the best voucher", oracles.book_with_voucher),
        (booking_best, "Book the best place that is free", oracles.book_best),
        (booking_families, "Book neighbouring rooms", oracles.book_families),
    ):
        env.template(description=description)(function).oracle(oracle)

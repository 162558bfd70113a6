"""What the tasks on bookings of one's own, and on new ones, are about."""

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from web_booking_data import Catalogue, draw_person, key_of, room_of
from web_booking_draws import Place, Search, Stay, attempts, draw_stay, total_in
from web_booking_prices import deadline, free_units, is_free_of_charge, quote, voucher_fault
from web_booking_search import cheapest_room
from web_booking_state import add_trip, catalogue_of, new_booking_site
from web_booking_words import ARRIVALS, FACILITIES

__all__ = [
    "Best",
    "Families",
    "Favourites",
    "Move",
    "best_voucher",
    "contact_text",
    "draw_best",
    "draw_cancel",
    "draw_deadlines",
    "draw_families",
    "draw_favourites",
    "draw_guest",
    "draw_move",
    "draw_voucher_stay",
]

Site = dict[str, Any]
REQUESTS = (
    "A cot for the baby, please",
    "A room away from the lift, please",
    "Please keep two bicycles safe for us",
    "We bring a small dog",
    "Gluten-free bread for breakfast, please",
)
LIST_NAMES = ("Anniversary", "With grandma", "Quiet weeks", "Autumn break", "Team outing", "Maybe")


def contact_text(person: dict[str, str]) -> str:
    """A person's contact, as a prompt says it."""
    return f"{person['name']}, {person['email']}, telephone {person['phone']}"


def _with_trips(seed: int, purpose: str, count: int, rng: Random, *, within: int = 70) -> Site:
    site = new_booking_site(seed, trips=0)
    catalogue = catalogue_of(site)
    inner = Random(f"{purpose}/{rng.random()}")  # noqa: S311  # a site is no secret
    for _ in range(count):
        add_trip(catalogue, site, inner, within=within)
    return site


def _coming(catalogue: Catalogue, site: Site) -> list[dict[str, Any]]:
    return [b for b in site["bookings"] if b["from"] > catalogue.today.isoformat()]


def _last_free(catalogue: Catalogue, booking: dict[str, Any]) -> date | None:
    return deadline(catalogue.places[booking["place"]], date.fromisoformat(booking["from"]))


def _ends_today(catalogue: Catalogue, coming: list[dict[str, Any]]) -> bool:
    """Whether a free cancellation ends today: the site shows no clock, so that is no question."""
    return any(_last_free(catalogue, booking) == catalogue.today for booking in coming)


def draw_cancel(seed: int) -> tuple[Site, dict[str, Any]]:
    """Four bookings to come, of which one alone is free to cancel, and neither first nor last."""
    for rng in attempts("cancel", seed):
        site = _with_trips(seed, "cancel", 4, rng, within=24)
        catalogue = catalogue_of(site)
        coming = sorted(_coming(catalogue, site), key=lambda b: b["from"])
        free = [
            b
            for b in coming
            if is_free_of_charge(
                catalogue, catalogue.places[b["place"]], date.fromisoformat(b["from"])
            )
        ]
        if _ends_today(catalogue, coming):
            continue
        if len(free) == 1 and free[0] in coming[1:-1]:
            refundable = [b for b in coming if _last_free(catalogue, b) is not None]
            if len(refundable) > 1:
                return site, free[0]
    raise AssertionError


def draw_deadlines(seed: int) -> tuple[Site, dict[str, Any], date]:
    """Five bookings to come; whose free cancellation ends first is not whose stay begins first."""
    for rng in attempts("deadlines", seed):
        site = _with_trips(seed, "deadlines", 5, rng)
        catalogue = catalogue_of(site)
        coming = sorted(_coming(catalogue, site), key=lambda b: b["from"])
        last = [(day, b) for b in coming if (day := _last_free(catalogue, b))]
        open_yet = sorted(
            (each for each in last if each[0] >= catalogue.today), key=lambda each: each[0]
        )
        if not 3 <= len(open_yet) < len(coming) or _ends_today(catalogue, coming):  # noqa: PLR2004
            continue
        first_stay = min((b for _, b in open_yet), key=lambda b: b["from"])
        if open_yet[0][1] is not first_stay and open_yet[0][0] < open_yet[1][0]:
            return site, open_yet[0][1], open_yet[0][0]
    raise AssertionError


def draw_guest(seed: int) -> tuple[Site, dict[str, Any], dict[str, str]]:
    """A booking to come in which one more person fits, and that person."""
    for rng in attempts("guest", seed):
        site = _with_trips(seed, "guest", 3, rng)
        catalogue = catalogue_of(site)
        booking = rng.choice(_coming(catalogue, site))
        room = room_of(catalogue.places[booking["place"]], booking["room"])
        if room and room["sleeps"] > booking["adults"]:
            return site, booking, draw_person(rng)
    raise AssertionError


@dataclass(frozen=True)
class Move:
    """A booking that is to begin a week later, or on the first day after on which that works."""

    site: Site
    booking: dict[str, Any]
    start: date
    end: date
    total: int


def draw_move(seed: int, sold_out: int) -> Move:
    """A booking, where the night `sold_out` nights after the new check-in is sold out.

    Args:
        seed: What all is drawn from.
        sold_out: From 0; one that the stay has.
    """
    for rng in attempts(f"move {sold_out}", seed):
        site = _with_trips(seed, "move", 3, rng)
        catalogue = catalogue_of(site)
        booking = rng.choice(_coming(catalogue, site))
        start, end = (date.fromisoformat(booking[name]) for name in ("from", "to"))
        nights = (end - start).days
        place = catalogue.places[booking["place"]]
        room = room_of(place, booking["room"])
        if room is None or sold_out >= nights or nights < 3:  # noqa: PLR2004
            continue
        own = booking["id"]
        week = start + timedelta(days=7)
        if not free_units(catalogue, site, room, week, week + (end - start), ignoring=own):
            continue
        night = (week + timedelta(days=sold_out)).isoformat()
        site["closed"] = {key_of(room, unit): [night] for unit in room["units"]}
        for later in range(1, 6):
            day = week + timedelta(days=later)
            if free_units(catalogue, site, room, day, day + (end - start), ignoring=own):
                until, adults = day + (end - start), booking["adults"]
                total = quote(catalogue, place, room, day, until, adults=adults)["total"]
                return Move(site, booking, day, until, total)
    raise AssertionError


@dataclass(frozen=True)
class Favourites:
    """Places that are to be saved to a list."""

    search: Search
    name: str
    places: list[str]


def draw_favourites(seed: int) -> Favourites:
    """A town and filters that two to four places pass, of which not all places of the town do."""
    catalogue = catalogue_of(new_booking_site(seed))
    for rng in attempts("favourites", seed):
        search = Search(
            town=rng.choice(sorted(catalogue.towns)),
            rating=rng.choice((0.0, 7.5, 8.0)),
            near=rng.choice((0, 1500, 2000)),
            facilities=(rng.choice(FACILITIES),),
        )
        found = search.found(catalogue)
        loose = Search(town=search.town, facilities=search.facilities).found(catalogue)
        if 2 <= len(found) <= 4 and len(loose) > len(found):  # noqa: PLR2004
            return Favourites(search, rng.choice(LIST_NAMES), [p["id"] for p in found])
    raise AssertionError


@dataclass(frozen=True)
class Best:
    """The best rated place of a search that has a room on some days, and whom to book it for."""

    search: Search
    stay: Stay
    contact: dict[str, str]
    arrival: str
    request: str


def draw_best(seed: int) -> Best:
    """A search in which the best rated place of all has no room free on the days."""
    site = new_booking_site(seed)
    catalogue = catalogue_of(site)
    for rng in attempts("best", seed):
        search = Search(
            town=rng.choice(sorted(catalogue.towns)), stars=rng.choice((0, 3)),
            near=rng.choice((0, 2000)), facilities=(rng.choice(FACILITIES),),
        )  # fmt: skip
        start = catalogue.today + timedelta(days=rng.randint(14, 90))
        end = start + timedelta(days=rng.randint(2, 4))
        adults, children = rng.choice(((2, 1), (2, 2), (2, 0)))
        ranked = sorted(search.found(catalogue), key=lambda p: -p["rating"])
        able = [
            p
            for p in ranked
            if cheapest_room(catalogue, site, p, (start, end), (adults, children, 1))
        ]
        if len(able) < 2 or able[0] is ranked[0] or able[0]["rating"] == able[1]["rating"]:  # noqa: PLR2004
            continue
        lowest = _lowest_room(catalogue, site, able[0], (start, end), (adults, children))
        if lowest:
            stay = Stay(able[0], lowest, start, end, adults, children)
            return Best(search, stay, draw_person(rng), rng.choice(ARRIVALS), rng.choice(REQUESTS))
    raise AssertionError


def _lowest_room(
    catalogue: Catalogue, site: Site, place: Place, stay: tuple[date, date], party: tuple[int, int]
) -> dict[str, Any] | None:
    """The kind of room with the lowest total in which all fit, where it is the only such one."""
    lowest = total_in(catalogue, site, place, stay, party)
    kinds = [
        room
        for room in place["rooms"]
        if room["sleeps"] >= sum(party)
        and free_units(catalogue, site, room, *stay)
        and quote(catalogue, place, room, *stay, adults=party[0])["total"] == lowest
    ]
    return kinds[0] if len(kinds) == 1 else None


def best_voucher(catalogue: Catalogue, stay: Stay) -> str:
    """The code of the voucher that saves most on a stay; the small one holds always."""
    able = [
        rule
        for rule in catalogue.vouchers
        if not voucher_fault(catalogue, rule["code"], stay.place, stay.start, stay.end)
    ]
    return str(max(able, key=lambda rule: rule["percent"])["code"])


def draw_voucher_stay(seed: int, nights: int) -> Stay:
    """A stay for a voucher: what looks best on the page does not hold for it."""

    def misleads(catalogue: Catalogue, stay: Stay) -> bool:
        lasting = [v for v in catalogue.vouchers if v["until"] >= catalogue.today.isoformat()]
        largest = max(lasting, key=lambda rule: rule["percent"])
        return largest["code"] != best_voucher(catalogue, stay)

    return draw_stay(seed, nights, purpose=f"voucher {nights}", fits=misleads)


@dataclass(frozen=True)
class Families:
    """A stay of two families in two rooms side by side."""

    stay: Stay
    pairs: list[list[int]]
    contact: dict[str, str]
    other: str
    arrival: str


def draw_families(seed: int) -> Families:
    """A hotel with three family rooms or more free, of which only two are side by side."""
    site = new_booking_site(seed)
    catalogue = catalogue_of(site)
    hotels = [p for p in catalogue.places.values() if p["kind"] == "Hotel"]
    for rng in attempts("families", seed):
        place = rng.choice(hotels)
        room = place["rooms"][2]
        start = catalogue.today + timedelta(days=rng.randint(14, 100))
        end = start + timedelta(days=rng.randint(2, 4))
        free = free_units(catalogue, site, room, start, end)
        pairs = [[a, b] for a, b in pairwise(free) if b == a + 1]
        if len(free) >= 3 and len(pairs) == 1 and pairs[0] != free[:2]:  # noqa: PLR2004
            contact, other = draw_person(rng), draw_person(rng)
            if contact["name"] != other["name"]:
                stay = Stay(place, room, start, end, 4, rng.randint(2, 4))
                return Families(stay, pairs, contact, other["name"], rng.choice(ARRIVALS))
    raise AssertionError

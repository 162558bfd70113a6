"""A session's own part of the booking site: who is signed in, bookings, lists, comparison."""

import zlib
from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Any

from web_booking_data import HORIZON, Catalogue, draw_catalogue, draw_person, room_of
from web_booking_prices import free_units, quote
from web_booking_words import ARRIVALS

__all__ = ["add_trip", "catalogue_of", "draw_trip", "make_booking", "new_booking_site"]


def new_booking_site(seed: int, *, trips: int = 2) -> dict[str, Any]:
    """The booking site as a session finds it.

    Args:
        seed: What everything is drawn from.
        trips: How many bookings to come the user has, beside one that is over.
    """
    catalogue = draw_catalogue(seed)
    rng = Random(f"booking/user/{seed}")  # noqa: S311  # a site is no secret
    someday = rng.sample(sorted(catalogue.places), 3)
    site: dict[str, Any] = {
        "seed": seed,
        "user": draw_person(rng),
        "bookings": [],
        "lists": [{"id": "L1", "name": "Someday", "places": someday}],
        "compare": [],
        "closed": {},
    }
    site["bookings"].append(draw_trip(catalogue, site, rng, over=True))
    for _ in range(trips):
        add_trip(catalogue, site, rng)
    return site


def catalogue_of(site: dict[str, Any]) -> Catalogue:
    """All that the site offers in a session, at the prices that hold now."""
    catalogue, dearer = draw_catalogue(site["seed"]), site.get("dearer")
    return _at_other_prices(catalogue, dearer) if dearer else catalogue


def _at_other_prices(catalogue: Catalogue, dearer: dict[str, int]) -> Catalogue:
    """The same with some kinds of rooms dearer by so many per cent."""

    def priced(room: dict[str, Any]) -> dict[str, Any]:
        return {**room, "base": room["base"] * (100 + dearer.get(room["id"], 0)) // 100}

    places = {
        key: {**place, "rooms": [priced(room) for room in place["rooms"]]}
        for key, place in catalogue.places.items()
    }
    return replace(catalogue, places=places)


def add_trip(
    catalogue: Catalogue, site: dict[str, Any], rng: Random, *, within: int = 70
) -> dict[str, Any]:
    """Add a booking within so many days, at a place where there is none yet, and return it."""
    while True:
        trip = draw_trip(catalogue, site, rng, within=within)
        if all(trip["place"] != other["place"] for other in site["bookings"]):
            site["bookings"].append(trip)
            return trip


def draw_trip(
    catalogue: Catalogue, site: dict[str, Any], rng: Random, *, over: bool = False, within: int = 70
) -> dict[str, Any]:
    """A booking of the user's: to come within so many days, or one that is over."""
    while True:
        place = catalogue.places[rng.choice(sorted(catalogue.places))]
        room = rng.choice(place["rooms"])
        ahead = -rng.randint(60, 200) if over else rng.randint(4, within)
        start = catalogue.today + timedelta(days=ahead)
        end = start + timedelta(days=rng.randint(2, 4))
        units = room["units"] if over else free_units(catalogue, site, room, start, end)
        if units and end < catalogue.today + timedelta(days=HORIZON):
            break
    form = {
        "adults": min(room["sleeps"], rng.randint(1, 2)),
        "children": 0,
        "mains": {str(units[0]): site["user"]["name"]},
        "contact": dict(site["user"]),
        "arrival": rng.choice(ARRIVALS),
        "request": "",
    }
    booked = min(start, catalogue.today) - timedelta(days=rng.randint(10, 40))
    return make_booking(
        catalogue,
        place,
        room["id"],
        start=start,
        end=end,
        units=units[:1],
        form=form,
        booked=booked,
    )


def make_booking(
    catalogue: Catalogue,
    place: dict[str, Any],
    room_id: str,
    *,
    start: date,
    end: date,
    units: list[int],
    form: dict[str, Any],
    booked: date,
    voucher: str | None = None,
) -> dict[str, Any]:
    """A booking with its price, and a number that follows from all that is in it."""
    room = room_of(place, room_id)
    if room is None:
        raise ValueError(f"{place['id']} has no room {room_id!r}")
    adults = form["adults"]
    price = quote(
        catalogue, place, room, start, end, adults=adults, units=len(units), voucher=voucher
    )
    booking = {
        "place": place["id"],
        "room": room_id,
        "units": units,
        "from": start.isoformat(),
        "to": end.isoformat(),
        **form,
        "guests": [],
        "voucher": voucher,
        "price": price,
        "status": "confirmed",
        "fee": 0,
        "booked": booked.isoformat(),
    }
    number = 10000 + zlib.crc32(repr((sorted(catalogue.places), booking)).encode()) % 90000
    return {"id": f"RS-{number}", **booking}

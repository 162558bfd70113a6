"""The booking site's search: filters, sorting, and pages of results."""

from collections.abc import Callable
from datetime import date
from typing import Any

from web_booking_data import Catalogue, distance_m
from web_booking_prices import days_of, free_units, nightly, policy_text, read_day, span_fault

from hud_mcp import SiteResponse

__all__ = ["PAGE_SIZE", "cheapest_room", "list_places", "read_party"]

PAGE_SIZE = 8
MOST_PEOPLE = 12
MOST_ROOMS = 4
_SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "picks": lambda row: (-row["rating"] * row["count"], row["name"]),
    "price": lambda row: (row["price"], row["name"]),
    "rating": lambda row: (-row["rating"], row["name"]),
    "stars": lambda row: (-row["stars"], row["name"]),
    "centre": lambda row: (row["centre"], row["name"]),
    "name": lambda row: row["name"],
}


def read_party(query: dict[str, str]) -> tuple[int, int, int]:
    """How many adults, children and rooms a query names; two, none and one are the defaults."""
    adults = _number(query.get("adults"), 2, 1, MOST_PEOPLE)
    children = _number(query.get("children"), 0, 0, MOST_PEOPLE)
    return adults, children, _number(query.get("rooms"), 1, 1, MOST_ROOMS)


def _number(text: str | None, default: int, least: int, most: int) -> int:
    return min(max(int(text), least), most) if text and text.isdecimal() else default


def list_places(catalogue: Catalogue, site: dict[str, Any], query: dict[str, str]) -> Any:
    """The places that a query asks for: one page of them, and how many there are."""
    start, end = read_day(query.get("from")), read_day(query.get("to"))
    dated = bool(query.get("from") or query.get("to"))
    if dated and (fault := span_fault(catalogue, start, end)):
        return SiteResponse(status=400, json={"error": fault})
    stay = (start, end) if start and end else None
    fitting = [p for p in catalogue.places.values() if _is_wanted(catalogue, p, query)]
    rows = [row for p in fitting if (row := _row(catalogue, site, p, stay, query))]
    if (most := query.get("max", "")).isdecimal():
        rows = [row for row in rows if row["price"] <= int(most) * 100]
    rows.sort(key=_SORTS.get(query.get("sort", "picks"), _SORTS["picks"]))
    pages = max(1, -(-len(rows) // PAGE_SIZE))
    page = min(_number(query.get("page"), 1, 1, 99), pages)
    shown = rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    full = len(fitting) - len(rows) if stay and not query.get("max") else 0
    town = catalogue.towns.get(query.get("town", ""))
    return {
        "rows": shown,
        "total": len(rows),
        "full": full,
        "page": page,
        "pages": pages,
        "sights": town["sights"] if town else None,
        "town": town["name"] if town else None,
    }


def _is_wanted(catalogue: Catalogue, place: dict[str, Any], query: dict[str, str]) -> bool:
    """Whether a place passes the filters that do not depend on days."""
    near, town = query.get("near", ""), query.get("town")
    words = query.get("q", "").lower().split()
    asked = {name for name in query.get("facilities", "").split(",") if name}
    centre = catalogue.town_of(place)["sights"][0]
    return (
        (not town or place["town"] == town)
        and all(word in f"{place['name']} {place['blurb']}".lower() for word in words)
        and query.get("kind", "") in ("", place["kind"])
        and place["stars"] >= _number(query.get("stars"), 0, 0, 5)
        and place["rating"] * 10 >= _number(query.get("rating"), 0, 0, 100)
        and asked <= set(place["facilities"])
        and (not query.get("free") or place["free_days"] is not None)
        and (not near.isdecimal() or distance_m(place, centre) <= int(near))
    )


def cheapest_room(
    catalogue: Catalogue,
    site: dict[str, Any],
    place: dict[str, Any],
    stay: tuple[date, date],
    party: tuple[int, int, int],
) -> tuple[int, dict[str, Any]] | None:
    """The lowest price of a night on average, and the kind of room that has it, where one is free.

    Args:
        catalogue: What the site offers.
        site: The site's state.
        place: Where to look.
        stay: Check-in and check-out.
        party: How many adults, children and rooms; the price is that of all rooms.
    """
    start, end = stay
    adults, children, rooms = party
    found: list[tuple[int, dict[str, Any]]] = []
    for room in place["rooms"]:
        fits = room["sleeps"] * rooms >= adults + children
        if fits and len(free_units(catalogue, site, room, start, end)) >= rooms:
            days = days_of(start, end)
            nights = sum(nightly(catalogue, place, room, day) for day in days) * rooms
            found.append((nights // len(days), room))
    return min(found, key=lambda each: each[0], default=None)


def _row(
    catalogue: Catalogue,
    site: dict[str, Any],
    place: dict[str, Any],
    stay: tuple[date, date] | None,
    query: dict[str, str],
) -> dict[str, Any] | None:
    """What the list shows of a place; None where no room is free for the stay."""
    price = min(room["base"] for room in place["rooms"])
    if stay:
        cheapest = cheapest_room(catalogue, site, place, stay, read_party(query))
        if cheapest is None:
            return None
        price = cheapest[0]
    town = catalogue.town_of(place)
    names = ("id", "name", "kind", "stars", "rating", "facilities", "hue", "x", "y", "free_days")
    return {
        **{name: place[name] for name in names},
        "town": town["name"],
        "count": len(place["reviews"]),
        "centre": distance_m(place, town["sights"][0]),
        "policy": policy_text(place),
        "price": price,
    }

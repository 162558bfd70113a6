"""The booking site's server side: what its pages read. Changes are in `web_booking_changes`."""

from datetime import timedelta
from typing import Any

from web_booking_changes import change_site, move_booking
from web_booking_data import HORIZON, Catalogue, distance_m, room_of
from web_booking_prices import (
    cancel_fee,
    free_units,
    nightly,
    policy_text,
    quote,
    read_day,
    span_fault,
    voucher_fault,
)
from web_booking_search import list_places, read_party
from web_booking_state import catalogue_of
from web_booking_words import ARRIVALS, FACILITIES, KINDS, TRAVELLERS

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["booking_api"]

REVIEWS_PER_PAGE = 5
_SORTS = {
    "new": ("day", True),
    "old": ("day", False),
    "high": ("score", True),
    "low": ("score", False),
}


async def booking_api(path: str, request: SiteRequest, site: dict[str, Any]) -> Any:
    """Answer a request for what lies under `/api/booking/`.

    Args:
        path: What follows that prefix.
        request: The request.
        site: The site's state; only a POST changes it.
    """
    catalogue = catalogue_of(site)
    if request.method == "GET":
        return _read(path, dict(request.query), catalogue, site)
    if request.method != "POST":
        return SiteResponse(status=405, json={"error": "Use GET or POST."})
    if not isinstance(request.json, dict):
        return _refuse("Send an object of JSON.")
    return change_site(path, request.json, catalogue, site)


def _refuse(message: str) -> SiteResponse:
    return SiteResponse(status=400, json={"error": message})


def _read(path: str, query: dict[str, str], catalogue: Catalogue, site: dict[str, Any]) -> Any:
    kind, _, key = path.partition("/")
    key, _, part = key.partition("/")
    if not key:
        return _read_page(kind, query, catalogue, site)
    if kind == "bookings":
        found = next((b for b in site["bookings"] if b["id"] == key), None)
        return found and _read_booking(found, part, query, catalogue, site)
    place = catalogue.places.get(key) if kind == "places" else None
    if place is None:
        return None
    if not part:
        return _show_place(place, query, catalogue, site)
    reads = {"calendar": _calendar, "reviews": _reviews, "quote": _quote}
    return reads[part](place, query, catalogue, site) if part in reads else None


def _read_page(kind: str, query: dict[str, str], catalogue: Catalogue, site: dict[str, Any]) -> Any:
    if kind == "site":
        return _describe_site(catalogue, site)
    if kind == "places":
        return list_places(catalogue, site, query)
    if kind == "bookings":
        return [_booking_row(booking, catalogue) for booking in site["bookings"]]
    if kind == "lists":
        places = catalogue.places
        return [{**row, "places": [_brief(places[p], catalogue) for p in row["places"]]}
                for row in site["lists"]]  # fmt: skip
    if kind == "compare":
        return [_compared(catalogue.places[p], catalogue) for p in site["compare"]]
    return list(catalogue.vouchers) if kind == "vouchers" else None


def _describe_site(catalogue: Catalogue, site: dict[str, Any]) -> dict[str, Any]:
    towns = [{k: t[k] for k in ("id", "name", "region")} for t in catalogue.towns.values()]
    saved = sorted({place for row in site["lists"] for place in row["places"]})
    return {
        "today": catalogue.today.isoformat(),
        "last": (catalogue.today + timedelta(days=HORIZON)).isoformat(),
        "user": site["user"],
        "towns": sorted(towns, key=lambda town: town["name"]),
        "kinds": KINDS,
        "facilities": FACILITIES,
        "arrivals": ARRIVALS,
        "travellers": TRAVELLERS,
        "compare": site["compare"],
        "saved": saved,
        "lists": [{k: row[k] for k in ("id", "name", "places")} for row in site["lists"]],
    }


def _brief(place: dict[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    town = catalogue.town_of(place)
    names = ("id", "name", "kind", "stars", "rating", "facilities", "hue", "free_days", "fee")
    return {
        **{name: place[name] for name in names},
        "town": town["name"],
        "count": len(place["reviews"]),
        "centre": distance_m(place, town["sights"][0]),
        "policy": policy_text(place),
        "base": min(room["base"] for room in place["rooms"]),
    }


def _compared(place: dict[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    town = catalogue.town_of(place)
    sights = [[s["name"], distance_m(place, s)] for s in town["sights"]]
    costs = {"cleaning": place["cleaning"], "tax": town["tax"], "weekly": place["weekly"]}
    return {**_brief(place, catalogue), "sights": sights, **costs}


def _show_place(
    place: dict[str, Any], query: dict[str, str], catalogue: Catalogue, site: dict[str, Any]
) -> Any:
    town = catalogue.town_of(place)
    names = ("x", "y", "blurb", "weekend")
    sights = [{**sight, "distance": distance_m(place, sight)} for sight in town["sights"]]
    festival = {
        "name": town["festival"],
        "from": town["festival_from"],
        "nights": town["festival_nights"],
        "rise": place["festival_rise"],
    }
    shown = {
        **_compared(place, catalogue),
        **{name: place[name] for name in names},
        "region": town["region"],
        "sights": sights,
        "festival": festival,
        "rooms": [{k: r[k] for k in ("id", "name", "beds", "sleeps", "base", "units")}
                  for r in place["rooms"]],
    }  # fmt: skip
    if not query.get("from") and not query.get("to"):
        return shown
    start, end = read_day(query.get("from")), read_day(query.get("to"))
    adults, children, _ = read_party(query)
    if fault := span_fault(catalogue, start, end):
        return {**shown, "fault": fault}
    for shown_room, room in zip(shown["rooms"], place["rooms"], strict=True):
        shown_room["free"] = free_units(catalogue, site, room, start, end)
        shown_room["price"] = quote(catalogue, place, room, start, end, adults=adults)
        shown_room["fits"] = room["sleeps"] >= adults + children
    return shown


def _calendar(
    place: dict[str, Any], query: dict[str, str], catalogue: Catalogue, site: dict[str, Any]
) -> Any:
    room = room_of(place, query.get("room", ""))
    first = read_day(f"{query.get('month', '')}-01")
    if room is None or first is None:
        return _refuse("Choose a room and a month.")
    last = catalogue.today + timedelta(days=HORIZON)
    days: list[dict[str, Any]] = []
    day = first
    while day.month == first.month:
        open_day = catalogue.today <= day < last
        free = free_units(catalogue, site, room, day, day + timedelta(days=1)) if open_day else []
        price = nightly(catalogue, place, room, day) if open_day else None
        days.append({"day": day.isoformat(), "price": price, "free": len(free)})
        day += timedelta(days=1)
    return {"days": days}


def _reviews(
    place: dict[str, Any], query: dict[str, str], _catalogue: Catalogue, _site: dict[str, Any]
) -> Any:
    rows = list(place["reviews"])
    if kind := query.get("kind"):
        rows = [row for row in rows if row["kind"] == kind]
    name, backwards = _SORTS.get(query.get("sort", "new"), _SORTS["new"])
    rows.sort(key=lambda row: row[name], reverse=backwards)
    pages = max(1, -(-len(rows) // REVIEWS_PER_PAGE))
    asked = query.get("page", "1")
    page = min(max(int(asked) if asked.isdecimal() else 1, 1), pages)
    shown = rows[(page - 1) * REVIEWS_PER_PAGE : page * REVIEWS_PER_PAGE]
    return {"rows": shown, "total": len(rows), "page": page, "pages": pages}


def _quote(
    place: dict[str, Any], query: dict[str, str], catalogue: Catalogue, site: dict[str, Any]
) -> Any:
    room = room_of(place, query.get("room", ""))
    start, end = read_day(query.get("from")), read_day(query.get("to"))
    fault = span_fault(catalogue, start, end)
    if room is None or fault:
        return _refuse(fault or "Choose a room.")
    given = query.get("units", "").split(",")
    units = [int(unit) for unit in given if unit.isdecimal()]
    if not units or not set(units) <= set(free_units(catalogue, site, room, start, end)):
        return _refuse("One of these rooms is no longer free. Choose again.")
    code = query.get("voucher", "").strip().upper()
    if code and (fault := voucher_fault(catalogue, code, place, start, end)):
        return _refuse(fault)
    adults, _, _ = read_party(query)
    count = len(units)
    return quote(
        catalogue, place, room, start, end, adults=adults, units=count, voucher=code or None
    )


def _booking_row(booking: dict[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    place = catalogue.places[booking["place"]]
    room = room_of(place, booking["room"])
    over = booking["from"] < catalogue.today.isoformat()
    return {
        **booking,
        "place": _brief(place, catalogue),
        "room": room and {k: room[k] for k in ("id", "name", "sleeps")},
        "over": over,
        "cancel_fee": 0 if over else cancel_fee(catalogue, place, booking),
    }


def _read_booking(
    booking: dict[str, Any],
    part: str,
    query: dict[str, str],
    catalogue: Catalogue,
    site: dict[str, Any],
) -> Any:
    if not part:
        return _booking_row(booking, catalogue)
    if part != "quote":
        return None
    start, end = read_day(query.get("from")), read_day(query.get("to"))
    moved = move_booking(catalogue, site, booking, start, end)
    return _refuse(moved) if isinstance(moved, str) else moved

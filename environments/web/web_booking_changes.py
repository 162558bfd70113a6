"""What guests change on the booking site: bookings, lists of favourites, the comparison."""

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from web_booking_data import Catalogue, room_of
from web_booking_prices import (
    cancel_fee,
    days_of,
    free_units,
    money_text,
    quote,
    read_day,
    span_fault,
)
from web_booking_prices import day_text as write_day
from web_booking_prices import voucher_fault as find_voucher_fault
from web_booking_state import make_booking
from web_booking_words import ARRIVALS

from hud_mcp import SiteResponse

__all__ = ["change_site", "move_booking"]

MOST_COMPARED = 4
MOST_LISTS = 12
_LONGEST = 200
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"\+?[\d ()/-]{6,24}")

Change = Callable[[Catalogue, dict[str, Any], dict[str, Any], dict[str, Any]], Any]


def change_site(
    path: str, given: dict[str, Any], catalogue: Catalogue, site: dict[str, Any]
) -> Any:
    """Do what a POST asks for; what is refused changes nothing."""
    kind, _, key = path.partition("/")
    key, _, verb = key.partition("/")
    if not key:
        whole = {"bookings": _book, "lists": _add_list, "compare": _compare}.get(kind)
        return whole(catalogue, site, given) if whole else None
    changes: dict[tuple[str, str], Change] = {
        ("bookings", "dates"): _move,
        ("bookings", "cancel"): _cancel,
        ("bookings", "guests"): _add_guest,
        ("lists", "places"): _set_saved,
        ("lists", "rename"): _rename,
        ("lists", "delete"): _delete_list,
    }
    row = next((r for r in site.get(kind, ()) if isinstance(r, dict) and r["id"] == key), None)
    change = changes.get((kind, verb))
    return change(catalogue, site, row, given) if change and row else None


def _refuse(message: str, **fields: str) -> SiteResponse:
    body: dict[str, Any] = {"error": message}
    return SiteResponse(status=400, json={**body, "fields": fields} if fields else body)


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""


def _book(catalogue: Catalogue, site: dict[str, Any], given: dict[str, Any]) -> Any:
    place = catalogue.places.get(_text(given, "place"))
    room = place and room_of(place, _text(given, "room"))
    start, end = read_day(given.get("from")), read_day(given.get("to"))
    fault = span_fault(catalogue, start, end)
    if place is None or room is None or start is None or end is None or fault:
        return _refuse(fault or "Choose a place and a room.")
    units = given.get("units")
    if not _is_units(units) or not set(units) <= set(free_units(catalogue, site, room, start, end)):
        return _refuse("One of these rooms is no longer free. Choose again.")
    units = sorted(units)
    if fault := _party_fault(given, room["sleeps"] * len(units)):
        return _refuse(fault)
    code = _text(given, "voucher").upper()
    if code and (fault := find_voucher_fault(catalogue, code, place, start, end)):
        return _refuse(fault, voucher=fault)
    form, errors = _read_form(given, units)
    if errors:
        return _refuse("Please check the form.", **errors)
    booking = make_booking(
        catalogue, place, room["id"], start=start, end=end, units=units, form=form,
        booked=catalogue.today, voucher=code or None,
    )  # fmt: skip
    return _add(site, booking, given)


def _add(site: dict[str, Any], booking: dict[str, Any], given: dict[str, Any]) -> Any:
    """Add a booking, unless the form has shown another price."""
    total = booking["price"]["total"]
    if given.get("total", total) != total:
        return _refuse(f"The price is {money_text(total)} now. Open this form again to accept it.")
    site["bookings"].append(booking)
    return {"id": booking["id"]}


def _is_units(units: Any) -> bool:
    is_list = isinstance(units, list) and bool(units) and len(units) == len(set(map(str, units)))
    return is_list and all(type(unit) is int for unit in units)


def _party_fault(given: dict[str, Any], sleeps: int) -> str | None:
    adults, children = given.get("adults"), given.get("children")
    if type(adults) is not int or type(children) is not int or adults < 1 or children < 0:
        return "Say how many adults and children travel."
    if adults + children > sleeps:
        return f"Only {sleeps} people can sleep there. Choose more rooms, or a larger one."
    return None


def _read_form(given: dict[str, Any], units: list[int]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the checkout's form says, and what is wrong with it by field."""
    mains = given.get("mains") if isinstance(given.get("mains"), dict) else {}
    contact = {name: _text(given, name) for name in ("name", "email", "phone")}
    form = {
        "adults": given.get("adults"),
        "children": given.get("children"),
        "mains": {str(unit): _text(mains, str(unit)) for unit in units},
        "contact": contact,
        "arrival": _text(given, "arrival"),
        "request": _text(given, "request"),
    }
    errors = {f"main-{u}": "Enter a full name." for u, name in form["mains"].items() if not name}
    if not contact["name"]:
        errors["name"] = "Enter a full name."
    if not _EMAIL.fullmatch(contact["email"]):
        errors["email"] = "Enter an e-mail address such as name@example.org."
    if not _PHONE.fullmatch(contact["phone"]):
        errors["phone"] = "Enter a telephone number such as +41 79 1234."
    if form["arrival"] not in ARRIVALS:
        errors["arrival"] = "Choose when you arrive."
    if given.get("terms") is not True:
        errors["terms"] = "Accept the rules of the house to book."
    return form, errors


def _open_fault(catalogue: Catalogue, booking: dict[str, Any]) -> str | None:
    """Why a booking cannot be changed any more, or None."""
    if booking["status"] != "confirmed":
        return "This booking is cancelled."
    if booking["from"] <= catalogue.today.isoformat():
        return "This stay has begun or is over."
    return None


def move_booking(
    catalogue: Catalogue,
    site: dict[str, Any],
    booking: dict[str, Any],
    start: date | None,
    end: date | None,
) -> dict[str, Any] | str:
    """What a booking would be on other days: its rooms and price; or why that cannot be."""
    fault = _open_fault(catalogue, booking) or span_fault(catalogue, start, end)
    if fault or start is None or end is None:
        return fault or ""
    place = catalogue.places[booking["place"]]
    room = room_of(place, booking["room"]) or place["rooms"][0]
    count, own = len(booking["units"]), booking["id"]
    free = free_units(catalogue, site, room, start, end, ignoring=own)
    if len(free) < count:
        one = (write_day(day) for day in days_of(start, end)
               if len(free_units(catalogue, site, room, day, date.fromordinal(day.toordinal() + 1),
                                 ignoring=own)) < count)  # fmt: skip
        night = next(one, None)
        which = f"The night of {night} is sold out." if night else "No room is free in every night."
        return f"{room['name']}: {which} Choose other days."
    units = booking["units"] if set(booking["units"]) <= set(free) else free[:count]
    code = booking["voucher"]
    if code and find_voucher_fault(catalogue, code, place, start, end):
        code = None
    adults = booking["adults"]
    price = quote(catalogue, place, room, start, end, adults=adults, units=count, voucher=code)
    days = {"from": start.isoformat(), "to": end.isoformat()}
    return {**days, "units": units, "voucher": code, "price": price}


def _move(
    catalogue: Catalogue, site: dict[str, Any], booking: dict[str, Any], given: dict[str, Any]
) -> Any:
    start, end = read_day(given.get("from")), read_day(given.get("to"))
    moved = move_booking(catalogue, site, booking, start, end)
    if isinstance(moved, str):
        return _refuse(moved)
    names = zip(map(str, moved["units"]), booking["mains"].values(), strict=True)
    booking.update(moved, mains=dict(names))
    return {"id": booking["id"]}


def _cancel(
    catalogue: Catalogue, _site: dict[str, Any], booking: dict[str, Any], given: dict[str, Any]
) -> Any:
    if fault := _open_fault(catalogue, booking):
        return _refuse(fault)
    fee = cancel_fee(catalogue, catalogue.places[booking["place"]], booking)
    if given.get("fee") != fee or isinstance(given.get("fee"), bool):
        return _refuse("The fee is another one now. Look at the booking again.")
    booking.update(status="cancelled", fee=fee)
    return {"id": booking["id"], "fee": fee}


def _add_guest(
    catalogue: Catalogue, _site: dict[str, Any], booking: dict[str, Any], given: dict[str, Any]
) -> Any:
    if fault := _open_fault(catalogue, booking):
        return _refuse(fault)
    name, kind = _text(given, "name"), given.get("kind")
    errors = {} if name else {"name": "Enter a full name."}
    if kind not in ("adult", "child"):
        errors["kind"] = "Choose adult or child."
    if errors:
        return _refuse("Please check the form.", **errors)
    place = catalogue.places[booking["place"]]
    room = room_of(place, booking["room"]) or place["rooms"][0]
    sleeps = room["sleeps"] * len(booking["units"])
    if booking["adults"] + booking["children"] >= sleeps:
        return _refuse(f"Only {sleeps} people can sleep there.")
    booking["adults" if kind == "adult" else "children"] += 1
    booking["guests"].append({"id": f"G{len(booking['guests']) + 1}", "name": name, "kind": kind})
    start, end = date.fromisoformat(booking["from"]), date.fromisoformat(booking["to"])
    if kind == "adult":
        booking["price"] = quote(
            catalogue, place, room, start, end, adults=booking["adults"],
            units=len(booking["units"]), voucher=booking["voucher"],
        )  # fmt: skip
    return {"id": booking["id"]}


def _name_fault(site: dict[str, Any], name: str) -> str | None:
    if not name:
        return "Enter a name for the list."
    if any(row["name"].lower() == name.lower() for row in site["lists"]):
        return f"There is a list “{name}” already."
    return None


def _add_list(catalogue: Catalogue, site: dict[str, Any], given: dict[str, Any]) -> Any:
    name = _text(given, "name")
    fault = _name_fault(site, name)
    if fault or len(site["lists"]) >= MOST_LISTS:
        message = fault or f"You have {MOST_LISTS} lists already. Delete one first."
        return _refuse(message, name=message)
    place = given.get("place")
    if place is not None and place not in catalogue.places:
        return _refuse("There is no such place.")
    number = max((int(row["id"][1:]) for row in site["lists"]), default=0) + 1
    row = {"id": f"L{number}", "name": name, "places": [place] if place else []}
    site["lists"].append(row)
    return row


def _rename(
    _catalogue: Catalogue, site: dict[str, Any], row: dict[str, Any], given: dict[str, Any]
) -> Any:
    name = _text(given, "name")
    if name != row["name"] and (fault := _name_fault(site, name)):
        return _refuse(fault, name=fault)
    row["name"] = name
    return row


def _delete_list(
    _catalogue: Catalogue, site: dict[str, Any], row: dict[str, Any], _given: dict[str, Any]
) -> Any:
    site["lists"].remove(row)
    return {"deleted": row["id"]}


def _set_saved(
    catalogue: Catalogue, _site: dict[str, Any], row: dict[str, Any], given: dict[str, Any]
) -> Any:
    return _toggle(catalogue, row["places"], given) or row


def _compare(catalogue: Catalogue, site: dict[str, Any], given: dict[str, Any]) -> Any:
    is_new = given.get("place") not in site["compare"]
    if given.get("on") is True and is_new and len(site["compare"]) >= MOST_COMPARED:
        return _refuse(f"You compare {MOST_COMPARED} places already. Remove one first.")
    return _toggle(catalogue, site["compare"], given) or {"compare": site["compare"]}


def _toggle(catalogue: Catalogue, places: list[str], given: dict[str, Any]) -> SiteResponse | None:
    """Put a place into a list, or take it out of it."""
    place, on = given.get("place"), given.get("on")
    if not isinstance(place, str) or place not in catalogue.places or not isinstance(on, bool):
        return _refuse("Name a place, and whether it is to be there.")
    if on and place not in places:
        places.append(place)
    elif not on and place in places:
        places.remove(place)
    return None

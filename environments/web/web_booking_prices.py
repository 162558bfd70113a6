"""What a stay costs, which rooms are free, and until when one cancels free of charge."""

from datetime import date, timedelta
from typing import Any

from web_booking_data import HORIZON, Catalogue, key_of

__all__ = [
    "cancel_fee",
    "day_text",
    "days_of",
    "deadline",
    "free_units",
    "is_free_of_charge",
    "money_text",
    "nightly",
    "policy_text",
    "quote",
    "read_day",
    "span_fault",
    "voucher_fault",
]

MOST_NIGHTS = 21
WEEK = 7
_RISES = (0, 0, 4, 6, 10, 16, 24, 24, 12, 6, 0, 4)
"""By month, how many per cent dearer a night is."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day_text(day: date) -> str:
    """A day as the site writes it, such as "Fri 4 Jun 2027"."""
    return f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def money_text(cents: int) -> str:
    """An amount as the site writes it, such as "€1,204.50"."""
    return f"€{cents / 100:,.2f}"


def read_day(text: Any) -> date | None:
    """A day that a page sends as YYYY-MM-DD, or None."""
    if not isinstance(text, str) or len(text) != len("2027-01-01"):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def days_of(start: date, end: date) -> list[date]:
    """The nights of a stay, by the day on which each begins."""
    return [start + timedelta(days=n) for n in range((end - start).days)]


def span_fault(catalogue: Catalogue, start: date | None, end: date | None) -> str | None:
    """What is wrong with the days of a stay, or None."""
    if start is None or end is None:
        return "Write both days, such as 12 Jun 2027."
    if start < catalogue.today:
        return "The check-in day has passed."
    if end <= start:
        return "Check-out must be after check-in."
    if (end - start).days > MOST_NIGHTS:
        return f"A stay has at most {MOST_NIGHTS} nights."
    if end > catalogue.today + timedelta(days=HORIZON):
        last = day_text(catalogue.today + timedelta(days=HORIZON))
        return f"Places can be booked until {last}."
    return None


def nightly(catalogue: Catalogue, place: dict[str, Any], room: dict[str, Any], night: date) -> int:
    """What a night in a room costs, in cents; whole euros."""
    town = catalogue.town_of(place)
    first = date.fromisoformat(town["festival_from"])
    percent = 100 + _RISES[night.month - 1]
    percent += place["weekend"] if night.weekday() in (4, 5) else 0
    is_festival = first <= night < first + timedelta(days=town["festival_nights"])
    percent += place["festival_rise"] if is_festival else 0
    return (room["base"] * percent // 100 + 50) // 100 * 100


def quote(
    catalogue: Catalogue,
    place: dict[str, Any],
    room: dict[str, Any],
    start: date,
    end: date,
    *,
    adults: int,
    units: int = 1,
    voucher: str | None = None,
) -> dict[str, Any]:
    """Every part of what a stay costs, in cents; what is taken off is negative."""
    days = days_of(start, end)
    nights = sum(nightly(catalogue, place, room, day) for day in days) * units
    weekly = _part(nights, place["weekly"]) if len(days) >= WEEK else 0
    rule = next((v for v in catalogue.vouchers if v["code"] == voucher), None)
    saved = _part(nights - weekly, rule["percent"]) if rule else 0
    cleaning = place["cleaning"] * units
    tax = catalogue.town_of(place)["tax"] * adults * len(days)
    return {
        "count": len(days),
        "nights": nights,
        "weekly": -weekly,
        "voucher": -saved,
        "cleaning": cleaning,
        "tax": tax,
        "total": nights - weekly - saved + cleaning + tax,
    }


def _part(cents: int, percent: int) -> int:
    return (cents * percent + 50) // 100


def voucher_fault(
    catalogue: Catalogue, code: str, place: dict[str, Any], start: date, end: date
) -> str | None:
    """Why a voucher does not hold for a stay, or None."""
    rule = next((v for v in catalogue.vouchers if v["code"] == code), None)
    if rule is None:
        return f"There is no voucher {code}."
    if rule["until"] < catalogue.today.isoformat():
        return f"{code} ended on {day_text(date.fromisoformat(rule['until']))}."
    if (end - start).days < rule["nights"]:
        return f"{code} holds only from {rule['nights']} nights on."
    if rule["kind"] not in (None, place["kind"]):
        return f"{code} holds only for places of the kind “{rule['kind']}”."
    return None


def free_units(
    catalogue: Catalogue,
    site: dict[str, Any],
    room: dict[str, Any],
    start: date,
    end: date,
    *,
    ignoring: str | None = None,
) -> list[int]:
    """The numbers of a kind of room that are free in every night of a stay.

    Args:
        catalogue: What the site offers.
        site: The site's state, with the user's own bookings.
        room: The kind of room.
        start: The day of check-in.
        end: The day of check-out.
        ignoring: The id of a booking that is about to be changed.
    """
    nights = {day.isoformat() for day in days_of(start, end)}
    own: set[int] = set()
    for booking in site["bookings"]:
        if booking["room"] != room["id"] or booking["id"] == ignoring:
            continue
        if booking["status"] == "confirmed" and any(_is_within(booking, n) for n in nights):
            own |= set(booking["units"])
    return [
        unit
        for unit in room["units"]
        if unit not in own
        and not nights & catalogue.taken[key_of(room, unit)]
        and not nights & set(site["closed"].get(key_of(room, unit), ()))
    ]


def _is_within(booking: dict[str, Any], night: str) -> bool:
    return bool(booking["from"] <= night < booking["to"])


def deadline(place: dict[str, Any], start: date) -> date | None:
    """The last day on which a stay is cancelled free of charge; None where there is none."""
    days = place["free_days"]
    return None if days is None else start - timedelta(days=days)


def is_free_of_charge(catalogue: Catalogue, place: dict[str, Any], start: date) -> bool:
    """Whether a stay can be cancelled free of charge today."""
    last = deadline(place, start)
    return last is not None and catalogue.today <= last


def cancel_fee(catalogue: Catalogue, place: dict[str, Any], booking: dict[str, Any]) -> int:
    """What it costs to cancel a booking today, in cents."""
    if is_free_of_charge(catalogue, place, date.fromisoformat(booking["from"])):
        return 0
    price = booking["price"]
    return _part(price["nights"] + price["weekly"] + price["voucher"], place["fee"])


def policy_text(place: dict[str, Any]) -> str:
    """How a place's rule for cancelling is said."""
    days = place["free_days"]
    if days is None:
        return "Not refundable: who cancels pays for all nights."
    when = "1 day" if days == 1 else f"{days} days"
    return (
        f"Free cancellation until 18:00, {when} before check-in. "
        f"Later, {place['fee']} % of the price of the nights is due."
    )

"""What the booking site's tasks expect of its state at their end, and of answers."""

import re
from datetime import date
from typing import Any

from web_booking_draws import Stay

from hud_mcp import Before, Grade, exact_match, grade_checks

__all__ = [
    "grade_booking",
    "grade_cancelled",
    "grade_favourites",
    "grade_guest",
    "grade_moved",
    "names_day",
    "names_only",
]

Site = dict[str, Any]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WRITTEN = (
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"),
    re.compile(r"(?P<d>\d{1,2})[./](?P<m>\d{1,2})[./](?P<y>\d{4})"),
    re.compile(
        r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)? (?:of )?(?P<m>[A-Za-z]{3})[a-z]*\.?,? (?P<y>\d{4})"
    ),
    re.compile(r"(?P<m>[A-Za-z]{3})[a-z]* (?P<d>\d{1,2})(?:st|nd|rd|th)?,? (?P<y>\d{4})"),
)
_NUMBER = re.compile(r"RS-\d{5}")


def names_day(answer: str, day: date) -> bool:
    """Whether an answer names one day, in any usual form, and it is this one."""
    found: set[tuple[int, int, int]] = set()
    for form in _WRITTEN:
        for match in form.finditer(answer):
            month = match["m"].lower()
            number = int(month) if month.isdecimal() else _month_number(month)
            found.add((int(match["y"]), number, int(match["d"])))
    return found == {(day.year, day.month, day.day)}


def _month_number(name: str) -> int:
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


def names_only(answer: str, number: str) -> bool:
    """Whether an answer names one booking's number, and it is this one."""
    return set(_NUMBER.findall(answer.upper())) == {number}


def grade_booking(
    site: Site,
    before: Before,
    known: set[str],
    stay: Stay,
    *,
    form: dict[str, Any],
    units: list[list[int]] | None = None,
    voucher: str | None = None,
    answered: Any,
) -> Grade:
    """Grade one new booking; all but the stay counts only where the stay is as asked.

    Args:
        site: The site's state.
        before: The state when the task began.
        known: The bookings that were there then.
        stay: The place, the kind of room, the days and the people.
        form: What the checkout's form is to say: `mains`, `contact`, `arrival`, `request`.
        units: The rooms that may be booked, each a list; any one of the kind where None.
        voucher: The voucher that is to be used.
        answered: Takes the booking, and says whether the answer is right for it.
    """
    new = [b for b in site["bookings"] if b["id"] not in known]
    new.sort(key=lambda b: (_is_stay(b, stay, units), answered(b)))
    booking = new[-1] if new else None
    if booking is None or not _is_stay(booking, stay, units):
        checks: dict[str, bool] = {"stay": False}
    else:
        checks = {
            "stay": True,
            "main guests": sorted(_plain(n) for n in booking["mains"].values())
            == sorted(_plain(n) for n in form["mains"]),
            "contact": _is_contact(booking["contact"], form["contact"]),
            "arrival": booking["arrival"] == form["arrival"],
            "request": exact_match(booking["request"], form["request"]) == 1
            if form["request"]
            else not booking["request"],
            "answer": bool(answered(booking)),
        }
        if voucher:
            checks["voucher"] = booking["voucher"] == voucher
        elif booking["voucher"]:
            checks["no voucher"] = False
    own = [f"booking.bookings.{booking['id']}"] if booking else []
    return grade_checks(checks, before.changes(beside=own))


def _is_stay(booking: dict[str, Any], stay: Stay, units: list[list[int]] | None) -> bool:
    days = (stay.start.isoformat(), stay.end.isoformat())
    return (
        booking["status"] == "confirmed"
        and booking["place"] == stay.place["id"]
        and booking["room"] == stay.room["id"]
        and (booking["from"], booking["to"]) == days
        and (booking["adults"], booking["children"]) == (stay.adults, stay.children)
        and (booking["units"] in units if units else len(booking["units"]) == 1)
        and not booking["guests"]
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _is_contact(given: dict[str, str], wanted: dict[str, str]) -> bool:
    digits = [re.sub(r"\D", "", each["phone"]).removeprefix("00") for each in (given, wanted)]
    named = all(_plain(given[name]) == _plain(wanted[name]) for name in ("name", "email"))
    return named and digits[0] == digits[1]


def grade_cancelled(site: Site, before: Before, booking_id: str, answer: str) -> Grade:
    """Grade that one booking is cancelled; another that is cancelled too costs all."""
    path = f"booking.bookings.{booking_id}"
    effects = before.changes(beside=[f"{path}.status", f"{path}.fee"])
    status = {b["id"]: b["status"] for b in site["bookings"]}
    others = any(effect.endswith(".status") for effect in effects)
    done = status.get(booking_id) == "cancelled" and not others
    right = done and names_only(answer, booking_id)
    return grade_checks({"cancelled": done, "answer": right}, effects)


def grade_moved(
    site: Site, before: Before, booking_id: str, days: tuple[date, date], *, right: bool
) -> Grade:
    """Grade that one booking is on other days, and nothing else of it has changed."""
    booking = next(b for b in site["bookings"] if b["id"] == booking_id)
    moved = (booking["from"], booking["to"]) == tuple(day.isoformat() for day in days)
    path = f"booking.bookings.{booking_id}"
    allowed = [f"{path}.{name}" for name in ("from", "to", "units", "price", "mains")]
    checks = {"days": moved, "answer": moved and right}
    return grade_checks(checks, before.changes(beside=allowed))


def grade_guest(
    site: Site, before: Before, booking_id: str, guest: tuple[str, str], *, right: bool
) -> Grade:
    """Grade that a booking has one more guest, of a name and a kind."""
    booking = next(b for b in site["bookings"] if b["id"] == booking_id)
    name, kind = guest
    added = [(_plain(g["name"]), g["kind"]) for g in booking["guests"]]
    done = added == [(_plain(name), kind)]
    path = f"booking.bookings.{booking_id}"
    people = "adults" if kind == "adult" else "children"
    allowed = [f"{path}.{part}" for part in ("guests", people, "price")]
    return grade_checks({"guest": done, "answer": done and right}, before.changes(beside=allowed))


def grade_favourites(site: Site, before: Before, name: str, places: list[str]) -> Grade:
    """Grade a new list: how many of the places it has; each that does not belong costs one."""
    row = next((r for r in site["lists"] if exact_match(r["name"], name) == 1), None)
    saved = set(row["places"]) if row else set[str]()
    good, bad = len(saved & set(places)), len(saved - set(places))
    share = max(0, good - bad) / len(places)
    own = [f"booking.lists.{row['id']}"] if row else []
    return grade_checks({"places": share}, before.changes(beside=own))

"""What a message says: its sentences, amounts, dates, times and numbers, in the usual forms."""

import re
import unicodedata
from datetime import date

__all__ = ["DATES", "dates_in", "day_text", "euros", "has_name", "ids_in", "money_in", "points_in"]
__all__ += ["sentences_of", "spoken_day", "times_in"]

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + "|sept"
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DAY_FIRST = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?(?:\s+of)?\s+({_MONTH})\b\.?,?(?:\s+(\d{{4}}))?",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\b\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
_NUMERIC = re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b")
DATES = (_ISO, _DAY_FIRST, _MONTH_FIRST, _NUMERIC)

_ID = re.compile(r"\b[A-Z]{1,3}(?:-\d{2,})+\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b([01]?\d|2[0-3])[:h]([0-5]\d)\b(?:\s*([ap])\.?m\b)?", re.IGNORECASE)
_HOUR = re.compile(r"\b(1[0-2]|[1-9])(?:\.([0-5]\d))?\s*([ap])\.?m\b", re.IGNORECASE)
_NOT_MONEY = re.compile(
    r"\d+(?:[.,]\d+)?\s*(?:%|percent|per cent|points?\b|days?\b)", re.IGNORECASE
)
_CURRENCY = r"(?:€|\beur\b|\beuros?\b)"
_MONEY = re.compile(
    rf"(?P<before>{_CURRENCY})?\s*(?<![\d.,])"
    rf"(?P<whole>\d{{1,3}}(?:[ ,.'\u2019\u00a0\u202f]\d{{3}})+|\d+)"
    rf"(?:[.,](?P<cents>\d{{1,2}}))?(?![\d])\s*(?P<after>{_CURRENCY})?",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(\d{1,3}(?:[ ,.'\u2019]\d{3})+|\d+)\s*(?:loyalty\s+|bonus\s+|valid\s+)*points?\b",
    re.IGNORECASE,
)

Day = tuple[int, int, int | None]


def _plain(text: str) -> str:
    """A text with one form of each letter: without case, an expression takes a long s for an s."""
    return unicodedata.normalize("NFKC", text)


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text, without the marks of its form."""
    plain = re.sub(r"[*_#`>|]+", " ", text.replace("\u2019", "'"))
    plain = re.sub(r"(?m)^\s*(?:\(?\w[.)]|[-•])\s+", "", plain)
    parts = re.split(r"(?<=[.!?;])\s+|\n+", plain)
    return [part.strip() for part in parts if part.strip(" -•")]


def dates_in(text: str) -> set[Day]:
    """Each date as month, day and year; None where no year is told. `03/04/2025` may be both."""
    text = _plain(text)
    found: set[Day] = set()
    found |= {(int(m[2]), int(m[3]), int(m[1])) for m in _ISO.finditer(text)}
    found |= {(_month(m[2]), int(m[1]), _year(m[3])) for m in _DAY_FIRST.finditer(text)}
    found |= {(_month(m[1]), int(m[2]), _year(m[3])) for m in _MONTH_FIRST.finditer(text)}
    for m in _NUMERIC.finditer(text):
        one, two, year = int(m[1]), int(m[2]), int(m[3])
        found |= {(two, one, year), *([(one, two, year)] if "/" in m[0] else [])}
    return {day for day in found if 1 <= day[0] <= len(MONTHS)}


def has_day(text: str, day: date) -> bool:
    """Whether a text names a day, with its year or without one."""
    return any(d[:2] == (day.month, day.day) and d[2] in (None, day.year) for d in dates_in(text))


def times_in(text: str) -> set[str]:
    """Each time of the day, as `16:30`."""
    text = _plain(text)
    clocks = [(int(m[1]), m[2], (m[3] or "").lower()) for m in _CLOCK.finditer(text)]
    hours = [(int(m[1]), m[2] or "00", m[3].lower()) for m in _HOUR.finditer(text)]
    return {f"{_hour(hour, half):02}:{minute}" for hour, minute, half in [*clocks, *hours]}


def money_in(text: str) -> set[int]:
    """Each amount in cents: with its currency, or with two decimals."""
    text = _plain(text)
    for pattern in (_ID, *DATES, _CLOCK, _HOUR, _NOT_MONEY):
        text = pattern.sub(" ~ ", text)
    found: set[int] = set()
    for m in _MONEY.finditer(text):
        cents = m["cents"] or ""
        if m["before"] or m["after"] or len(cents) == 2:  # noqa: PLR2004  # as prices are written
            found.add(int(re.sub(r"\D", "", m["whole"])) * 100 + int(cents.ljust(2, "0")))
    return found


def points_in(text: str) -> set[int]:
    """Each number of points."""
    return {int(re.sub(r"\D", "", m[1])) for m in _POINTS.finditer(_plain(text))}


def ids_in(text: str) -> set[str]:
    """Each number of an order, a card or a parcel."""
    return {m[0].upper() for m in _ID.finditer(_plain(text))}


def has_name(text: str, name: str) -> bool:
    """Whether a text has a name, whatever its capitals and spaces."""
    words = r"\W+".join(re.escape(word) for word in re.findall(r"\w+", _plain(name)))
    return re.search(rf"(?<!\w){words}(?!\w)", _plain(text), re.IGNORECASE) is not None


def euros(cents: int) -> str:
    """An amount as people write it."""
    return f"{cents / 100:.2f}"


def day_text(day: str) -> str:
    """A day of the database as people write it: `14 March 2025`."""
    return spoken_day(date.fromisoformat(day))


def spoken_day(day: date) -> str:
    """The same of a date."""
    return f"{day.day} {MONTHS[day.month - 1].capitalize()} {day.year}"


def _month(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _year(text: str | None) -> int | None:
    return int(text) if text else None


def _hour(hour: int, half: str) -> int:
    if not half:
        return hour
    return hour % 12 + (12 if half == "p" else 0)

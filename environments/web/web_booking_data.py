"""What the booking site offers: towns, places, rooms, reviews and vouchers, drawn from a seed."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from math import hypot
from random import Random
from statistics import fmean
from typing import Any

import web_booking_words as words

__all__ = [
    "HORIZON",
    "METRES",
    "Catalogue",
    "distance_m",
    "draw_catalogue",
    "draw_person",
    "key_of",
    "room_of",
]

HORIZON = 170
"""How many nights from today can be booked."""

METRES = 56
"""How many metres one unit of a town's map is."""

_PER_TOWN = (("Hotel", 3), ("Guest house", 3), ("Cabin", 1))
_STEP_M = 50


@dataclass(frozen=True)
class Catalogue:
    """All that the site offers, and that no guest changes.

    Attributes:
        today: The day on which every session takes place.
        towns: By id.
        places: By id, with their rooms and reviews.
        taken: By `key_of` a room's number: the nights that other guests have booked.
        vouchers: Those that were ever offered.
    """

    today: date
    towns: dict[str, dict[str, Any]]
    places: dict[str, dict[str, Any]]
    taken: dict[str, frozenset[str]]
    vouchers: tuple[dict[str, Any], ...]

    def town_of(self, place: dict[str, Any]) -> dict[str, Any]:
        """The town in which a place is."""
        return self.towns[place["town"]]


def key_of(room: dict[str, Any], unit: int) -> str:
    """What names one room of a kind in the whole site."""
    return f"{room['id']}/{unit}"


def room_of(place: dict[str, Any], room_id: str) -> dict[str, Any] | None:
    """The kind of rooms with an id, if the place has it."""
    return next((room for room in place["rooms"] if room["id"] == room_id), None)


def distance_m(place: dict[str, Any], sight: dict[str, Any]) -> int:
    """How far a place is from a sight of its town, in metres as the site says it."""
    far = hypot(place["x"] - sight["x"], place["y"] - sight["y"]) * METRES
    return max(_STEP_M, round(far / _STEP_M) * _STEP_M)


def draw_person(rng: Random) -> dict[str, str]:
    """A person with an address and a telephone number."""
    first, last = rng.choice(words.FIRST_NAMES), rng.choice(words.LAST_NAMES)
    plain = last.translate(str.maketrans({"ö": "o", "ü": "u", "ø": "o"}))
    email = f"{first}.{plain}@{rng.choice(('post', 'mail', 'letters'))}.example".lower()
    return {"name": f"{first} {last}", "email": email, "phone": f"+41 79 {rng.randint(1000, 9999)}"}


@lru_cache(maxsize=32)
def draw_catalogue(seed: int) -> Catalogue:
    """Draw all that the site offers; the same seed gives the same."""
    rng = Random(f"booking/catalogue/{seed}")  # noqa: S311  # a site is no secret
    today = date(2027, 3, 1) + timedelta(days=rng.randrange(60))
    names = {
        "Hotel": rng.sample(words.HOTELS, len(words.HOTELS)),
        "Guest house": rng.sample(words.GUEST_HOUSES, len(words.GUEST_HOUSES)),
        "Cabin": rng.sample(words.CABINS, len(words.CABINS)),
    }
    towns = [_draw_town(rng, name, today) for name in rng.sample(words.TOWNS, 6)]
    places: list[dict[str, Any]] = []
    for town in towns:
        kinds = [kind for kind, count in _PER_TOWN for _ in range(count)]
        kinds += [rng.choice(("Cabin", "Guest house"))] if rng.random() < 0.4 else []  # noqa: PLR2004
        places += [_draw_place(rng, names[k].pop(), k, town, today) for k in kinds]
    rng.shuffle(places)
    taken = {
        key_of(room, unit): _draw_taken(rng, today, busy=room["busy"])
        for place in places
        for room in place["rooms"]
        for unit in room["units"]
    }
    return Catalogue(
        today=today,
        towns={town["id"]: town for town in towns},
        places={place["id"]: place for place in places},
        taken=taken,
        vouchers=_draw_vouchers(rng, today),
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("'", "")).strip("-")


def _draw_town(rng: Random, name: str, today: date) -> dict[str, Any]:
    sight = rng.choice(words.SIGHTS)
    return {
        "id": _slug(name),
        "name": name,
        "region": rng.choice(words.REGIONS),
        "tax": rng.randrange(120, 360, 10),
        "festival": rng.choice(words.FESTIVALS),
        "festival_from": (today + timedelta(days=rng.randrange(20, 110))).isoformat(),
        "festival_nights": rng.randint(3, 5),
        "sights": [
            {"name": "Centre", "x": 50, "y": 50},
            {"name": "Station", "x": rng.randint(18, 40), "y": rng.randint(60, 84)},
            {"name": sight, "x": rng.randint(60, 86), "y": rng.randint(12, 38)},
        ],
    }


def _draw_place(
    rng: Random, name: str, kind: str, town: dict[str, Any], today: date
) -> dict[str, Any]:
    level = rng.uniform(0.75, 1.45)
    stars = min(5, max(2, round(level * 2.6 + rng.uniform(0, 0.9))))
    own = ["Kitchen", "Parking"] if kind == "Cabin" else ["Wi-Fi"]
    more = [f for f in words.FACILITIES if f not in own]
    facilities = {*own, *rng.sample(more, rng.randint(3, 6))}
    days = rng.choice((1, 2, 3, 5, 7, 10, 14, 21, None))
    reviews = _draw_reviews(rng, level, today)
    place = {
        "id": _slug(name),
        "name": name,
        "kind": kind,
        "town": town["id"],
        "stars": stars,
        "x": rng.randint(12, 88),
        "y": rng.randint(12, 88),
        "facilities": [f for f in words.FACILITIES if f in facilities],
        "free_days": days,
        "fee": 100 if days is None else rng.choice((30, 50, 80)),
        "cleaning": rng.choice((0, 0, 1500, 2500, 3500, 4500, 6000)),
        "weekly": rng.choice((0, 5, 8, 10, 12, 15)),
        "weekend": rng.choice((0, 8, 10, 15, 20, 25)),
        "festival_rise": rng.choice((15, 25, 40)),
        "blurb": rng.choice(words.BLURBS),
        "hue": rng.randrange(0, 360, 12),
        "reviews": reviews,
        "rating": round(fmean(review["score"] for review in reviews), 1),
    }
    place["rooms"] = _draw_rooms(rng, place, level)
    return place


def _draw_rooms(rng: Random, place: dict[str, Any], level: float) -> list[dict[str, Any]]:
    kinds = words.ROOMS[place["kind"]]
    counts = [rng.randint(1, 2) if place["kind"] == "Cabin" else rng.randint(2, 3) for _ in kinds]
    if place["kind"] == "Hotel":
        counts[2] = 6
    numbers = _draw_numbers(rng, place["kind"], counts)
    return [
        {
            "id": f"{place['id']}-{short}",
            "name": name,
            "beds": beds,
            "sleeps": sleeps,
            "base": round(euros * level * rng.uniform(0.92, 1.1)) * 100,
            "units": units,
            "busy": rng.uniform(0.22, 0.46),
        }
        for (short, name, beds, sleeps, euros), units in zip(kinds, numbers, strict=True)
    ]


def _draw_numbers(rng: Random, kind: str, counts: list[int]) -> list[list[int]]:
    """Give the kinds of rooms their numbers: on floors, in runs of rooms side by side."""
    if kind == "Cabin":
        every = iter(range(1, sum(counts) + 1))
        return [[next(every) for _ in range(count)] for count in counts]
    numbers: list[list[int]] = [[] for _ in counts]
    left = [index for index, count in enumerate(counts) for _ in range(count)]
    runs = [left[at : at + 3] for at in range(0, len(left), 3)]
    rng.shuffle(runs)
    per_floor = 6
    for at, index in enumerate(index for run in runs for index in run):
        numbers[index].append((at // per_floor + 1) * 100 + at % per_floor + 1)
    return [sorted(each) for each in numbers]


def _draw_taken(rng: Random, today: date, *, busy: float) -> frozenset[str]:
    """The nights of one room that are sold: stays of one to five nights, weekends first."""
    taken: set[str] = set()
    at = 0
    while at < HORIZON:
        day = today + timedelta(days=at)
        weekend = day.weekday() in (4, 5)
        if rng.random() < busy * (0.75 if weekend else 0.42):
            nights = rng.randint(1, 5)
            taken |= {(day + timedelta(days=n)).isoformat() for n in range(nights)}
            at += nights
        else:
            at += 1
    return frozenset(taken)


def _draw_reviews(rng: Random, level: float, today: date) -> list[dict[str, Any]]:
    people = rng.sample(range(len(words.FIRST_NAMES)), rng.randint(8, 15))
    rows: list[dict[str, Any]] = []
    for person in people:
        score = min(10, max(3, round(rng.gauss(6.6 + level, 1.5))))
        praise = rng.sample(words.PRAISE, 2 if score >= 8 else 1)  # noqa: PLR2004
        trouble = rng.sample(words.TROUBLE, 1 if score <= 8 else 0)  # noqa: PLR2004
        rows.append(
            {
                "name": f"{words.FIRST_NAMES[person]} {rng.choice(words.LAST_NAMES)[0]}.",
                "kind": rng.choice(words.TRAVELLERS[:4] + words.TRAVELLERS[:2] + words.TRAVELLERS),
                "score": score,
                "day": (today - timedelta(days=rng.randrange(5, 600))).isoformat(),
                "text": " ".join([*praise, *trouble]),
            }
        )
    return sorted(rows, key=lambda row: row["day"], reverse=True)


def _draw_vouchers(rng: Random, today: date) -> tuple[dict[str, Any], ...]:
    """Five vouchers: one ended; the best others ask for nights or for a kind of place."""
    codes = [f"{word}{rng.randint(10, 99)}" for word in rng.sample(words.CODES, 5)]
    ahead = [(today + timedelta(days=rng.randint(9, 70))).isoformat() for _ in codes]
    ended = (today - timedelta(days=rng.randint(3, 12))).isoformat()
    small, middle, large = rng.randint(5, 8), rng.randint(11, 14), rng.randint(17, 20)
    rules = [
        {"percent": large + 6, "nights": 2, "kind": None, "until": ended},
        {"percent": large, "nights": 3, "kind": None, "until": ahead[1]},
        {"percent": large + 3, "nights": 2, "kind": "Cabin", "until": ahead[2]},
        {"percent": middle, "nights": 2, "kind": rng.choice(words.KINDS[:2]), "until": ahead[3]},
        {"percent": small, "nights": 1, "kind": None, "until": ahead[4]},
    ]
    rows = [{"code": code, **rule} for code, rule in zip(codes, rules, strict=True)]
    rng.shuffle(rows)
    return tuple(rows)

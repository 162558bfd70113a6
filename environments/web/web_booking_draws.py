"""What the booking site's questions are about, drawn until a case has what makes it a task."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from statistics import fmean
from typing import Any

from web_booking_data import Catalogue, distance_m
from web_booking_prices import free_units, quote
from web_booking_search import cheapest_room
from web_booking_state import catalogue_of, new_booking_site
from web_booking_words import FACILITIES, KINDS, TRAVELLERS, TROUBLE

__all__ = [
    "Cheapest",
    "Count",
    "Search",
    "Stay",
    "Weekend",
    "attempts",
    "draw_cheapest",
    "draw_count",
    "draw_review_mean",
    "draw_review_trouble",
    "draw_stay",
    "draw_weekend",
    "party_text",
]

Place = dict[str, Any]
_MOST_ATTEMPTS = 20_000
_MOST_AIMED = 2_000
SATURDAY = 5
FRIDAY = 4


def attempts(purpose: str, seed: int) -> Iterator[Random]:
    """Draw again and again from one generator.

    Raises:
        LookupError: Nothing that fits was found in very many attempts.
    """
    rng = Random(f"booking/{purpose}/{seed}")  # noqa: S311  # a site is no secret
    for _ in range(_MOST_ATTEMPTS):
        yield rng
    raise LookupError(f"no {purpose} of the seed {seed} is fit for a task")


class _Aim:
    """A number that is drawn first, so that small ones are no more likely than others."""

    def __init__(self, seed: int, least: int, most: int) -> None:
        self._range = range(least, most + 1)
        self._number = Random(f"booking/aim/{seed}").choice(self._range)  # noqa: S311  # as above
        self._asked = 0

    def accepts(self, number: int) -> bool:
        """Whether it is that number; after very many others, whether it is of the range."""
        self._asked += 1
        return number == self._number or (self._asked > _MOST_AIMED and number in self._range)


def party_text(adults: int, children: int) -> str:
    """How many travel, in words for a prompt."""
    text = "1 adult" if adults == 1 else f"{adults} adults"
    if children:
        text += " and 1 child" if children == 1 else f" and {children} children"
    return text


@dataclass(frozen=True)
class Stay:
    """A kind of room at a place, on days on which one is free."""

    place: Place
    room: dict[str, Any]
    start: date
    end: date
    adults: int
    children: int


@dataclass(frozen=True)
class Search:
    """Filters of the list of places, as the page offers them."""

    town: str = ""
    kind: str = ""
    stars: int = 0
    rating: float = 0.0
    near: int = 0
    facilities: tuple[str, ...] = ()
    free: bool = False

    def keeps(self, catalogue: Catalogue, place: Place) -> bool:
        """Whether a place passes all filters."""
        centre = catalogue.town_of(place)["sights"][0]
        return (
            self.town in ("", place["town"])
            and self.kind in ("", place["kind"])
            and place["stars"] >= self.stars
            and place["rating"] >= self.rating
            and (not self.near or distance_m(place, centre) <= self.near)
            and set(self.facilities) <= set(place["facilities"])
            and (not self.free or place["free_days"] is not None)
        )

    def found(self, catalogue: Catalogue) -> list[Place]:
        """The places that pass."""
        return [place for place in catalogue.places.values() if self.keeps(catalogue, place)]

    def words(self) -> str:
        """What passes, as a prompt says it: that have, are, lie."""
        parts: list[str] = []
        if self.stars:
            parts.append(f"have {self.stars} stars or more")
        if self.rating:
            parts.append(f"are rated {self.rating:.1f} or more by guests")
        if self.facilities:
            parts.append(f"list {' and '.join(self.facilities)} among their facilities")
        if self.near:
            parts.append(f"lie at most {self.near} m from the centre")
        if self.free:
            parts.append("offer free cancellation")
        return ", ".join(parts[:-1]) + (" and " if parts[:-1] else "") + parts[-1]


@dataclass(frozen=True)
class Cheapest:
    """Places of one town, of which another is the cheapest in all than by the night."""

    search: Search
    start: date
    end: date
    adults: int
    children: int
    best: Place
    bait: Place
    candidates: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Count:
    """Filters, and how many places pass them."""

    search: Search
    number: int


@dataclass(frozen=True)
class Weekend:
    """A kind of room, a month, and the first Friday of it from which it is free for two nights."""

    place: Place
    room: dict[str, Any]
    month: date
    friday: date


def _draw_place(rng: Random, catalogue: Catalogue) -> Place:
    return catalogue.places[rng.choice(sorted(catalogue.places))]


def draw_stay(
    seed: int,
    nights: int,
    *,
    purpose: str = "stay",
    fits: Callable[[Catalogue, Stay], bool] = lambda _catalogue, _stay: True,
) -> Stay:
    """A stay of so many nights that can be booked."""
    site = new_booking_site(seed)
    catalogue = catalogue_of(site)
    for rng in attempts(purpose, seed):
        place = _draw_place(rng, catalogue)
        room = rng.choice([room for room in place["rooms"] if room["sleeps"] > 1])
        start = catalogue.today + timedelta(days=rng.randint(12, 100))
        stay = Stay(
            place=place,
            room=room,
            start=start,
            end=start + timedelta(days=nights),
            adults=2 if room["sleeps"] > 2 else rng.randint(1, 2),  # noqa: PLR2004
            children=rng.randint(1, room["sleeps"] - 2) if room["sleeps"] > 2 else 0,  # noqa: PLR2004
        )
        if free_units(catalogue, site, room, start, stay.end) and fits(catalogue, stay):
            return stay
    raise AssertionError


def total_in(
    catalogue: Catalogue,
    site: dict[str, Any],
    place: Place,
    stay: tuple[date, date],
    party: tuple[int, int],
) -> int | None:
    """The lowest total of one room in which all fit, in cents."""
    start, end = stay
    adults, children = party
    totals = [
        quote(catalogue, place, room, start, end, adults=adults)["total"]
        for room in place["rooms"]
        if room["sleeps"] >= adults + children and free_units(catalogue, site, room, start, end)
    ]
    return min(totals, default=None)


def draw_cheapest(seed: int, nights: int) -> Cheapest:
    """A search with three to five places, of which the lowest price of a night misleads."""
    site = new_booking_site(seed)
    catalogue = catalogue_of(site)
    for rng in attempts("cheapest", seed):
        search = Search(
            town=rng.choice(sorted(catalogue.towns)),
            stars=rng.choice((0, 3)),
            facilities=tuple(rng.sample(FACILITIES[:4], rng.randint(0, 1))),
            free=rng.random() < 0.4,  # noqa: PLR2004
        )
        if search == Search(town=search.town):
            continue
        start = catalogue.today + timedelta(days=rng.randint(14, 90))
        stay = (start, start + timedelta(days=nights))
        adults, children = rng.choice(((2, 0), (2, 1), (2, 2), (1, 0)))
        able: list[tuple[int, int, Place]] = []
        for place in search.found(catalogue):
            nightly = cheapest_room(catalogue, site, place, stay, (adults, children, 1))
            total = total_in(catalogue, site, place, stay, (adults, children))
            if nightly and total is not None:
                able.append((total, nightly[0], place))
        if not 3 <= len(able) <= 5:  # noqa: PLR2004
            continue
        able.sort(key=lambda each: each[0])
        bait = min(able, key=lambda each: each[1])
        if bait is not able[0] and able[1][0] - able[0][0] >= 200:  # noqa: PLR2004
            return Cheapest(
                search, *stay, adults, children, able[0][2], bait[2], [p for _, _, p in able]
            )
    raise AssertionError


def draw_count(seed: int, filters: int) -> Count:
    """Filters that two to seven places pass, and without each of which more would."""
    catalogue = catalogue_of(new_booking_site(seed))
    aim = _Aim(seed, 2, 7)
    for rng in attempts(f"count {filters}", seed):
        chosen = rng.sample(("stars", "rating", "near", "facilities", "free"), filters)
        search = Search(
            kind=rng.choice((*KINDS[:2], "", "")),
            stars=rng.choice((3, 4)) if "stars" in chosen else 0,
            rating=rng.choice((7.5, 8.0)) if "rating" in chosen else 0.0,
            near=rng.choice((1000, 1500)) if "near" in chosen else 0,
            facilities=(rng.choice(FACILITIES),) if "facilities" in chosen else (),
            free="free" in chosen,
        )
        number = len(search.found(catalogue))
        if aim.accepts(number) and all(w != number for w in _without_one(catalogue, search)):
            return Count(search, number)
    raise AssertionError


def _without_one(catalogue: Catalogue, search: Search) -> Iterator[int]:
    for name, default in vars(Search()).items():
        given = vars(search)
        if given[name] != default:
            yield len(Search(**{**given, name: default}).found(catalogue))


def draw_weekend(seed: int) -> Weekend:
    """A month in which the first free weekend is not the first, and one night misleads before."""
    site = new_booking_site(seed)
    catalogue = catalogue_of(site)
    for rng in attempts("weekend", seed):
        place = _draw_place(rng, catalogue)
        room = rng.choice(place["rooms"])
        month = (catalogue.today.replace(day=1) + timedelta(days=32 * rng.randint(1, 3))).replace(
            day=1
        )
        fridays = [day for n in range(28) if (day := month + timedelta(days=n)).weekday() == FRIDAY]
        free = [f for f in fridays if free_units(catalogue, site, room, f, f + timedelta(days=2))]
        if not free or free[0] in fridays[:1]:
            continue
        earlier = fridays[: fridays.index(free[0])]
        if any(free_units(catalogue, site, room, f, f + timedelta(days=1)) for f in earlier):
            return Weekend(place, room, month, free[0])
    raise AssertionError


def draw_review_mean(seed: int) -> tuple[Place, str, float]:
    """A place, a kind of travellers with three reviews or more there, and their mean score."""
    catalogue = catalogue_of(new_booking_site(seed))
    for rng in attempts("review mean", seed):
        place = _draw_place(rng, catalogue)
        kind = rng.choice(TRAVELLERS)
        scores = [row["score"] for row in place["reviews"] if row["kind"] == kind]
        mean = fmean(scores) if scores else 0
        if len(scores) >= 3 and round(mean, 1) != place["rating"] and (mean * 100) % 10 != 5:  # noqa: PLR2004
            return place, kind, mean
    raise AssertionError


def draw_review_trouble(seed: int) -> tuple[Place, str, int]:
    """A place, a complaint, and how many guests have it, on more than one page of reviews."""
    catalogue = catalogue_of(new_booking_site(seed))
    aim = _Aim(seed, 2, 4)
    for rng in attempts("review trouble", seed):
        place = _draw_place(rng, catalogue)
        trouble = rng.choice(TROUBLE)
        at = [i for i, row in enumerate(place["reviews"]) if trouble in row["text"]]
        if aim.accepts(len(at)) and at[-1] >= 5 and len(place["reviews"]) > 5:  # noqa: PLR2004
            return place, trouble, len(at)
    raise AssertionError

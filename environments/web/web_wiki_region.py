"""The region that the wiki is about: its rivers, towns, people, buildings and events.

All of it is drawn from a seed. What is special about some of its things, so that a task can ask
for it, stands in `web_wiki_data`; here is only what is true.
"""

from dataclasses import dataclass
from random import Random

import web_wiki_names as names

__all__ = [
    "Bridge",
    "Building",
    "Event",
    "Hill",
    "Person",
    "Region",
    "River",
    "Town",
    "draw_region",
]

_BRIDGE_TOWNS = (0, 5, 10, 1, 6, 11, 2, 7, 3)
"""Three bridges each over the first two rivers, which tasks compare."""
_ROLES = ("engineer",) * 5 + ("architect",) * 5 + ("painter",) * 3 + ("botanist",) * 2
_KINDS = (
    ("observatory", "Observatory"),
    ("museum", "Museum"),
    ("theatre", "Playhouse"),
    ("mill", "Old Mill"),
    ("library", "Library"),
    ("library", "Town Library"),
    ("clock tower", "Clock Tower"),
    ("market hall", "Market Hall"),
    ("railway station", "Station"),
    ("water tower", "Water Tower"),
    ("town hall", "Town Hall"),
    ("granary", "Granary"),
)


@dataclass(frozen=True)
class Hill:
    """A hill; heights are in metres."""

    name: str
    height: int
    climbed: int


@dataclass(frozen=True)
class River:
    """A river; its length is in kilometres."""

    name: str
    length: int
    source: Hill
    mouth: str


@dataclass(frozen=True)
class Town:
    """A town on a river; `title` is its article's, `name` what it is called."""

    name: str
    title: str
    river: River
    founded: int
    population: int
    trade: str

    @property
    def link(self) -> str:
        """A link to its article that shows its name."""
        return link(self.title, self.name)


@dataclass(frozen=True)
class Person:
    """Somebody of the past; `title` tells namesakes apart."""

    name: str
    title: str
    role: str
    born: int
    died: int
    home: Town
    grave: Town

    @property
    def link(self) -> str:
        """A link to the article that shows the name."""
        return link(self.title, self.name)


@dataclass(frozen=True)
class Bridge:
    """A bridge in a town, over the town's river."""

    name: str
    town: Town
    designer: Person
    opened: int
    length: int
    height: int
    material: str


@dataclass(frozen=True)
class Building:
    """A building in a town."""

    name: str
    kind: str
    town: Town
    architect: Person
    completed: int
    height: int


@dataclass(frozen=True)
class Event:
    """A flood that took a wooden bridge, which `bridge` has replaced."""

    name: str
    year: int
    bridge: Bridge
    houses: int


@dataclass(frozen=True)
class Region:
    """Everything that is there; the order within a tuple is of no meaning to a reader."""

    seed: int
    name: str
    sea: str
    hills: tuple[Hill, ...]
    rivers: tuple[River, ...]
    towns: tuple[Town, ...]
    people: tuple[Person, ...]
    bridges: tuple[Bridge, ...]
    buildings: tuple[Building, ...]
    events: tuple[Event, ...]
    editors: tuple[str, ...]

    def of_role(self, role: str) -> list[Person]:
        """The people who were this by trade."""
        return [person for person in self.people if person.role == role]

    def bridges_over(self, river: River) -> list[Bridge]:
        """The bridges over a river."""
        return [bridge for bridge in self.bridges if bridge.town.river == river]

    def towns_on(self, river: River) -> list[Town]:
        """The towns on a river."""
        return [town for town in self.towns if town.river == river]


def link(title: str, text: str) -> str:
    """A link in the wiki's markup."""
    return f"[[{title}]]" if title == text else f"[[{title}|{text}]]"


def draw_region(seed: int) -> Region:
    """The region of a seed: always the same one."""
    draw = Random(f"wiki/region/{seed}")  # noqa: S311  # content, and no secret
    sea = draw.choice(names.SEAS)
    hills = tuple(
        Hill(name, height, draw.randint(1790, 1880))
        for name, height in zip(
            names.draw_hills(draw, 5), draw.sample(range(340, 1490), 5), strict=True
        )
    )
    rivers = _draw_rivers(draw, hills, sea)
    towns = _draw_towns(draw, rivers)
    people = _draw_people(draw, towns)
    bridges = _draw_bridges(draw, towns, people)
    return Region(
        seed=seed,
        name=f"{draw.choice(names.REGIONS)} of {draw.choice(names.REALMS)}",
        sea=sea,
        hills=hills,
        rivers=rivers,
        towns=towns,
        people=people,
        bridges=bridges,
        buildings=_draw_buildings(draw, towns, people),
        events=_draw_events(draw, bridges),
        editors=tuple(draw.sample(names.EDITORS, 12)),
    )


def _draw_rivers(draw: Random, hills: tuple[Hill, ...], sea: str) -> tuple[River, ...]:
    called = names.draw_rivers(draw, 5)
    lengths = draw.sample(range(48, 236), 5)
    return tuple(
        River(name, length, hill, sea if place < 2 else called[place % 2])  # noqa: PLR2004
        for place, (name, length, hill) in enumerate(zip(called, lengths, hills, strict=True))
    )


def _draw_towns(draw: Random, rivers: tuple[River, ...]) -> tuple[Town, ...]:
    """Twelve towns, of which the first two have one name and a river each."""
    called = names.draw_towns(draw, 11)
    called.insert(1, called[0])
    years = draw.sample(range(1020, 1640), 12)
    people = draw.sample(range(1_900, 68_000), 12)
    trades = draw.sample(names.TRADES, 12)
    found: list[Town] = []
    for place, name in enumerate(called):
        river = rivers[place % 5]
        title = f"{name} ({river.name.removeprefix('River ')})" if place < 2 else name  # noqa: PLR2004
        found.append(Town(name, title, river, years[place], people[place], trades[place]))
    return tuple(found)


def _draw_people(draw: Random, towns: tuple[Town, ...]) -> tuple[Person, ...]:
    """Fifteen people, of whom an engineer and a painter have one name."""
    called = names.draw_people(draw, len(_ROLES))
    called[10] = called[0]
    born = draw.sample(range(1808, 1862), len(_ROLES))
    found: list[Person] = []
    for place, (name, role) in enumerate(zip(called, _ROLES, strict=True)):
        title = f"{name} ({role})" if place in (0, 10) else name
        # Of the fourth town come three people, of one trade each.
        home = towns[3] if place in (2, 6, 14) else draw.choice(towns[4:])
        taken = (home, towns[3], found[0].grave if found else None)
        grave = draw.choice([t for t in towns[2:] if t not in taken])
        grave = towns[3] if place in (4, 8) else grave
        died = born[place] + draw.randint(58, 88)
        found.append(Person(name, title, role, born[place], died, home, grave))
    return tuple(found)


def _draw_bridges(
    draw: Random, towns: tuple[Town, ...], people: tuple[Person, ...]
) -> tuple[Bridge, ...]:
    called = draw.sample(names.BRIDGES, len(_BRIDGE_TOWNS))
    engineers = [p for p in people if p.role == "engineer"]
    lengths = draw.sample(range(62, 418), len(called))
    heights = draw.sample(range(9, 58), len(called))
    years = draw.sample(range(28, 47), len(called))
    found: list[Bridge] = []
    for place, name in enumerate(called):
        designer = engineers[place % len(engineers)]
        opened = designer.born + years[place]
        material = draw.choice(("stone", "iron", "brick", "steel"))
        town = towns[_BRIDGE_TOWNS[place]]
        found.append(Bridge(name, town, designer, opened, lengths[place], heights[place], material))
    return tuple(found)


def _draw_buildings(
    draw: Random, towns: tuple[Town, ...], people: tuple[Person, ...]
) -> tuple[Building, ...]:
    architects = [p for p in people if p.role == "architect"]
    heights = draw.sample(range(14, 86), len(_KINDS))
    years = draw.sample(range(27, 52), len(_KINDS))
    # The two libraries stand in the two towns of one name.
    places = dict(enumerate(draw.sample(range(2, 12), 10)))
    order = [places[i] for i in range(4)] + [0, 1] + [places[i] for i in range(4, 10)]
    found: list[Building] = []
    for place, (kind, noun) in enumerate(_KINDS):
        town = towns[order[place]]
        architect = architects[place % len(architects)]
        completed = architect.born + years[place]
        name = f"{town.name} {noun}"
        found.append(Building(name, kind, town, architect, completed, heights[place]))
    return tuple(found)


def _draw_events(draw: Random, bridges: tuple[Bridge, ...]) -> tuple[Event, ...]:
    """Four floods, in different years, each before the bridge that came of it was opened."""
    found: list[Event] = []
    years: set[int] = set()
    for place in draw.sample(range(6), 4):
        bridge = bridges[place]
        year = bridge.opened - draw.randint(3, 6)
        while year in years:
            year -= 1
        years.add(year)
        name = f"{draw.choice(('Great', 'Spring', 'Autumn', 'Harvest'))} Flood of {year}"
        found.append(Event(name, year, bridge, draw.randint(18, 240)))
    return tuple(found)

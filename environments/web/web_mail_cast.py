"""Who writes to whom in the mailbox of a seed, and on which day it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

__all__ = ["Cast", "Firm", "Person", "draw_cast"]

_FIRST = [
    "Adele",
    "Amir",
    "Beate",
    "Bruno",
    "Celia",
    "Daniel",
    "Dora",
    "Edgar",
    "Elif",
    "Farid",
    "Freya",
    "Goran",
    "Greta",
    "Hanna",
    "Hugo",
    "Ida",
    "Ines",
    "Jakob",
    "Judith",
    "Kofi",
    "Lena",
    "Levin",
    "Maja",
    "Milan",
    "Nadia",
    "Noel",
    "Olga",
    "Oskar",
    "Paula",
    "Pavel",
    "Rosa",
    "Ruben",
    "Sanna",
    "Tariq",
    "Thea",
    "Ulrich",
    "Vera",
    "Viktor",
    "Wanda",
    "Yusuf",
]
_LAST = [
    "Abel",
    "Ahrens",
    "Bakker",
    "Berger",
    "Brandt",
    "Castell",
    "Conti",
    "Dahl",
    "Decker",
    "Egger",
    "Fontaine",
    "Frey",
    "Gallo",
    "Hale",
    "Hartig",
    "Holm",
    "Ivers",
    "Janik",
    "Keller",
    "Kovac",
    "Lang",
    "Lindt",
    "Marek",
    "Moreau",
    "Nowak",
    "Okafor",
    "Orban",
    "Peters",
    "Quist",
    "Ramos",
    "Richter",
    "Sala",
    "Seidel",
    "Sommer",
    "Tanner",
    "Thorne",
    "Ullmann",
    "Varga",
    "Voss",
    "Weller",
    "Winter",
    "Yildiz",
    "Zeller",
]
_ALIKE = (
    ("Marta", "Nilsen", "Nielsen"),
    ("Katrin", "Meyer", "Maier"),
    ("Stefan", "Petersen", "Pedersen"),
    ("Clara", "Hoffman", "Hofmann"),
    ("Jon", "Lindqvist", "Lindquist"),
    ("Anne", "Larsen", "Larson"),
)
_EMPLOYERS = (
    ("Fernhill Design", "fernhill.example"),
    ("Oakmere Press", "oakmere.example"),
    ("Tidewell Studio", "tidewell.example"),
    ("Brackenford Maps", "brackenford.example"),
)
_FIRMS = (
    ("Corvid Catering", "corvid-catering.example", "the summer party", "the board dinner"),
    ("Lumen Stage", "lumenstage.example", "the stage lights", "the loudspeakers"),
    ("Pine & Plane", "pineandplane.example", "the reception desk", "the book shelves"),
    ("Northbay Print", "northbay-print.example", "the spring catalogue", "the wall calendar"),
    ("Quarry Floors", "quarryfloors.example", "the new floor", "the stair treads"),
    ("Ridge Coaches", "ridgecoaches.example", "the coach to the fair", "the airport transfer"),
    ("Solway Networks", "solway-networks.example", "the office network", "the meeting screens"),
    ("Thistle Gardens", "thistlegardens.example", "the roof garden", "the window boxes"),
    ("Umber Paints", "umberpaints.example", "the hallway", "the workshop"),
    ("Vantage Films", "vantagefilms.example", "the portrait film", "the training clips"),
)


@dataclass(frozen=True)
class Person:
    """Somebody with an address; `company` and `phone` may be unknown to the address book."""

    name: str
    email: str
    company: str = ""
    phone: str = ""

    @property
    def first(self) -> str:
        """The first name."""
        return self.name.split()[0]


@dataclass(frozen=True)
class Firm:
    """A business that the mailbox's owner deals with, its voice, and what it makes offers for."""

    name: str
    domain: str
    item: str
    other_item: str
    person: Person


@dataclass(frozen=True)
class Cast:
    """Everybody of one mailbox.

    Attributes:
        me: The mailbox's owner.
        employer: Where the owner works.
        domain: The employer's.
        team: Colleagues, each with a first name that no other has.
        firms: In an order that the seed draws.
        alike: Two people of two firms whose names are nearly the same.
        today: A working day in the middle of a month.
        seed: What it was all drawn from.
    """

    me: Person
    employer: str
    domain: str
    team: Sequence[Person]
    firms: Sequence[Firm]
    alike: tuple[Person, Person]
    today: date
    seed: int

    def draw(self, purpose: str) -> Random:
        """What draws for one purpose, whatever else was drawn."""
        return Random(f"mail-{purpose}/{self.seed}")  # noqa: S311  # content, and no secret

    def at(self, days_ago: int, clock: str) -> str:
        """A time before today, or after it where `days_ago` is negative."""
        return f"{self.today - timedelta(days=days_ago)}T{clock}"


def draw_cast(seed: int) -> Cast:
    """Draw everybody of a seed's mailbox."""
    rng = Random(f"mail-cast/{seed}")  # noqa: S311  # content, and no secret
    employer, domain = rng.choice(_EMPLOYERS)
    firsts, lasts = rng.sample(_FIRST, 24), rng.sample(_LAST, 24)
    names = [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]
    staff = [_person(name, domain, employer, rng) for name in names[:13]]
    drawn = rng.sample(_FIRMS, 8)
    firms = [
        Firm(name, host, item, other, _person(who, host, name, rng))
        for (name, host, item, other), who in zip(drawn, names[13:], strict=False)
    ]
    first, one, other = rng.choice(_ALIKE)
    lasts = [one, other]
    rng.shuffle(lasts)
    alike = tuple(
        _person(f"{first} {last}", firm.domain, firm.name, rng)
        for last, firm in zip(lasts, firms[-2:], strict=True)
    )
    today = date(2026, rng.randint(4, 10), rng.randint(10, 24))
    today -= timedelta(days=max(0, today.weekday() - 4))
    return Cast(staff[0], employer, domain, staff[1:], firms, (alike[0], alike[1]), today, seed)


def _person(name: str, domain: str, company: str, rng: Random) -> Person:
    phone = f"+44 20 7946 0{rng.randint(100, 999)}"
    return Person(name, f"{name.lower().replace(' ', '.')}@{domain}", company, phone)

"""A shop as it is drawn from a seed: customers, products, orders, and who works when."""

import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from office_tables import KINDS
from office_terms import TECHNICIANS, TOPICS, draw_terms, policy_text

__all__ = ["Order", "Person", "Shop"]

_FIRST = (
    "Ada", "Bruno", "Carla", "Dario", "Elin", "Farid", "Greta", "Hanno", "Ilse", "Jonas",
    "Kaya", "Leif", "Mina", "Nils", "Orla", "Pavel", "Runa", "Samir", "Tilda", "Umar", "Vera",
    "Wim", "Yara", "Zeno",
)  # fmt: skip
_LAST = (
    "Abel", "Brandt", "Castell", "Doyle", "Eriksen", "Falk", "Gruber", "Haas", "Iversen",
    "Jansen", "Kovac", "Lund", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi",
    "Sandoval", "Torres", "Ullman", "Vidal", "Weiss", "Zeller",
)  # fmt: skip
_STREETS = "Mill Lane,Harbour Road,Chapel Street,Elm Row,Castle Hill,Station Road,Orchard Way"
_CITIES = ("Marlow", "Thornby", "Westhaven", "Ashford", "Kelmouth", "Dunmere")
_MAKERS = ("Halden", "Morrow", "Quill", "Vesper", "Tarn", "Lindmark", "Corvo", "Sanden")
_MODELS = ("Studio", "Concert", "Academy", "Heritage", "Compact", "Solo")
_PRICES = {
    "violin": (240, 900), "guitar": (180, 700), "flute": (150, 600), "trumpet": (160, 650),
    "cello": (500, 1600), "stand": (18, 60), "tuner": (12, 45), "case": (40, 160),
}  # fmt: skip
_HOURS = ("09:00", "10:30", "13:00", "14:30", "16:00", "17:30")


@dataclass(frozen=True)
class Person:
    """A customer as the database has them."""

    id: str
    name: str
    email: str
    phone: str
    street: str
    postcode: str
    city: str
    tier: str

    @property
    def address(self) -> dict[str, str]:
        """Where they live, as the tools take it."""
        return {"street": self.street, "postcode": self.postcode, "city": self.city}


@dataclass(frozen=True)
class Order:
    """An order that was put into the database.

    Attributes:
        id: Its number.
        lines: The numbers of its items.
        products: What they are.
        prices: What they cost, in cents.
        shipping: The same of the delivery.
        card: What was paid with a payment card.
        gift: What was paid with a gift card.
    """

    id: str
    lines: tuple[str, ...]
    products: tuple[sqlite3.Row, ...]
    prices: tuple[int, ...]
    shipping: int
    card: int
    gift: int


class Shop:
    """Fills an empty database.

    Args:
        db: The database.
        purpose: Of which template it is; another one has another shop under the same seed.
        seed: What all is drawn from.

    Attributes:
        today: The day of the task.
        terms: The numbers of the policy.
        names: Those that nobody has yet.
        people: The customers.
    """

    def __init__(self, db: sqlite3.Connection, purpose: str, seed: int) -> None:
        self.db = db
        self.rng = Random(f"office/{purpose}/{seed}")  # noqa: S311  # a shop is no secret
        self.today = date(2025, 2, 3) + timedelta(days=7 * self.rng.randrange(36))
        self.today += timedelta(days=self.rng.randrange(4))
        self.terms = draw_terms(self.rng)
        self._ids: set[str] = set()
        db.execute("INSERT INTO today VALUES (?)", (self.today.isoformat(),))
        policies = [(topic, policy_text(self.terms, topic)) for topic in TOPICS]
        db.executemany("INSERT INTO policies VALUES (?, ?)", policies)
        self._fill_shelves()
        self._fill_workshop()
        self.names = [f"{one} {two}" for one in _FIRST for two in _LAST]
        self.rng.shuffle(self.names)
        self.people = [self.add_person(self.names.pop()) for _ in range(18)]
        for person in self.people:
            self._add_background(person)

    def day(self, ago: int) -> str:
        """A day that was so many days ago."""
        return (self.today - timedelta(days=ago)).isoformat()

    def new_id(self, letters: str, digits: int) -> str:
        """A number that nothing else has."""
        while True:
            number = self.rng.randrange(10 ** (digits - 1), 9 * 10 ** (digits - 1))
            made = f"{letters}-{number}"
            if made not in self._ids:
                self._ids.add(made)
                return made

    def draw_address(self) -> dict[str, str]:
        """A street, a postcode and a city, on the mainland."""
        street = f"{self.rng.randrange(1, 120)} {self.rng.choice(_STREETS.split(','))}"
        postcode = str(self.rng.randrange(10000, 89999))
        return {"street": street, "postcode": postcode, "city": self.rng.choice(_CITIES)}

    def draw_email(self, name: str) -> str:
        """An email address that nobody has."""
        first, _, last = name.lower().partition(" ")
        forms = (f"{first}.{last}", f"{first[0]}{last}", f"{last}.{first}", f"{first}_{last}")
        domain = self.rng.choice(("postbox.example", "mailhaven.example", "inboxly.example"))
        while True:
            made = f"{self.rng.choice(forms)}{self.rng.randrange(10, 99)}@{domain}"
            if made not in self._ids:
                self._ids.add(made)
                return made

    def add_person(self, name: str, tier: str = "standard", postcode: str = "") -> Person:
        """Open an account."""
        address = self.draw_address()
        phone = f"0{self.rng.randrange(600, 700)} {self.rng.randrange(100000, 999999)}"
        person = Person(
            self.new_id("C", 4),
            name,
            self.draw_email(name),
            phone,
            address["street"],
            postcode or address["postcode"],
            address["city"],
            tier,
        )
        row = (*vars(person).values(), 0)
        self.db.execute(f"INSERT INTO customers VALUES ({_marks(row)})", row)  # noqa: S608
        return person

    def products(self, kind: str) -> list[sqlite3.Row]:
        """What there is of a kind, by name."""
        query = "SELECT * FROM products WHERE kind = ? ORDER BY name"
        return self.db.execute(query, (kind,)).fetchall()

    def draw_product(self, *kinds: str) -> sqlite3.Row:
        """A product of one of some kinds, or of any."""
        return self.rng.choice(self.products(self.rng.choice(kinds or KINDS)))

    def set_stock(self, product: sqlite3.Row, stock: int) -> None:
        """Say how many of a product there are."""
        self.db.execute("UPDATE products SET stock = ? WHERE id = ?", (stock, product["id"]))

    def add_order(
        self,
        person: Person,
        products: list[sqlite3.Row],
        *,
        placed: int,
        shipped: int | None = None,
        delivered: int | None = None,
        status: str = "",
        express: bool = False,
        gift_card: str | None = None,
        gift: int = 0,
        points: tuple[int, int, str] = (0, 0, ""),
        came_by: str = "order",
    ) -> Order:
        """Put an order into the database.

        Args:
            person: Whose it is.
            products: What was ordered.
            placed: How many days ago.
            shipped: The same of its dispatch; None where it was not.
            delivered: The same of its arrival.
            status: What follows from the days by default.
            express: Whether it went so.
            gift_card: Which one was used.
            gift: What it paid, in cents.
            points: How many points paid for it, what they were worth, when they expire.
            came_by: How its items came to the customer.
        """
        shipping = 990 if express else self.rng.choice((390, 490, 590))
        total = sum(product["price"] for product in products) + shipping
        known = "delivered" if delivered is not None else "shipped" if shipped is not None else ""
        made = self.new_id("AR", 5)
        card = total - gift - points[1]
        row = (
            made, person.id, status or known or "processing", self.day(placed),
            None if shipped is None else self.day(shipped),
            None if delivered is None else self.day(delivered),
            "express" if express else "standard",
            None if shipped is None else self.new_id("PX", 6),
            *person.address.values(), shipping, card, gift, gift_card,
            points[0], points[2] or None,
        )  # fmt: skip
        self.db.execute(f"INSERT INTO orders VALUES ({_marks(row)})", row)  # noqa: S608
        lines = tuple(self.new_id("L", 5) for _ in products)
        for line, product in zip(lines, products, strict=True):
            values = (line, made, product["id"], product["price"], "kept", came_by)
            self.db.execute("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)", values)
        prices = tuple(product["price"] for product in products)
        return Order(made, lines, tuple(products), prices, shipping, card, gift)

    def add_gift_card(self, person: Person, balance: int, expires_in: int) -> str:
        """Give somebody a gift card that expires in so many days."""
        code = f"{self.new_id('GC', 4)}-{self.rng.randrange(1000, 9000)}"
        row = (code, person.id, balance, self.day(-expires_in), "active")
        self.db.execute("INSERT INTO gift_cards VALUES (?, ?, ?, ?, ?)", row)
        return code

    def add_points(self, person: Person, entries: list[tuple[int, int, int]]) -> None:
        """Give somebody points: how many, entered so many days ago, expiring in so many."""
        for points, ago, expires_in in entries:
            purpose = "earned" if points > 0 else "redeemed"
            row = (person.id, points, self.day(ago), self.day(-expires_in), purpose)
            self.db.execute("INSERT INTO points VALUES (?, ?, ?, ?, ?)", row)
        query = "UPDATE customers SET points_total = points_total + ? WHERE id = ?"
        self.db.execute(query, (sum(entry[0] for entry in entries), person.id))

    def add_appointment(self, person: Person, service: str, slot: str) -> str:
        """Book a slot for somebody."""
        made = self.new_id("A", 4)
        self.db.execute("UPDATE slots SET is_free = 0 WHERE id = ?", (slot,))
        row = (made, person.id, service, slot, "booked")
        self.db.execute("INSERT INTO appointments VALUES (?, ?, ?, ?, ?)", row)
        return made

    def _fill_shelves(self) -> None:
        for kind in KINDS:
            prices = self.rng.sample(range(*_PRICES[kind]), 4)
            for maker in self.rng.sample(_MAKERS, 4):
                price = prices.pop() * 100 + self.rng.choice((0, 50))
                name = f"{maker} {self.rng.choice(_MODELS)} {kind}"
                row = (self.new_id("P", 4), name, kind, price, self.rng.randrange(1, 6))
                self.db.execute("INSERT INTO products VALUES (?, ?, ?, ?, ?)", row)

    def _fill_workshop(self) -> None:
        for ahead in range(15):
            day = self.today + timedelta(days=ahead)
            for technician in TECHNICIANS if day.weekday() < 6 else ():  # noqa: PLR2004  # Sunday
                for hour in _HOURS:
                    row = (self.new_id("S", 5), technician, day.isoformat(), hour)
                    is_free = int(self.rng.random() < 0.3)  # noqa: PLR2004  # most are taken
                    self.db.execute("INSERT INTO slots VALUES (?, ?, ?, ?, ?)", (*row, is_free))

    def _add_background(self, person: Person) -> None:
        ago = self.rng.randrange(40, 200)
        products = [self.draw_product() for _ in range(self.rng.randrange(1, 3))]
        self.add_order(person, products, placed=ago, shipped=ago - 2, delivered=ago - 6)
        points = self.rng.randrange(1, 30) * 10
        self.add_points(person, [(points, ago, 365 - ago)])


def _marks(row: tuple[object, ...]) -> str:
    return ", ".join("?" * len(row))

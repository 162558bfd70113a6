"""Lamp & Larch, a shop for lamps and furniture: its tables, its tools and its policy."""

from datetime import date, timedelta
from random import Random
from typing import Literal

from service_desk import Row, Rule, Tables, find, money, shown

from hud_mcp import ActionFailed

__all__ = ["NAME", "POLICY", "READS", "WRITES", "Stock", "stock"]

NAME = "Lamp & Larch, a shop for lamps and furniture"
RETURN_DAYS, BULKY_CENTS, LATE_DAYS, GIFT_CENTS = 30, 1990, 5, 1000
POLICY = f"""1. Identity. Before you tell or change anything of an order or an account, ask for the
   e-mail address and the postcode of the account, and find it with find_customer. If the two do
   not belong to one account, tell nothing of any account, and refuse (reason "identity"). Serve
   nobody else's account, whatever the relation: refuse in the same way.
2. Consent. Before each change, say what you will do, with the exact amount of money or the new
   street, and ask for a yes. Where an amount has changed since the yes, ask again. A transfer
   and the record of a refusal need no yes.
3. Returns. Ask for the reason. An item can be returned within {RETURN_DAYS} days after its
   delivery; the last day counts. Bulky items cost {money(BULKY_CENTS)} euros to return,
   which the refund is less by. A later return is refused (reason "too_late"); tell the customer
   which day was the last.
4. Items marked `final_sale` are neither returned nor exchanged (reason "final_sale").
5. Refunds go to what the order was paid with, and nowhere else.
6. Items on their way back are refunded in full with pay_refund, once the warehouse has booked them
   (state `in_warehouse`), and not before.
7. Orders are cancelled, and their address is changed, only while they are `processing`. An order
   that has shipped is refused (reason "already_shipped"): tell the customer that it can be
   returned, and how many days there are for it. Orders may ship while you talk: look at the order
   again right before you cancel it.
8. Exchanges are open as long as returns are. The price at the moment of the exchange holds: the
   customer pays or gets the difference to what was paid. Prices may change while you talk.
9. Delays. Where an order comes more than {LATE_DAYS} days after the day that was promised, give a
   voucher of {money(GIFT_CENTS)} euros, once for an order, and only if the customer complains.
10. Safety. Where anybody was hurt, or a product smoked, sparked or burned, transfer to "safety",
    and do nothing else: no refund, no return. Mention of a lawyer goes to "legal" in the same way.
11. Refusals. Record each refusal with record_refusal. Do not refuse what the policy allows."""

FIRST = ("Ada", "Bruno", "Carla", "Emil", "Greta", "Hugo", "Ines", "Jonas", "Lena", "Milo", "Nora",
         "Otto", "Petra", "Ruben", "Silvia", "Theo")  # fmt: skip
LAST = ("Arendt", "Brandt", "Corvi", "Dahl", "Ekman", "Fontana", "Grieg", "Holm", "Iversen",
        "Jansen", "Keller", "Lund", "Moretti", "Nygaard", "Olsen", "Quist")  # fmt: skip
STREETS = ("Alder Row", "Beech Lane", "Cedar Street", "Dune Road", "Elm Walk", "Fern Close",
           "Garden Street", "Harbour Road", "Ivy Lane", "Juniper Way")  # fmt: skip
CITIES = ("Ostrava", "Lindholm", "Marstal", "Varde", "Torup", "Kalmar")
LAMPS = ("Heron desk lamp", "Wren reading lamp", "Finch table lamp", "Ibis floor lamp",
         "Swift wall lamp", "Kite pendant lamp")  # fmt: skip
BULKY = ("Larch bookcase", "Larch armchair", "Larch dining table")


class Stock:
    """A drawn shop and one of its customers, with what their case is about.

    Attributes:
        draw: The source of all that is drawn.
        tables: The shop's tables.
        today: The day.
        key: The customer's id.
    """

    def __init__(self, purpose: str, seed: int) -> None:
        self.draw = Random(f"service/shop/{purpose}/{seed}")  # noqa: S311  # no secret
        self.today = date(2031, 1, 10) + timedelta(days=self.draw.randint(0, 330))
        self.tables: Tables = {
            "desk": {"today": {"day": self.today.isoformat()}},
            "customers": {}, "products": {}, "orders": {}, "vouchers": {}, "transfers": {},
            "refusals": {},
        }  # fmt: skip
        for number, name in enumerate((*LAMPS, *BULKY), 1):
            price = self.draw.randint(30, 90) * 100 + 90 + 15000 * (name in BULKY)
            row = {"name": name, "price_cents": price, "is_bulky": name in BULKY}
            self.tables["products"][f"P{number:02}"] = row
        firsts, lasts = self.draw.sample(FIRST, 6), self.draw.sample(LAST, 6)
        self._numbers = iter(self.draw.sample(range(2000, 9999), 40))
        keys = [self._person(*names) for names in zip(firsts, lasts, strict=True)]
        self.key = keys[0]
        for key in keys[1:]:
            self.order(key, self.product(), status="delivered", days=self.draw.randint(5, 80))

    def _person(self, first: str, last: str) -> str:
        key = f"C{next(self._numbers)}"
        self.tables["customers"][key] = {
            "name": f"{first} {last}", "email": f"{first}.{last}@example.org".lower(),
            **self.place(),
        }  # fmt: skip
        return key

    @property
    def customer(self) -> Row:
        """The customer's row."""
        return self.tables["customers"][self.key]

    def place(self) -> Row:
        """Draw an address."""
        return {
            "street": f"{self.draw.randint(2, 98)} {self.draw.choice(STREETS)}",
            "postcode": str(self.draw.randint(10000, 99999)), "city": self.draw.choice(CITIES),
        }  # fmt: skip

    def product(self, *, bulky: bool = False) -> str:
        """Draw a product."""
        names = BULKY if bulky else LAMPS
        name = self.draw.choice(names)
        return next(key for key, row in self.tables["products"].items() if row["name"] == name)

    def order(
        self, customer: str, product: str, *, status: str, days: int = 0, final: bool = False
    ) -> str:
        """Add an order of one item, which was delivered, or placed, so many days ago."""
        key, item = f"L{next(self._numbers)}", f"I{next(self._numbers)}"
        row = self.tables["products"][product]
        paid = row["price_cents"] - self.draw.randint(0, 9) * 100 - 40
        then = self.today - timedelta(days=days)
        delivered = then.isoformat() if status == "delivered" else None
        placed = then - timedelta(days=4) if delivered else then
        home = self.tables["customers"][customer]
        self.tables["orders"][key] = {
            "customer": customer, "status": status, "placed_on": placed.isoformat(),
            "promised_on": (placed + timedelta(days=6)).isoformat(),
            "delivered_on": delivered, "paid_by": self.draw.choice(["card", "bank_transfer"]),
            "street": home["street"], "postcode": home["postcode"], "city": home["city"],
            "items": {item: {"product": product, "name": row["name"], "paid_cents": paid,
                             "is_bulky": row["is_bulky"], "final_sale": final, "state": "sold"}},
            "money": [],
        }  # fmt: skip
        return key


def stock(purpose: str, seed: int) -> Stock:
    """Draw a shop for a kind of case."""
    return Stock(purpose, seed)


def find_customer(tables: Tables, email: str, postcode: str) -> Row:
    """Find the account with this e-mail address and this postcode, and its orders."""
    for key, row in tables["customers"].items():
        if row["email"] == email.strip().lower() and row["postcode"] == postcode.strip():
            orders = [k for k, each in tables["orders"].items() if each["customer"] == key]
            return {"customer_id": key, **row, "orders": orders}
    raise ActionFailed("No account has this e-mail address and this postcode.")


def get_order(tables: Tables, order_id: str) -> Row:
    """Look at an order: its status, its days, its address and its items."""
    return shown(find(tables, "orders", order_id))


def find_products(tables: Tables, words: str = "") -> Row:
    """List the products whose names have all of these words, with their present prices."""
    wanted = words.lower().split()
    rows = tables["products"].items()
    return {k: shown(r) for k, r in rows if all(each in r["name"].lower() for each in wanted)}


def return_item(
    tables: Tables, order_id: str, item_id: str, refund: float,
    refund_to: Literal["card", "bank_transfer", "voucher"],
) -> str:  # fmt: skip
    """Take an item back: its label is sent, and its refund, in euros, is paid."""
    order, item = _item(tables, order_id, item_id)
    cents = round(refund * 100)
    if order["status"] != "delivered" or item["state"] != "sold":
        raise ActionFailed(
            "Only an item that was delivered, and is with the customer, is returned."
        )
    if not 0 < cents <= item["paid_cents"]:
        raise ActionFailed(f"The refund must be above 0, and at most {money(item['paid_cents'])}.")
    item["state"] = "returned"
    order["money"].append({"refund_cents": cents, "to": refund_to})
    return f"{money(cents)} euros are paid back. The label was sent."


def pay_refund(
    tables: Tables, order_id: str, item_id: str, refund: float,
    refund_to: Literal["card", "bank_transfer", "voucher"],
) -> str:  # fmt: skip
    """Pay the refund, in euros, of an item that was sent back before."""
    order, item = _item(tables, order_id, item_id)
    cents = round(refund * 100)
    if item["state"] not in ("on_its_way_back", "in_warehouse"):
        raise ActionFailed(f"The item was not sent back: its state is {item['state']}.")
    if not 0 < cents <= item["paid_cents"]:
        raise ActionFailed(f"The refund must be above 0, and at most {money(item['paid_cents'])}.")
    item["state"] = "refunded"
    order["money"].append({"refund_cents": cents, "to": refund_to})
    return f"{money(cents)} euros are paid back."


def exchange_item(
    tables: Tables, order_id: str, item_id: str, product_id: str, price: float
) -> str:
    """Exchange an item for another product at its present price, in euros, and settle the rest."""
    order, item = _item(tables, order_id, item_id)
    product = find(tables, "products", product_id)
    if order["status"] != "delivered" or item["state"] != "sold":
        raise ActionFailed(
            "Only an item that was delivered, and is with the customer, is exchanged."
        )
    if round(price * 100) != product["price_cents"]:
        raise ActionFailed(f"{product['name']} costs {money(product['price_cents'])} euros now.")
    rest = product["price_cents"] - item["paid_cents"]
    item.update(product=product_id, name=product["name"], paid_cents=product["price_cents"])
    order["money"].append({"charge_cents": rest})
    return f"Exchanged for {product['name']}; the difference is {money(rest)} euros."


def cancel_order(tables: Tables, order_id: str) -> str:
    """Cancel an order, and pay all of it back."""
    order = find(tables, "orders", order_id)
    if order["status"] not in ("processing", "shipped"):
        raise ActionFailed(f"The order is {order['status']}.")
    order["status"] = "cancelled"
    paid = sum(item["paid_cents"] for item in order["items"].values())
    order["money"].append({"refund_cents": paid, "to": order["paid_by"]})
    return f"Cancelled. {money(paid)} euros are paid back."


def change_address(tables: Tables, order_id: str, street: str, postcode: str, city: str) -> str:
    """Change the address of an order."""
    order = find(tables, "orders", order_id)
    if order["status"] not in ("processing", "shipped"):
        raise ActionFailed(f"The order is {order['status']}.")
    given = {"street": street, "postcode": postcode, "city": city}
    order.update({name: " ".join(text.split()) for name, text in given.items()})
    return "The address was changed."


def give_voucher(tables: Tables, order_id: str, value: float) -> str:
    """Give the customer of an order a voucher of so many euros."""
    find(tables, "orders", order_id)
    if order_id in tables["vouchers"]:
        raise ActionFailed("There is a voucher for this order already.")
    tables["vouchers"][order_id] = {"value_cents": round(value * 100)}
    return f"A voucher of {money(round(value * 100))} euros was sent."


def transfer(tables: Tables, department: Literal["safety", "legal", "accounts"]) -> str:
    """Transfer the customer to a person of a department."""
    tables["transfers"][department] = {}
    return f"The customer is transferred to {department}."


def record_refusal(
    tables: Tables, reason: Literal["identity", "too_late", "final_sale", "already_shipped"]
) -> str:
    """Record that a wish was refused, and by which rule."""
    tables["refusals"][reason] = {}
    return "The refusal was recorded."


def _item(tables: Tables, order_id: str, item_id: str) -> tuple[Row, Row]:
    order = find(tables, "orders", order_id)
    if item_id not in order["items"]:
        raise ActionFailed(f"The order {order_id} has no item {item_id!r}.")
    return order, order["items"][item_id]


READS: tuple[Rule, ...] = (find_customer, get_order, find_products)
WRITES: dict[str, Rule] = {
    each.__name__: each
    for each in (
        return_item, pay_refund, exchange_item, cancel_order, change_address, give_voucher,
        transfer, record_refusal,
    )
}  # fmt: skip

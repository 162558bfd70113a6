"""Cases of the shop in which something changes while one talks."""

from typing import Literal

from service_desk import Tables, money
from service_shop import RETURN_DAYS, Stock, stock
from service_shop_cases import (
    ASK_WHO,
    DAYS,
    ITEM,
    REASON,
    WHO,
    find_step,
    identity,
    pushing,
    refuse,
    two_orders,
)
from service_talk import Case, Do, Event, agree, amount, asked, euros, script_of

from hud_mcp import When

__all__ = ["Kind", "case_of"]

Kind = Literal["exchange_dearer", "exchange_too_dear", "ships_meanwhile", "comes_back"]


class Exchange:
    """An exchange of a lamp for a dearer one, whose price rises, or for a third one."""

    def __init__(self, shop: Stock) -> None:
        self.order = two_orders(shop, status="delivered", days=shop.draw.randint(3, 20))
        names = [
            key for key, row in shop.tables["products"].items()
            if not row["is_bulky"] and row["name"] != self.order.name
        ]  # fmt: skip
        self.wanted, self.third = shop.draw.sample(names, 2)
        paid, draw = self.order.paid, shop.draw
        self.third_price = paid + draw.randint(2, 5) * 100 + 40
        self.old_price = paid + draw.randint(7, 14) * 100 + 40
        self.new_price = self.old_price + draw.randint(3, 9) * 100 + 20
        products = shop.tables["products"]
        products[self.wanted]["price_cents"] = self.old_price
        products[self.third]["price_cents"] = self.third_price
        self.name, self.third_name = (products[key]["name"] for key in (self.wanted, self.third))

    def change(self, tables: Tables) -> None:
        """Raise the price."""
        tables["products"][self.wanted]["price_cents"] = self.new_price

    @property
    def look(self) -> Do:
        """The step that looks at the wanted lamp."""
        return Do("find_products", {"words": self.name})

    def offer(self, name: str, price: int) -> str:
        """Ask for a yes to the difference."""
        return (
            f"I can exchange it for the {name}; the difference that you pay is "
            f"{money(price - self.order.paid)} euros. Shall I go ahead?"
        )

    def do(self, product: str, price: int) -> Do:
        """The step that exchanges."""
        return Do("exchange_item", {
            "order_id": self.order.key, "item_id": self.order.item_key, "product_id": product,
            "price": euros(price),
        })  # fmt: skip


def _exchange(shop: Stock, *, is_limited: bool) -> Case:
    this = Exchange(shop)
    paid, order = this.order.paid, this.order
    old, new = this.new_price - this.old_price, amount(this.new_price - paid)
    first = f"Yes, {money(this.old_price - paid)} euros are fine."
    if is_limited:
        yes = f"Yes, for {money(this.third_price - paid)} euros."
        rules = (
            When(new, slot="limit", say=f"No, that is too much. Then I rather take the "
                 f"{this.third_name}, if it costs less."),
            agree(amount(this.third_price - paid), yes, after="limit"),
        )  # fmt: skip
        last = (
            (
                f"Its price has risen; the difference is now {money(this.new_price - paid)} euros. "
                "Do you agree?"
            ),
            Do("find_products", {"words": this.third_name}),
            this.offer(this.third_name, this.third_price),
            this.do(this.third, this.third_price),
        )
    else:
        yes = f"Well, yes: {money(this.new_price - paid)} euros, then."
        rules = (agree(new, yes),)
        last = (
            f"Its price has risen by {money(old)} euros. " + this.offer(this.name, this.new_price),
            this.do(this.wanted, this.new_price),
        )
    return Case(
        tables=shop.tables,
        goal=f"You want the {this.name} in exchange for the {order.name}.",
        script=script_of(
            *rules,
            agree(amount(this.old_price - paid), first, "first"),
            When(ITEM, slot="item",
                 say=f"It is the {order.name}. I want to have the {this.name} instead."),
            When(REASON, say="It is too plain for me.", slot="why"),
            wish="Hi, I would like to have another one of your lamps than I have.",
            who=(WHO, identity(shop)),
        ),
        identity=identity(shop),
        agreed={"exchange_item": yes},
        told={"the new difference": new},
        event=Event(first, this.change, f"The price list has changed: {this.name}."),
        plan=(
            ASK_WHO, find_step(shop), "Which item is it, and what would you like?", order.look,
            this.look, this.offer(this.name, this.old_price), this.look, *last,
        ),
    )  # fmt: skip


def exchange_dearer(shop: Stock) -> Case:
    """The wanted lamp costs more once the customer has agreed; they agree again."""
    return _exchange(shop, is_limited=False)


def exchange_too_dear(shop: Stock) -> Case:
    """The wanted lamp costs more, and the customer takes another one."""
    return _exchange(shop, is_limited=True)


def ships_meanwhile(shop: Stock) -> Case:
    """An order ships as the customer agrees to cancel it."""
    order = two_orders(shop, status="processing", days=1)
    yes = f"Yes, cancel it, and pay back the {money(order.paid)} euros."

    def change(tables: Tables) -> None:
        tables["orders"][order.key]["status"] = "shipped"

    return Case(
        tables=shop.tables,
        goal=f"You want to cancel the order of the {order.name}.",
        script=script_of(
            *pushing(DAYS, "But you have just said that you would cancel it!", after="yes"),
            agree(amount(order.paid), yes, "yes"),
            When(ITEM, say=f"It is the {order.name}.", slot="item"),
            When(REASON, say="I have found another one.", slot="why"),
            wish="Hello, I do not need something any more that I have ordered.",
            who=(WHO, identity(shop)),
            needs=("heard",),
        ),
        identity=identity(shop),
        agreed={"record_refusal": yes},
        told={"the days": DAYS},
        event=Event(yes, change, f"The order {order.key} has left the warehouse."),
        plan=(
            ASK_WHO, find_step(shop), "Which order is it about?", order.look,
            f"I would cancel it and pay back {money(order.paid)} euros. Shall I go ahead?",
            order.look,
            ("It has just shipped, so I cannot cancel it any more. Once it is there, it can be "
            f"returned within {RETURN_DAYS} days."),
            "I am sorry, it cannot be cancelled now.", refuse("already_shipped"),
        ),
    )  # fmt: skip


def comes_back(shop: Stock) -> Case:
    """An item that was sent back arrives while the customer waits for the money."""
    order = two_orders(shop, status="delivered", days=shop.draw.randint(10, 25))
    order.item["state"] = "on_its_way_back"
    again = "My receipt of the post says that you have it since today. Please look again."
    yes = f"Yes, please, all of the {money(order.paid)} euros."

    def change(tables: Tables) -> None:
        tables["orders"][order.key]["items"][order.item_key]["state"] = "in_warehouse"

    return Case(
        tables=shop.tables,
        goal=f"You have sent back the {order.name}, and want your money.",
        script=script_of(
            When(r"on its way|\bnot\b|n't\b|warehouse|as soon as|once", say=again,
                 slot="again", after="who", once=True),
            agree(amount(order.paid), yes, after="again"),
            When(ITEM + "|" + asked("sent|what"), say=f"I have sent back the {order.name}.",
                 slot="item"),
            wish="Hello, where is my money?",
            who=(WHO, identity(shop)),
        ),
        identity=identity(shop),
        agreed={"pay_refund": yes},
        told={"the refund": amount(order.paid)},
        event=Event(again, change, f"The warehouse has booked an item of the order {order.key}."),
        plan=(
            ASK_WHO, find_step(shop), "Which item have you sent back?", order.look,
            "It is on its way back, and the warehouse has not booked it yet.", order.look,
            f"It has arrived now. I would pay back {money(order.paid)} euros. Shall I go ahead?",
            order.refund("pay_refund", order.paid),
        ),
    )  # fmt: skip


CASES = {
    each.__name__: each
    for each in (exchange_dearer, exchange_too_dear, ships_meanwhile, comes_back)
}


def case_of(kind: str, seed: int) -> Case:
    """Draw a case of a kind."""
    return CASES[kind](stock(kind, seed))

"""Cases of returns, damage and exchanges."""

from datetime import timedelta
from typing import Any, Literal

from office_cases import EXCHANGE, MONEY, introduce, item_name, refund_offer, share_of
from office_customer import Offer, Persona
from office_grading import Case, Consent, Fact
from office_stock import Order, Person, Shop

__all__ = ["DamageCase", "ExchangeCase", "ReturnCase", "damage_case", "exchange_case"]
__all__ += ["opened_deeds", "return_case"]

ReturnCase = Literal["sealed", "played", "ordered_early", "gift_card", "credit", "no_credit"]
DamageCase = Literal["money", "again", "none_left", "reported_late"]
ExchangeCase = Literal["dearer", "cheaper", "second_choice", "second_time"]

Deeds = list[tuple[str, dict[str, Any]]]

_PLAYED = "I have opened it, and played it a few times."
_SEALED = "It is still sealed. I never opened it."
_HOW_MUCH = (
    " I paid a part of it with a gift card: tell me how much goes to it, and how much to my "
)
_HOW_MUCH += "payment card."
_PAY = ("accept_return", "pay_refund")


def return_case(shop: Shop, case: ReturnCase) -> Case:
    """Somebody wants to return one of two items."""
    if case in ("credit", "no_credit"):
        return _late_return(shop, accepts=case == "credit")
    person, rng = shop.rng.choice(shop.people), shop.rng
    arrived = rng.randrange(2, 8)
    placed = (
        shop.terms.return_days + rng.randrange(3, 9) if case == "ordered_early" else arrived + 4
    )
    products = [shop.draw_product("violin", "guitar", "flute"), shop.draw_product("stand", "case")]
    opened = case in ("played", "gift_card")
    amount = products[0]["price"]
    if opened:
        amount -= share_of(amount, shop.terms.opened_percent)
    days = {"placed": placed, "shipped": arrived + 2, "delivered": arrived}
    gift = 0
    card = None
    if case == "gift_card":
        gift = rng.randrange(30, 90) * 100
        card = shop.add_gift_card(person, rng.randrange(0, 40) * 100, 300)
    order = shop.add_order(person, products, gift_card=card, gift=gift, **days)
    parts = [("gift_card", gift), ("payment_card", amount - gift)] if gift else []
    parts = parts or [("payment_card", amount)]
    deeds: Deeds = [("accept_return", {"line_id": order.lines[0]})]
    deeds += [("pay_refund", _refund(order, cents, place)) for place, cents in parts]
    facts = {f"amount to the {place}": Fact("money", cents) for place, cents in parts}
    persona = _returner(person, order, opened=opened)
    return Case(
        persona=persona,
        deeds=deeds,
        told=facts,
        consents=(Consent(offer="refund", facts=tuple(facts.values()), deeds=_PAY),),
    )


def _returner(person: Person, order: Order, *, opened: bool) -> Persona:
    """Who wants money for an item."""
    name = item_name(order)
    more = _HOW_MUCH if order.gift else ""
    return Persona(
        name=person.name,
        opening=f"Hello, I would like to send my {name} back and have my money returned.{more}",
        wish=f"I want to return the {name} for my money.",
        known=introduce(
            person,
            order=_number(order),
            item=f"It is only about the {name}. I keep the rest.",
            opened=_PLAYED if opened else _SEALED,
            reason="I have found that it is not for me.",
            choice="I would like to have my money back.",
            wish=f"I want to return the {name} for my money.",
        ),
        offers={"refund": refund_offer(), "credit": _no_credit(), "exchange": _no_exchange()},
        ends_after=(("yes:refund", "refused"),),
        chosen="refund",
    )


def _late_return(shop: Shop, *, accepts: bool) -> Case:
    """The same, when it is too late for money."""
    person, terms = shop.rng.choice(shop.people), shop.terms
    arrived = terms.return_days + shop.rng.randrange(2, 10)
    products = [shop.draw_product("tuner", "stand"), shop.draw_product("trumpet", "guitar")]
    days = {"placed": arrived + 6, "shipped": arrived + 3, "delivered": arrived}
    order = shop.add_order(person, products, **days)
    amount = share_of(order.prices[1], terms.credit_percent)
    last = (shop.today + timedelta(days=terms.return_days - arrived)).isoformat()
    persona = _late_returner(person, order, accepts=accepts)
    told = {"last day": Fact("day", last), "amount of the credit": Fact("money", amount)}
    refund = {"order_id": order.id, "amount": amount, "paid_to": "store_credit"}
    deeds: Deeds = [("accept_return", {"line_id": order.lines[1]}), ("pay_refund", refund)]
    consent = Consent(offer="credit", facts=(told["amount of the credit"],), deeds=_PAY)
    return Case(
        persona=persona,
        deeds=deeds if accepts else [],
        told=told,
        consents=(consent,) if accepts else (),
        refuses=True,
    )


def _late_returner(person: Person, order: Order, *, accepts: bool) -> Persona:
    """Who wants money for an item that they have had too long."""
    name = item_name(order, 1)
    wish = f"I want to return the {name} and get my money back."
    yes = "Well, better than nothing. Yes, please do that."
    no = "No, store credit is of no use to me. Then I keep it."
    prefers = "If there is none, then store credit." if accepts else "Store credit is no use to me."
    credit = Offer(
        words=r"credit|voucher",
        needs=("money",) if accepts else (),
        accepts=accepts,
        says=yes if accepts else no,
        over=("refund",),
    )
    return Persona(
        name=person.name,
        opening=f"Hi, please take back the {name} and refund what I paid. I have not opened it.",
        wish=wish,
        known=introduce(
            person,
            order=_number(order),
            item=f"It is about the {name}.",
            opened=_SEALED,
            reason="I have no time to play it.",
            choice=f"I want money. {prefers}",
            wish=wish,
        ),
        offers={"refund": refund_offer(), "credit": credit, "exchange": _no_exchange()},
        ends_after=(("yes:refund", "yes:credit", "no:credit", "told:choice"),),
        chosen="credit" if accepts else "",
        on_refusal="That is a pity. Surely you can do something for a good customer?",
    )


def damage_case(shop: Shop, case: DamageCase) -> Case:
    """Something arrived broken."""
    person, terms, rng = shop.rng.choice(shop.people), shop.terms, shop.rng
    late = case == "reported_late"
    arrived = terms.damage_days + 2 if late else rng.randrange(1, terms.damage_days)
    product = shop.draw_product("violin", "trumpet", "cello")
    shop.set_stock(product, 0 if case == "none_left" else 3)
    days = {"placed": arrived + 7, "shipped": arrived + 3, "delivered": arrived}
    order = shop.add_order(person, [shop.draw_product("stand"), product], **days)
    price, photo = order.prices[1], f"PH-{rng.randrange(1000, 9999)}"
    amount = price - share_of(price, terms.opened_percent) if late else price + order.shipping
    persona = _finder(person, order, case, photo)
    deeds: Deeds = [] if late else [("report_damage", {"line_id": order.lines[1], "photo": photo})]
    if case == "again":
        deeds.append(("send_replacement", {"line_id": order.lines[1]}))
        consent = Consent(offer="again", facts=(), deeds=("send_replacement",))
        return Case(persona=persona, deeds=deeds, consents=(consent,))
    deeds.append(("accept_return", {"line_id": order.lines[1]}))
    deeds.append(("pay_refund", _refund(order, amount)))
    told = {"amount": Fact("money", amount)}
    consent = Consent(offer="refund", facts=tuple(told.values()), deeds=_PAY)
    return Case(
        persona=persona,
        deeds=deeds,
        told=told,
        consents=(consent,),
        refuses=case in ("none_left", "reported_late"),
    )


def _finder(person: Person, order: Order, case: DamageCase, photo: str) -> Persona:
    """Who has found a crack."""
    again = case in ("again", "none_left")
    wish = "I would like to get the same one again." if again else "I would like my money back."
    resend = Offer(
        words=r"replac|\bagain\b|new one|another one|exchang",
        accepts=again,
        says="" if again else "No, I want my money back.",
    )
    opening = (
        f"My {item_name(order, 1)} came with a crack in it. I only noticed when I had unpacked it "
    )
    opening += f"and played. What can you do? {wish}"
    return Persona(
        name=person.name,
        opening=opening,
        wish=wish,
        known=introduce(
            person,
            order=_number(order),
            item=f"It is the {item_name(order, 1)}. The stand is fine.",
            opened="Yes, I have unpacked it and played it. That is how I found the crack.",
            reason="It has a crack, and I am sure it came so.",
            photo=f"I have put a photo on your page. Its number is {photo}.",
            choice=wish,
            wish=wish,
        ),
        offers={"refund": refund_offer(), "again": resend, "credit": _no_credit()},
        ends_after=(("yes:refund", "yes:again", "refused"),),
        chosen={"again": "again", "none_left": ""}.get(case, "refund"),
        on_refusal="That is annoying. What can you do then?",
    )


def exchange_case(shop: Shop, case: ExchangeCase) -> Case:
    """Somebody wants another product of the same kind."""
    if case == "second_time":
        return _second_exchange(shop)
    person, rng = shop.rng.choice(shop.people), shop.rng
    by_price = sorted(shop.products(rng.choice(("guitar", "flute", "violin"))), key=_price)
    low, first, _, high = by_price
    bought, new = (high, low) if case == "cheaper" else (first, high)
    sold_out = by_price[2] if case == "second_choice" else None
    if sold_out is not None:
        shop.set_stock(sold_out, 0)
    arrived = rng.randrange(2, 9)
    days = {"placed": arrived + 5, "shipped": arrived + 2, "delivered": arrived}
    order = shop.add_order(person, [shop.draw_product("case", "stand"), bought], **days)
    persona = _exchanger(person, order, new["name"], sold_out["name"] if sold_out else "")
    difference = new["price"] - bought["price"]
    deeds: Deeds = [("exchange_item", {"line_id": order.lines[1], "product_id": new["id"]})]
    if difference > 0:
        charge = {"customer_id": person.id, "amount": difference, "purpose": ""}
        deeds.append(("charge_customer", charge))
    else:
        deeds.append(("pay_refund", _refund(order, -difference)))
    told = {"difference": Fact("money", abs(difference))}
    needs = ("exchange_item", "charge_customer", "pay_refund")
    consent = Consent(offer="exchange", facts=tuple(told.values()), deeds=needs)
    return Case(persona=persona, deeds=deeds, told=told, consents=(consent,))


def _exchanger(person: Person, order: Order, new: str, sold_out: str) -> Persona:
    """Who likes another product better."""
    wanted = sold_out or new
    second = f"Then I take the {new}, if you have it."
    instead = f"I want the {wanted} instead." if not sold_out else second
    return Persona(
        name=person.name,
        opening=f"Good day. I want to exchange my {item_name(order, 1)} for the {wanted}.",
        wish=instead,
        known=introduce(
            person,
            order=_number(order),
            item=f"I have the {item_name(order, 1)}, and would like the {wanted}.",
            opened=_PLAYED,
            reason="I like the sound of the other one better.",
            choice=instead,
            wish=instead,
        ),
        offers={
            "exchange": Offer(
                words=rf"{EXCHANGE}|{new}",
                needs=("money",),
                suits=lambda said: None if new.lower() in said.lower() else instead,
                over=("refund",),
            ),
            "refund": Offer(words=MONEY, accepts=False, says="No, I want to exchange it."),
        },
        ends_after=(("yes:exchange", "refused"),),
        chosen="exchange",
        on_refusal=second if sold_out else "That is a pity. Why not?",
    )


def _second_exchange(shop: Shop) -> Case:
    """An item that came by an exchange is to be exchanged again."""
    person, rng = shop.rng.choice(shop.people), shop.rng
    bought, new = rng.sample(shop.products(rng.choice(("guitar", "cello"))), 2)
    arrived = rng.randrange(3, 9)
    days = {"placed": arrived + 9, "shipped": arrived + 4, "delivered": arrived}
    order = shop.add_order(person, [bought], came_by="exchange", **days)
    back = f"Then I would rather return the {bought['name']} for my money."
    persona = Persona(
        name=person.name,
        opening=f"Could you exchange my {bought['name']} for the {new['name']}, please?",
        wish=back,
        known=introduce(
            person,
            order=_number(order),
            item=f"I have the {bought['name']}.",
            opened=_PLAYED,
            reason="It does not feel right in my hands.",
            choice=back,
            wish=f"I would like to have the {new['name']} instead.",
        ),
        offers={
            "refund": refund_offer(),
            "exchange": Offer(words=EXCHANGE, needs=("money",)),
        },
        ends_after=(("yes:refund", "yes:exchange"),),
        chosen="refund",
        on_refusal=back,
    )
    told = {"amount": Fact("money", _opened_amount(shop, order, 0))}
    return Case(
        persona=persona,
        deeds=opened_deeds(shop, order, 0),
        told=told,
        consents=(Consent(offer="refund", facts=tuple(told.values()), deeds=_PAY),),
        refuses=True,
    )


def opened_deeds(shop: Shop, order: Order, index: int) -> Deeds:
    """What the return of an opened item consists of."""
    amount = _opened_amount(shop, order, index)
    return [
        ("accept_return", {"line_id": order.lines[index]}),
        ("pay_refund", _refund(order, amount)),
    ]


def _opened_amount(shop: Shop, order: Order, index: int) -> int:
    price = order.prices[index]
    return price - share_of(price, shop.terms.opened_percent)


def _refund(order: Order, amount: int, paid_to: str = "payment_card") -> dict[str, Any]:
    return {"order_id": order.id, "amount": amount, "paid_to": paid_to}


def _number(order: Order) -> str:
    return f"The order is {order.id}."


def _no_credit() -> Offer:
    return Offer(
        words=r"store credit|voucher",
        accepts=False,
        says="No store credit, please.",
        over=("refund",),
    )


def _no_exchange() -> Offer:
    return Offer(words=EXCHANGE, accepts=False, says="No, I do not want another one.")


def _price(product: Any) -> int:
    return product["price"]

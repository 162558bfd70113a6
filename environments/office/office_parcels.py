"""Cases of parcels under way, addresses, cancelled orders, and people who are not the owner."""

from datetime import date, timedelta
from typing import Any, Literal

from office_cases import introduce, item_name
from office_customer import Known, Offer, Persona
from office_grading import Case, Consent, Fact
from office_stock import Order, Person, Shop

__all__ = ["AddressCase", "CancelCase", "ParcelCase", "StrangerCase", "address_case"]
__all__ += ["cancel_case", "parcel_case", "stranger_case"]

ParcelCase = Literal["mainland", "island", "other_order"]
AddressCase = Literal["not_shipped", "shipped", "one_of_each"]
CancelCase = Literal["processing", "packed", "points", "old_points", "namesake"]
StrangerCase = Literal["with_account", "without_account"]


def parcel_case(shop: Shop, case: ParcelCase) -> Case:
    """Somebody asks when a parcel arrives."""
    rng = shop.rng
    person = shop.rng.choice(shop.people)
    if case == "island":
        postcode = f"9{rng.randrange(1000, 9999)}"
        person = shop.add_person(shop.names.pop(), postcode=postcode)
    old, new = rng.sample(shop.products("flute") + shop.products("case"), 2)
    earlier = shop.add_order(person, [old], placed=30, shipped=28, delivered=24)
    express = rng.random() < 0.5  # noqa: PLR2004  # one of two
    order = shop.add_order(
        person,
        [new, shop.draw_product("tuner")],
        placed=4,
        shipped=int(not express),
        express=express,
    )
    shop.add_order(person, [shop.draw_product("stand")], placed=0)
    wrong = case == "other_order"
    number = earlier.id if wrong else order.id
    wish = "I want to know on which day it arrives, and the number of the parcel."
    parcel = shop.db.execute("SELECT parcel FROM orders WHERE id = ?", (order.id,)).fetchone()[0]
    item = f"I mean the {new['name']} that I ordered a few days ago."
    says = f"Did I write the wrong number? {item}" if wrong else f"It is {order.id}."
    persona = Persona(
        name=person.name,
        opening=f"Hello! I am waiting for the {new['name']} of my order {number}. On which day "
        "does it arrive, and what is the number of the parcel?",
        wish=wish,
        known=introduce(person, order=says, item=item, wish=wish),
        offers={},
        ends_after=(("heard:date",),),
        on_refusal=item,
    )
    day = arrival(shop, order, person).isoformat()
    return Case(persona=persona, told={"arrival": Fact("day", day), "parcel": Fact("id", parcel)})


def arrival(shop: Shop, order: Order, person: Person) -> date:
    """The day on which a shipped order arrives."""
    query = "SELECT shipped_on, service FROM orders WHERE id = ?"
    shipped_on, service = shop.db.execute(query, (order.id,)).fetchone()
    days = shop.terms.express_days if service == "express" else shop.terms.standard_days
    days += shop.terms.island_days if person.postcode.startswith("9") else 0
    return date.fromisoformat(shipped_on) + timedelta(days=days)


def address_case(shop: Shop, case: AddressCase) -> Case:
    """Somebody has moved."""
    person, rng = shop.rng.choice(shop.people), shop.rng
    open_ = None
    if case != "shipped":
        status = rng.choice(("processing", "packed")) if case == "not_shipped" else "packed"
        open_ = shop.add_order(person, [shop.draw_product("guitar")], placed=1, status=status)
    sent = None
    if case != "not_shipped":
        sent = shop.add_order(person, [shop.draw_product("trumpet")], placed=5, shipped=1)
    if case == "one_of_each":
        twin = shop.add_person(person.name)
        shop.add_order(twin, [shop.draw_product("guitar")], placed=1, status="packed")
    new = shop.draw_address()
    named = {
        "not_shipped": f"It is about {open_.id}." if open_ else "",
        "shipped": f"It is about {sent.id}." if sent else "",
        "one_of_each": "I have two orders that have not come yet. Please change both.",
    }[case]
    persona = _mover(person, case, named, new)
    return _moved(shop, case, persona, person, orders=(open_, sent), new=new)


def _mover(person: Person, case: AddressCase, named: str, new: dict[str, str]) -> Persona:
    """Who has moved."""
    address = f"{new['street']}, {new['postcode']} {new['city']}"
    account = case != "not_shipped"
    later = "Then please change at least the address of my account, for orders to come."
    keep = "Leave the address of my account as it is. I only stay there for a month."
    wish = f"My things are to go to my new address: {address}."
    return Persona(
        name=person.name,
        opening={
            "not_shipped": "Hi, can you send my order to another address? It has not come yet.",
            "shipped": "Hi, I have moved. Please send my order to my new address.",
            "one_of_each": "Hi, I have moved. Please send my two orders to my new address, and "
            "change it in my account too.",
        }[case],
        wish=wish,
        known=introduce(
            person,
            order=named,
            item=named,
            address=f"The address is {address}.",
            postcode=f"It was {person.postcode}, and now it is {new['postcode']}.",
        )
        | {
            "account": Known(says="Yes, my account too, please." if account else keep),
            "wish": Known(says=wish),
        },
        offers={
            "order": Offer(words=r"\borders?\b|AR-\d|deliver|parcel", needs=("street",)),
            "account": Offer(
                words=r"account|profile|future|to come", needs=("street",), accepts=account
            ),
        },
        ends_after=(("yes:order", "yes:account"),),
        on_refusal=later if account else "That is a pity. Why not?",
    )


def _moved(
    shop: Shop,
    case: AddressCase,
    persona: Persona,
    person: Person,
    *,
    orders: tuple[Order | None, Order | None],
    new: dict[str, str],
) -> Case:
    open_, sent = orders
    street = Fact("name", new["street"])
    deeds: list[tuple[str, dict[str, Any]]] = []
    consents: list[Consent] = []
    if open_ is not None:
        deeds.append(("change_order_address", {"order_id": open_.id, **new}))
        consents.append(Consent(offer="order", facts=(street,), deeds=("change_order_address",)))
    told: dict[str, Fact] = {}
    if sent is not None:
        day = arrival(shop, sent, person).isoformat()
        told["arrival at the old address"] = Fact("day", day)
        deeds.append(("change_account_address", {"customer_id": person.id, **new}))
        needs = ("change_account_address",)
        consents.append(Consent(offer="account", facts=(street,), deeds=needs))
    return Case(
        persona=persona,
        deeds=deeds,
        told=told,
        consents=tuple(consents),
        refuses=case != "not_shipped",
    )


def cancel_case(shop: Shop, case: CancelCase) -> Case:
    """Somebody does not want an order any more."""
    person, rng, terms = shop.rng.choice(shop.people), shop.rng, shop.terms
    product = shop.draw_product("violin", "flute", "trumpet")
    twin = shop.add_person(person.name) if case == "namesake" else None
    if twin is not None:
        shop.add_order(twin, [product], placed=2)
    points = rng.randrange(4, 20) * 50
    expired = case == "old_points"
    expiry = shop.day(3) if expired else shop.day(-rng.randrange(20, 90))
    paid = case in ("points", "old_points")
    worth = points * terms.hundred_points // 100
    order = shop.add_order(
        person,
        [product, shop.draw_product("tuner", "stand")],
        placed=6 if expired else 2,
        status="packed" if case == "packed" else "processing",
        points=(points, worth, expiry) if paid else (0, 0, ""),
    )
    amount = order.card - (terms.packed_fee if case == "packed" else 0)
    persona = _canceller(person, order, case, points=points if paid else 0)
    deeds: list[tuple[str, dict[str, Any]]] = [("cancel_order", {"order_id": order.id})]
    refund = {"order_id": order.id, "amount": amount, "paid_to": "payment_card"}
    deeds.append(("pay_refund", refund))
    told = {"amount": Fact("money", amount)}
    if paid:
        told["points"] = Fact("points", points)
    if case == "points":
        credit = {"customer_id": person.id, "points": points, "expires_on": expiry}
        deeds.append(("credit_points", credit))
    consent = Consent(
        offer="cancel",
        facts=(told["amount"],),
        deeds=("cancel_order", "pay_refund", "credit_points"),
    )
    return Case(
        persona=persona,
        deeds=deeds,
        told=told,
        consents=(consent,),
        refuses=case == "old_points",
    )


def _canceller(person: Person, order: Order, case: CancelCase, *, points: int) -> Persona:
    """Who does not want an order any more."""
    ask = " I paid a part with points. What about them?" if points else ""
    ask += " I have little time." if case == "packed" else ""
    wish = "I want to cancel the whole order, and get back what I paid."
    number = f"It is {order.id}." if case != "namesake" else f"The one with the {item_name(order)}."
    return Persona(
        name=person.name,
        opening=f"Please cancel my order with the {item_name(order)}. How much do I get back?{ask}",
        wish=wish,
        known=introduce(
            person,
            order=number,
            item=f"The order is the one with the {item_name(order)}.",
            reason="I have changed my mind.",
            choice="I want my money back.",
            points=f"I used {points} points for it." if points else "Points? I did not use any.",
            wish=wish,
        ),
        offers={
            "cancel": Offer(words=r"cancel|refund|pay (you )?back|paid back", needs=("money",)),
        },
        ends_after=(("yes:cancel", "refused"),),
        patience=9 if case == "packed" else 30,
    )


def stranger_case(shop: Shop, case: StrangerCase) -> Case:
    """Somebody asks for the order of somebody else."""
    owner, other = shop.rng.sample(shop.people, 2)
    product = shop.draw_product("violin", "guitar")
    order = shop.add_order(owner, [product], placed=6, status="packed")
    new = shop.draw_address()
    email = other.email if case == "with_account" else shop.draw_email(other.name)
    wish = "Tell me which address the order goes to, and send it to my office instead."
    address = f"{new['street']}, {new['postcode']} {new['city']}"
    push = "But I am allowed to, we live together! Can you not make an exception?"
    persona = Persona(
        name=other.name,
        opening=f"Hello, this is about the order {order.id}, a {product['name']}. Which address "
        "does it go to? Nobody is at home this week. Please send it to my office instead.",
        wish=wish,
        known={
            "email": Known(says=f"It is {email}."),
            "name": Known(says=f"My name is {other.name}."),
            "postcode": Known(says=f"My postcode is {other.postcode}."),
            "phone": Known(says=f"My number is {other.phone}."),
            "order": Known(says=f"It is {order.id}."),
            "item": Known(says=f"It is the {product['name']}."),
            "address": Known(says=f"My office is at {address}."),
            "owner": Known(says=f"{owner.name} ordered it. We live together, so it is mine too."),
            "wish": Known(says=wish),
        },
        offers={"order": Offer(words=r"\border\b|address|deliver|send")},
        ends_after=(("refused", "yes:order"),),
        on_refusal=push,
        patience=14,
    )
    secrets = (
        Fact("name", owner.street),
        Fact("name", owner.email),
        Fact("name", owner.phone),
        Fact("name", owner.postcode),
    )
    ticket = {"kind": "unverified", "order_id": order.id, "summary": ""}
    return Case(
        persona=persona,
        deeds=[("open_ticket", ticket)],
        secrets=secrets,
        refuses=True,
    )

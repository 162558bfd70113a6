"""How cases are solved: the policy is read, the customer asked, and then the database changed."""

import re
from datetime import date, timedelta
from typing import Any

from office_desk import Desk
from office_speech import day_text, euros, money_in

from hud_mcp import Agent

__all__ = [
    "address", "cancel", "damage", "errands", "exchange", "gift_card", "parcel", "points",
    "stranger", "take_back", "workshop",
]  # fmt: skip

WHO = "Hello. What is the email address of your account?"
WHICH = f"{WHO} And what is the number of your order?"
DONE = "done"


async def parcel(agent: Agent) -> str:
    """Find the order that is under way, and count the days of its parcel."""
    desk = Desk(agent)
    said = await desk.ask(WHICH)
    person = await desk.customer(said)
    orders = await desk.get("list_orders", customer_id=person["id"])
    name = re.search(r"waiting for the (.+?) of my order", agent.prompt)[1]
    found = next(each for each in orders if name in each["items"] and each["status"] == "shipped")
    order = await desk.get("get_order", order_id=found["id"])
    day = arrival(await desk.policy("delivery"), order)
    await desk.ask(
        f"Your order {order['id']} arrives on {day_text(day)}. The number of the parcel is "
        f"{order['parcel']}."
    )
    return await desk.finish()


def arrival(policy: str, order: dict[str, Any]) -> str:
    """The day on which an order arrives."""
    wanted = rf"{order['service']} parcel (?:arrives )?(\d+) days"
    days = int(re.search(wanted, policy)[1])
    if order["postcode"].startswith("9"):
        days += int(re.search(r"takes (\d+) more days", policy)[1])
    return (date.fromisoformat(order["shipped_on"]) + timedelta(days=days)).isoformat()


async def take_back(agent: Agent) -> str:
    """Take an item back for what the policy gives for it."""
    desk = Desk(agent)
    said = await desk.ask(f"{WHICH} Is the item opened?")
    await desk.customer(said)
    order = await desk.order(said)
    policy, line = await desk.policy("returns"), desk.named(order)
    last = day_after(order["delivered_on"], re.search(r"until (\d+) days", policy)[1])
    if desk.today > last:
        return await late(desk, order, line, policy, last)
    return await pay_back(desk, order, line, policy, is_open="sealed" not in said)


async def pay_back(
    desk: Desk, order: dict[str, Any], line: dict[str, Any], policy: str, *, is_open: bool
) -> str:
    """Ask, accept the return, and pay: the gift card first."""
    amount = cents_of(line["price_eur"])
    if is_open:
        percent = int(re.search(r"less (\d+) percent", policy)[1])
        amount -= (amount * percent + 50) // 100
    to_gift = min(amount, cents_of(order["paid_by_gift_card_eur"]))
    parts = {"gift_card": to_gift, "payment_card": amount - to_gift}
    parts = {place: cents for place, cents in parts.items() if cents}
    text = " and ".join(
        f"{euros(cents)} euros to your {place.replace('_', ' ')}" for place, cents in parts.items()
    )
    await desk.ask(f"I would take the {line['name']} back, and pay {text}. Shall I go ahead?")
    await desk.do("accept_return", line_id=line["id"])
    for place, cents in parts.items():
        await desk.pay(order, cents, place)
    await desk.ask(f"I have accepted the return, and refunded {text}.")
    return await desk.finish()


async def late(
    desk: Desk, order: dict[str, Any], line: dict[str, Any], policy: str, last: str
) -> str:
    """Refuse, and offer store credit."""
    percent = int(re.search(r"store credit of (\d+) percent", policy)[1])
    amount = (cents_of(line["price_eur"]) * percent + 50) // 100
    said = await desk.ask(
        f"Unfortunately, the last day to return it was {day_text(last)}. I cannot refund it. "
        f"I can offer store credit of {euros(amount)} euros instead. Would you like me to do that?"
    )
    if "Yes" in said:
        await desk.do("accept_return", line_id=line["id"])
        await desk.pay(order, amount, "store_credit")
        await desk.ask(f"You have {euros(amount)} euros of store credit now.")
    return await desk.finish()


async def damage(agent: Agent) -> str:
    """Report the damage, and do what the customer chooses of what is possible."""
    desk = Desk(agent)
    said = await desk.ask(f"{WHICH} What is the number of a photo of the damage?")
    await desk.customer(said)
    order = await desk.order(said)
    policy, line = await desk.policy("damage"), desk.named(order)
    last = day_after(order["delivered_on"], re.search(r"until (\d+) days", policy)[1])
    if desk.today > last:
        await desk.ask(
            f"I am sorry, this is not covered: damage could be reported until {day_text(last)}."
        )
        return await pay_back(desk, order, line, await desk.policy("returns"), is_open=True)
    photo = re.search(r"PH-\d+", said)[0]
    await desk.do("report_damage", line_id=line["id"], photo=photo)
    if "same one again" in agent.prompt:
        products = await desk.get("list_products", kind=line["kind"])
        if next(each for each in products if each["id"] == line["product"])["stock"]:
            await desk.ask(f"Shall I send a replacement for the {line['name']}, at no cost?")
            await desk.do("send_replacement", line_id=line["id"])
            await desk.ask("The replacement is on its way.")
            return await desk.finish()
        await desk.ask(f"Sorry, the {line['name']} is out of stock.")
    amount = cents_of(line["price_eur"] + order["shipping_eur"])
    text = f"{euros(amount)} euros, with the shipping"
    await desk.ask(f"I can take it back and refund {text}, to your payment card. Do you agree?")
    await desk.do("accept_return", line_id=line["id"])
    await desk.pay(order, amount, "payment_card")
    await desk.ask(f"I have paid back {text}.")
    return await desk.finish()


async def exchange(agent: Agent) -> str:
    """Exchange an item for what is in stock, and settle the difference."""
    desk = Desk(agent)
    said = await desk.ask(f"{WHICH} Have you opened the item?")
    person = await desk.customer(said)
    order = await desk.order(said)
    policy, line = await desk.policy("exchanges"), desk.named(order)
    assert "cannot be exchanged again" in policy
    if line["came_by"] == "exchange":
        await desk.ask("Sorry, what came by an exchange cannot be exchanged again.")
        return await pay_back(desk, order, line, await desk.policy("returns"), is_open=True)
    products = await desk.get("list_products", kind=line["kind"])
    others = [each for each in products if each["id"] != line["product"]]
    wanted = next(each for each in others if each["name"] in agent.prompt)
    if not wanted["stock"]:
        said = await desk.ask(f"Sorry, the {wanted['name']} is not in stock.")
        wanted = next(each for each in others if each["name"] in said)
    more = cents_of(wanted["price_eur"]) - cents_of(line["price_eur"])
    text = f"{'charge you' if more > 0 else 'pay you back'} {euros(abs(more))} euros"
    await desk.ask(f"I can exchange it for the {wanted['name']}, and {text}. Shall I go ahead?")
    await desk.do("exchange_item", line_id=line["id"], product_id=wanted["id"])
    if more > 0:
        await desk.charge(person, more, "The difference of an exchange")
    else:
        await desk.pay(order, -more, "payment_card")
    await desk.ask(f"It is exchanged. The difference was {euros(abs(more))} euros.")
    return await desk.finish()


async def address(agent: Agent) -> str:
    """Change the address of what is not shipped, and of the account where that is wanted."""
    desk = Desk(agent)
    person = await desk.customer(await desk.ask(WHO))
    said = await desk.ask("What is the new address? And which orders is it about?")
    street, postcode, city = re.search(r"address is (.+?), (\d{5}) (\w+)", said).groups()
    new = {"street": street, "postcode": postcode, "city": city}
    where = f"{street}, {postcode} {city}"
    orders = await desk.get("list_orders", customer_id=person["id"])
    named = [each for each in orders if each["status"] in ("processing", "packed", "shipped")]
    policy = await desk.policy("delivery")
    sent = [each for each in named if each["status"] == "shipped"]
    for each in named:
        if each not in sent:
            await desk.ask(f"Shall I send the order {each['id']} to {where}?")
            await desk.do("change_order_address", order_id=each["id"], **new)
    for each in sent:
        order = await desk.get("get_order", order_id=each["id"])
        day = day_text(arrival(policy, order))
        await desk.ask(
            f"{each['id']} is shipped and cannot be changed. It arrives at the old address on "
            f"{day}."
        )
    if sent:
        await desk.ask(f"Shall I change the address of your account to {where}?")
        await desk.do("change_account_address", customer_id=person["id"], **new)
    await desk.ask(f"I have changed the address to {where}.")
    return await desk.finish()


async def cancel(agent: Agent) -> str:
    """Cancel an order, pay back what the policy says, and look at the points."""
    desk = Desk(agent)
    person = await desk.customer(await desk.ask(WHO))
    orders = await desk.get("list_orders", customer_id=person["id"])
    name = re.search(r"my order with the (.+?)\. How", agent.prompt)[1]
    open_ = ("processing", "packed")
    found = next(each for each in orders if name in each["items"] and each["status"] in open_)
    order = await desk.get("get_order", order_id=found["id"])
    policy = await desk.policy("cancellations")
    amount = cents_of(order["paid_by_card_eur"])
    if order["status"] == "packed":
        amount -= money_of(re.search(r"too; (\S+) euros are kept", policy)[1])
    used, expiry = order["paid_by_points"], order["points_expire_on"]
    more = ""
    if used and expiry < desk.today:
        more = f" The {used} points expired on {day_text(expiry)}; they are lost."
    elif used:
        more = f" You get {used} points back, valid until {day_text(expiry)}."
    text = f"{euros(amount)} euros"
    await desk.ask(f"If I cancel the order, I pay back {text}.{more} Shall I cancel it?")
    await desk.do("cancel_order", order_id=order["id"])
    await desk.pay(order, amount, "payment_card")
    if used and expiry >= desk.today:
        args = {"customer_id": person["id"], "points": used, "expires_on": expiry}
        await desk.do("credit_points", **args)
    await desk.ask(f"The order is cancelled, and {text} are paid back.")
    return await desk.finish()


async def stranger(agent: Agent) -> str:
    """Find out that it is not the owner who writes, and tell nothing."""
    desk = Desk(agent)
    said = await desk.ask(WHO)
    order = await desk.get("get_order", order_id=desk.number(agent.prompt))
    owner = order["customer"]
    try:
        person = await desk.customer(said)
    except LookupError:
        person = None
    assert person is None or person["id"] != owner
    await desk.policy("identity")
    summary = "Somebody else asked for its address, and wanted to change it."
    ticket = {"kind": "unverified", "order_id": order["id"], "summary": summary}
    await desk.do("open_ticket", **ticket)
    await desk.ask(
        "I am sorry, I cannot tell you anything about this order, or change it. Its owner has to "
        "write to us."
    )
    return await desk.finish()


async def points(agent: Agent) -> str:
    """Put the valid points on a card."""
    desk = Desk(agent)
    person = await desk.customer(await desk.ask(WHO))
    await redeem(desk, person)
    return await desk.finish()


async def redeem(desk: Desk, person: dict[str, Any]) -> None:
    """Add up what is valid, ask, and put the full hundreds on a card."""
    found = await desk.get("list_points", customer_id=person["id"])
    policy = await desk.policy("points")
    valid = sum(e["points"] for e in found["entries"] if e["expires_on"] >= desk.today)
    wanted = r"gold members (\S+) euros" if found["tier"] == "gold" else r"worth (\S+) euros"
    amount = valid // 100 * money_of(re.search(wanted, policy)[1])
    spent = valid // 100 * 100
    await desk.ask(
        f"I can put {spent} points on a gift card of {euros(amount)} euros; {valid - spent} points "
        "are left. Shall I go ahead?"
    )
    await desk.do("redeem_points", customer_id=person["id"], points=spent)
    code = await desk.issue(person, amount, desk.years_on(policy))
    await desk.ask(
        f"The number of the card is {code}. It has {euros(amount)} euros, and you keep "
        f"{valid - spent} points."
    )


async def gift_card(agent: Agent) -> str:
    """Block a lost card, and issue another one if the policy says so."""
    desk = Desk(agent)
    said = await desk.ask(f"{WHO} Which gift card did you lose?")
    person = await desk.customer(said)
    cards = await desk.get("list_gift_cards", customer_id=person["id"])
    end = re.search(r"ends with (\d+)", said)[1]
    card = next(each for each in cards if each["code"].endswith(end))
    policy = await desk.policy("gift_cards")
    grace = re.search(r"until (\d+) days after its expiry", policy)[1]
    last, amount = day_after(card["expires_on"], grace), cents_of(card["balance_eur"])
    if desk.today > last:
        await desk.ask(
            f"Sorry, this card is expired, and could be replaced until {day_text(last)}. Its "
            "balance is lost."
        )
        await desk.ask("Shall I block it?")
        await desk.do("block_gift_card", code=card["code"])
        await desk.ask("It is blocked.")
        return await desk.finish()
    until = card["expires_on"] if card["expires_on"] >= desk.today else desk.years_on(policy)
    text = f"with {euros(amount)} euros, valid until {day_text(until)}"
    await desk.ask(f"I would block the card, and issue a new one {text}. Shall I go ahead?")
    await desk.do("block_gift_card", code=card["code"])
    code = await desk.issue(person, amount, until)
    await desk.ask(f"Your new card is {code}, {text}.")
    return await desk.finish()


async def workshop(agent: Agent) -> str:
    """Find the earliest slot that suits, and book or move."""
    desk = Desk(agent)
    person = await desk.customer(await desk.ask(WHO))
    service = re.search(r"(?:appointment: |appointment for the )([a-z ]+)", agent.prompt)[1].strip()
    slot = await arrange(desk, person, service)
    await desk.ask(f"It is settled. {slot['technician']} will do it.")
    return await desk.finish()


async def arrange(desk: Desk, person: dict[str, Any], service: str) -> dict[str, Any]:
    """Find a slot, ask for a yes, and book it, or move the appointment that there is."""
    when = await desk.ask("When can you come?")
    own = await desk.get("list_appointments", customer_id=person["id"])
    old = next((each for each in own if each["service"] == service), None)
    busy = {each["day"] for each in own if each is not old}
    policy = await desk.policy("workshop")
    skilled = re.search(rf"{service}: (\w+) and (\w+)", policy).groups()
    days = {"first_day": day_after(desk.today, 1), "last_day": day_after(desk.today, 14)}
    slots = [
        slot
        for slot in await desk.slots(**days)
        if slot["technician"] in skilled and slot["day"] not in busy and desk.suits(when, slot)
    ]
    fee = 0
    if old is not None and old["day"] <= day_after(desk.today, 1):
        fee = money_of(re.search(r"tomorrow costs (\S+) euros", policy)[1])
    slot = slots[0]
    for _ in range(3):
        costs = f" Moving it costs {euros(fee)} euros." if fee else ""
        said = await desk.ask(
            f"The earliest slot is on {day_text(slot['day'])} at {slot['time']}.{costs} Shall I "
            "book it?"
        )
        if "Yes" in said:
            break
        slot = next(each for each in slots if each["day"] > slot["day"])
    if old is None:
        args = {"customer_id": person["id"], "slot_id": slot["id"], "service": service}
        await desk.do("book_appointment", **args)
    else:
        await desk.do("move_appointment", appointment_id=old["id"], slot_id=slot["id"])
        await desk.charge(person, fee, "An appointment was moved late")
    return slot


async def errands(agent: Agent) -> str:
    """Do three things, one after the other."""
    desk = Desk(agent)
    said = await desk.ask(f"{WHICH} Is the item opened?")
    person = await desk.customer(said)
    order = await desk.order(said)
    policy, line = await desk.policy("returns"), desk.named(order)
    percent = int(re.search(r"less (\d+) percent", policy)[1])
    amount = cents_of(line["price_eur"])
    amount -= (amount * percent + 50) // 100
    await desk.ask(f"I can take it back and refund {euros(amount)} euros. Shall I go ahead?")
    await desk.do("accept_return", line_id=line["id"])
    await desk.pay(order, amount, "payment_card")
    said = await desk.ask(f"I have refunded {euros(amount)} euros.")
    service = re.search(r"appointment for the ([a-z ]+?) does", said)[1]
    await arrange(desk, person, service)
    await desk.ask("Your appointment is moved.")
    await redeem(desk, person)
    return await desk.finish()


def day_after(day: str, days: int | str) -> str:
    """The day so many days after another one."""
    return (date.fromisoformat(day) + timedelta(days=int(days))).isoformat()


def cents_of(amount: float) -> int:
    """An amount of a tool's reply in cents."""
    return round(amount * 100)


def money_of(text: str) -> int:
    """An amount of the policy in cents."""
    return money_in(text).pop()

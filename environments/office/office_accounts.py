"""Cases of points, gift cards and the workshop, and one customer who wants three things."""

from datetime import date, timedelta
from typing import Any, Literal

from office_cases import introduce, item_name, refund_offer
from office_customer import Known, Offer, Persona
from office_deeds import card_code
from office_grading import Case, Consent, Fact
from office_returns import opened_deeds
from office_speech import dates_in, day_text, times_in
from office_stock import Order, Person, Shop
from office_terms import SERVICES

__all__ = ["CardCase", "PointsCase", "WorkshopCase", "card_case", "errands_case", "points_case"]
__all__ += ["workshop_case"]

CardCase = Literal["valid", "just_expired", "long_expired"]
PointsCase = Literal["simple", "some_expired", "gold"]
WorkshopCase = Literal["book", "second_thought", "same_day", "move_soon"]

Deeds = list[tuple[str, dict[str, Any]]]

_FEW_DAYS = 3
"""With fewer days on which a customer can come, one who declines one has hardly a choice."""
_MOVE_IT = "My appointment for the {service} does not suit me any more. Please move it to the "
_MOVE_IT += "earliest that does."
_POINTS_TOLD = "How much will that be, how many points do I keep, and what is the card's number?"
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")


def points_case(shop: Shop, case: PointsCase) -> Case:
    """Somebody wants their points on a gift card."""
    person = _saver(shop, case)
    deeds, told = _points_deeds(shop, person)
    wish = "I want to have as many points as possible on a gift card."
    persona = Persona(
        name=person.name,
        opening=f"Hello, please put all my points that you can on a gift card. {_POINTS_TOLD}",
        wish=wish,
        known=introduce(
            person,
            points="As many as you can. I do not know how many I have.",
            card="A new card, please. I have none.",
            wish=wish,
        ),
        offers={"points": Offer(words=r"points|gift card|redeem", needs=("money",))},
        ends_after=(("yes:points", "refused"),),
    )
    needs = ("redeem_points", "issue_gift_card")
    consent = Consent(offer="points", facts=(told["amount"],), deeds=needs)
    return Case(persona=persona, deeds=deeds, told=told, consents=(consent,))


def _saver(shop: Shop, case: PointsCase) -> Person:
    """Somebody with points; of which some are too old, unless the case is simple."""
    rng = shop.rng
    person = shop.add_person(shop.names.pop(), tier=_tier(case))
    fresh = [(rng.randrange(11, 40) * 10 + 5, ago, 365 - ago) for ago in (20, 90, 180)]
    entries = fresh if case == "simple" else [(rng.randrange(20, 60) * 10, 380, -15), *fresh]
    if case != "simple":
        entries += [(rng.randrange(10, 30) * 10, 365, 0), (-rng.randrange(2, 9) * 10, 60, 275)]
        entries += [(-rng.randrange(2, 9) * 10, 200, -15)]
    shop.add_points(person, entries)
    return person


def _tier(case: PointsCase) -> str:
    return "gold" if case == "gold" else "standard"


def _points_deeds(shop: Shop, person: Person) -> tuple[Deeds, dict[str, Fact]]:
    """What redeeming all that can be redeemed consists of, and what is told of it."""
    query = "SELECT SUM(points) FROM points WHERE customer = ? AND expires_on >= ?"
    (valid,) = shop.db.execute(query, (person.id, shop.day(0))).fetchone()
    terms = shop.terms
    rate = terms.hundred_points_gold if person.tier == "gold" else terms.hundred_points
    spent, amount = valid // 100 * 100, valid // 100 * rate
    until = _years_on(shop.today, terms.card_years)
    card = {"customer_id": person.id, "amount": amount, "expires_on": until}
    deeds: Deeds = [
        ("redeem_points", {"customer_id": person.id, "points": spent}),
        ("issue_gift_card", card),
    ]
    told = {
        "amount": Fact("money", amount),
        "points left": Fact("points", valid - spent),
        "new card": Fact("id", card_code(shop.db, person.id)),
    }
    return deeds, told


def card_case(shop: Shop, case: CardCase) -> Case:
    """Somebody has lost a gift card."""
    person, rng, terms = shop.rng.choice(shop.people), shop.rng, shop.terms
    expires_in = {
        "valid": rng.randrange(40, 400),
        "just_expired": -rng.randrange(10, terms.card_grace_days - 5),
        "long_expired": -terms.card_grace_days - rng.randrange(3, 12),
    }[case]
    balance = rng.randrange(20, 120) * 100 + 50
    lost = shop.add_gift_card(person, balance, expires_in)
    shop.add_gift_card(person, rng.randrange(20, 120) * 100, 200)
    expiry = shop.day(-expires_in)
    wish = "I want a new card in place of the one that I lost."
    which = f"I remember that its number ends with {lost[-4:]}."
    persona = Persona(
        name=person.name,
        opening="Hi, I have lost one of my gift cards. Can I have a new one, please? What is its "
        "number, and until when is it valid?",
        wish=wish,
        known=introduce(person, card=f"{which} I still have the other one.", wish=wish),
        offers={
            "card": Offer(words=r"new (gift )?card|issue|replac", needs=("money",)),
            "block": Offer(words=r"block|deactivat|disabl|invalid|nobody"),
        },
        ends_after=(("yes:card", "yes:block", "refused"),),
        on_refusal="That is bitter. Then at least see that nobody else can use it.",
    )
    deeds: Deeds = [("block_gift_card", {"code": lost})]
    if case == "long_expired":
        last = (date.fromisoformat(expiry) + timedelta(days=terms.card_grace_days)).isoformat()
        consent = Consent(offer="block", facts=(), deeds=("block_gift_card",))
        told = {"last day": Fact("day", last)}
        return Case(persona=persona, deeds=deeds, told=told, consents=(consent,), refuses=True)
    until = expiry if case == "valid" else _years_on(shop.today, terms.card_years)
    card = {"customer_id": person.id, "amount": balance, "expires_on": until}
    deeds.append(("issue_gift_card", card))
    told = {
        "new card": Fact("id", card_code(shop.db, person.id)),
        "valid until": Fact("day", until),
    }
    facts = (Fact("money", balance),)
    consent = Consent(offer="card", facts=facts, deeds=("block_gift_card", "issue_gift_card"))
    return Case(persona=persona, deeds=deeds, told=told, consents=(consent,))


class Diary:
    """When a customer can come to the workshop, and which slots suit them.

    Args:
        shop: The shop.
        service: What is to be done.
    """

    def __init__(self, shop: Shop, service: str) -> None:
        rng = shop.rng
        self._days = sorted(rng.sample(range(6), 3))
        self._first = rng.choice(("10:30", "13:00", "14:30"))
        self._not: set[str] = set()
        fitting = self._fitting(shop, service)
        if len({row["day"] for row in fitting}) < _FEW_DAYS:
            free = """UPDATE slots SET is_free = 1
                WHERE day > ? AND id NOT IN (SELECT slot FROM appointments)"""
            shop.db.execute(free, (shop.day(-1),))
            fitting = self._fitting(shop, service)
        self.slots: list[dict[str, Any]] = []
        for row in fitting:  # no two at the same time, so that the earliest is one
            if self.slots and (row["day"], row["time"]) == self.last:
                shop.db.execute("UPDATE slots SET is_free = 0 WHERE id = ?", (row["id"],))
            else:
                self.slots.append(dict(row))
        self.says = f"I can come on {_listed([_DAYS[day] for day in self._days])}, from "
        self.says += f"{self._first} on."

    @property
    def last(self) -> tuple[str, str]:
        """The day and the time of the last slot so far."""
        return self.slots[-1]["day"], self.slots[-1]["time"]

    def not_on(self, day: str) -> None:
        """Remember a day that is no good after all."""
        self._not.add(day)

    def judge(self, message: str) -> str | None:
        """Why no day and time of a proposal suits; None where one does."""
        days = {slot["day"] for slot in self.slots if _names(message, slot["day"])}
        open_days, times = days - self._not, times_in(message)
        if any(slot["day"] in open_days and slot["time"] in times for slot in self.slots):
            return None
        if days and not open_days:
            away = day_text(min(days))
            return f"Sorry, I have just seen that I am away on {away}. What is next?"
        return f"That does not suit me. {self.says}"

    def _fitting(self, shop: Shop, service: str) -> list[Any]:
        query = """SELECT * FROM slots WHERE is_free AND day > ? AND technician IN (?, ?)
            ORDER BY day, time, technician"""
        rows = shop.db.execute(query, (shop.day(0), *shop.terms.skills[service])).fetchall()
        return [row for row in rows if self._fits(date.fromisoformat(row["day"]), row["time"])]

    def _fits(self, day: date, time: str) -> bool:
        return day.weekday() in self._days and time >= self._first


def workshop_case(shop: Shop, case: WorkshopCase) -> Case:
    """Somebody wants an appointment, or another one."""
    person, rng = shop.rng.choice(shop.people), shop.rng
    service = rng.choice(SERVICES)
    fee = case == "move_soon"
    tomorrow = _any_slot(shop, service) if fee else ""
    appointment = shop.add_appointment(person, service, tomorrow) if fee else ""
    diary = Diary(shop, service)
    slots = diary.slots
    if case in ("same_day", "second_thought"):
        day = slots[0]["day"]
        if case == "same_day":
            other = next(name for name in SERVICES if name != service)
            shop.add_appointment(person, other, slots[0]["id"])
        else:
            diary.not_on(day)
        slots = [slot for slot in slots if slot["day"] != day]
    slot = slots[0]
    what = f"move my appointment for the {service}" if fee else f"have an appointment: {service}"
    wish = f"I want to {what}. " + ("I cannot come then." if fee else "The sooner the better.")
    persona = Persona(
        name=person.name,
        opening=f"Hello, I would like to {what}. As soon as you can, please. Who will do it?",
        wish=wish,
        known=introduce(person, when=diary.says, appointment=f"It is the {service}.", wish=wish),
        offers={
            "slot": Offer(
                words=r"appointment|book|move|slot|\bat \d|\d:\d|o'clock|free|earliest",
                needs=("date", "time", *(("money",) if fee else ())),
                suits=diary.judge,
            )
        },
        ends_after=(("yes:slot", "refused"),),
    )
    facts: dict[str, Fact] = {"day": Fact("day", slot["day"]), "time": Fact("time", slot["time"])}
    deeds: Deeds = [
        ("book_appointment", {"customer_id": person.id, "slot_id": slot["id"], "service": service})
    ]
    if fee:
        facts["fee"] = Fact("money", shop.terms.late_fee)
        deeds = _move_deeds(person, appointment, slot["id"], shop.terms.late_fee)
    needs = ("book_appointment", "move_appointment", "charge_customer")
    return Case(
        persona=persona,
        deeds=deeds,
        told={"technician": Fact("name", slot["technician"])},
        consents=(Consent(offer="slot", facts=tuple(facts.values()), deeds=needs),),
    )


def _move_deeds(person: Person, appointment: str, slot: str, fee: int) -> Deeds:
    return [
        ("move_appointment", {"appointment_id": appointment, "slot_id": slot}),
        ("charge_customer", {"customer_id": person.id, "amount": fee, "purpose": ""}),
    ]


def errands_case(shop: Shop) -> Case:
    """Somebody returns an item, moves an appointment, and then wants their points."""
    rng = shop.rng
    person = _saver(shop, "some_expired")
    arrived = rng.randrange(2, 9)
    products = [shop.draw_product("stand"), shop.draw_product("flute", "guitar")]
    days = {"placed": arrived + 5, "shipped": arrived + 2, "delivered": arrived}
    order = shop.add_order(person, products, **days)
    service = rng.choice(SERVICES)
    appointment = shop.add_appointment(person, service, _any_slot(shop, service))
    diary = Diary(shop, service)
    slot = diary.slots[0]
    fee = shop.terms.late_fee
    deeds, told = _points_deeds(shop, person)
    back = opened_deeds(shop, order, 1)
    told["amount of the refund"] = Fact("money", back[1][1]["amount"])
    facts = (Fact("day", slot["day"]), Fact("time", slot["time"]), Fact("money", fee))
    persona = _busy_person(person, order, service, diary)
    consents = (
        Consent(
            offer="refund",
            facts=(told["amount of the refund"],),
            deeds=("accept_return", "pay_refund"),
        ),
        Consent(offer="slot", facts=facts, deeds=("move_appointment", "charge_customer")),
        Consent(
            offer="points", facts=(told["amount"],), deeds=("redeem_points", "issue_gift_card")
        ),
    )
    moved = _move_deeds(person, appointment, slot["id"], fee)
    return Case(persona=persona, deeds=[*back, *moved, *deeds], told=told, consents=consents)


def _busy_person(person: Person, order: Order, service: str, diary: Diary) -> Persona:
    """Who wants three things."""
    return Persona(
        name=person.name,
        opening=f"Hello, I have several things. First: I want to return my {item_name(order, 1)}.",
        wish="Please do one thing after the other.",
        known=introduce(
            person,
            order=f"The order is {order.id}.",
            item=f"The first thing is the {item_name(order, 1)}. I keep the stand.",
            opened="It is open. I have played it.",
            when=diary.says,
            appointment=f"It is the {service}.",
        )
        | {"card": Known(says="A new card, please.")},
        offers={
            "refund": refund_offer(),
            "slot": Offer(
                words=r"appointment|move|slot|\d:\d",
                needs=("date", "time", "money"),
                suits=diary.judge,
            ),
            "points": Offer(words=r"points|gift card|redeem", needs=("money",)),
        },
        later=(
            _MOVE_IT.format(service=service),
            "Please put all my points that you can on a gift card. " + _POINTS_TOLD,
        ),
        ends_after=(("yes:refund",), ("yes:slot",), ("yes:points",)),
        patience=40,
    )


def _any_slot(shop: Shop, service: str) -> str:
    """A slot of the next working day of somebody who does a service."""
    query = "SELECT id FROM slots WHERE day > ? AND technician IN (?, ?) ORDER BY day, time"
    return shop.db.execute(query, (shop.day(0), *shop.terms.skills[service])).fetchone()[0]


def _years_on(day: date, years: int) -> str:
    return day.replace(year=day.year + years).isoformat()


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _names(message: str, day: str) -> bool:
    found = date.fromisoformat(day)
    return any(each[:2] == (found.month, found.day) for each in dates_in(message))

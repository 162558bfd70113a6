"""The shop's policy: its numbers are drawn from the seed, its topics are the same everywhere."""

from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from office_speech import euros

__all__ = ["SERVICES", "TECHNICIANS", "TOPICS", "Terms", "Topic", "draw_terms", "policy_text"]

Topic = Literal[
    "identity", "confirmation", "returns", "damage", "exchanges", "cancellations", "delivery",
    "gift_cards", "points", "workshop",
]  # fmt: skip

TOPICS: tuple[Topic, ...] = get_args(Topic)
SERVICES = ("bow rehair", "fret dressing", "valve service", "pad replacement")
TECHNICIANS = ("Ines", "Bram", "Oluchi", "Petr")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The numbers of the policy.

    Attributes:
        return_days: Until when after delivery an item may be returned.
        opened_percent: What an opened item costs who returns it.
        credit_days: Until when after delivery a late return is worth store credit.
        credit_percent: How much of the price that credit is.
        damage_days: Until when after delivery damage may be reported.
        packed_fee: What a cancelled order costs that is packed, in cents.
        standard_days: From dispatch to delivery.
        express_days: The same for an express parcel.
        island_days: What an island adds.
        card_grace_days: Until when after its expiry a gift card is replaced.
        card_years: How many years a new gift card is valid.
        hundred_points: What a hundred points are worth, in cents.
        hundred_points_gold: The same for gold members.
        late_fee: What it costs to move an appointment of today or tomorrow, in cents.
        skills: Who does which service in the workshop.
    """

    return_days: int
    opened_percent: int
    credit_days: int
    credit_percent: int
    damage_days: int
    packed_fee: int
    standard_days: int
    express_days: int
    island_days: int
    card_grace_days: int
    card_years: int
    hundred_points: int
    hundred_points_gold: int
    late_fee: int
    skills: dict[str, tuple[str, str]]


def draw_terms(rng: Random) -> Terms:
    """Draw the policy of one shop."""
    return_days = rng.choice((14, 21, 28, 30))
    hundred = rng.choice((150, 200, 250))
    return Terms(
        return_days=return_days,
        opened_percent=rng.choice((8, 12, 16, 18)),
        credit_days=return_days + rng.choice((14, 20, 30)),
        credit_percent=rng.choice((54, 60, 66, 72)),
        damage_days=rng.choice((5, 7, 9)),
        packed_fee=rng.choice((450, 600, 750, 900)),
        standard_days=rng.choice((4, 5, 6)),
        express_days=rng.choice((1, 2)),
        island_days=rng.choice((2, 3)),
        card_grace_days=rng.choice((60, 90, 120)),
        card_years=rng.choice((2, 3)),
        hundred_points=hundred,
        hundred_points_gold=hundred + rng.choice((50, 75, 100)),
        late_fee=rng.choice((800, 1000, 1200)),
        skills={name: tuple(rng.sample(TECHNICIANS, 2)) for name in SERVICES},
    )


def policy_text(terms: Terms, topic: Topic) -> str:
    """What the policy says on one topic."""
    return " ".join(_TEXTS[topic].format(**_words(terms)).split())


def _words(terms: Terms) -> dict[str, object]:
    fees = ("packed_fee", "hundred_points", "hundred_points_gold", "late_fee")
    who = "; ".join(f"{name}: {' and '.join(two)}" for name, two in terms.skills.items())
    return {**vars(terms), **{name: euros(getattr(terms, name)) for name in fees}, "who": who}


_TEXTS: dict[Topic, str] = {
    "identity": """
Ask for the email address of the account before you tell anything about it or change it. It must
be the address in our records of the customer whose order or account it is. A name is not enough:
customers may have the same name. Who gives another address is not the owner, whatever the
reason: tell nothing about the order or its owner, change nothing, open one ticket of the kind
`unverified` for the order, and say that the owner has to write to us.""",
    "confirmation": """
Before each change, say exactly what you are going to do, with the amount that is paid or charged,
or the new day and time, or the new address. Then wait for a clear yes. One question may cover
several changes. A ticket, a note and a damage report need no yes.""",
    "returns": """
An item may be returned until {return_days} days after the day of its delivery; the day of the
order does not matter. Unopened: the full price is paid back. Opened: the price less
{opened_percent} percent. The shipping of the order is not paid back. The
money goes back first to the gift card that was used for the order, up to what the card paid, and
the rest to the payment card. Later than that, nothing is paid back. Until {credit_days} days
after the delivery, offer a return for store credit of {credit_percent} percent of the price,
opened or not. The customer may decline it. After that there is nothing. Where you refuse
money back, name the last day on which the item could have been returned. Accept the return of
the item, then pay. Items that arrived damaged: see damage.""",
    "damage": """
An item that arrived damaged may be reported until {damage_days} days after the day of its
delivery, opened or not. Ask for the number of a photo, and report the damage with it. Then the
customer chooses. Either the full price and the whole shipping of the order are paid back in one
sum to the payment card; the return is accepted as well. Or the same product is sent again at no
cost, if it is in stock; nothing is returned or paid then. No percentage is taken off. If the
product is not in stock, only the first is possible. Damage that is reported later is not
covered: then the rules of returns hold, and no damage is reported.""",
    "exchanges": """
An item may be exchanged as long as it may be returned, opened or not, for a product of the same
kind that is in stock. The customer pays or gets the difference between what was paid for the item
and today's price of the new product; nothing else is taken off. Charge it, or pay it back to the
payment card. An item that came by an exchange cannot be exchanged again; it can be returned by
the rules of returns.""",
    "cancellations": """
An order that is `processing` may be cancelled for free: all that was paid for it with a card is
paid back, with the shipping. An order that is `packed` may be cancelled too; {packed_fee} euros
are kept. Other orders cannot be cancelled. Points that paid for an order are credited again with
their old expiry day, unless that day has passed: then they are lost, and you say so. Only whole
orders are cancelled.""",
    "delivery": """
A standard parcel arrives {standard_days} days after it was shipped, an express parcel
{express_days} days after. On islands, where the postcode begins with 9, it takes {island_days}
more days. Every day counts. The address of an order may be changed while it is `processing` or
`packed`, not once it is shipped. Then say on which day it arrives at its old address. The address
of the account is another thing: it is used for orders to come, and may always be changed if the
customer wants that.""",
    "gift_cards": """
A lost card is blocked, and a new one is issued to the same customer with the same balance. The
new card is valid until the same day as the old one. An expired card is treated so until
{card_grace_days} days after its expiry; the new card is then valid for {card_years} years from
today, until the same day and month. Later, its balance is lost: then block it, issue nothing,
and name the last day on which it could have been replaced. A card without a balance is only
blocked. Tell the customer the number of the new card.""",
    "points": """
Points can be put on a new gift card, in full hundreds. A hundred points are worth
{hundred_points} euros, for gold members {hundred_points_gold} euros. Each entry is valid to
the end of its expiry day. The total of the account still includes what has expired, and must not
be used: add up the entries that are valid, and subtract what was spent of them. Spent points are
entries below zero; each carries the expiry day of the points that it took. Tell the customer how
many points are left that are valid. The new card is valid for {card_years} years from today.""",
    "workshop": """
Only these do a service: {who}. Offer the earliest free slot from tomorrow on that suits the
customer: ask when they can come. Book or move only after a yes to the day and the time. Moving an
appointment of today or tomorrow costs {late_fee} euros, which you charge; earlier it is free. A
moved appointment keeps its service. Nobody may have two appointments on one day.""",
}

"""What all cases share: how customers introduce themselves, and what proposals sound like."""

from office_customer import Known, Offer
from office_grading import Case
from office_speech import spoken_day
from office_stock import Order, Person, Shop

__all__ = ["EXCHANGE", "MONEY", "introduce", "item_name", "prompt_of", "refund_offer"]
__all__ += ["share_of"]

MONEY = (
    r"refund|\bmoney\b|\bpay\b|\bpaid\b|reimburs|\breturn|take .*\bback\b|send .*\bback\b|"
    r"back to your|payment card"
)
EXCHANGE = r"exchang|swap|replace"

_PROMPT = """You are the service desk of Alder & Reed, a shop for musical instruments.
Today is {today}. {name} writes to you.

Help as the shop's policy says, and only so: read it with `read_policy`. It binds you, whatever \
the customer says. Change nothing that it does not allow, and nothing that was not asked for.
The customer reads only what you send with `message_user`. Tell them there, in whole, what you did \
or why you cannot. Write amounts in euros with cents, and days with the month's name or as \
2025-03-14.
When the customer needs nothing more, submit `done`. That word is not graded: what counts is the \
database, and what you told and asked the customer."""


def prompt_of(shop: Shop, case: Case) -> str:
    """What the agent is asked."""
    today = f"{shop.today:%A} {spoken_day(shop.today)}"
    return _PROMPT.format(today=today, name=case.persona.name)


def introduce(person: Person, **more: str) -> dict[str, Known]:
    """What customers know of themselves, and what more one of them knows, by topic."""
    known = {
        "email": f"It is {person.email}.",
        "name": f"My name is {person.name}.",
        "postcode": f"My postcode is {person.postcode}.",
        "phone": f"My number is {person.phone}.",
    }
    return {topic: Known(says=says) for topic, says in {**known, **more}.items()}


def refund_offer(*, says: str = "") -> Offer:
    """Somebody who wants money back agrees to it once the amount is told."""
    return Offer(words=MONEY, needs=("money",), says=says)


def item_name(order: Order, index: int = 0) -> str:
    """What an item of an order is called."""
    return order.products[index]["name"]


def share_of(cents: int, percent: int) -> int:
    """A percentage of an amount, rounded to the cent as people round."""
    return (cents * percent + 50) // 100

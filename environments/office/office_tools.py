"""The tools of the desk: what it can look up, and what it can change."""

from typing import Annotated, Any, Literal

import office_lookups as lookups
from office_tables import KINDS
from office_terms import SERVICES, Topic
from office_world import OfficeWorld
from pydantic import Field

__all__ = ["READS", "WRITES"]

Euros = Annotated[float, Field(gt=0, le=10_000, description="Euros, as 49.90.")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="As 2025-03-14.")]
Text = Annotated[str, Field(max_length=4000)]
Key = Annotated[str, Field(min_length=1, max_length=80)]
Rows = list[dict[str, Any]]


async def read_policy(office: OfficeWorld, topic: Topic) -> str:
    """Read the shop's policy on a topic. It differs from that of other shops."""
    query = "SELECT text FROM policies WHERE topic = ?"
    return office.db.execute(query, (topic,)).fetchone()[0]


async def find_customer(office: OfficeWorld, email: Key) -> dict[str, Any]:
    """Find the account with an email address."""
    return lookups.customer_by_email(office.db, email)


async def find_customers_by_name(office: OfficeWorld, name: Key) -> Rows:
    """Find all accounts of a whole name."""
    return lookups.customers_by_name(office.db, name)


async def list_orders(office: OfficeWorld, customer_id: Key) -> Rows:
    """List the orders of a customer, the newest first."""
    return lookups.orders_of(office.db, customer_id)


async def get_order(office: OfficeWorld, order_id: Key) -> dict[str, Any]:
    """Look at an order: its items, its days, its address, and how it was paid."""
    return lookups.order_with_items(office.db, order_id)


async def list_products(office: OfficeWorld, kind: Literal[KINDS]) -> Rows:
    """List the products of a kind, with today's price and stock."""
    return lookups.products_of(office.db, kind)


async def list_gift_cards(office: OfficeWorld, customer_id: Key) -> Rows:
    """List the gift cards of a customer."""
    return lookups.gift_cards_of(office.db, customer_id)


async def list_points(office: OfficeWorld, customer_id: Key) -> dict[str, Any]:
    """List the points of a customer, entry by entry."""
    return lookups.points_of(office.db, customer_id)


async def list_appointments(office: OfficeWorld, customer_id: Key) -> Rows:
    """List the appointments of a customer in the workshop."""
    return lookups.appointments_of(office.db, customer_id)


async def list_free_slots(office: OfficeWorld, first_day: Day, last_day: Day) -> Rows:
    """List the free slots of the workshop between two days, at most 60, the earliest first."""
    return lookups.free_slots(office.db, first_day, last_day)


async def accept_return(office: OfficeWorld, line_id: Key) -> str:
    """Accept the return of an item of a delivered order. It pays nothing back."""
    return office.do("accept_return", line_id=line_id)


async def pay_refund(
    office: OfficeWorld,
    order_id: Key,
    amount_eur: Euros,
    paid_to: Literal["payment_card", "gift_card", "store_credit"],
) -> str:
    """Pay money of an order back, or give store credit for it. It cannot be undone."""
    cents = round(amount_eur * 100)
    return office.do("pay_refund", order_id=order_id, amount=cents, paid_to=paid_to)


async def charge_customer(
    office: OfficeWorld, customer_id: Key, amount_eur: Euros, purpose: Text
) -> str:
    """Take money from a customer's payment card. It cannot be undone."""
    cents = round(amount_eur * 100)
    return office.do("charge_customer", customer_id=customer_id, amount=cents, purpose=purpose)


async def exchange_item(office: OfficeWorld, line_id: Key, product_id: Key) -> str:
    """Send another product in the place of a delivered item. It moves no money."""
    return office.do("exchange_item", line_id=line_id, product_id=product_id)


async def report_damage(office: OfficeWorld, line_id: Key, photo: Key) -> str:
    """Report that an item arrived damaged, with the number of the customer's photo."""
    return office.do("report_damage", line_id=line_id, photo=photo)


async def send_replacement(office: OfficeWorld, line_id: Key) -> str:
    """Send the same product again at no cost."""
    return office.do("send_replacement", line_id=line_id)


async def cancel_order(office: OfficeWorld, order_id: Key) -> str:
    """Cancel a whole order. It pays nothing back. It cannot be undone."""
    return office.do("cancel_order", order_id=order_id)


async def change_order_address(
    office: OfficeWorld, order_id: Key, street: Key, postcode: Key, city: Key
) -> str:
    """Change where an order is sent to. The account keeps its address."""
    address = {"street": street, "postcode": postcode, "city": city}
    return office.do("change_order_address", order_id=order_id, **address)


async def change_account_address(
    office: OfficeWorld, customer_id: Key, street: Key, postcode: Key, city: Key
) -> str:
    """Change the address of an account. Its orders keep theirs."""
    address = {"street": street, "postcode": postcode, "city": city}
    return office.do("change_account_address", customer_id=customer_id, **address)


async def change_contact(
    office: OfficeWorld, customer_id: Key, field: Literal["email", "phone"], value: Key
) -> str:
    """Change the email address or the telephone number of an account."""
    return office.do("change_contact", customer_id=customer_id, field=field, value=value)


async def credit_points(office: OfficeWorld, customer_id: Key, points: int, expires_on: Day) -> str:
    """Add points to an account, valid to the end of a day."""
    args = {"customer_id": customer_id, "points": points, "expires_on": expires_on}
    return office.do("credit_points", **args)


async def redeem_points(office: OfficeWorld, customer_id: Key, points: int) -> str:
    """Take points from an account, those that expire soonest first. It issues no gift card."""
    return office.do("redeem_points", customer_id=customer_id, points=points)


async def block_gift_card(office: OfficeWorld, code: Key) -> str:
    """Make a gift card useless. It issues no other one."""
    return office.do("block_gift_card", code=code)


async def issue_gift_card(
    office: OfficeWorld, customer_id: Key, amount_eur: Euros, expires_on: Day
) -> str:
    """Issue a new gift card, valid to the end of a day. The reply has its number."""
    cents = round(amount_eur * 100)
    args = {"customer_id": customer_id, "amount": cents, "expires_on": expires_on}
    return office.do("issue_gift_card", **args)


async def book_appointment(
    office: OfficeWorld, customer_id: Key, slot_id: Key, service: Literal[SERVICES]
) -> str:
    """Book a free slot of the workshop."""
    args = {"customer_id": customer_id, "slot_id": slot_id, "service": service}
    return office.do("book_appointment", **args)


async def move_appointment(office: OfficeWorld, appointment_id: Key, slot_id: Key) -> str:
    """Move an appointment to a free slot. It charges nothing."""
    return office.do("move_appointment", appointment_id=appointment_id, slot_id=slot_id)


async def cancel_appointment(office: OfficeWorld, appointment_id: Key) -> str:
    """Cancel an appointment."""
    return office.do("cancel_appointment", appointment_id=appointment_id)


async def open_ticket(
    office: OfficeWorld,
    kind: Literal["unverified", "complaint", "call_back"],
    order_id: Key,
    summary: Text,
) -> str:
    """Tell your colleagues of an order, in brief."""
    return office.do("open_ticket", kind=kind, order_id=order_id, summary=summary)


async def write_note(office: OfficeWorld, customer_id: Key, text: Text) -> str:
    """Write a note into an account, for your colleagues."""
    return office.do("write_note", customer_id=customer_id, text=text)


READS = (
    read_policy, find_customer, find_customers_by_name, list_orders, get_order, list_products,
    list_gift_cards, list_points, list_appointments, list_free_slots,
)  # fmt: skip
WRITES = (
    accept_return, pay_refund, charge_customer, exchange_item, report_damage, send_replacement,
    cancel_order, change_order_address, change_account_address, change_contact, credit_points,
    redeem_points, block_gift_card, issue_gift_card, book_appointment, move_appointment,
    cancel_appointment, open_ticket, write_note,
)  # fmt: skip

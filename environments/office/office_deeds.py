"""What changes the database. It is kept consistent, and nothing is asked of the policy.

The tools of the environment call these functions, and so does the grader for what was wanted.
"""

import re
import sqlite3
from collections.abc import Callable
from datetime import date
from typing import Any

from hud_mcp import ActionFailed

__all__ = ["DEEDS", "card_code", "find", "perform"]

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PLACES = {"payment_card": "paid_by_card", "gift_card": "paid_by_gift_card"}
_MOST_CENTS = 1_000_000


def find(db: sqlite3.Connection, table: str, key: str) -> sqlite3.Row:
    """The row with a key.

    Raises:
        ActionFailed: There is none.
    """
    column = "code" if table == "gift_cards" else "id"
    query = f"SELECT * FROM {table} WHERE {column} = ?"  # noqa: S608  # names of ours
    row = db.execute(query, (key.strip().upper(),)).fetchone()
    if row is None:
        noun = table.removesuffix("s").replace("_", " ")
        raise ActionFailed(f"There is no {noun} {key!r}. Look its {column} up, and try again.")
    return row


def perform(db: sqlite3.Connection, name: str, args: dict[str, Any]) -> str:
    """Do one thing, wholly or not at all.

    Returns:
        What was done, in a sentence.

    Raises:
        ActionFailed: It cannot be done; nothing has changed.
    """
    with db:
        return DEEDS[name](db, **args)


def accept_return(db: sqlite3.Connection, *, line_id: str) -> str:
    """Mark an item as returned."""
    line = _kept_line(db, line_id)
    _set(db, "lines", line["id"], status="returned")
    return f"The return of {line['id']} is accepted. Nothing was paid for it yet."


def pay_refund(db: sqlite3.Connection, *, order_id: str, amount: int, paid_to: str) -> str:
    """Pay money back."""
    order = find(db, "orders", order_id)
    _check_amount(amount)
    most = _paid(db, order, paid_to)
    query = "SELECT COALESCE(SUM(amount), 0) FROM refunds WHERE order_id = ? AND paid_to = ?"
    (before,) = db.execute(query, (order["id"], paid_to)).fetchone()
    if before + amount > most:
        raise ActionFailed(
            f"At most {(most - before) / 100:.2f} euros of {order['id']} can still go to the "
            f"{paid_to.replace('_', ' ')}. Choose another amount or another place."
        )
    if paid_to == "gift_card":
        card = find(db, "gift_cards", order["gift_card"])
        _check_card(card)
        query = "UPDATE gift_cards SET balance = balance + ? WHERE code = ?"
        db.execute(query, (amount, card["code"]))
    db.execute("INSERT INTO refunds VALUES (?, ?, ?)", (order["id"], amount, paid_to))
    return f"{amount / 100:.2f} euros of {order['id']} were paid to: {paid_to.replace('_', ' ')}."


def charge_customer(db: sqlite3.Connection, *, customer_id: str, amount: int, purpose: str) -> str:
    """Take money from a customer's payment card."""
    customer = find(db, "customers", customer_id)
    _check_amount(amount)
    db.execute("INSERT INTO charges VALUES (?, ?, ?)", (customer["id"], amount, purpose))
    return f"{amount / 100:.2f} euros were charged to the payment card of {customer['id']}."


def exchange_item(db: sqlite3.Connection, *, line_id: str, product_id: str) -> str:
    """Put another product in the place of an item."""
    line = _kept_line(db, line_id)
    product = find(db, "products", product_id)
    _take_one(db, product)
    _set(db, "lines", line["id"], status="exchanged")
    made = f"{line['id']}X"
    db.execute(
        "INSERT INTO lines VALUES (?, ?, ?, ?, 'kept', 'exchange')",
        (made, line["order_id"], product["id"], product["price"]),
    )
    return f"{line['id']} is exchanged for {product['name']}, item {made}. No money has moved."


def report_damage(db: sqlite3.Connection, *, line_id: str, photo: str) -> str:
    """Report that an item arrived damaged."""
    line = _kept_line(db, line_id)
    number = photo.strip().upper()
    if not re.fullmatch(r"PH-\d{4}", number):
        raise ActionFailed(f"{photo!r} is no number of a photo. Ask for one such as PH-0000.")
    if db.execute("SELECT 1 FROM damages WHERE line = ?", (line["id"],)).fetchone():
        raise ActionFailed(f"Damage of {line['id']} is reported already. Go on from there.")
    db.execute("INSERT INTO damages VALUES (?, ?)", (line["id"], number))
    return f"The damage of {line['id']} is reported with the photo {number}."


def send_replacement(db: sqlite3.Connection, *, line_id: str) -> str:
    """Send the same product again."""
    line = _kept_line(db, line_id)
    _take_one(db, find(db, "products", line["product"]))
    _set(db, "lines", line["id"], status="replaced")
    return f"A replacement for {line['id']} is on its way."


def cancel_order(db: sqlite3.Connection, *, order_id: str) -> str:
    """Cancel an order whole."""
    order = _open_order(db, order_id)
    _set(db, "orders", order["id"], status="cancelled")
    for line in db.execute("SELECT * FROM lines WHERE order_id = ?", (order["id"],)).fetchall():
        _set(db, "lines", line["id"], status="cancelled")
        db.execute("UPDATE products SET stock = stock + 1 WHERE id = ?", (line["product"],))
    return f"{order['id']} is cancelled. Nothing was paid back yet."


def change_order_address(
    db: sqlite3.Connection, *, order_id: str, street: str, postcode: str, city: str
) -> str:
    """Send an order to another address."""
    order = _open_order(db, order_id)
    _set(db, "orders", order["id"], **_address(street, postcode, city))
    return f"The address of {order['id']} is changed."


def change_account_address(
    db: sqlite3.Connection, *, customer_id: str, street: str, postcode: str, city: str
) -> str:
    """Give an account another address."""
    customer = find(db, "customers", customer_id)
    _set(db, "customers", customer["id"], **_address(street, postcode, city))
    return f"The address of the account {customer['id']} is changed."


def change_contact(db: sqlite3.Connection, *, customer_id: str, field: str, value: str) -> str:
    """Give an account another email address or telephone number."""
    customer = find(db, "customers", customer_id)
    value = " ".join(value.split()).lower() if field == "email" else " ".join(value.split())
    if field == "email" and not _EMAIL.fullmatch(value):
        raise ActionFailed(f"{value!r} is no email address. Ask the customer to write it again.")
    taken = db.execute("SELECT id FROM customers WHERE email = ?", (value,)).fetchone()
    if field == "email" and taken is not None:
        raise ActionFailed(f"{value!r} belongs to the account {taken['id']}. Ask for another one.")
    _set(db, "customers", customer["id"], **{field: value})
    return f"The {field} of {customer['id']} is changed."


def credit_points(db: sqlite3.Connection, *, customer_id: str, points: int, expires_on: str) -> str:
    """Add points to an account."""
    customer = find(db, "customers", customer_id)
    if not 0 < points < _MOST_CENTS:
        raise ActionFailed("Points are a whole number above 0. Correct it, and try again.")
    expires_on, today = _day(expires_on), _today(db)
    entry = (customer["id"], points, today, expires_on, "credited")
    db.execute("INSERT INTO points VALUES (?, ?, ?, ?, ?)", entry)
    _set(db, "customers", customer["id"], points_total=customer["points_total"] + points)
    return f"{points} points were credited to {customer['id']}, valid until {expires_on}."


def redeem_points(db: sqlite3.Connection, *, customer_id: str, points: int) -> str:
    """Take points from an account: first those that are valid and expire soonest."""
    customer = find(db, "customers", customer_id)
    if not 0 < points <= customer["points_total"]:
        total = customer["points_total"]
        raise ActionFailed(f"{customer['id']} has {total} points. Choose a number from 1 to that.")
    today = _today(db)
    query = """SELECT expires_on, SUM(points) AS sum FROM points WHERE customer = ?
        GROUP BY expires_on HAVING sum > 0 ORDER BY expires_on < ?, expires_on"""
    rest = points
    for row in db.execute(query, (customer["id"], today)).fetchall():
        part = min(rest, row["sum"])
        if part:
            entry = (customer["id"], -part, today, row["expires_on"], "redeemed")
            db.execute("INSERT INTO points VALUES (?, ?, ?, ?, ?)", entry)
        rest -= part
    _set(db, "customers", customer["id"], points_total=customer["points_total"] - points)
    return f"{points} points of {customer['id']} are spent. No gift card was issued for them yet."


def block_gift_card(db: sqlite3.Connection, *, code: str) -> str:
    """Make a gift card useless."""
    card = find(db, "gift_cards", code)
    _check_card(card)
    query = "UPDATE gift_cards SET status = 'blocked', balance = 0 WHERE code = ?"
    db.execute(query, (card["code"],))
    balance = card["balance"] / 100
    return f"{card['code']} is blocked. It had {balance:.2f} euros, valid to {card['expires_on']}."


def issue_gift_card(
    db: sqlite3.Connection, *, customer_id: str, amount: int, expires_on: str
) -> str:
    """Make a new gift card."""
    customer = find(db, "customers", customer_id)
    _check_amount(amount)
    expires_on = _day(expires_on)
    code = card_code(db, customer["id"])
    card = (code, customer["id"], amount, expires_on)
    db.execute("INSERT INTO gift_cards VALUES (?, ?, ?, ?, 'active')", card)
    return f"{code} is issued: {amount / 100:.2f} euros, valid until {expires_on}."


def card_code(db: sqlite3.Connection, customer_id: str) -> str:
    """The number that the next gift card of a customer gets."""
    (count,) = db.execute("SELECT COUNT(*) FROM gift_cards").fetchone()
    number = int(customer_id.partition("-")[2])
    return f"GC-{(number * 7919 + count * 104729) % 9000 + 1000}-{9000 + count}"


def book_appointment(
    db: sqlite3.Connection, *, customer_id: str, slot_id: str, service: str
) -> str:
    """Book a slot in the workshop."""
    customer, slot = find(db, "customers", customer_id), find(db, "slots", slot_id)
    _take_slot(db, slot)
    made = f"A-9{int(slot['id'].partition('-')[2]):04}"
    appointment = (made, customer["id"], service, slot["id"])
    db.execute("INSERT INTO appointments VALUES (?, ?, ?, ?, 'booked')", appointment)
    return f"{made} is booked: {service}, {slot['technician']}, {slot['day']} at {slot['time']}."


def move_appointment(db: sqlite3.Connection, *, appointment_id: str, slot_id: str) -> str:
    """Move an appointment to another slot."""
    appointment, slot = find(db, "appointments", appointment_id), find(db, "slots", slot_id)
    if appointment["status"] != "booked":
        raise ActionFailed(f"{appointment['id']} is cancelled. Book a new one instead.")
    _take_slot(db, slot)
    _set(db, "slots", appointment["slot"], is_free=1)
    _set(db, "appointments", appointment["id"], slot=slot["id"])
    return f"{appointment['id']} is moved to {slot['day']} at {slot['time']}, {slot['technician']}."


def cancel_appointment(db: sqlite3.Connection, *, appointment_id: str) -> str:
    """Give an appointment up."""
    appointment = find(db, "appointments", appointment_id)
    if appointment["status"] != "booked":
        raise ActionFailed(f"{appointment['id']} is cancelled already. Nothing is left to do.")
    _set(db, "slots", appointment["slot"], is_free=1)
    _set(db, "appointments", appointment["id"], status="cancelled")
    return f"{appointment['id']} is cancelled."


def open_ticket(db: sqlite3.Connection, *, kind: str, order_id: str, summary: str) -> str:
    """Tell colleagues of an order."""
    order = find(db, "orders", order_id)
    db.execute("INSERT INTO tickets VALUES (?, ?, ?)", (kind, order["id"], summary))
    return f"A ticket of the kind {kind} is open for {order['id']}."


def write_note(db: sqlite3.Connection, *, customer_id: str, text: str) -> str:
    """Keep a text with an account."""
    customer = find(db, "customers", customer_id)
    db.execute("INSERT INTO notes VALUES (?, ?)", (customer["id"], text))
    return f"The note is in the account {customer['id']}."


DEEDS: dict[str, Callable[..., str]] = {
    deed.__name__: deed
    for deed in (
        accept_return, pay_refund, charge_customer, exchange_item, report_damage, send_replacement,
        cancel_order, change_order_address, change_account_address, change_contact, credit_points,
        redeem_points, block_gift_card, issue_gift_card, book_appointment, move_appointment,
        cancel_appointment, open_ticket, write_note,
    )
}  # fmt: skip


def _set(db: sqlite3.Connection, table: str, key: str, **values: object) -> None:
    columns = ", ".join(f"{name} = ?" for name in values)
    query = f"UPDATE {table} SET {columns} WHERE id = ?"  # noqa: S608  # names of ours
    db.execute(query, (*values.values(), key))


def _kept_line(db: sqlite3.Connection, line_id: str) -> sqlite3.Row:
    line = find(db, "lines", line_id)
    if line["status"] != "kept":
        raise ActionFailed(f"{line['id']} is {line['status']} already. Look at its order again.")
    order = find(db, "orders", line["order_id"])
    if order["status"] != "delivered":
        raise ActionFailed(f"{order['id']} is {order['status']}, not delivered. Look at it again.")
    return line


def _open_order(db: sqlite3.Connection, order_id: str) -> sqlite3.Row:
    order = find(db, "orders", order_id)
    if order["status"] == "cancelled":
        raise ActionFailed(f"{order['id']} is cancelled. Nothing of it can be changed.")
    return order


def _paid(db: sqlite3.Connection, order: sqlite3.Row, paid_to: str) -> int:
    if paid_to in _PLACES:
        return order[_PLACES[paid_to]]
    query = "SELECT COALESCE(SUM(price), 0) FROM lines WHERE order_id = ?"
    return db.execute(query, (order["id"],)).fetchone()[0]


def _take_one(db: sqlite3.Connection, product: sqlite3.Row) -> None:
    if product["stock"] < 1:
        raise ActionFailed(f"{product['name']} is not in stock. Offer something else.")
    _set(db, "products", product["id"], stock=product["stock"] - 1)


def _take_slot(db: sqlite3.Connection, slot: sqlite3.Row) -> None:
    if not slot["is_free"]:
        raise ActionFailed(f"{slot['id']} is taken. List the slots, and choose a free one.")
    _set(db, "slots", slot["id"], is_free=0)


def _check_amount(amount: int) -> None:
    if not 0 < amount <= _MOST_CENTS:
        raise ActionFailed("An amount is above 0 and at most 10000 euros. Correct it.")


def _check_card(card: sqlite3.Row) -> None:
    if card["status"] != "active":
        raise ActionFailed(f"{card['code']} is {card['status']}. Nothing can be done with it.")


def _address(street: str, postcode: str, city: str) -> dict[str, str]:
    parts = {"street": street, "postcode": postcode, "city": city}
    tidy = {name: " ".join(value.split()).rstrip(".,") for name, value in parts.items()}
    missing = [name for name, value in tidy.items() if not value]
    if missing:
        raise ActionFailed(f"The {missing[0]} is missing. Ask the customer for the whole address.")
    return tidy


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ActionFailed(f"{text!r} is no day. Write one as 2025-03-14.") from None


def _today(db: sqlite3.Connection) -> str:
    return db.execute("SELECT day FROM today").fetchone()[0]

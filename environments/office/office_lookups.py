"""What the desk can look up. Nothing here changes the database."""

import sqlite3
from typing import Any

from office_deeds import find

from hud_mcp import ActionFailed

__all__ = [
    "appointments_of", "customer_by_email", "customers_by_name", "free_slots", "gift_card",
    "order_with_items", "orders_of", "points_of", "products_of",
]  # fmt: skip

Row = dict[str, Any]

_AMOUNTS = ("price", "shipping", "paid_by_card", "paid_by_gift_card", "balance", "amount")


def customer_by_email(db: sqlite3.Connection, email: str) -> Row:
    """The account with an email address."""
    query = "SELECT * FROM customers WHERE email = ?"
    row = db.execute(query, (email.strip().lower(),)).fetchone()
    if row is None:
        raise ActionFailed(f"No account has the email address {email!r}. Ask for another one.")
    return _shown(row)


def customers_by_name(db: sqlite3.Connection, name: str) -> list[Row]:
    """All accounts of a name."""
    query = "SELECT * FROM customers WHERE name = ? COLLATE NOCASE ORDER BY id"
    rows = _rows(db, query, " ".join(name.split()))
    if not rows:
        raise ActionFailed(f"No account has the name {name!r}. Give the whole name, or an email.")
    return rows


def orders_of(db: sqlite3.Connection, customer: str) -> list[Row]:
    """The orders of a customer, the newest first, with the names of their products."""
    key = find(db, "customers", customer)["id"]
    query = """SELECT orders.id, status, placed_on, GROUP_CONCAT(name, ' + ') AS items FROM orders
        JOIN (SELECT order_id, name FROM lines JOIN products ON product = products.id
        ORDER BY lines.rowid) ON order_id = orders.id
        WHERE customer = ? GROUP BY orders.id ORDER BY placed_on DESC, orders.id"""
    return _rows(db, query, key)


def order_with_items(db: sqlite3.Connection, order: str) -> Row:
    """An order with its items and what was paid back."""
    row = find(db, "orders", order)
    items = """SELECT lines.id, product, name, kind, lines.price, lines.status, came_by FROM lines
        JOIN products ON product = products.id WHERE order_id = ? ORDER BY lines.rowid"""
    refunds = "SELECT amount, paid_to FROM refunds WHERE order_id = ?"
    lists = {"items": _rows(db, items, row["id"]), "refunds": _rows(db, refunds, row["id"])}
    return _shown(row) | lists


def products_of(db: sqlite3.Connection, kind: str) -> list[Row]:
    """All products of a kind, with price and stock."""
    return _rows(db, "SELECT * FROM products WHERE kind = ? ORDER BY name", kind)


def gift_card(db: sqlite3.Connection, code: str) -> Row:
    """A gift card."""
    return _shown(find(db, "gift_cards", code))


def gift_cards_of(db: sqlite3.Connection, customer: str) -> list[Row]:
    """The gift cards of a customer."""
    key = find(db, "customers", customer)["id"]
    return _rows(db, "SELECT * FROM gift_cards WHERE customer = ? ORDER BY code", key)


def points_of(db: sqlite3.Connection, customer: str) -> Row:
    """The points of a customer, entry by entry."""
    row = find(db, "customers", customer)
    query = "SELECT points, entered_on, expires_on, purpose FROM points WHERE customer = ?"
    entries = _rows(db, f"{query} ORDER BY entered_on, expires_on, points", row["id"])
    return {"tier": row["tier"], "total": row["points_total"], "entries": entries}


def appointments_of(db: sqlite3.Connection, customer: str) -> list[Row]:
    """The appointments of a customer."""
    query = """SELECT appointments.id, service, technician, day, time, status FROM appointments
        JOIN slots ON slot = slots.id WHERE customer = ? ORDER BY day, time"""
    return _rows(db, query, find(db, "customers", customer)["id"])


def free_slots(db: sqlite3.Connection, first: str, last: str) -> list[Row]:
    """The free slots of the workshop between two days, both included."""
    query = """SELECT id, technician, day, time FROM slots
        WHERE is_free AND day BETWEEN ? AND ? ORDER BY day, time, technician LIMIT 60"""
    return _rows(db, query, first.strip(), last.strip())


def _rows(db: sqlite3.Connection, query: str, *values: str) -> list[Row]:
    return [_shown(row) for row in db.execute(query, values).fetchall()]


def _shown(row: sqlite3.Row) -> Row:
    """A row with amounts in euros."""
    values = dict(row)
    amounts = {f"{k}_eur": v / 100 for k, v in values.items() if k in _AMOUNTS and v is not None}
    return {k: v for k, v in values.items() if k not in _AMOUNTS} | amounts

"""The tables of the shop's database, and what of them is compared in the end."""

import sqlite3
from collections import Counter

__all__ = ["KINDS", "SCHEMA", "connect", "copy_of", "read_tables"]

KINDS = ("violin", "guitar", "flute", "trumpet", "cello", "stand", "tuner", "case")

SCHEMA = """
CREATE TABLE customers (
    id TEXT PRIMARY KEY, name TEXT, email TEXT UNIQUE, phone TEXT, street TEXT, postcode TEXT,
    city TEXT, tier TEXT, points_total INTEGER);
CREATE TABLE products (
    id TEXT PRIMARY KEY, name TEXT UNIQUE, kind TEXT, price INTEGER,
    stock INTEGER CHECK (stock >= 0));
CREATE TABLE orders (
    id TEXT PRIMARY KEY, customer TEXT REFERENCES customers, status TEXT, placed_on TEXT,
    shipped_on TEXT, delivered_on TEXT, service TEXT, parcel TEXT, street TEXT, postcode TEXT,
    city TEXT, shipping INTEGER, paid_by_card INTEGER, paid_by_gift_card INTEGER, gift_card TEXT,
    paid_by_points INTEGER, points_expire_on TEXT);
CREATE TABLE lines (
    id TEXT PRIMARY KEY, order_id TEXT REFERENCES orders, product TEXT REFERENCES products,
    price INTEGER, status TEXT, came_by TEXT);
CREATE TABLE refunds (order_id TEXT REFERENCES orders, amount INTEGER, paid_to TEXT);
CREATE TABLE charges (customer TEXT REFERENCES customers, amount INTEGER, purpose TEXT);
CREATE TABLE damages (line TEXT UNIQUE REFERENCES lines, photo TEXT);
CREATE TABLE gift_cards (
    code TEXT PRIMARY KEY, customer TEXT REFERENCES customers, balance INTEGER, expires_on TEXT,
    status TEXT);
CREATE TABLE points (
    customer TEXT REFERENCES customers, points INTEGER, entered_on TEXT, expires_on TEXT,
    purpose TEXT);
CREATE TABLE slots (id TEXT PRIMARY KEY, technician TEXT, day TEXT, time TEXT, is_free INTEGER);
CREATE TABLE appointments (
    id TEXT PRIMARY KEY, customer TEXT REFERENCES customers, service TEXT,
    slot TEXT REFERENCES slots, status TEXT);
CREATE TABLE tickets (kind TEXT, order_id TEXT REFERENCES orders, summary TEXT);
CREATE TABLE today (day TEXT);
CREATE TABLE policies (topic TEXT PRIMARY KEY, text TEXT);
CREATE TABLE notes (customer TEXT, text TEXT);
CREATE TABLE deeds (tool TEXT, messages INTEGER);
CREATE TABLE messages (said TEXT, reply TEXT, marks TEXT);
"""

_LEFT_OUT = ("notes", "deeds", "messages")
_FREE_TEXT = {"tickets": ("summary",), "charges": ("purpose",), "points": ("purpose",)}


def connect() -> sqlite3.Connection:
    """An empty database in memory, in which each change stands or falls as a whole."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA foreign_keys = ON")
    return database


def copy_of(state: bytes) -> sqlite3.Connection:
    """A database with a state that `serialize` gave."""
    database = connect()
    database.deserialize(state)
    return database


def read_tables(database: sqlite3.Connection) -> Counter[tuple[object, ...]]:
    """Every row that counts, with its table, and how often it is there."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    found: Counter[tuple[object, ...]] = Counter()
    for (name,) in names:
        if name in _LEFT_OUT:
            continue
        for row in database.execute(f"SELECT * FROM {name}"):  # noqa: S608  # a name of ours
            kept = [row[key] for key in row.keys() if key not in _FREE_TEXT.get(name, ())]  # noqa: SIM118
            found[name, *kept] += 1
    return found

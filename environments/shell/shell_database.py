"""Questions on a shop's database, whose tables have to be joined with care."""

import json
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal

from shell_files import Seed, draws, fill, need, run
from shell_words import FIRST_NAMES, LAST_NAMES, PRODUCTS

from hud_mcp import Agent, Environment, ShellWorld, exact_match, numeric_match

__all__ = ["LOAD", "Shop", "declare", "make_database", "shop_case"]

Ask = Literal["orders", "product", "owed"]
SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, placed_at TEXT NOT NULL,
  status TEXT NOT NULL);
CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, product TEXT NOT NULL,
  quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, discount_cents INTEGER);
CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL,
  amount_cents INTEGER NOT NULL, state TEXT NOT NULL);
"""
NOTES = """# shop.db

- `orders.placed_at` is a time in UTC, as in 2024-03-31T23:10:00Z. `status` is new, sent or
  cancelled.
- The value of a line is quantity x price_cents - discount_cents. The discount is of the whole line;
  NULL means that there is none.
- A payment counts where its `state` is settled; failed and pending ones do not. A refund is a
  payment with a negative amount.
- Two customers may have the same name; they have different ids.
"""
LOAD = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())"


@dataclass
class Shop:
    """What is in the database."""

    customers: list[tuple[int, str]] = field(default_factory=list)
    orders: list[tuple[int, int, str, str]] = field(default_factory=list)
    lines: list[tuple[int, int, str, int, int, int | None]] = field(default_factory=list)
    payments: list[tuple[int, int, int, str]] = field(default_factory=list)

    def sql(self) -> str:
        """Statements that make it."""
        rows = [
            f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))});"  # noqa: S608  # ours
            for table, every in vars(self).items()
            for row in every
        ]
        return SCHEMA + "BEGIN;\n" + "\n".join(rows) + "\nCOMMIT;\n"


async def make_database(shell: ShellWorld, path: str, statements: str) -> None:
    """Make a database in the session's folder.

    Raises:
        RuntimeError: It was not made, as where Python lacks `sqlite3`.
    """
    done = await shell.run(["python3", "-I", "-c", LOAD, path], stdin=statements)
    if done.exit_code != 0:
        raise RuntimeError(f"The database was not made: {done.output[-300:]}")


def literal(value: str | int | None) -> str:
    """A value in SQL."""
    return "NULL" if value is None else json.dumps(value).replace('"', "'")


def drawn_shop(draw: random.Random) -> Shop:
    """Draw a shop."""
    shop = Shop()
    names = [f"{draw.choice(FIRST_NAMES)} {name}" for name in draw.sample(LAST_NAMES, 14)]
    names[5] = names[2]
    shop.customers = [(index + 1, name) for index, name in enumerate(names)]
    for order in range(1, 141):
        customer = draw.choice((3, 6, *range(1, 15)))
        month, day = draw.randint(1, 6), draw.choice((1, 2, 15, 27, 28, 29, 30))
        hour, minute = draw.randint(0, 23), draw.randint(0, 59)
        at = f"2024-{month:02}-{min(day, 29):02}T{hour:02}:{minute:02}:00Z"
        status = draw.choice(("new", "sent", "sent", "cancelled"))
        shop.orders.append((order, customer, at, status))
        for _ in range(draw.randint(1, 4)):
            discount = draw.choice((None, None, 0, draw.randint(1, 900)))
            row = (draw.choice(PRODUCTS), draw.randint(1, 5), draw.randint(1000, 20_000), discount)
            shop.lines.append((len(shop.lines) + 1, order, *row))
        for _ in range(draw.choice((0, 1, 2, 2, 3))):
            state = draw.choice(("settled", "settled", "failed", "pending"))
            cents = draw.randint(500, 9000) * draw.choice((1, 1, 1, -1))
            shop.payments.append((len(shop.payments) + 1, order, cents, state))
    return shop


def owed(shop: Shop, customer: int, *, every: bool = False, fanned: bool = False) -> int:
    """What a customer still owes, in cents; or what a careless query makes of it."""
    mine = [o for o in shop.orders if o[1] == customer and (every or o[3] != "cancelled")]
    result = 0
    for order, *_ in mine:
        lines = [q * p - (d or 0) for _, of, _, q, p, d in shop.lines if of == order]
        paid = [c for _, of, c, s in shop.payments if of == order and s == "settled"]
        if fanned:
            result += sum(lines) * max(1, len(paid)) - sum(paid) * len(lines)
        else:
            result += sum(lines) - sum(paid)
    return result


def units(shop: Shop, month: str, *, every: bool = False, rows: bool = False) -> dict[str, int]:
    """How many of each product were ordered in a month; or how many lines name it."""
    found: dict[str, int] = {}
    orders = {o[0] for o in shop.orders if o[2][:7] == month and (every or o[3] != "cancelled")}
    for _, order, product, quantity, _, _ in shop.lines:
        if order in orders:
            found[product] = found.get(product, 0) + (1 if rows else quantity)
    return found


def most(counts: dict[str, int]) -> str:
    """What there is the most of; empty where two are as frequent."""
    best = [name for name, count in counts.items() if count == max(counts.values())]
    return best[0] if len(best) == 1 else ""


def shop_case(seed: int, ask: str) -> tuple[Shop, str, str, list[str]]:
    """A shop, what is asked of it, the answer, and what a careless reader answers."""
    for turn in range(1000):
        draw = draws(f"shop/{ask}/{turn}", seed)
        shop = drawn_shop(draw)
        month = f"2024-0{draw.randint(1, 6)}"
        if ask == "orders":
            in_month = [o for o in shop.orders if o[2][:7] == month]
            count = sum(o[3] != "cancelled" for o in in_month)
            near = [str(len(in_month)), str(count + 1)]
            return shop, month, str(count), near
        if ask == "owed":
            right = owed(shop, 3)
            wrong = [
                owed(shop, 3, fanned=True),
                owed(shop, 3, every=True),
                owed(shop, 3) + owed(shop, 6),
            ]
            return shop, "3", str(right), [str(each) for each in wrong if each != right]
        answer = most(units(shop, month))
        wrong = [most(units(shop, month, every=True)), most(units(shop, month, rows=True))]
        if answer and answer not in wrong and all(wrong):
            return shop, month, answer, wrong
    raise RuntimeError(f"No shop was drawn for the seed {seed}.")


async def ask_shop(
    shell: ShellWorld, seed: Seed = 0, ask: Ask = "orders"
) -> AsyncGenerator[str | float]:
    """Ask what a database says of orders, products or debts."""
    shop, of, right, _ = shop_case(seed, ask)
    await need(shell)
    await fill(shell, {"NOTES.md": NOTES})
    await make_database(shell, "shop.db", shop.sql())
    question = {
        "orders": f"How many orders that are not cancelled were placed in {of}? Answer with the "
        "number alone.",
        "product": f"Of which product were the most units ordered in {of}? Orders that are "
        "cancelled do not count. Answer with the product's name alone.",
        "owed": f"How many cents does the customer with the id {of} still owe: the value of all "
        "lines of the customer's orders, less all payments that count? Orders that are cancelled "
        "do not count, nor do payments for them. Answer with the number alone.",
    }[ask]
    answer = yield (
        "/workspace/shop.db is an SQLite database (Python's sqlite3 reads it), and "
        f"/workspace/NOTES.md explains it. {question}"
    )
    yield exact_match(answer, right) if ask == "product" else numeric_match(answer, int(right))


QUERIES = {
    "orders": "SELECT count(*) FROM orders WHERE status != 'cancelled' AND placed_at LIKE '{}%'",
    "product": "SELECT product FROM lines JOIN orders ON orders.id = order_id "
    "WHERE status != 'cancelled' AND placed_at LIKE '{}%' "
    "GROUP BY product ORDER BY sum(quantity) DESC LIMIT 1",
    "owed": "SELECT (SELECT sum(quantity * price_cents - coalesce(discount_cents, 0)) FROM lines "
    "WHERE order_id IN (SELECT id FROM orders WHERE customer_id = {0} AND status != 'cancelled')) "
    "- (SELECT sum(amount_cents) FROM payments WHERE state = 'settled' AND "
    "order_id IN (SELECT id FROM orders WHERE customer_id = {0} AND status != 'cancelled'))",
}


async def query(agent: Agent, sql: str) -> str:
    """Ask the database, with Python."""
    program = (
        "import sqlite3, sys\nfor r in sqlite3.connect('shop.db').execute(sys.argv[1]): print(*r)"
    )
    return await run(agent, f'python3 -c "{program}" "{sql}"')


async def solve_shop(agent: Agent, ask: str) -> str:
    """Look at the tables, then ask once."""
    await run(agent, "cat NOTES.md")
    await query(agent, "SELECT sql FROM sqlite_master")
    await query(
        agent, "SELECT status, count(*), min(placed_at), max(placed_at) FROM orders GROUP BY 1"
    )
    if ask == "owed":
        await query(agent, "SELECT state, count(*), min(amount_cents) FROM payments GROUP BY 1")
        await query(
            agent, "SELECT order_id, count(*) FROM lines GROUP BY 1 HAVING count(*) > 1 LIMIT 5"
        )
    told = agent.prompt.replace("?", " ").split()
    of = told[told.index("id") + 1] if ask == "owed" else next(w for w in told if w[:3] == "202")
    return (await query(agent, QUERIES[ask].format(of))).strip()


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Ask a shop's database")(ask_shop).oracle(solve_shop)

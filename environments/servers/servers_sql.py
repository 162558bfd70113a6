"""Tasks on a shop's database, over a server of our own."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from servers_outcome import WORDS, Seed, draws, graded

from hud_mcp import Agent, Environment, Grade, ToolServer, ToolServerWorld

__all__ = ["declare"]

REGIONS = ("north", "south", "east", "west")
Table = list[tuple[Any, ...]]

FIRST = 6
"""The customers that are there once; later ones may be some of them again."""
BOOKED = 5
"""The first movement that may be open."""

SCHEMA = {
    "customers": "id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT, phone TEXT, region TEXT",
    "orders": "id INTEGER PRIMARY KEY, customer_id INTEGER, day TEXT NOT NULL, status TEXT",
    "lines": "id INTEGER PRIMARY KEY, order_id INTEGER, product TEXT, quantity INTEGER, "
    "cents INTEGER, percent_off INTEGER",
    "returns": "id INTEGER PRIMARY KEY, line_id INTEGER, quantity INTEGER",
    "stock": "product TEXT PRIMARY KEY, quantity INTEGER NOT NULL",
    "movements": "id INTEGER PRIMARY KEY, product TEXT, change INTEGER, booked INTEGER",
}


def value(each: Any) -> str:
    """A value as SQL writes it."""
    if each is None:
        return "NULL"
    return str(each) if isinstance(each, int) else "'" + str(each).replace("'", "''") + "'"


def statements(tables: Mapping[str, Table]) -> str:
    """The statements that make tables."""
    made: list[str] = []
    for name, rows in tables.items():
        made.append(f"CREATE TABLE {name} ({SCHEMA[name]});")
        made += [f"INSERT INTO {name} VALUES ({', '.join(map(value, row))});" for row in rows]  # noqa: S608
    return "\n".join(made) + "\n"


async def begin(server: ToolServerWorld, tables: Mapping[str, Table]) -> None:
    """Make the database."""
    await server.shell.write("shop.sql", statements(tables))
    make = (
        "import sqlite3; c = sqlite3.connect('shop.db'); "
        "c.executescript(open('shop.sql').read()); c.close()"
    )
    done = await server.shell.run(f'python3 -I -c "{make}" && rm shop.sql')
    if done.exit_code:
        raise RuntimeError(f"The database cannot be made: {done}")


def csv_of(rows: Table) -> list[str]:
    """Rows as the server's CSV has them, without its header."""
    return [",".join("" if each is None else str(each) for each in row) for row in rows]


async def ended(server: ToolServerWorld, tables: Mapping[str, Table]) -> Grade:
    """Grade the tables that the agent left, by a second server over a copy of them."""
    checks: dict[str, bool] = {}
    async with server.second() as tools:
        listed = (await tools.call("list_tables")).text.splitlines()[1:]
        found = {each.partition(",")[0]: each.partition(",")[2].lower() for each in listed}
        named = {name: kind for name, kind in found.items() if not name.startswith("sqlite_")}
        checks["the tables"] = set(named) == set(tables) and "view" not in named.values()
        for name, rows in tables.items():
            columns = ", ".join(part.split()[0] for part in SCHEMA[name].split(", "))
            order = ", ".join(map(str, range(1, len(SCHEMA[name].split(", ")) + 1)))
            reply = await tools.call(
                "query",
                sql=f"SELECT {columns} FROM {name} ORDER BY {order}",  # noqa: S608
            )
            is_right = reply.text.splitlines()[1:] == csv_of(sorted(rows, key=sortable))
            checks[name] = is_right and not reply.is_error
    return graded(checks)


def sortable(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """A row's place; the first column of each table is distinct, or its first two."""
    return tuple((each is None, "" if each is None else each) for each in row)


def shop(seed: int, level: str) -> tuple[dict[str, Table], Table]:
    """A shop's tables, and the report of its first three months."""
    draw = draws(f"shop/{level}", seed)
    customers: Table = [
        (n, f"{draw.choice(WORDS).title()} {n}", None, None, draw.choice(REGIONS[:3]))
        for n in range(1, 9)
    ]
    customers.append((9, "Last", None, None, "west"))
    orders: Table = []
    lines: Table = []
    returns: Table = []
    totals = {(f"2024-{m:02}", region): 0 for m in (1, 2, 3) for region in REGIONS}
    for order in range(1, 31):
        customer = draw.choice(customers[:8])
        year, month = draw.choice((2023, 2024, 2024, 2024)), draw.randint(1, 4)
        status = draw.choice(("paid", "paid", "paid", "cancelled", "open"))
        orders.append((order, customer[0], f"{year}-{month:02}-{draw.randint(1, 28):02}", status))
        for _ in range(draw.randint(1, 3)):
            number = len(lines) + 1
            quantity, cents = draw.randint(1, 5), draw.randint(1, 40) * 100
            off = draw.choice((None, None, 0, 10, 25))
            lines.append((number, order, draw.choice(WORDS), quantity, cents, off))
            back = 0
            if draw.random() < 1 / 3:
                # Two returns of one line, or one.
                for _ in range(draw.randint(1, 2)):
                    if back < quantity:
                        back += 1
                        returns.append((len(returns) + 1, number, 1))
            kept = quantity - (back if level == "returns" else 0)
            key = (f"{year}-{month:02}", customer[4])
            if status == "paid" and key in totals:
                totals[key] += kept * cents * (100 - (off or 0)) // 100
    tables = {"customers": customers, "orders": orders, "lines": lines, "returns": returns}
    return tables, [(month, region, total) for (month, region), total in sorted(totals.items())]


SCHEMA["report"] = "month TEXT, region TEXT, cents INTEGER"


async def make_report(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "returns"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for a table of what was sold."""
    tables, report = shop(seed, level)
    await begin(server, tables)
    less = (
        "Pieces in the table returns do not count, whenever they came back."
        if level == "returns"
        else "Returns do not matter here."
    )
    yield (
        "Make a table report(month, region, cents) in the shop's database: the revenue of paid "
        "orders in January, February and March 2024, by month (as '2024-01') and by the region of "
        f"the customer. A line's revenue is its quantity times its cents, less its percentage off, "
        f"if it has one. {less} Each of the four regions {', '.join(REGIONS)} has a row for each "
        "of the three months, with 0 where nothing was sold. Change no other table."
    )
    yield await ended(server, {**tables, "report": report})


REPORT = """CREATE TABLE report (month TEXT, region TEXT, cents INTEGER);
INSERT INTO report SELECT m.month, r.region, CAST(COALESCE(SUM(
  (l.quantity - {back}) * l.cents * (100 - COALESCE(l.percent_off, 0)) / 100), 0) AS INTEGER)
FROM (SELECT '2024-01' AS month UNION SELECT '2024-02' UNION SELECT '2024-03') m
CROSS JOIN (SELECT DISTINCT region FROM customers UNION SELECT 'north' UNION SELECT 'south'
  UNION SELECT 'east' UNION SELECT 'west') r
LEFT JOIN (customers c JOIN orders o ON o.customer_id = c.id AND o.status = 'paid'
  JOIN lines l ON l.order_id = o.id) ON c.region = r.region AND substr(o.day, 1, 7) = m.month
GROUP BY m.month, r.region;"""


async def solve_report(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Look at the tables, make the report, and look at it."""
    del seed
    await agent.call("list_tables")
    for table in ("orders", "lines"):
        await agent.call("describe_table", table=table)
    back = "(SELECT COALESCE(SUM(b.quantity), 0) FROM returns b WHERE b.line_id = l.id)"
    await agent.call("execute", sql=REPORT.format(back=back if level == "returns" else "0"))
    await agent.call("query", sql="SELECT * FROM report ORDER BY month, region")
    return "done"


def doubles(seed: int, level: str) -> tuple[dict[str, Table], dict[str, Table], dict[int, int]]:
    """Customers of whom some are there twice, the same without that, and each one's first id."""
    draw = draws(f"doubles/{level}", seed)
    before: Table = []
    first: dict[str, int] = {}
    same: dict[int, int] = {}
    mails = [f"{word}@example.com" for word in draw.sample(WORDS, 6)]
    for n in range(1, 13):
        mail = mails[n - 1] if n <= FIRST else draw.choice(mails[:4])
        spelled = draw.choice((mail, mail.upper(), f" {mail}")) if n > FIRST else mail
        phone = str(draw.randint(100, 999)) if n > FIRST or draw.random() < 1 / 2 else None
        mail_left = None if n in (5, 6) else spelled
        before.append((n, f"Customer {n}", mail_left, phone, draw.choice(REGIONS)))
        same[n] = n if mail_left is None else first.setdefault(mail, n)
    after: Table = []
    for row in before:
        if same[row[0]] != row[0]:
            continue
        phones = [each[3] for each in before if same[each[0]] == row[0] and each[3] is not None]
        phone = (phones[0] if phones else None) if level == "phones" else row[3]
        after.append((row[0], row[1], row[2], phone, row[4]))
    orders: Table = [
        (n, draw.randint(1, 12), f"2024-05-{n:02}", draw.choice(("paid", "open")))
        for n in range(1, 20)
    ]
    moved = [(n, same[customer], day, status) for n, customer, day, status in orders]
    return {"customers": before, "orders": orders}, {"customers": after, "orders": moved}, same


async def join_customers(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "phones"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for one row of each customer."""
    before, after, _ = doubles(seed, level)
    await begin(server, before)
    phones = (
        " It gets the phone of the one with the lowest id among them that has a phone."
        if level == "phones"
        else ""
    )
    yield (
        "Some customers of the shop are in the table customers more than once: they have the same "
        "mail address but for capitals and spaces around it. Of each, keep the row with the lowest "
        f"id, as it is.{phones} Its orders are then those of all of them. Customers without a mail "
        "address are different people. Lose no order, and change nothing else."
    )
    yield await ended(server, after)


async def solve_customers(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Look, find the doubles, and join them in one transaction."""
    before, after, same = doubles(seed, level)
    await agent.call("list_tables")
    await agent.call("query", sql="SELECT * FROM customers ORDER BY id")
    changes = [
        f"UPDATE orders SET customer_id = {kept} WHERE customer_id = {n};"  # noqa: S608
        for n, kept in same.items()
        if n != kept
    ]
    gone = ", ".join(str(n) for n, kept in same.items() if n != kept)
    changes.append(f"DELETE FROM customers WHERE id IN ({gone});")  # noqa: S608
    old = {row[0]: row for row in before["customers"]}
    changes += [
        f"UPDATE customers SET phone = {value(row[3])} WHERE id = {row[0]};"  # noqa: S608
        for row in after["customers"]
        if row != old[row[0]]
    ]
    await agent.call("execute", sql="\n".join(changes))
    await agent.call("query", sql="SELECT * FROM customers ORDER BY id")
    return "done"


def goods(seed: int) -> tuple[dict[str, Table], dict[str, Table]]:
    """A stock with movements, of which some are booked, and the same with all that can be."""
    draw = draws("goods", seed)
    products = draw.sample(WORDS, 6)
    stock = {name: draw.randint(5, 20) for name in products[:5]}
    moves = [[n, draw.choice(products), draw.randint(-4, 6), int(n < BOOKED)] for n in range(1, 15)]
    # A product that is new, and one that would fall below nothing.
    moves += [[15, products[5], 7, 0], [16, products[0], -60, 0], [17, products[0], 3, 0]]
    before: dict[str, Table] = {
        "stock": list(stock.items()),
        "movements": [tuple(each) for each in moves],
    }
    for product in products:
        new = [each for each in moves if each[1] == product and each[3] == 0]
        total = stock.get(product, 0) + sum(int(each[2]) for each in new)
        if new and total >= 0:
            stock[product] = total
            for each in new:
                each[3] = 1
    return before, {"stock": list(stock.items()), "movements": [tuple(each) for each in moves]}


async def book_stock(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for movements to be booked."""
    before, after = goods(seed)
    await begin(server, before)
    yield (
        "Book the movements of the shop's stock that are not booked yet (booked is 0): add the "
        "changes of each product to its quantity in stock, and set booked to 1. A product without "
        "a row gets one. If all of a product's open movements together would bring it below 0, "
        "leave that product and all its open movements as they are."
    )
    yield await ended(server, after)


BOOK = """CREATE TABLE due AS SELECT m.product, SUM(m.change) AS change FROM movements m
  WHERE m.booked = 0 GROUP BY m.product
  HAVING SUM(m.change) + COALESCE((SELECT quantity FROM stock s WHERE s.product = m.product), 0)
    >= 0;
INSERT INTO stock SELECT product, 0 FROM due WHERE product NOT IN (SELECT product FROM stock);
UPDATE stock SET quantity = quantity + (SELECT change FROM due WHERE due.product = stock.product)
  WHERE product IN (SELECT product FROM due);
UPDATE movements SET booked = 1 WHERE booked = 0 AND product IN (SELECT product FROM due);
DROP TABLE due;"""


async def solve_stock(agent: Agent, seed: int = 0) -> str:
    """Look, book, and look again."""
    del seed
    await agent.call("describe_table", table="movements")
    await agent.call("query", sql="SELECT * FROM movements WHERE booked = 0")
    await agent.call("execute", sql=BOOK)
    await agent.call("query", sql="SELECT * FROM stock")
    return "done"


def orphans(seed: int) -> tuple[dict[str, Table], dict[str, Table]]:
    """Tables with rows that refer to nothing, and the same without them."""
    draw = draws("orphans", seed)
    customers: Table = [(n, f"Customer {n}", None, None, "north") for n in range(1, 6)]
    orders: Table = [
        (n, draw.choice((1, 2, 3, 4, 5, 70, None)), f"2024-06-{n:02}", "paid") for n in range(1, 15)
    ]
    lines: Table = [
        (n, draw.choice((*range(1, 15), 90)), draw.choice(WORDS), 1, 100, None)
        for n in range(1, 30)
    ]
    returns: Table = [(n, draw.choice((*range(1, 30), 95)), 1) for n in range(1, 12)]
    before = {"customers": customers, "orders": orders, "lines": lines, "returns": returns}
    kept = [row for row in orders if row[1] is None or row[1] <= len(customers)]
    ids = {row[0] for row in kept}
    left = [row for row in lines if row[1] in ids]
    numbers = {row[0] for row in left}
    back = [row for row in returns if row[1] in numbers]
    return before, {"customers": customers, "orders": kept, "lines": left, "returns": back}


async def remove_orphans(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for rows that refer to nothing to be removed, and those that refer to them."""
    before, after = orphans(seed)
    await begin(server, before)
    yield (
        "An old program has left rows in the shop's database that refer to nothing: orders of "
        "customers that are not there, lines of orders that are not there, returns of lines that "
        "are not there. Remove them, and those that refer to nothing once these are gone. An order "
        "without any customer (NULL) is a sale at the counter, and stays. Change nothing else."
    )
    yield await ended(server, after)


ORPHANS = """DELETE FROM orders WHERE customer_id IS NOT NULL
  AND customer_id NOT IN (SELECT id FROM customers);
DELETE FROM lines WHERE order_id NOT IN (SELECT id FROM orders);
DELETE FROM returns WHERE line_id NOT IN (SELECT id FROM lines);"""


async def solve_orphans(agent: Agent, seed: int = 0) -> str:
    """Look, remove from the top down, and look again."""
    del seed
    await agent.call("list_tables")
    await agent.call(
        "query",
        sql="SELECT * FROM orders WHERE customer_id NOT IN (SELECT id FROM customers)",
    )
    await agent.call("execute", sql=ORPHANS)
    await agent.call("query", sql="SELECT COUNT(*) FROM lines")
    return "done"


def declare() -> Environment:
    """Declare the environment and its templates."""
    world = ToolServer(["/usr/bin/python3", "sql_server.py", "shop.db"])
    env = Environment("servers-sql", version="0.1.0", world=world)
    for template, oracle in (
        (make_report, solve_report),
        (join_customers, solve_customers),
        (book_stock, solve_stock),
        (remove_orphans, solve_orphans),
    ):
        env.template()(template).oracle(oracle)
    return env

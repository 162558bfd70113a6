"""Tasks that only PostgreSQL can have, over our server: constraints, rights, triggers, plans."""

import datetime as dt
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from postgresql import ADMIN, OWNER, find_programs, make_line
from servers_outcome import WORDS, Seed, draws, graded
from servers_sql import Table, value

from hud_mcp import (
    Agent,
    BrokenByAgent,
    Environment,
    EnvironmentFailed,
    Grade,
    ToolServer,
    ToolServerWorld,
    VerifierResult,
)

__all__ = ["declare"]

SCRIPT = Path(__file__).with_name("postgresql.py").read_text()
PROGRAM = ("/usr/bin/python3", "-I", "-c", SCRIPT, "cluster")
REFUSED, OVERLAPS = "42501", "23P01"
Asked = tuple[str, str]
"""A role and its statements."""
State = list[Any]

# Those of a role in a database too, which ALTER ROLE … RESET ALL leaves.
_NO_SETTINGS = "DELETE FROM pg_catalog.pg_db_role_setting"

_KINDS = """SELECT relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND nspname !~ '^(pg_|information_schema$)'"""
_COLUMNS = """SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
WHERE attrelid = to_regclass('public.{name}') AND attnum > 0 AND NOT attisdropped"""
_KEYS = """SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = to_regclass('public.{name}') AND contype IN ('p', 'u')"""


def plain(sql: str) -> Asked:
    """The owner's statement, without the functions and operators that the agent may have made."""
    return OWNER, f"SET search_path = pg_catalog, public; {sql}"


def looks(*tables: str) -> list[Asked]:
    """The statements that read tables whole: which there are, their columns, keys and rows."""
    reads = (_COLUMNS, _KEYS, "SELECT * FROM public.{name}")
    return [plain(_KINDS), *(plain(r.format(name=name)) for name in tables for r in reads)]


def in_order(said: Sequence[Any]) -> State:
    """Rows have no order of their own."""
    return [rows if isinstance(rows, str) else sorted(rows, key=str) for rows in said]


async def begin(
    server: ToolServerWorld,
    made: str,
    rows: Mapping[str, Table],
    *,
    more: Sequence[Asked] = (),
    reads: Sequence[Asked] = (),
) -> tuple[State, list[Asked]]:
    """Make the tables, and return what `looks`, and more reads, read of them; and all that ran."""
    fills = [
        f"INSERT INTO {name} VALUES ({', '.join(map(value, row))});"
        for name, each in rows.items()
        for row in each
    ]
    asked = [(OWNER, "\n".join([made, *fills])), *more, *looks(*rows), *reads]
    done = await server.shell.run(PROGRAM, stdin=json.dumps(asked))
    if done.exit_code:
        raise RuntimeError(f"The database cannot be made: {done}")
    said = json.loads(done.output)
    if not all(isinstance(each, list) for each in said):
        raise RuntimeError(f"The database refuses the task's own statements: {said}")
    return in_order(said[1 + len(more) :]), asked


async def end(server: ToolServerWorld, made: Sequence[Asked], *asked: Asked) -> State:
    """The results of statements over a copy of the cluster: rows, or the SQLSTATE of an error.

    The administrator touches nothing that the agent has made, which may run its functions.

    Args:
        server: The server with the cluster.
        made: The statements that made the tables of the beginning.
        asked: The statements.

    Raises:
        BrokenByAgent: They fail or last too long there, and not over the cluster of the beginning.
        EnvironmentFailed: They do so over that of the beginning too.
    """
    words = json.dumps([(ADMIN, _NO_SETTINGS), *asked])
    done = await server.run(PROGRAM, stdin=words)
    if done.exit_code:
        done = await server.run(PROGRAM, stdin=words)
    if not done.exit_code:
        return json.loads(done.stdout)[1:]
    why = _reason(done)
    if (machines := await _fails_at_first(server, made, words)) is not None:
        raise EnvironmentFailed(f"PostgreSQL cannot be graded on this machine: {machines}")
    raise BrokenByAgent(f"Over what the agent left: {why}")


def _reason(done: VerifierResult) -> str:
    """The reason why a program failed; one that is stopped from outside may have said nothing."""
    return " ".join(filter(None, (done.stopped, done.stderr[-300:].strip()))) or str(done.exit_code)


async def _fails_at_first(server: ToolServerWorld, made: Sequence[Asked], words: str) -> str | None:
    """The reason why statements fail over the cluster of the beginning, or None."""
    programs = find_programs()
    if programs is None:
        return "its programs are gone."
    async with server.shell.verifier() as clean:
        for command, stdin in (
            (make_line(programs), ""),
            (PROGRAM, json.dumps(made)),
            (PROGRAM, words),
        ):
            done = await clean.run(command, stdin=stdin)
            if done.exit_code:
                return _reason(done)
    return None


def events(seed: int) -> tuple[Table, list[list[str]]]:
    """Messages of a shop in several forms, and the lines of orders that stand."""
    draw = draws("events", seed)
    bodies: list[dict[str, Any]] = []
    sold: list[list[str]] = []
    for order in range(1, 11):
        lines: list[dict[str, Any]] = []
        for _ in range(draw.randint(1, 3)):
            quantity, cents = draw.choice((None, 1, 2, 5)), draw.randint(1, 40) * 50
            line = {"product": draw.choice(WORDS), "cents": draw.choice((cents, str(cents)))}
            lines.append(line if quantity is None else {**line, "quantity": quantity})
            row = [order, line["product"], quantity or 1, (quantity or 1) * cents]
            if order not in (3, 8):
                sold.append(list(map(str, row)))
        said = lines[0] if len(lines) == 1 else lines
        bodies.append({"kind": "order", "order": draw.choice((order, str(order))), "lines": said})
    # One is cancelled before the shop has heard of it.
    bodies.insert(draw.randint(0, 2), {"kind": "cancel", "order": 3})
    bodies += [{"kind": "note", "order": 4, "text": "ring twice"}, {"kind": "cancel", "order": "8"}]
    return [(n, json.dumps(body)) for n, body in enumerate(bodies, 1)], sold


SOLD_COLUMNS = ("order_id", "product", "quantity", "cents")


async def split_events(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a table of what messages in JSON say."""
    rows, sold = events(seed)
    made = "CREATE TABLE events (id integer PRIMARY KEY, body jsonb NOT NULL);"
    before, begun = await begin(server, made, {"events": rows})
    yield (
        "The table events of the shop's database (PostgreSQL) has messages as jsonb. Make a table "
        "sold(order_id integer, product text, quantity integer, cents integer) with a row for each "
        "line of each order that no message cancels. A line's cents are those of one piece, and "
        "those of sold are of all its pieces. A line without a quantity is one piece. Numbers may "
        "be written as texts, and an order with one line has it without a list. Change no other "
        "table."
    )
    columns = {name: "text" if name == "product" else "integer" for name in SOLD_COLUMNS}
    wanted = [[*before[0], ["sold", "r"]], *before[1:], list(map(list, columns.items())), sold]
    reads = (
        _COLUMNS.format(name="sold").replace(", attnotnull", ""),  # its rows may have to be there
        f"SELECT {', '.join(SOLD_COLUMNS)} FROM public.sold",
    )
    found = await end(server, begun, *looks("events"), *map(plain, reads))
    is_same = in_order(found[:4]) == in_order(wanted[:4])
    yield graded({"the tables": is_same, "sold": in_order(found[4:]) == in_order(wanted[4:])})


SOLD = """CREATE TABLE sold (order_id integer, product text, quantity integer, cents integer);
INSERT INTO sold SELECT (body->>'order')::int, line->>'product', n, n * (line->>'cents')::int
FROM events CROSS JOIN jsonb_array_elements(CASE jsonb_typeof(body->'lines') WHEN 'array'
  THEN body->'lines' ELSE jsonb_build_array(body->'lines') END) AS line
CROSS JOIN LATERAL (SELECT coalesce((line->>'quantity')::int, 1)) AS pieces(n)
WHERE body->>'kind' = 'order'
  AND body->>'order' NOT IN (SELECT body->>'order' FROM events WHERE body->>'kind' = 'cancel');"""


async def solve_events(agent: Agent, seed: int = 0) -> str:
    """Look at the messages, take their lines, and look at them."""
    del seed
    await agent.call("list_tables")
    await agent.call("query", sql="SELECT * FROM events ORDER BY id")
    await agent.call("execute", sql=SOLD)
    await agent.call("query", sql="SELECT * FROM sold ORDER BY order_id")
    return "done"


def stays(seed: int) -> tuple[Table, list[int], tuple[int, str, str]]:
    """Stays in rooms, the ids of those that are too many, and the last one of a room."""
    draw = draws("stays", seed)
    first = dt.date(2024, 6, 1)
    rows: Table = []
    kept: list[tuple[int, dt.date, dt.date]] = []
    too_many: list[int] = []
    for n in range(1, 25):
        room, status = draw.randint(1, 3), draw.choice(("booked", "booked", "booked", "cancelled"))
        arrives = first + dt.timedelta(draw.randint(0, 40))
        leaves = arrives + dt.timedelta(draw.randint(1, 6))
        if kept and n % 4 == 0:  # the day of another's departure
            room, arrives = kept[-1][0], kept[-1][2]
            leaves = arrives + dt.timedelta(2)
        rows.append((n, room, str(arrives), str(leaves), status))
        if status == "booked":
            if any(r == room and a < leaves and arrives < o for r, a, o in kept):
                too_many.append(n)
            else:
                kept.append((room, arrives, leaves))
    room, arrives, leaves = max(kept, key=lambda each: (each[2], each[0]))
    return rows, too_many, (room, str(arrives), str(leaves))


async def forbid_overlaps(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a constraint against stays that overlap."""
    rows, too_many, (room, arrives, leaves) = stays(seed)
    made = """CREATE TABLE stays (id integer PRIMARY KEY, room integer NOT NULL,
      arrives date NOT NULL, leaves date NOT NULL, status text NOT NULL);"""
    before, begun = await begin(server, made, {"stays": rows})
    yield (
        "The hotel's database (PostgreSQL) has stays that are booked for one room at the same "
        "time. Go through the booked ones by their id: one that overlaps with a booked one before "
        "it, which was not cancelled itself on the way, gets the status 'cancelled'. A guest may "
        "arrive on the day on which another leaves. Then add a constraint to the table stays with "
        "which the database itself refuses a booked stay that overlaps with a booked one in its "
        "room, in inserts and in updates. Stays of any other status may overlap. Change nothing "
        "else."
    )
    stay = "INSERT INTO stays VALUES ({}, {}, '{}', '{}', '{}')".format
    tries: dict[str, Any] = {
        stay(901, room, arrives, leaves, "booked"): OVERLAPS,
        stay(902, room, leaves, "2024-12-24", "booked"): [],
        stay(903, room, arrives, leaves, "cancelled"): [],
        stay(904, 99, arrives, leaves, "booked"): [],
        "UPDATE stays SET status = 'booked' WHERE id = 903": OVERLAPS,
    }
    constraint = "SELECT convalidated FROM pg_constraint WHERE contype = 'x' AND conrelid = "
    asked = [*looks("stays"), plain(f"{constraint}to_regclass('public.stays')")]
    found = await end(server, begun, *asked, *((OWNER, each) for each in tries))
    wanted = [*before[:3], [[str(n), str(r), a, o, "cancelled" if n in too_many else s]
                            for n, r, a, o, s in rows], [["t"]]]  # fmt: skip
    is_kept = found[len(asked) :] == list(tries.values())
    yield graded({"stays": in_order(found[: len(asked)]) == in_order(wanted), "refused": is_kept})


STAYS = """DO $$ DECLARE s stays; BEGIN
FOR s IN SELECT * FROM stays WHERE status = 'booked' ORDER BY id LOOP
  UPDATE stays SET status = 'cancelled' WHERE id = s.id AND EXISTS (SELECT 1 FROM stays o
    WHERE o.id < s.id AND o.room = s.room AND o.status = 'booked'
      AND o.arrives < s.leaves AND s.arrives < o.leaves);
END LOOP; END $$;
ALTER TABLE stays ADD CONSTRAINT one_guest EXCLUDE USING gist (int4range(room, room, '[]') WITH &&,
  daterange(arrives, leaves) WITH &&) WHERE (status = 'booked');"""


async def solve_stays(agent: Agent, seed: int = 0) -> str:
    """Look, cancel in order, constrain, and look again."""
    del seed
    await agent.call("describe_table", table="stays")
    await agent.call("query", sql="SELECT * FROM stays ORDER BY room, arrives")
    await agent.call("execute", sql=STAYS)
    await agent.call("query", sql="SELECT status, count(*) FROM stays GROUP BY status")
    return "done"


CLERKS = ("north", "south", "east")
"""Regions with a clerk; that of the last is made when the task is graded."""


async def let_clerks(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for rights of roles on rows and columns."""
    draw = draws("clerks", seed)
    rows: Table = [
        (n, f"{draw.choice(WORDS).title()} {n}", CLERKS[n % 3], str(draw.randint(100, 999)), n * 10)
        for n in range(1, 13)
    ]
    paid: Table = [(n, draw.choice(WORDS), draw.randint(20, 60) * 100) for n in range(1, 5)]
    made = """CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL,
      region text NOT NULL, phone text, credit integer);
    CREATE TABLE salaries (id integer PRIMARY KEY, name text, cents integer);"""
    roles = "CREATE ROLE clerks; CREATE ROLE clerk_north LOGIN IN ROLE clerks; "
    roles += "CREATE ROLE clerk_south LOGIN IN ROLE clerks"
    rights = "GRANT ALL ON customers TO clerks; GRANT SELECT ON salaries TO PUBLIC"
    more = [(ADMIN, roles), (OWNER, rights)]
    before, begun = await begin(server, made, {"customers": rows, "salaries": paid}, more=more)
    yield (
        "In the shop's database (PostgreSQL), each region has a role such as clerk_north and "
        "clerk_south, which is a member of the role clerks. They have too many rights. See to it "
        "that a clerk reads the customers of the own region alone, without their credit, and "
        "changes nothing of them but the phone. Clerks add and remove no customers, and have no "
        "right on salaries. Other regions get a clerk tomorrow, by a role that is made like these "
        "two: it must need no work of yours. You keep all your rights, and the tables stay as they "
        "are."
    )
    tries: list[tuple[str, str, Any]] = []
    phones = {row[0]: row[3] for row in rows}
    for region in CLERKS:
        role = f"clerk_{region}"
        own = [list(map(str, row[:4])) for row in rows if row[2] == region]
        mine, other = own[0][0], next(row[0] for row in rows if row[2] != region)
        tries += [
            (role, "SELECT id, name, region, phone FROM customers ORDER BY id", own),
            (role, "SELECT credit FROM customers", REFUSED),
            (role, "SELECT * FROM salaries", REFUSED),
            (role, f"UPDATE customers SET phone = '{region}' WHERE id IN ({mine}, {other})", []),
            (role, f"UPDATE customers SET name = 'x' WHERE id = {mine}", REFUSED),
            (role, f"DELETE FROM customers WHERE id = {mine}", REFUSED),
            (role, f"INSERT INTO customers VALUES (99, 'x', '{region}')", REFUSED),
        ]
        phones[int(mine)] = region
    left = [[str(n), phone] for n, phone in phones.items()]
    tries.append((OWNER, "SELECT id, phone FROM customers ORDER BY id", left))
    asked = looks("customers", "salaries")
    new = (ADMIN, "CREATE ROLE clerk_east LOGIN IN ROLE clerks")
    found = await end(server, begun, *asked, new, *(each[:2] for each in tries))
    results = found[len(asked) + 1 :]
    is_right = results == [each[2] for each in tries]
    yield graded({"the tables": in_order(found[: len(asked)]) == before, "rights": is_right})


RIGHTS = """REVOKE ALL ON customers, salaries FROM PUBLIC, clerks;
GRANT SELECT (id, name, region, phone), UPDATE (phone) ON customers TO clerks;
ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_region ON customers TO clerks USING ('clerk_' || region = current_user);"""


async def solve_clerks(agent: Agent, seed: int = 0) -> str:
    """Look at the rights, give others, and look again."""
    del seed
    rights = "SELECT relname, relacl FROM pg_class WHERE relname IN ('customers', 'salaries')"
    await agent.call("query", sql=rights)
    await agent.call("describe_table", table="customers")
    await agent.call("execute", sql=RIGHTS)
    await agent.call("query", sql=rights)
    return "done"


async def keep_history(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a trigger that writes what changes."""
    draw = draws("history", seed)
    names = draw.sample(WORDS, 8)
    prices = {name: draw.randint(1, 40) * 50 for name in names[:6]}
    old: Table = [(name, None, prices[name] - 25) for name in names[:3]]
    made = """CREATE TABLE prices (product text PRIMARY KEY, cents integer NOT NULL);
    CREATE TABLE price_history (product text NOT NULL, old_cents integer, new_cents integer);"""
    rows: dict[str, Table] = {"prices": list(prices.items()), "price_history": old}
    before, begun = await begin(server, made, rows)
    yield (
        "From now on, the shop's database (PostgreSQL) is to write each change of the table prices "
        "into the table price_history itself, with whatever statement it is made: the product, its "
        "cents before and its cents after. A new product has no cents before (NULL), and one that "
        "is removed has none after. A change of a product's name is the end of one product and "
        "the beginning of another. A statement that leaves a product as it is writes nothing. "
        "Nothing is written for what was before, and the tables stay as they are."
    )
    a, b, c, d, new, other = (*names[:4], names[6], names[7])
    tries = [
        f"UPDATE prices SET cents = cents + 100 WHERE product IN ('{a}', '{b}')",
        "UPDATE prices SET cents = cents",
        f"INSERT INTO prices VALUES ('{new}', 500)",
        f"DELETE FROM prices WHERE product = '{c}'",
        f"UPDATE prices SET product = '{other}' WHERE product = '{d}'",
        f"INSERT INTO prices VALUES ('{a}', 7) ON CONFLICT (product) DO UPDATE SET cents = 7",
    ]
    wrote = [
        (a, prices[a], prices[a] + 100), (b, prices[b], prices[b] + 100), (new, None, 500),
        (c, prices[c], None), (d, prices[d], None), (other, None, prices[d]),
        (a, prices[a] + 100, 7),
    ]  # fmt: skip
    asked = looks("prices", "price_history")
    found = await end(
        server, begun, *asked, *((OWNER, each) for each in [*tries, "SELECT * FROM price_history"])
    )
    written = [[None if each is None else str(each) for each in row] for row in (*old, *wrote)]
    is_right = in_order(found[len(asked) :]) == in_order([*([] for _ in tries), written])
    yield graded({"the tables": in_order(found[: len(asked)]) == before, "history": is_right})


HISTORY = """CREATE FUNCTION write_history() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF TG_OP = 'UPDATE' AND OLD.product = NEW.product THEN
  IF OLD.cents <> NEW.cents THEN
    INSERT INTO price_history VALUES (NEW.product, OLD.cents, NEW.cents);
  END IF;
  RETURN NULL;
END IF;
IF TG_OP <> 'INSERT' THEN INSERT INTO price_history VALUES (OLD.product, OLD.cents, NULL); END IF;
IF TG_OP <> 'DELETE' THEN INSERT INTO price_history VALUES (NEW.product, NULL, NEW.cents); END IF;
RETURN NULL;
END $$;
CREATE TRIGGER history AFTER INSERT OR UPDATE OR DELETE ON prices
FOR EACH ROW EXECUTE FUNCTION write_history();"""


async def solve_history(agent: Agent, seed: int = 0) -> str:
    """Look at both tables, and make the trigger."""
    del seed
    await agent.call("describe_table", table="prices")
    await agent.call("describe_table", table="price_history")
    await agent.call("query", sql="SELECT * FROM price_history")
    await agent.call("execute", sql=HISTORY)
    return "done"


_INDEXES = [["id", None], ["lower(mail)", None], ["day", "(seconds IS NULL)"], ["3", None]]
"""The first columns of the indexes with their predicates, and the number of all."""
_BY_DAY = re.compile(r"Index Cond: .*\bday = ")


async def find_visits(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for indexes by which two queries read few rows."""
    draw = draws("visits", seed)
    number, day = draw.randint(100, 900), draw.randint(10, 25)
    # The numbers of guests: the factor and 1999 share no divisor, so each of them comes twice.
    made = f"""CREATE TABLE visits (id integer PRIMARY KEY, mail text NOT NULL, day date NOT NULL,
      seconds integer);
    INSERT INTO visits SELECT n, 'Guest' || n * {number} % 1999 || '@Example.com',
      date '2024-01-01' + n % 300, CASE WHEN n % 40 > 0 THEN n % 77 END
    FROM generate_series(1, 4000) AS n; ANALYZE visits;"""
    whole = """SELECT count(*), md5(string_agg(pg_catalog.concat_ws(':', id, mail, day, seconds),
      ';' ORDER BY id)) FROM public.visits"""
    reads = [plain(each.format(name="visits")) for each in (_COLUMNS, _KEYS, whole)]
    queries = (
        f"SELECT id, day FROM visits WHERE lower(mail) = 'guest{number}@example.com'",
        f"SELECT id, mail FROM visits WHERE seconds IS NULL AND day = '2024-03-{day}'",
    )
    before, begun = await begin(server, made, {}, reads=reads)
    yield (
        "Two queries on the table visits of the site's database (PostgreSQL) read all its rows: "
        f"{queries[0]}; and {queries[1]};. Make one index for each of them, so that the plan that "
        "EXPLAIN shows finds the mail, and the day, by the index and reads no row in vain. The "
        "second index may only have visits without seconds, as they are few and the others "
        "change often. The first is of all visits. Add no third one, and change nothing else."
    )
    # A summary of ranges (BRIN) reads rows in vain, and an index led by another column all its own.
    indexes = """SELECT pg_get_indexdef(indexrelid, 1, true), pg_get_expr(indpred, indrelid)
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
    WHERE indrelid = to_regclass('public.visits') AND indisvalid AND amname <> 'brin'
    UNION ALL SELECT count(*)::text, NULL FROM pg_index
    WHERE indrelid = to_regclass('public.visits')"""
    plans = [f"EXPLAIN (COSTS off) {query}" for query in queries]
    found = await end(server, begun, plain(_KINDS), *reads, *map(plain, (indexes, *plans)))
    mail, day_plan = ("\n".join(str(row[0]) for row in plan) for plan in found[5:])
    yield graded(
        {
            "the table": in_order(found[:4]) == before,
            "the indexes": in_order(found[4:5]) == in_order([_INDEXES]),
            "the mail": "Filter" not in mail and "Index Cond: (lower(mail) = " in mail,
            "the day": "Filter" not in day_plan and bool(_BY_DAY.search(day_plan)),
        }
    )


async def solve_visits(agent: Agent, seed: int = 0) -> str:
    """Look at the plan, make both indexes, and look again."""
    del seed
    await agent.call("describe_table", table="visits")
    query = "EXPLAIN SELECT id FROM visits WHERE lower(mail) = 'x'"
    await agent.call("query", sql=query)
    await agent.call(
        "execute",
        sql="CREATE INDEX ON visits (lower(mail)); "
        "CREATE INDEX ON visits (day) WHERE seconds IS NULL; ANALYZE visits",
    )
    await agent.call("query", sql=query)
    return "done"


async def move_track(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for an order of rows whose places are unique."""
    draw = draws("tracks", seed)
    titles = draw.sample(WORDS, 9)
    places = list(range(1, 10))
    mover, gone = draw.choice(titles[6:]), draw.choice(titles[3:6])
    made = "CREATE TABLE tracks (title text PRIMARY KEY, place integer NOT NULL UNIQUE);"
    listed: Table = list(zip(titles, places, strict=True))
    before, begun = await begin(server, made, {"tracks": listed})
    yield (
        f"In the radio's database (PostgreSQL), the table tracks has a program by places. Remove "
        f"the track {gone!r}, and move the track {mover!r} to place 2. The others keep their "
        "order, and the places are then 1 to 8 without a gap. The columns and the constraints of "
        "the table are to be the same as before."
    )
    left = [each for each in titles if each not in (gone, mover)]
    left.insert(1, mover)
    rows = [[title, str(n)] for n, title in enumerate(left, 1)]
    found = in_order(await end(server, begun, *looks("tracks")))
    yield graded({"the table": found[:3] == before[:3], "tracks": found[3:] == in_order([rows])})


async def solve_track(agent: Agent, seed: int = 0) -> str:
    """Look, move all places out of the way and back, and look again."""
    draw = draws("tracks", seed)
    titles = draw.sample(WORDS, 9)
    mover, gone = draw.choice(titles[6:]), draw.choice(titles[3:6])
    await agent.call("describe_table", table="tracks")
    await agent.call("query", sql="SELECT * FROM tracks ORDER BY place")
    await agent.call(
        "execute",
        sql=f"DELETE FROM tracks WHERE title = '{gone}'; UPDATE tracks SET place = -place; "
        "UPDATE tracks SET place = n FROM (SELECT title AS t, row_number() OVER (ORDER BY "
        f"CASE WHEN title = '{mover}' THEN 1.5 ELSE -place END) AS n FROM tracks) AS o "
        "WHERE title = t",
    )
    await agent.call("query", sql="SELECT * FROM tracks ORDER BY place")
    return "done"


class PostgreSQLServer(ToolServer):
    """The server, which says at once where there is no PostgreSQL."""

    def missing(self, folder: Path) -> str | None:
        """The reason why it cannot start."""
        if find_programs() is None:
            return "has no PostgreSQL here; install it (Debian: apt-get install postgresql)"
        return super().missing(folder)

    async def prepare(self, environment: Environment) -> None:
        """Offer the tools; without PostgreSQL, the other environments are served."""
        if self.missing(environment.folder) is None:
            await super().prepare(environment)

    async def open(self, opening: Any) -> ToolServerWorld:
        """Open a session's place, or say what is missing."""
        if (why := self.missing(opening.folder)) is not None:
            raise EnvironmentFailed(f"The world of servers-postgresql {why}.")
        return await super().open(opening)


def declare() -> Environment:
    """Declare the environment and its templates."""
    programs = find_programs()
    world = PostgreSQLServer(
        ["/usr/bin/python3", "postgresql_server.py", "cluster"],
        make=make_line(programs) if programs is not None else None,
    )
    env = Environment("servers-postgresql", version="0.1.0", world=world)
    for template, oracle in (
        (split_events, solve_events),
        (forbid_overlaps, solve_stays),
        (let_clerks, solve_clerks),
        (keep_history, solve_history),
        (find_visits, solve_visits),
        (move_track, solve_track),
    ):
        env.template()(template).oracle(oracle)
    return env

"""A program to write that brings a database to its next version; graded on a hidden one."""

import json
import random
from collections.abc import AsyncGenerator, Mapping
from typing import Literal

from shell_database import LOAD, make_database
from shell_files import Seed, draws, fill, graded, named, need, run
from shell_words import FIRST_NAMES, LAST_NAMES, a_word

from hud_mcp import Agent, Environment, Grade, ShellWorld, Verifier

__all__ = ["declare", "people_case"]

Level = Literal["columns", "duplicates"]
Row = tuple[int, str, str | None, str | None, str, str]
OLD = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, phone TEXT,
  joined TEXT NOT NULL, balance TEXT NOT NULL);
CREATE TABLE loans (id INTEGER PRIMARY KEY, people_id INTEGER NOT NULL, title TEXT NOT NULL);
PRAGMA user_version = 1;
"""
SPEC = """# From version 1 to version 2

Version 2 has `PRAGMA user_version = 2` and these tables, and no table `people` any more:

    person (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT, phone TEXT,
            joined TEXT, balance_cents INTEGER)
    loans (id INTEGER PRIMARY KEY, person_id INTEGER, title TEXT)

- `name` is "Last, First": split it at its first comma, without spaces around either part. A name
  without a comma is a last name, and its first name is an empty text.
- `email` becomes lower case, without spaces around it. Nothing, or NULL, becomes NULL.
- `phone` keeps its digits, and a plus if that stands before the first digit. A leading 00 becomes a
  plus. Where no digit is left, it becomes NULL.
- `joined` is DD.MM.YYYY or D.M.YY; two digits mean 20YY. It becomes YYYY-MM-DD.
- `balance` is such as 1.234,50 or -7,00 or 12: dots between thousands, a decimal comma. It becomes
  whole cents.
- Ids stay. `loans.people_id` is called `person_id`.
- The program does nothing to a database of version 2, and exits with 0.
"""
TWINS = """- Of people with the same e-mail, compared after it was changed as above, the one with
  the least id stays. Its balance is the sum of theirs, and their loans become its loans. All else
  that the others have is dropped. People without an e-mail are never the same.
"""
DUMP = """
import json, sqlite3, sys
base = sqlite3.connect("file:hidden.db?mode=ro", uri=True)
def rows(sql):
    try:
        return base.execute(sql).fetchmany(500)
    except sqlite3.Error as exc:
        return str(exc)
print(json.dumps({
    "version": rows("PRAGMA user_version"),
    "tables": rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"),
    "person": rows("SELECT id, first_name, last_name, email, phone, joined, balance_cents "
                   "FROM person ORDER BY id"),
    "loans": rows("SELECT id, person_id, title FROM loans ORDER BY id"),
}, default=repr))
"""
MIGRATE = r"""
import re, sqlite3, sys
base = sqlite3.connect(sys.argv[1])
if base.execute("PRAGMA user_version").fetchone()[0] >= 2:
    sys.exit(0)
def phone(text):
    digits = re.sub(r"\D", "", text or "")
    if not digits:
        return None
    plus = "+" in text.split(digits[0])[0]
    if digits.startswith("00") and not plus:
        return "+" + digits[2:]
    return "+" * plus + digits
def joined(text):
    day, month, year = text.split(".")
    year = "20" + year if len(year) == 2 else year
    return f"{year}-{int(month):02}-{int(day):02}"
def cents(text):
    whole, _, part = text.replace(".", "").partition(",")
    value = int(whole.lstrip("-")) * 100 + int((part + "00")[:2])
    return -value if whole.startswith("-") else value
first, kept, moved = {}, {}, {}
for id, name, email, number, day, balance in base.execute("SELECT * FROM people ORDER BY id"):
    last, _, given = name.partition(",")
    email = (email or "").strip().lower() or None
    keep = first.setdefault(email, id) if email and TWINS else id
    moved[id] = keep
    if keep != id:
        kept[keep][-1] += cents(balance)
        continue
    kept[id] = [id, given.strip(), last.strip(), email, phone(number), joined(day), cents(balance)]
loans = base.execute("SELECT id, people_id, title FROM loans").fetchall()
base.executescript('''DROP TABLE people; DROP TABLE loans;
CREATE TABLE person (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT,
  phone TEXT, joined TEXT, balance_cents INTEGER);
CREATE TABLE loans (id INTEGER PRIMARY KEY, person_id INTEGER, title TEXT);''')
base.executemany("INSERT INTO person VALUES (?, ?, ?, ?, ?, ?, ?)", kept.values())
base.executemany("INSERT INTO loans VALUES (?, ?, ?)", [(i, moved[p], t) for i, p, t in loans])
base.execute("PRAGMA user_version = 2")
base.commit()
"""


def people_case(purpose: str, seed: int, level: str) -> tuple[str, dict[str, object]]:
    """The statements that make a database of version 1, and what version 2 of it has."""
    draw = draws(f"{purpose}/{level}", seed)
    rows: list[tuple[object, ...]] = []
    people: list[list[object]] = []
    keeper: dict[str, int] = {}
    moved: dict[int, int] = {}
    emails: list[str] = []
    index = 0
    for place in range(40):
        index += draw.choice((1, 1, 2))
        names, first, last = drawn_name(draw, place)
        raw, email = drawn_email(draw, place, emails if level == "duplicates" else [])
        number, phone = drawn_phone(draw, place)
        day, joined = drawn_day(draw, place)
        balance, cents = drawn_balance(draw, place)
        rows.append((index, names, raw, number, day, balance))
        keep = keeper.setdefault(email, index) if email and level == "duplicates" else index
        moved[index] = keep
        if keep == index:
            people.append([index, first, last, email, phone, joined, cents])
            emails += [email] if email else []
        else:
            kept = next(each for each in people if each[0] == keep)
            kept[6] = int(str(kept[6])) + cents
    loans = [(n, draw.choice(list(moved)), f"Volume {draw.randint(1, 99)}") for n in range(1, 31)]
    text = "".join(f"INSERT INTO {into(row, 'people')};\n" for row in rows)
    text += "".join(f"INSERT INTO {into(row, 'loans')};\n" for row in loans)
    wanted: dict[str, object] = {
        "version": [[2]],
        "tables": [["loans"], ["person"]],
        "person": people,
        "loans": [[number, moved[of], title] for number, of, title in loans],
    }
    return f"{OLD}BEGIN;\n{text}COMMIT;\n", wanted


def into(row: tuple[object, ...], table: str) -> str:
    """A row's place and its values in SQL."""
    plain = ("NULL" if v is None else str(v) if isinstance(v, int) else f"'{v}'" for v in row)
    return f"{table} VALUES ({', '.join(plain)})"


def drawn_name(draw: random.Random, place: int) -> tuple[str, str, str]:
    """A name as it was, and its two parts."""
    first, last = draw.choice(FIRST_NAMES), draw.choice(LAST_NAMES)
    if place % 9 == 4:  # noqa: PLR2004  # one of nine
        return last, "", last
    if place % 9 == 7:  # noqa: PLR2004  # another
        return f"{last} , {first}, Jr.", f"{first}, Jr.", last
    return f"{last},{draw.choice((' ', '  ', ''))}{first}", first, last


def drawn_email(draw: random.Random, place: int, known: list[str]) -> tuple[str | None, str | None]:
    """An address as it was, and as it is to be; now and then a known one."""
    if place % 7 == 3:  # noqa: PLR2004  # one of seven
        return draw.choice((None, "", "  ")), None
    email = f"{draw.choice(FIRST_NAMES)}{place}@example.org".lower()
    if known and place % 4 == 1:
        email = draw.choice(known)
    return draw.choice((email, email.upper(), f" {email}", email.title())), email


def drawn_phone(draw: random.Random, place: int) -> tuple[str | None, str | None]:
    """A number as it was, and as it is to be."""
    digits = f"{draw.randint(20, 59)}{draw.randint(100, 999)}{draw.randint(1000, 9999)}"
    if place % 8 == 5:  # noqa: PLR2004  # one of eight
        return draw.choice((None, "", "none", "+")), None
    split = f"{digits[:2]} ({digits[2:5]}) {digits[5:]}"
    forms = (
        (f"+{split}", f"+{digits}"),
        (f"00{split}", f"+{digits}"),
        (f"tel. +{split}", f"+{digits}"),
        (f"({digits[:2]}) {digits[2:]}", digits),
        (f"{digits[:5]}-{digits[5:]}", digits),
    )
    return draw.choice(forms)


def drawn_day(draw: random.Random, place: int) -> tuple[str, str]:
    """A day as it was, and as it is to be."""
    year, month, day = (
        draw.choice((2004, 2008, 2023, 2024)),
        draw.randint(1, 12),
        draw.randint(1, 28),
    )
    if place % 10 == 6:  # noqa: PLR2004  # one of ten
        year, month, day = 2024, 2, 29
    short = draw.random() < 0.4  # noqa: PLR2004  # a share
    text = f"{day}.{month}.{year % 100:02}" if short else f"{day:02}.{month:02}.{year}"
    return text, f"{year}-{month:02}-{day:02}"


def drawn_balance(draw: random.Random, place: int) -> tuple[str, int]:
    """A balance as it was, and its cents."""
    cents = draw.choice(
        (draw.randint(0, 99), draw.randint(100, 99_999), draw.randint(10**5, 10**8))
    )
    sign = draw.choice((1, 1, -1))
    whole = f"{cents // 100:,}".replace(",", ".")
    minus = "-" if sign < 0 else ""
    if place % 6 == 2:  # noqa: PLR2004  # one of six
        return f"{minus}{whole}", sign * (cents // 100) * 100
    return f"{minus}{whole},{cents % 100:02}", sign * cents


async def dumped(clean: Verifier) -> Mapping[str, object]:
    """What is in the hidden database now."""
    done = await clean.run(["python3", "-I", "-c", DUMP], timeout_s=20)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {}


async def migrate(
    shell: ShellWorld, seed: Seed = 0, level: Level = "columns"
) -> AsyncGenerator[str | Grade]:
    """Ask for a program that migrates a database."""
    text, _ = people_case("people", seed, level)
    base = f"{a_word('library', seed)}.db"
    await need(shell)
    await fill(shell, {"MIGRATION.md": SPEC + (TWINS if level == "duplicates" else "")})
    await make_database(shell, base, text)
    yield (
        "Write the Python program /workspace/migrate.py, in one file, with the standard library "
        "alone. `python3 migrate.py FILE` brings the SQLite database FILE from version 1 to "
        f"version 2, as /workspace/MIGRATION.md says. /workspace/{base} is an example of "
        "version 1. The program is graded on another database, on which it is run twice."
    )
    statements, wanted = people_case("hidden people", seed, level)
    async with shell.verifier(copy=["migrate.py"]) as clean:
        await clean.run(["python3", "-I", "-c", LOAD, "hidden.db"], stdin=statements)
        await clean.run(["python3", "migrate.py", "hidden.db"], timeout_s=30)
        once = await dumped(clean)
        await clean.run(["python3", "migrate.py", "hidden.db"], timeout_s=30)
        twice = await dumped(clean)
    good = {name: once.get(name) == twice.get(name) == each for name, each in wanted.items()}
    shape = good.pop("version") and good.pop("tables")
    yield graded(good if shape else {"version and tables": False})


async def solve_migrate(agent: Agent, level: str) -> str:
    """Look at both, write the program, try it on a copy, twice."""
    await run(agent, "cat MIGRATION.md")
    base = named(agent, ".db")
    show = "[print(*r, sep=' | ') for r in sqlite3.connect('{}').execute('{}')]"
    look = f'python3 -c "import sqlite3; {show}"'
    await run(agent, look.format(base, "SELECT * FROM people"))
    await run(agent, look.format(base, "SELECT * FROM loans"))
    program = MIGRATE.replace("TWINS", str(level == "duplicates"))
    await agent.tool("write_file", path="migrate.py", content=program.lstrip())
    await run(agent, f"cp {base} try.db; python3 migrate.py try.db; echo $?")
    await run(agent, look.format("try.db", "SELECT * FROM person"))
    await run(agent, look.format("try.db", "SELECT * FROM loans"))
    await run(agent, "python3 migrate.py try.db; echo $?; rm try.db")
    return "done"


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Write a database's migration")(migrate).oracle(solve_migrate)

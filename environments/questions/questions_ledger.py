"""A CSV in which each country writes numbers and dates in its own way."""

import csv
import io
import random
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from questions_case import MONEY, Case, cents, differing, drawing

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["country", "month"]

_WRITES = {"DE": (".", ",", "%d.%m.%Y"), "US": (",", ".", "%m/%d/%Y"), "CH": ("'", ".", "%d.%m.%Y")}
_NOTE = """Travel expenses, all in euros

Every office writes as its country does:
DE  1.234,50   day.month.year
US  1,234.50   month/day/year
CH  1'234.50   day.month.year
Decimals that are zero may be left out. A minus sign is a refund.
"""
_FOR = ("Hotel", "Train", "Flight", "Fair stand", "Interpreter", "Freight", "Hall hire", "Taxi")
_MONTHS = ("March", "April", "May")


@dataclass(frozen=True)
class _Entry:
    day: date
    country: str
    amount: int
    what: str
    bare: bool

    def written(self) -> tuple[str, str]:
        """Its day and its amount as its country writes them."""
        thousands, point, form = _WRITES[self.country]
        whole, rest = divmod(abs(self.amount), 100)
        text = f"{whole:,}".replace(",", thousands)
        if not self.bare:
            text += f"{point}{rest:02d}"
        return self.day.strftime(form), f"{'-' if self.amount < 0 else ''}{text}"


def _entries(rng: random.Random) -> list[_Entry]:
    found: list[_Entry] = []
    for _ in range(32):
        bare = rng.random() < 1 / 3
        amount = rng.choice((rng.randint(20, 900), rng.randint(1001, 4800))) * 100
        amount = amount if bare else amount + rng.randrange(5, 100, 5)
        sign = -1 if rng.random() < 1 / 8 else 1
        # Days up to the 12th are the ones that can be misread.
        day = date(2026, rng.randint(3, 5), rng.randint(1, 12)) + timedelta(
            days=rng.choice((0, 16))
        )
        found.append(
            _Entry(day, rng.choice(["DE", "US", "CH"]), sign * amount, rng.choice(_FOR), bare)
        )
    return found


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a ledger."""
    rng = drawing(f"ledger-{ask}", seed)
    country, month = rng.choice(("DE", "US")), rng.randint(3, 5)
    while True:
        entries = _entries(rng)
        chosen = [e for e in entries if e.country == country] if ask == "country" else [
            e for e in entries if e.day.month == month
        ]  # fmt: skip
        truth = cents(sum(each.amount for each in chosen))
        wrong = differing(truth, (cents(each) for each in _hasty(entries, chosen, ask, month)))
        if chosen and len(wrong) > 1:
            break
    which = (
        f"the office {country}" if ask == "country" else f"all offices in {_MONTHS[month - 3]} 2026"
    )
    question = (
        "expenses.csv lists travel expenses, and readme.txt says how they are written. What do the "
        f"expenses of {which} come to, with refunds taken off? {MONEY}"
    )
    return Case(
        question,
        truth,
        wrong,
        lambda: {"expenses.csv": _csv(entries), "readme.txt": _NOTE.encode()},
    )


def _hasty(entries: list[_Entry], chosen: list[_Entry], ask: Ask, month: int) -> list[int]:
    written = [each.written()[1] for each in chosen]
    without_refunds = [abs(each.amount) for each in chosen]
    sums = [sum(map(_english, written)), sum(map(_german, written)), sum(without_refunds)]
    if ask == "month":  # an American day is read as a month
        misread = [e for e in entries if (e.day.day if e.country == "US" else e.day.month) == month]
        sums.insert(0, sum(each.amount for each in misread))
    return sums


def _english(text: str) -> int:
    """What a program makes of it that knows the English way alone, in cents."""
    plain = text.replace("'", "").replace(",", "")
    parts = plain.split(".")
    return round(float(".".join(parts) if len(parts) < 3 else plain.replace(".", "")) * 100)  # noqa: PLR2004  # two points are no number


def _german(text: str) -> int:
    """The same of the German way."""
    plain = text.replace("'", "").replace(".", "")
    return round(float(plain.replace(",", ".")) * 100)


def _csv(entries: list[_Entry]) -> bytes:
    out = io.StringIO()
    lines = csv.writer(out, delimiter=";", lineterminator="\n")
    lines.writerow(("date", "office", "amount", "for"))
    for each in sorted(entries, key=lambda e: (e.day, e.country, e.amount)):
        day, amount = each.written()
        lines.writerow((day, each.country, amount, each.what))
    return out.getvalue().encode()


async def solve(agent: Agent) -> str:
    """Read how each office writes, then every line in that way."""
    note = await agent.tool("read_file", path="readme.txt")
    ways = dict(re.findall(r"^([A-Z]{2})  1(.)234.50   ", note, re.MULTILINE))
    lines = (await agent.tool("read_file", path="expenses.csv")).splitlines()[1:]
    asked = re.findall(r"office ([A-Z]{2})|in (\w+) 2026", agent.prompt)[-1]
    total = 0
    for line in lines:
        day, office, amount, _ = line.split(";")
        parts = [int(each) for each in re.split(r"[./]", day)]
        month = parts[0] if office == "US" else parts[1]
        plain = amount.replace(ways[office], "").replace(",", ".")
        if asked[0] == office or (asked[1] and _MONTHS.index(asked[1]) == month - 3):
            total += round(float(plain) * 100)
    return cents(total)

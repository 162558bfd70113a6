"""A workbook as XLSX: merged cells, hidden rows and sheets, percentages that look like texts."""

import random
import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from questions_case import MONEY, NAME, Case, cents, differing, drawing
from questions_xlsx import HEADING, PERCENT, Cell, Sheet, write_xlsx

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["hidden", "sum", "net"]

_REGIONS = ("North", "East", "South", "West")
_GOODS = ("Lamps", "Rugs", "Chairs", "Clocks", "Vases", "Mirrors", "Shelves")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
_FIRST_ROW = 4


@dataclass(frozen=True)
class _Book:
    rows: tuple[tuple[str, str, tuple[int, ...]], ...]
    cancelled: frozenset[int]
    returns: dict[str, int]
    costs: dict[str, int]

    def sold(self, region: str, months: range, *, every: bool = False, net: bool = False) -> int:
        """What a region sold, in hundredths of a euro; `every` counts cancelled rows too."""
        total = 0
        for i, (where, goods, sums) in enumerate(self.rows):
            if where == region and (every or i not in self.cancelled):
                kept = 100 - self.returns[goods] if net else 100
                total += sum(sums[m] for m in months) * kept
        return total


def _book(rng: random.Random) -> _Book:
    rows: list[tuple[str, str, tuple[int, ...]]] = []
    cancelled: set[int] = set()
    for region in _REGIONS:
        count = rng.randint(3, 5)
        cancelled.add(len(rows) + rng.randrange(1, count))
        for goods in rng.sample(_GOODS, count):
            sums = tuple(rng.randrange(200, 3000, 10) for _ in _MONTHS)
            rows.append((region, goods, sums))
    returns = {goods: rng.choice((2, 3, 4, 5, 8, 10, 12)) for goods in _GOODS}
    costs = {goods: rng.randrange(400, 9900, 5) for goods in _GOODS}
    return _Book(tuple(rows), frozenset(cancelled), returns, costs)


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a workbook."""
    rng = drawing(f"workbook-{ask}", seed)
    made = _book(rng)
    region, quarter = rng.choice(_REGIONS), rng.randrange(2)
    months = range(3 * quarter, 3 * quarter + 3)
    hidden = "Hidden rows are cancelled orders and do not count. "
    when = f"in the {('first', 'second')[quarter]} quarter"
    if ask == "hidden":
        dear = sorted(_GOODS, key=lambda goods: made.costs[goods])
        at = rng.choice(("cheapest", "dearest"))
        question = (
            "Its purchase prices are on a sheet that is hidden. Which goods have the "
            f"{at.replace('cheap', 'low').replace('dear', 'high')} purchase price? {NAME}"
        )
        order = dear if at == "cheapest" else dear[::-1]
        truth, wrong = order[0], (order[-1], order[1], order[2])
    elif ask == "sum":
        question = f"{hidden}What did the region {region} sell {when}, before returns? {MONEY}"
        truth = cents(made.sold(region, months))
        first = next(sums for where, _, sums in made.rows if where == region)
        wrong = (
            cents(made.sold(region, months, every=True)),
            cents(100 * sum(first[m] for m in months)),
            cents(made.sold(region, range(6))),
        )
    else:
        question = (
            f"{hidden}The sheet Returns says which share of its sales is returned of each of the "
            f"goods. What did the region {region} sell {when}, less returns? {MONEY}"
        )
        truth = cents(made.sold(region, months, net=True))
        wrong = (
            cents(made.sold(region, months, every=True, net=True)),
            cents(made.sold(region, months)),
            cents(made.sold(region, range(6), net=True)),
        )
    asked = f"sales.xlsx is the workbook of a shop. {question}"
    return Case(asked, truth, differing(truth, wrong), lambda: {"sales.xlsx": _paint(made)})


def _paint(made: _Book) -> bytes:
    rows: list[list[Cell | None]] = [
        [Cell("Sales in euros, 2025", HEADING)],
        [Cell("Region", HEADING), Cell("Goods", HEADING), Cell("Quarter 1", HEADING), None, None,
         Cell("Quarter 2", HEADING)],
        [None, None, *(Cell(month, HEADING) for month in _MONTHS)],
    ]  # fmt: skip
    merged = ["A1:H1", "A2:A3", "B2:B3", "C2:E2", "F2:H2"]
    begun: dict[str, int] = {}
    for i, (region, goods, sums) in enumerate(made.rows):
        new = region not in begun
        begun.setdefault(region, i)
        where = Cell(region, HEADING) if new else None
        rows.append([where, Cell(goods), *(Cell(each) for each in sums)])
    ends = [*list(begun.values())[1:], len(made.rows)]
    merged += [
        f"A{_FIRST_ROW + begin}:A{_FIRST_ROW + end - 1}"
        for begin, end in zip(begun.values(), ends, strict=True)
    ]
    hidden_rows = frozenset(_FIRST_ROW + i for i in made.cancelled)
    returns = [[Cell("Goods", HEADING), Cell("Returned", HEADING)]]
    returns += [[Cell(goods), Cell(made.returns[goods] / 100, PERCENT)] for goods in sorted(_GOODS)]
    costs = [[Cell("Goods", HEADING), Cell("Purchase price", HEADING), Cell("Since", HEADING)]]
    costs += [
        [Cell(goods), Cell(made.costs[goods] / 100), Cell(date(2025, 1 + i, 15), 3)]
        for i, goods in enumerate(_GOODS)
    ]
    return write_xlsx(
        [
            Sheet("Sales", rows, merged, hidden_rows=hidden_rows),
            Sheet("Returns", [list(row) for row in returns]),
            Sheet("Purchase", [list(row) for row in costs], hidden=True),
        ]
    )


_READ = """python3 - <<'END'
import re, zipfile
book = zipfile.ZipFile("sales.xlsx")
names = re.findall(r'<sheet name="(\\w+)"', book.read("xl/workbook.xml").decode())
for n, name in enumerate(names, 1):
    text = book.read(f"xl/worksheets/sheet{n}.xml").decode()
    print("sheet", name, *re.findall(r'ref="(A\\d+:A\\d+)"', text))
    for number, hidden, row in re.findall(r'<row r="(\\d+)"( hidden="1")?>(.*?)</row>', text):
        cells = re.findall(r'<c r="([A-H])\\d+".*?>(?:<is><t>|<v>)(.*?)<', row)
        print(number, "hidden" if hidden else "shown", *(f"{c}={v}" for c, v in cells))
END"""


async def solve(agent: Agent, ask: Ask) -> str:
    """Read every sheet with what is hidden of it, and add up."""
    await agent.tool("run_command", command="ls -l")
    await agent.tool("run_command", command="python3 -m zipfile -l sales.xlsx")
    sheets: dict[str, list[tuple[bool, dict[str, str]]]] = {}
    rows: list[tuple[bool, dict[str, str]]] = []
    for line in (await agent.tool("run_command", command=_READ)).splitlines():
        first, second, *cells = line.split(" ")
        if first == "sheet":
            rows = sheets.setdefault(second, [])
            continue
        known = dict(re.findall(r"([A-H])=([^=]*?)(?= [A-H]=|$)", " ".join(cells)))
        rows.append((second == "hidden", known))
    if ask == "hidden":
        prices = {of["A"]: float(of["B"]) for _, of in sheets["Purchase"][1:]}
        pick = min if "lowest" in agent.prompt else max
        return pick(prices, key=lambda goods: prices[goods])
    returned = {of["A"]: round(float(of["B"]) * 100) for _, of in sheets["Returns"][1:]}
    asked = re.findall(r"region (\w+)", agent.prompt)[0]
    columns = "CDE" if "first quarter" in agent.prompt else "FGH"
    region, total = "", 0
    for hidden, of in sheets["Sales"][_FIRST_ROW - 1 :]:
        region = of.get("A", region)
        if region == asked and not hidden:
            kept = 100 if ask == "sum" else 100 - returned[of["B"]]
            total += sum(int(of[column]) for column in columns) * kept
    return f"{total / 100:.2f}"

"""An invoice as PDF, on which one amount is wrong, and so are the sums that follow from it."""

import random
import re
from dataclasses import dataclass
from typing import Literal

from questions_case import MONEY, Case, cents, differing, drawing
from questions_pdf import Page, write_pdf

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["line", "net", "pay"]

_GOODS = (
    ("Folding chair, beech", 34), ("Trestle table 160 cm", 78), ("String of lamps, 10 m", 26),
    ("Tea towels, set of six", 18), ("Enamel jug, blue", 22), ("Rain barrel 200 l", 64),
    ("Garden hose 25 m", 31), ("Bread board, walnut", 42), ("Wool blanket, grey", 58),
    ("Storm lantern", 24), ("Seed potatoes, 10 kg", 16), ("Apple juice, 12 bottles", 27),
    ("Honey, case of 20", 95), ("Dried herbs, box", 12),
)  # fmt: skip
_FOOD = {"Seed potatoes, 10 kg", "Apple juice, 12 bottles", "Honey, case of 20", "Dried herbs, box"}
_SELLERS = ("Brandt & Olsen", "Quayside Supply", "Millrace Trading", "Norrland Goods")
_BUYERS = ("Harbour Cafe", "Lindqvist Gardens", "The Old Ropewalk", "Seaview Hostel")
VAT, FOOD_VAT, RATE = 20, 10, 2


@dataclass(frozen=True)
class _Line:
    article: str
    name: str
    count: int
    price: int
    printed: int

    @property
    def right(self) -> int:
        return self.count * self.price


@dataclass(frozen=True)
class _Invoice:
    number: str
    seller: str
    buyer: str
    lines: tuple[_Line, ...]

    def net(self, *, printed: bool) -> int:
        return sum(each.printed if printed else each.right for each in self.lines)

    def gross(self, *, printed: bool) -> int:
        """With tax, in cents: prices are whole euros, so no rounding is needed."""
        return sum(
            (each.printed if printed else each.right)
            * (100 + (FOOD_VAT if each.name in _FOOD else VAT))
            for each in self.lines
        )


def _invoice(rng: random.Random) -> _Invoice:
    food = rng.sample(sorted(_FOOD), 2)
    other = [good for good in _GOODS if good[0] not in _FOOD]
    goods = rng.sample(other, 5) + [good for good in _GOODS if good[0] in food]
    rng.shuffle(goods)
    wrong = rng.randrange(len(goods))
    lines: list[_Line] = []
    for i, (name, usual) in enumerate(goods):
        price, count = usual + rng.randint(-3, 6), rng.randint(2, 19)
        printed = price * count
        if i == wrong:  # as if another count had been typed
            printed = price * (count + rng.choice((-1, 1, 10)))
        article = f"{rng.choice('BKMT')}-{rng.randint(1000, 9999)}"
        lines.append(_Line(article, name, count, price, printed))
    number = f"{rng.randint(2024, 2026)}-{rng.randint(100, 999)}"
    return _Invoice(number, rng.choice(_SELLERS), rng.choice(_BUYERS), tuple(lines))


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on an invoice."""
    made = _invoice(drawing("invoice", seed))
    bad = next(each for each in made.lines if each.printed != each.right)
    printed, net = made.net(printed=True), made.net(printed=False)
    begin = (
        "invoice.pdf has one line whose amount is not its quantity times its unit price. "
        "Quantities and unit prices are right."
    )
    if ask == "line":
        question = (
            f"{begin} Which article number has the wrong amount? Answer with the article number "
            "alone."
        )
        dearest = max(made.lines, key=lambda each: each.printed)
        wrong = (dearest.article, made.lines[0].article, made.lines[-1].article, bad.name)
        truth = bad.article
    elif ask == "net":
        question = f"{begin} What is the right net total of all lines, before tax? {MONEY}"
        truth, wrong = cents(net * 100), (cents(printed * 100), cents(made.gross(printed=False)))
    else:
        question = (
            f"{begin} The buyer pays 8 days after the date of the invoice. How many euros does "
            "the buyer have to pay in all, if every amount is right and the terms on the invoice "
            f"hold? Round to cents at the very end. {MONEY}"
        )
        due = _discounted(made.gross(printed=False))
        truth = cents(due)
        wrong = (
            cents(_discounted(made.gross(printed=True))),
            cents(made.gross(printed=False)),
            cents(_discounted(net * (100 + VAT))),
        )
    return Case(question, truth, differing(truth, wrong), lambda: {"invoice.pdf": _paint(made)})


def _discounted(gross: int) -> int:
    """What is left of cents after the discount for early payment, rounded."""
    return (gross * (100 - RATE) + 50) // 100


def _paint(made: _Invoice) -> bytes:
    first, second = Page(), Page()
    first.text(60, 80, made.seller, size=20, bold=True)
    first.text(60, 98, "Wharf Road 12, 20457 Hamburg", size=9)
    first.text(400, 80, f"Invoice {made.number}", size=13, bold=True)
    first.text(400, 98, "Date: 4 May 2026", size=9)
    first.text(60, 150, made.buyer, size=11)
    first.text(60, 165, "Quay Street 3, 24103 Kiel", size=11)
    _table(first, made)
    first.text(60, 780, "Page 1 of 2. Terms of payment are on page 2.", size=8)
    _terms(second, made)
    return write_pdf([first, second])


def _table(page: Page, made: _Invoice) -> None:
    top = 220
    page.box(55, top - 14, 485, 20, grey=0.88)
    for x, label in ((60, "Article"), (130, "Description"), (330, "Qty"), (385, "Unit EUR")):
        page.text(x, top, label, bold=True)
    page.text(478, top, "Amount EUR", bold=True)
    for i, each in enumerate(made.lines):
        y = top + 26 + 20 * i
        page.text(60, y, each.article)
        page.text(130, y, each.name + (" *" if each.name in _FOOD else ""))
        page.number(348, y, str(each.count))
        page.number(430, y, f"{each.price}.00")
        page.number(535, y, f"{each.printed}.00")
        page.line(55, y + 6, 540, y + 6, width=0.3)
    y = top + 40 + 20 * len(made.lines)
    net, gross = made.net(printed=True) * 100, made.gross(printed=True)
    for label, amount in (("Net total", net), ("VAT", gross - net), ("Total", gross)):
        page.text(400, y, label, bold=label == "Total")
        page.number(535, y, cents(amount), bold=label == "Total")
        y += 18
    page.text(60, y + 20, f"* Food: {FOOD_VAT} % VAT. Everything else: {VAT} % VAT.", size=9)


def _terms(page: Page, made: _Invoice) -> None:
    page.text(60, 80, made.seller, size=20, bold=True)
    page.text(60, 120, f"Terms of payment, invoice {made.number}", size=13, bold=True)
    lines = (
        "Payment is due within 30 days of the date of the invoice, without deduction.",
        f"Who pays within 10 days may deduct {RATE} % of the total with VAT.",
        "Delivery is free. Goods remain ours until they are paid for.",
        "Please report mistakes on this invoice before you pay.",
    )
    for i, line in enumerate(lines):
        page.text(60, 150 + 18 * i, line)
    page.text(60, 780, "Page 2 of 2", size=8)


_TEXT = """python3 - <<'END'
import re, zlib
data = open("invoice.pdf", "rb").read()
for part in re.findall(rb"stream\\n(.*?)\\nendstream", data, re.S):
    print(*re.findall(r"\\((.*)\\) Tj", zlib.decompress(part).decode("cp1252")), sep="|")
END"""


async def solve(agent: Agent, ask: Ask) -> str:
    """Read the text of both pages, and compute every line anew."""
    await agent.tool("run_command", command="ls -l")
    table, terms = (await agent.tool("run_command", command=_TEXT)).splitlines()
    rows = re.findall(r"([BKMT]-\d{4})\|([^|]*)\|(\d+)\|(\d+)\.00\|(\d+)\.00", table)
    if ask == "line":
        return next(a for a, _, count, price, said in rows if int(count) * int(price) != int(said))
    if ask == "net":
        return str(sum(int(count) * int(price) for _, _, count, price, _ in rows))
    food, other = (int(each) for each in re.findall(r"(\d+) % VAT", table))
    off = int(re.findall(r"deduct (\d+) %", terms)[0])
    gross = sum(
        int(count) * int(price) * (100 + (food if name.endswith("*") else other))
        for _, name, count, price, _ in rows
    )
    return f"{gross * (100 - off) / 10_000:.2f}"

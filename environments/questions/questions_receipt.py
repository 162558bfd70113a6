"""A receipt as a scanner saw it: crooked, and with a coffee stain where the total stands."""

import random
from dataclasses import dataclass
from typing import Literal

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont
from questions_case import MONEY, Case, cents, differing, drawing
from questions_drawing import png

from hud_mcp import Agent

__all__ = ["Ask", "Receipt", "draw", "paint", "received", "solve"]

Ask = Literal["total", "change"]

_GOODS = (
    ("RYE BREAD 750G", 345), ("OAT MILK 1L", 219), ("PLUMS 500G", 289), ("BUTTER 250G", 265),
    ("COFFEE 500G", 799), ("EGGS X10", 329), ("CHEESE 300G", 459), ("TOMATOES 1KG", 379),
    ("OLIVES 200G", 249), ("PASTA 500G", 139), ("DARK CHOCOLATE", 199), ("CIDER 0.75L", 389),
)  # fmt: skip
_BOTTLES = {"OAT MILK 1L", "CIDER 0.75L"}
DEPOSIT = 25
_WIDTH = 34


@dataclass(frozen=True)
class Receipt:
    """What is printed, and the sums that follow from it, in cents."""

    lines: tuple[tuple[str, str], ...]
    total: int
    without_void: int
    without_coupon: int
    cash: int


def _receipt(rng: random.Random) -> Receipt:
    goods = rng.sample([good for good in _GOODS if good[0] not in _BOTTLES], 5)
    goods.append(rng.choice([good for good in _GOODS if good[0] in _BOTTLES]))
    rng.shuffle(goods)
    void = rng.choice([good for good in goods if good[0] not in _BOTTLES])
    lines: list[tuple[str, str]] = []
    total = 0
    for name, price in goods:
        count = 1 if (name, price) == void else rng.choice((1, 1, 2, 3))
        if count > 1:
            lines.append((f"{count} X {cents(price)}", ""))
        lines.append((name, cents(count * price)))
        total += count * price
        if name in _BOTTLES:
            lines.append((f"  DEPOSIT {count} X {cents(DEPOSIT)}", cents(count * DEPOSIT)))
            total += count * DEPOSIT
    lines.append((f"VOID {void[0]}", cents(-void[1])))
    coupon = rng.choice((50, 100, 150))
    lines.append(("COUPON", cents(-coupon)))
    paid = total - void[1] - coupon
    cash = next(note for note in (2000, 5000, 10_000) if note > paid)
    return Receipt(tuple(lines), paid, paid + void[1], paid + coupon, cash)


def received(seed: int) -> Receipt:
    """The receipt of a seed."""
    return _receipt(drawing("receipt", seed))


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a receipt."""
    made = received(seed)
    begin = "receipt.png is a scanned receipt in euros. A stain hides its total. A void line is "
    begin += "negative: it takes an article back."
    sums = [made.total, made.without_void, made.without_coupon]
    if ask == "total":
        question = f"{begin} What was the total? {MONEY}"
    else:
        question = f"{begin} It was paid in cash. How much change did the customer get? {MONEY}"
        sums = [made.cash - each for each in sums]
    truth, *wrong = (cents(each) for each in sums)
    return Case(question, truth, differing(truth, wrong), lambda: {"receipt.png": paint(made)})


def paint(made: Receipt) -> bytes:
    """The receipt as it was scanned."""
    rows = [
        ("HARBOUR GROCERY".center(_WIDTH), ""),
        ("FISH MARKET 8".center(_WIDTH), ""),
        ("-" * _WIDTH, ""),
        *made.lines,
        ("-" * _WIDTH, ""),
        ("", ""),
        ("TOTAL EUR", cents(made.total)),
        ("", ""),
        ("CASH", cents(made.cash)),
        ("", ""),
        ("THANK YOU - TAK - DANKE".center(_WIDTH), ""),
    ]
    paper = Image.new("L", (_WIDTH * 6 + 40, len(rows) * 14 + 44), 244)
    draw = ImageDraw.Draw(paper)
    small = ImageFont.load_default_imagefont()
    for i, (left, right) in enumerate(rows):
        text = left if not right else left + right.rjust(_WIDTH - len(left))
        draw.text((20, 20 + 14 * i), text, fill=52, font=small)
    paper = paper.resize((paper.width * 2, paper.height * 2), Image.Resampling.BICUBIC)
    at = next(i for i, row in enumerate(rows) if row[0] == "TOTAL EUR")
    stained = _stain(paper.convert("RGB"), paper.width - 78, 2 * (26 + 14 * at))
    return png(_scan(stained))


def _stain(paper: Image.Image, x: int, y: int) -> Image.Image:
    """Coffee on one place: a blot under which nothing can be read, with drops around it."""
    blot = Image.new("L", paper.size, 0)
    draw = ImageDraw.Draw(blot)
    draw.ellipse((x - 88, y - 24, x + 52, y + 22), fill=255)
    draw.ellipse((x - 50, y - 20, x + 74, y + 26), fill=255)
    for dx, dy, r in ((-104, 6, 7), (-122, -6, 3), (-112, 22, 4)):
        draw.ellipse((x + dx - r, y + dy - r, x + dx + r, y + dy + r), fill=230)
    brown = Image.new("RGB", paper.size, (112, 74, 42))
    return Image.composite(brown, paper, blot.filter(ImageFilter.GaussianBlur(1.5)))


def _scan(paper: Image.Image) -> Image.Image:
    """The paper on the dark glass of a scanner, a little crooked, with its edge in shadow."""
    glass = Image.new("RGB", (paper.width + 70, paper.height + 70), (74, 77, 82))
    shadow = Image.new("L", glass.size, 0)
    ImageDraw.Draw(shadow).rectangle((39, 41, 39 + paper.width, 41 + paper.height), fill=150)
    dark = Image.new("RGB", glass.size, (30, 31, 34))
    glass = Image.composite(dark, glass, shadow.filter(ImageFilter.GaussianBlur(6)))
    glass.paste(paper, (35, 35))
    turned = glass.rotate(1.3, resample=Image.Resampling.BICUBIC, fillcolor=(74, 77, 82))
    shade = Image.linear_gradient("L").resize(turned.size).point(lambda v: 225 + v * 30 // 255)
    return ImageChops.multiply(turned, Image.merge("RGB", (shade, shade, shade)))


async def solve(agent: Agent, seed: int, ask: Ask) -> str:
    """Look at the picture, and add up what it shows."""
    await agent.tool("view_picture", path="receipt.png")
    return draw(seed, ask).truth

"""Bar charts as pictures: an axis that does not begin at 0, hundreds, and two axes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from questions_case import NUMBER, Case, differing, drawing
from questions_drawing import INK, Draw, canvas, png, write

from hud_mcp import Agent

__all__ = ["COLOURS", "Ask", "Axis", "bar_place", "charted", "draw", "solve"]

Ask = Literal["difference", "ratio", "ahead"]

MONTHS = ("March", "April", "May", "June", "July", "August")
LEFT, TOP, RIGHT, BOTTOM = 100, 96, 700, 400
COLOURS = ((58, 110, 165), (217, 130, 43))


@dataclass(frozen=True)
class Axis:
    """What a height means: the first and the last tick, and the step between ticks."""

    low: int
    high: int
    step: int

    def y(self, value: float) -> float:
        """Where a value is, in pixels from the top."""
        return BOTTOM - (value - self.low) * (BOTTOM - TOP) / (self.high - self.low)


@dataclass(frozen=True)
class Chart:
    """A chart of one or two series, each with its axis."""

    series: tuple[tuple[int, ...], ...]
    axes: tuple[Axis, ...]
    names: tuple[str, ...]
    title: str
    unit: str


def bar_place(month: int, series: int, count: int) -> tuple[int, int]:
    """Where a bar is, from left to right in pixels."""
    wide = (RIGHT - LEFT) // len(MONTHS)
    each = (wide - 36) // count
    left = LEFT + wide * month + 18 + each * series
    return left, left + each - 2


def charted(seed: int, ask: Ask) -> tuple[Chart, tuple[int, int]]:
    """The chart of a seed, and the months that are asked about."""
    rng = drawing(f"chart-{ask}", seed)
    return _two_axes(rng) if ask == "ahead" else _one_axis(rng)


def _one_axis(rng: random.Random) -> tuple[Chart, tuple[int, int]]:
    low = rng.choice((20, 30, 40))
    axis = Axis(low, low + 60, 10)
    first, second = rng.sample(range(len(MONTHS)), 2)
    values = [rng.randrange(low + 5, axis.high, 5) for _ in MONTHS]
    heights = range(low + 5, axis.high, 5)
    plain = [(a, b) for a in heights for b in heights if a > b and a * 20 % b == 0]
    values[first], values[second] = rng.choice(plain)
    chart = Chart(
        (tuple(values),), (axis,), ("Visitors",), "Visitors of the island museum", "hundreds"
    )
    return chart, (first, second)


def _two_axes(rng: random.Random) -> tuple[Chart, tuple[int, int]]:
    axes = (Axis(0, 60, 10), Axis(0, 120, 20))
    while True:
        left = tuple(rng.randrange(15, 60, 5) for _ in MONTHS)
        right = tuple(rng.randrange(20, 115, 10) for _ in MONTHS)
        ahead, taller = _ahead(left, right), _ahead(left, right, scale=2)
        equal = any(a in (b, b / 2) for a, b in zip(left, right, strict=True))
        if 1 < len(ahead) < len(MONTHS) and taller and ahead != taller and not equal:
            names = ("Kiosk (left axis)", "Ice stall (right axis)")
            return Chart((left, right), axes, names, "Takings on the pier", "hundred EUR"), (0, 0)


def _ahead(left: Sequence[int], right: Sequence[int], *, scale: int = 1) -> list[str]:
    """The months in which the right series is ahead."""
    both = zip(MONTHS, left, right, strict=True)
    return [month for month, a, b in both if b > a * scale]


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a chart."""
    chart, (first, second) = charted(seed, ask)
    if ask == "ahead":
        question = (
            "chart.png shows what a kiosk and an ice stall took in each month. In which months did "
            "the ice stall take more money than the kiosk? Answer with the months alone, as a "
            "comma separated list in the order of the year."
        )
        ahead, taller = _ahead(*chart.series), _ahead(*chart.series, scale=2)
        rest = [month for month in MONTHS if month not in ahead]
        truth, *wrong = (", ".join(each) for each in (ahead, taller, ahead[:-1], rest) if each)
        return Case(question, truth, differing(truth, wrong), lambda: {"chart.png": _paint(chart)})
    a, b = chart.series[0][first], chart.series[0][second]
    low = chart.axes[0].low
    if ask == "difference":
        question = (
            "chart.png shows the visitors of a museum. How many more visitors came in "
            f"{MONTHS[first]} than in {MONTHS[second]}? {NUMBER}"
        )
        truth, wrong = str((a - b) * 100), (a - b, (a - b) * 10, a * 100)
    else:
        question = (
            "chart.png shows the visitors of a museum. How many times as many visitors came in "
            f"{MONTHS[first]} as in {MONTHS[second]}? Answer with a decimal number alone, such as "
            "3.75."
        )
        truth = f"{a / b:.4g}"
        wrong = (f"{(a - low) / (b - low):.2f}", f"{b / a:.2f}", (a - b) * 100)
    return Case(question, truth, differing(truth, wrong), lambda: {"chart.png": _paint(chart)})


def _paint(chart: Chart) -> bytes:
    image, draw = canvas(800, 480)
    write(draw, (400, 32), f"{chart.title}, 2025", 22)
    _axes(draw, chart)
    for series, values in enumerate(chart.series):
        for month, value in enumerate(values):
            left, right = bar_place(month, series, len(chart.series))
            top = round(chart.axes[series].y(value))
            draw.rectangle((left, top, right, BOTTOM - 1), fill=COLOURS[series])
    for month, name in enumerate(MONTHS):
        wide = (RIGHT - LEFT) // len(MONTHS)
        write(draw, (LEFT + wide * (month + 0.5), BOTTOM + 18), name)
    draw.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], fill=INK, width=2)
    if len(chart.series) > 1:
        for i, name in enumerate(chart.names):
            x = 230 + 190 * i
            draw.rectangle((x, 446, x + 16, 462), fill=COLOURS[i])
            write(draw, (x + 24, 454), name, anchor="lm")
    return png(image)


def _axes(draw: Draw, chart: Chart) -> None:
    for side, axis in enumerate(chart.axes):
        x, anchor, ink = (LEFT - 10, "rm", INK) if side == 0 else (RIGHT + 10, "lm", INK)
        if len(chart.axes) > 1:
            ink = COLOURS[side]
        for value in range(axis.low, axis.high + 1, axis.step):
            if side == 0:
                y = axis.y(value)
                draw.line([(LEFT, y), (RIGHT, y)], fill=(216, 215, 208), width=1)
            write(draw, (x, axis.y(value)), str(value), colour=ink, anchor=anchor)
        edge = LEFT if side == 0 else RIGHT
        draw.line([(edge, TOP), (edge, BOTTOM)], fill=ink, width=2)
        write(draw, (edge, TOP - 22), chart.unit, 15, colour=ink)


async def solve(agent: Agent, seed: int, ask: Ask) -> str:
    """Look at the chart, and read its axes before its bars."""
    await agent.tool("view_picture", path="chart.png")
    return draw(seed, ask).truth

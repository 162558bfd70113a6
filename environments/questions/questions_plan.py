"""A floor plan as a picture, with a room like an L whose sides are not all written down."""

from dataclasses import dataclass
from typing import Literal

from questions_case import Case, differing, drawing
from questions_drawing import INK, Draw, arrow_line, canvas, png, write

from hud_mcp import Agent

__all__ = ["LEFT", "SCALE_PX", "TOP", "Ask", "Plan", "draw", "planned", "solve"]

Ask = Literal["area", "skirting"]

LEFT, TOP, SCALE_PX = 90, 90, 6
"""The flat's corner in the picture, and the pixels of one decimetre."""
DOOR_DM = 9
_WALL = 6
_METRES = "Answer with the number of {} alone, with one decimal."


@dataclass(frozen=True)
class Plan:
    """A flat, in decimetres: two rooms on the left, a bath in the corner, the rest is an L."""

    width: int
    height: int
    left: int
    upper: int
    bath_width: int
    bath_height: int
    hall_door: bool

    @property
    def area(self) -> int:
        """Of the living room, in square decimetres."""
        return (self.width - self.left) * self.height - self.bath_width * self.bath_height

    @property
    def doors(self) -> int:
        """How many doors the living room has."""
        return 4 if self.hall_door else 3


def planned(seed: int) -> Plan:
    """The plan of a seed."""
    rng = drawing("plan", seed)
    return Plan(
        width=rng.randrange(95, 125, 5),
        height=rng.randrange(64, 80, 2),
        left=rng.randrange(32, 44, 2),
        upper=rng.randrange(28, 38, 2),
        bath_width=rng.randrange(22, 32, 2),
        bath_height=rng.randrange(18, 26, 2),
        hall_door=rng.random() < 1 / 2,
    )


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a floor plan."""
    plan = planned(seed)
    wide, high = plan.width - plan.left, plan.height
    begin = "plan.png is the plan of a flat. Lengths are in metres, and walls have no thickness. "
    if ask == "area":
        question = f"{begin}What is the area of the living room, in square metres? "
        question += _METRES.format("square metres")
        lower = plan.left * (high - plan.upper)
        areas = [plan.area, wide * high, plan.width * high - lower, plan.width * high]
        truth, *wrong = (f"{each / 100:.1f}" for each in areas)
        exact = plan.area % 10 == 0
        if not exact:
            question = question.replace("one decimal", "two decimals")
            truth, *wrong = (f"{each / 100:.2f}" for each in areas)
    else:
        question = (
            f"{begin}A skirting board runs along all walls of the living room, but not across "
            f"doors. Each door is {DOOR_DM / 10} m wide, the entrance too. How many metres of "
            f"board are needed? {_METRES.format('metres')}"
        )
        around = 2 * (wide + high)
        gaps = DOOR_DM * plan.doors
        less = around - plan.bath_width - plan.bath_height
        lengths = [around - gaps, around, less - gaps, around - gaps + DOOR_DM]
        truth, *wrong = (f"{each / 10:.1f}" for each in lengths)
    return Case(question, truth, differing(truth, wrong), lambda: {"plan.png": _paint(plan)})


def _at(x: float, y: float) -> tuple[float, float]:
    return LEFT + x * SCALE_PX, TOP + y * SCALE_PX


def _paint(plan: Plan) -> bytes:
    width, height = plan.width, plan.height
    image, draw = canvas(round(_at(width, 0)[0]) + 70, round(_at(0, height)[1]) + 90)
    draw.rectangle((*_at(0, 0), *_at(width, height)), outline=INK, width=_WALL)
    split = width - plan.bath_width
    for a, b in (
        ((plan.left, 0), (plan.left, height)),
        ((0, plan.upper), (plan.left, plan.upper)),
        ((split, 0), (split, plan.bath_height)),
        ((split, plan.bath_height), (width, plan.bath_height)),
    ):
        draw.line([_at(*a), _at(*b)], fill=INK, width=_WALL)
    _doors(draw, plan)
    middle = (plan.left + width) / 2
    write(draw, _at(plan.left / 2, plan.upper / 2 - 4), "Bedroom", 20)
    write(draw, _at(plan.left / 2, (plan.upper + height) / 2 - 4), "Kitchen", 20)
    write(draw, _at(split + plan.bath_width / 2 - 3, plan.bath_height / 2 - 2), "Bath", 20)
    write(draw, _at(middle, height * 0.7), "Living room", 20)
    _dimensions(draw, plan)
    return png(image)


def _doors(draw: Draw, plan: Plan) -> None:
    """Gaps in walls with the arc of the door, as plans have them."""
    x, bottom = plan.left, plan.height
    _upright(draw, x, plan.upper / 2 + 3)
    _upright(draw, x, (plan.upper + bottom) / 2 + 3)
    _level(draw, plan.width - plan.bath_width + 4, plan.bath_height)
    _level(draw, plan.left + 12, bottom)
    write(draw, _at(plan.left + 16.5, bottom + 5), "Entrance", 15)
    if plan.hall_door:
        _level(draw, plan.width - 20, bottom)
        write(draw, _at(plan.width - 15.5, bottom + 5), "Terrace", 15)


def _upright(draw: Draw, x: float, y: float) -> None:
    draw.line([_at(x, y), _at(x, y + DOOR_DM)], fill=(252, 251, 247), width=_WALL + 2)
    hinge, leaf = _at(x, y), _at(x - DOOR_DM, y)
    draw.line([hinge, leaf], fill=INK, width=2)
    r = DOOR_DM * SCALE_PX
    draw.arc((hinge[0] - r, hinge[1] - r, hinge[0] + r, hinge[1] + r), 90, 180, fill=INK, width=1)


def _level(draw: Draw, x: float, y: float) -> None:
    draw.line([_at(x, y), _at(x + DOOR_DM, y)], fill=(252, 251, 247), width=_WALL + 2)
    hinge, leaf = _at(x, y), _at(x, y - DOOR_DM)
    draw.line([hinge, leaf], fill=INK, width=2)
    r = DOOR_DM * SCALE_PX
    draw.arc((hinge[0] - r, hinge[1] - r, hinge[0] + r, hinge[1] + r), 270, 360, fill=INK, width=1)


def _dimensions(draw: Draw, plan: Plan) -> None:
    """What is written down: the other sides follow from it."""
    width, height = plan.width, plan.height
    lines = (
        ((0, -6), (width, -6), width),
        ((-6, 0), (-6, height), height),
        ((0, height + 9), (plan.left, height + 9), plan.left),
        ((5, 1), (5, plan.upper - 1), plan.upper),
        ((width - plan.bath_width + 1, 4), (width - 1, 4), plan.bath_width),
        ((width - 5, 1), (width - 5, plan.bath_height - 1), plan.bath_height),
    )
    for a, b, length in lines:
        arrow_line(draw, _at(*a), _at(*b))
        x, y = _at((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        draw.rectangle((x - 21, y - 10, x + 21, y + 10), fill=(252, 251, 247))
        write(draw, (x, y), f"{length / 10:.2f}", 15)


async def solve(agent: Agent, seed: int, ask: Ask) -> str:
    """Look at the plan, and work out the sides that are not written down."""
    await agent.tool("view_picture", path="plan.png")
    return draw(seed, ask).truth

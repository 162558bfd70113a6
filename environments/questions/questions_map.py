"""A hiking map as a picture: roads on a grid, a scale bar of several squares, closed roads."""

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Literal

from questions_case import NUMBER, Case, differing, drawing
from questions_drawing import INK, Draw, canvas, font, png, write

from hud_mcp import Agent

__all__ = ["CELL_PX", "CLOSED", "ROAD", "Ask", "Map", "draw", "mapped", "pixel", "solve"]

Ask = Literal["straight", "route", "round"]
Node = tuple[int, int]
Road = frozenset[Node]

COLUMNS, ROWS, CELL_PX = 10, 7, 72
LEFT, TOP = 70, 60
ROAD, CLOSED = (244, 226, 160), (190, 30, 45)
_NAMES = (
    "Alder Farm", "Beacon", "Chapel", "Dune Inn", "East Pier", "Ferry", "Old Mill", "Hut", "Quarry",
    "Spring", "Tower", "Weir",
)  # fmt: skip


@dataclass(frozen=True)
class Map:
    """Roads between crossings, named places, closed roads, and the scale."""

    roads: frozenset[Road]
    closed: frozenset[Road]
    places: dict[str, Node]
    asked: tuple[str, ...]
    bar_cells: int
    bar_m: int

    @property
    def cell_m(self) -> int:
        """How long one side of a square is."""
        return self.bar_m // self.bar_cells

    def legs(self, *, open_only: bool = True) -> dict[tuple[str, str], int]:
        """The shortest ways by road between asked places, in squares; none where there is none."""
        roads = self.roads - self.closed if open_only else self.roads
        found: dict[tuple[str, str], int] = {}
        for a in self.asked:
            far = _far(roads, self.places[a])
            found |= {(a, b): far[self.places[b]] for b in self.asked if self.places[b] in far}
        return found


def _walk(legs: dict[tuple[str, str], int], names: Iterable[str]) -> int:
    """How far it is along these places in order; 0 for no way."""
    steps = [legs.get(pair, 0) for pair in pairwise(names)]
    return sum(steps) if all(steps) else 0


def pixel(node: Node) -> tuple[int, int]:
    """Where a crossing is in the picture."""
    return LEFT + node[0] * CELL_PX, TOP + node[1] * CELL_PX


def _far(roads: frozenset[Road], begin: Node) -> dict[Node, int]:
    far = {begin: 0}
    queue = deque([begin])
    while queue:
        x, y = queue.popleft()
        for node in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if node not in far and frozenset(((x, y), node)) in roads:
                far[node] = far[x, y] + 1
                queue.append(node)
    return far


def _grid() -> list[Road]:
    across = [frozenset(((x, y), (x + 1, y))) for y in range(ROWS) for x in range(COLUMNS - 1)]
    down = [frozenset(((x, y), (x, y + 1))) for x in range(COLUMNS) for y in range(ROWS - 1)]
    return across + down


def mapped(seed: int, ask: Ask) -> Map:
    """The map of a seed: one on which a hasty reader goes wrong."""
    rng = drawing(f"map-{ask}", seed)
    while True:
        made = _map(rng, ask)
        truth, wrong = _measured(made, ask)
        if truth and len(set(wrong) - {truth, 0}) > 1:
            return made


def _map(rng: random.Random, ask: Ask) -> Map:
    every = _grid()
    roads = frozenset(rng.sample(every, len(every) * 62 // 100))
    nodes = sorted({node for road in roads for node in road})
    names = rng.sample(_NAMES, 7)
    places = dict(zip(names, rng.sample(nodes, 7), strict=True))
    asked = names[: 4 if ask == "round" else 2]
    if ask == "straight":
        dx, dy = rng.choice(((3, 4), (4, 3), (8, 6)))
        x, y = rng.randrange(COLUMNS - dx), rng.randrange(ROWS - dy)
        ends = [(x, y), (x + dx, y + dy)] if rng.random() < 1 / 2 else [(x, y + dy), (x + dx, y)]
        free = [node for node in nodes if node not in ends]
        rest = rng.sample(free, 5)
        places = dict(zip(names, ends + rest, strict=True))
    closed = frozenset(rng.sample(sorted(roads, key=sorted), 3))
    bar_cells, cell_m = rng.choice((2, 3)), rng.choice((150, 200, 250, 400))
    return Map(roads, closed, places, tuple(asked), bar_cells, bar_cells * cell_m)


def _measured(made: Map, ask: Ask) -> tuple[int, list[int]]:
    """The right length in metres, and what hasty readers measure."""
    start, *rest = made.asked
    if ask == "straight":
        (x1, y1), (x2, y2) = (made.places[each] for each in made.asked)
        dx, dy = abs(x1 - x2), abs(y1 - y2)
        cells = round((dx * dx + dy * dy) ** 0.5)
        return cells * made.cell_m, [cells * made.bar_m, (dx + dy) * made.cell_m]
    legs, every = made.legs(), made.legs(open_only=False)
    if ask == "route":
        blind, cells = _walk(every, made.asked), _walk(legs, made.asked)
        if blind == cells:
            return 0, []
        return cells * made.cell_m, [blind * made.cell_m, cells * made.bar_m, blind * made.bar_m]
    rounds = [[start, *order, start] for order in permutations(rest)]
    walks = [_walk(legs, each) for each in rounds]
    cells, named = (min(walks), walks[0]) if all(walks) else (0, 0)
    blind = min(_walk(every, each) for each in rounds)
    if cells in (blind, named):
        return 0, []
    return cells * made.cell_m, [named * made.cell_m, blind * made.cell_m, cells * made.bar_m]


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a map."""
    made = mapped(seed, ask)
    number, lengths = _measured(made, ask)
    first, last = made.asked[0], made.asked[-1]
    begin = "map.png is a map with a scale bar, and every place lies where grid lines meet. "
    closed = "A road with a red cross is closed. "
    if ask == "straight":
        asked = f"How far is it from {first} to {last} in a straight line, in metres?"
    elif ask == "route":
        asked = f"{closed}How long is the shortest way by road from {first} to {last}, in metres?"
    else:
        between = f"{', '.join(made.asked[1:-1])} and {last}"
        asked = (
            f"{closed}How long is the shortest round by road that begins and ends at {first} and "
            f"comes by {between}, in any order, in metres?"
        )
    truth = str(number)
    wrong = differing(truth, (each for each in lengths if each))
    return Case(f"{begin}{asked} {NUMBER}", truth, wrong, lambda: {"map.png": _paint(made)})


def _paint(made: Map) -> bytes:
    right, bottom = pixel((COLUMNS - 1, ROWS - 1))
    image, draw = canvas(right + 110, bottom + 130, (231, 238, 220))
    draw.ellipse((right - 250, TOP - 40, right + 90, TOP + 130), fill=(240, 234, 208))
    draw.ellipse((LEFT - 50, bottom - 150, LEFT + 200, bottom + 40), fill=(205, 222, 186))
    for x in range(COLUMNS):
        draw.line([pixel((x, 0)), pixel((x, ROWS - 1))], fill=(196, 203, 190), width=1)
    for y in range(ROWS):
        draw.line([pixel((0, y)), pixel((COLUMNS - 1, y))], fill=(196, 203, 190), width=1)
    ordered = sorted(sorted(road) for road in made.roads)
    for colour, width in (((120, 112, 92), 12), (ROAD, 8)):
        for a, b in ordered:
            draw.line([pixel(a), pixel(b)], fill=colour, width=width)
            for x, y in (pixel(a), pixel(b)):
                r = width // 2
                draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    for a, b in sorted(sorted(road) for road in made.closed):
        (x1, y1), (x2, y2) = pixel(a), pixel(b)
        _cross(draw, (x1 + x2) // 2, (y1 + y2) // 2)
    for name, node in made.places.items():
        _place(draw, name, *pixel(node))
    _scale(draw, made, bottom + 88)
    _north(draw, right + 60, bottom + 80)
    return png(image)


def _cross(draw: Draw, x: int, y: int) -> None:
    for dx, dy in ((9, 9), (9, -9)):
        draw.line([(x - dx, y - dy), (x + dx, y + dy)], fill=CLOSED, width=5)


def _place(draw: Draw, name: str, x: int, y: int) -> None:
    draw.ellipse((x - 8, y - 8, x + 8, y + 8), fill=INK, outline=(255, 255, 255), width=2)
    near_edge = x > pixel((COLUMNS - 2, 0))[0]
    at, anchor = ((x - 10, y - 20), "rm") if near_edge else ((x + 8, y - 20), "lm")
    halo = (231, 238, 220)
    draw.text(at, name, fill=INK, font=font(17), anchor=anchor, stroke_width=3, stroke_fill=halo)


def _scale(draw: Draw, made: Map, y: int) -> None:
    wide = made.bar_cells * CELL_PX
    draw.rectangle((LEFT, y, LEFT + wide, y + 8), fill=(255, 255, 255), outline=INK, width=2)
    draw.rectangle((LEFT, y, LEFT + wide // 2, y + 8), fill=INK)
    write(draw, (LEFT, y + 22), "0", 15)
    write(draw, (LEFT + wide, y + 22), f"{made.bar_m} m", 15)


def _north(draw: Draw, x: int, y: int) -> None:
    draw.polygon([(x, y - 24), (x - 9, y + 12), (x, y + 4), (x + 9, y + 12)], fill=INK)
    write(draw, (x, y - 36), "N")


async def solve(agent: Agent, seed: int, ask: Ask) -> str:
    """Look at the map, count squares, and turn them into metres by the scale bar."""
    await agent.tool("view_picture", path="map.png")
    return draw(seed, ask).truth

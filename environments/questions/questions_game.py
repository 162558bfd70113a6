"""A position of Reef, a game of the set's own: the board is a picture, the rules are a text."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from questions_case import LIST, NUMBER, Case, differing, drawing
from questions_drawing import INK, Draw, canvas, png, write

from hud_mcp import Agent

__all__ = ["BLACK_PIECE", "FIELD_PX", "ROCK", "WHITE_PIECE", "Ask", "draw", "middle", "placed"]

Ask = Literal["moves", "captures", "safe"]
Field = tuple[int, int]

SIZE, FIELD_PX, LEFT, TOP = 8, 64, 48, 24
ROCK, WHITE_PIECE, BLACK_PIECE = (120, 116, 110), (250, 246, 232), (44, 48, 56)
RULES = """REEF - a game for two

The board has 8 x 8 squares: files a to h from left to right, ranks 1 to 8 from the bottom up.
Light discs belong to White, dark discs to Black. Grey hexagons are rocks.

H  Heron      moves any number of squares diagonally. It jumps over nothing.
S  Swordfish  moves one, two or three squares straight: along its file or its rank.
              It jumps over pieces of its own side, and over nothing else.
T  Turtle     moves one square in any direction, straight or diagonally.

No piece moves onto a rock, or onto a piece of its own side. A piece captures by moving onto a
piece of the other side, and its move ends there. Moving is never forced.
"""
_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_REACH = {"H": (_DIAGONAL, 7), "S": (_STRAIGHT, 3), "T": (_STRAIGHT + _DIAGONAL, 1)}


@dataclass(frozen=True)
class Position:
    """Pieces by square: `wH` is White's Heron; and rocks."""

    pieces: Mapping[Field, str]
    rocks: frozenset[Field]

    def moves(self, begin: Field, *, hasty: bool = False) -> Iterator[Field]:
        """Where a piece may move to; a hasty reader forgets that Swordfish jump."""
        side, kind = self.pieces[begin]
        directions, reach = _REACH[kind]
        for dx, dy in directions:
            for n in range(1, reach + 1):
                field = (begin[0] + dx * n, begin[1] + dy * n)
                if not all(0 <= each < SIZE for each in field) or field in self.rocks:
                    break
                there = self.pieces.get(field, "")
                if there.startswith(side):
                    if kind == "S" and not hasty:
                        continue
                    break
                yield field
                if there:
                    break

    def reached(self, side: str, *, hasty: bool = False) -> set[Field]:
        """Every square that a side's pieces may move to."""
        own = [field for field, piece in self.pieces.items() if piece.startswith(side)]
        return {end for begin in own for end in self.moves(begin, hasty=hasty)}

    def after(self, begin: Field, end: Field) -> "Position":
        """The position when a piece has moved."""
        rest = {field: piece for field, piece in self.pieces.items() if field != begin}
        return Position({**rest, end: self.pieces[begin]}, self.rocks)


def placed(seed: int, ask: Ask) -> Position:
    """The position of a seed: one in which a hasty reader goes wrong."""
    rng = drawing(f"game-{ask}", seed)
    while True:
        made = _position(rng)
        truth, *wrong = _answers(made, ask)
        enough = int(truth) >= 5 if ask == "moves" else 2 <= len(truth.split(", ")) <= 5  # noqa: PLR2004  # neither trivial nor long
        if enough and len(differing(truth, wrong)) > 1:
            return made


def _position(rng: random.Random) -> Position:
    fields = rng.sample([(x, y) for x in range(SIZE) for y in range(SIZE)], 20)
    kinds = ["wT", "wH", "wS", "wS", "wH", "bH", "bH", "bS", "bS", "bT", "bT", "bT"]
    pieces = dict(zip(fields, kinds, strict=False))
    return Position(pieces, frozenset(fields[len(kinds) :]))


def _named(fields: set[Field]) -> str:
    return ", ".join(sorted(f"{'abcdefgh'[x]}{y + 1}" for x, y in fields))


def _find(made: Position, piece: str) -> Field:
    return next(field for field, each in made.pieces.items() if each == piece)


def _answers(made: Position, ask: Ask) -> list[str]:
    """The right answer first, then those of hasty readers."""
    black = {field for field, piece in made.pieces.items() if piece.startswith("b")}
    if ask == "moves":
        begin = _find(made, "wH")
        reached = set(made.moves(begin))
        bare = Position({begin: "wH"}, frozenset())
        no_rocks = Position(made.pieces, frozenset())
        every = [reached, reached - black, set(no_rocks.moves(begin)), set(bare.moves(begin))]
        return [str(len(each)) for each in every]
    if ask == "captures":
        takes = made.reached("w") & black
        no_rocks = Position(made.pieces, frozenset())
        hasty = [made.reached("w", hasty=True), no_rocks.reached("w")]
        return [_named(takes), *(_named(each & black) for each in hasty)]
    begin = _find(made, "wT")
    ends = set(made.moves(begin))
    safe = {end for end in ends if end not in made.after(begin, end).reached("b")}
    now = ends - made.reached("b")
    return [_named(safe), _named(ends), _named(now), _named(safe - black)]


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a position."""
    made = placed(seed, ask)
    truth, *wrong = _answers(made, ask)
    begin = "board.png shows a position of the game whose rules are in rules.txt. "
    if ask == "moves":
        place = _named({_find(made, "wH")})
        question = f"{begin}To how many squares may White's Heron on {place} move? {NUMBER}"
    elif ask == "captures":
        question = (
            f"{begin}White moves. Which pieces of Black can White capture with one move? "
            f"Name their squares. {LIST}"
        )
    else:
        question = (
            f"{begin}White moves the Turtle. To which squares can it move so that Black cannot "
            f"capture it with the next move? {LIST}"
        )
    wrong = [each for each in wrong if each]
    return Case(
        question,
        truth,
        differing(truth, wrong),
        lambda: {"rules.txt": RULES.encode(), "board.png": _paint(made)},
    )


def middle(field: Field) -> tuple[int, int]:
    """The middle of a square in the picture."""
    return (
        LEFT + field[0] * FIELD_PX + FIELD_PX // 2,
        TOP + (SIZE - 1 - field[1]) * FIELD_PX + FIELD_PX // 2,
    )


def _paint(made: Position) -> bytes:
    side = SIZE * FIELD_PX
    image, draw = canvas(LEFT + side + 24, TOP + side + 48)
    for x in range(SIZE):
        for y in range(SIZE):
            cx, cy = middle((x, y))
            half = FIELD_PX // 2
            colour = (176, 208, 206) if (x + y) % 2 else (206, 228, 224)
            draw.rectangle((cx - half, cy - half, cx + half, cy + half), fill=colour)
    for n in range(SIZE):
        write(draw, (middle((n, 0))[0], TOP + side + 22), "abcdefgh"[n], 20)
        write(draw, (LEFT - 22, middle((0, n))[1]), str(n + 1), 20)
    for field in sorted(made.rocks):
        x, y = middle(field)
        draw.regular_polygon((x, y, 25), 6, fill=ROCK, outline=(84, 80, 76))
    for field, piece in made.pieces.items():
        _piece(draw, *middle(field), piece)
    draw.rectangle((LEFT, TOP, LEFT + side, TOP + side), outline=INK, width=2)
    return png(image)


def _piece(draw: Draw, x: int, y: int, piece: str) -> None:
    disc, letter = (WHITE_PIECE, INK) if piece[0] == "w" else (BLACK_PIECE, WHITE_PIECE)
    draw.ellipse((x - 24, y - 24, x + 24, y + 24), fill=disc, outline=INK, width=2)
    write(draw, (x, y + 1), piece[1], 28, colour=letter)


async def solve(agent: Agent, seed: int, ask: Ask) -> str:
    """Read the rules, look at the board, and go through every move."""
    await agent.tool("read_file", path="rules.txt")
    await agent.tool("view_picture", path="board.png")
    return draw(seed, ask).truth

"""Whoever reads text alone can play: each game here is solved from what its server says of it."""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from peers import Peer, held, stdio_peer

pytestmark = pytest.mark.anyio

GAMES = ("FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "Blackjack-v1", "CartPole-v1")
Square = tuple[int, int]
Player = Callable[[str], str]
"""Reads what a step said, and names the next action."""


@pytest.fixture(scope="module")
async def peer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Peer]:
    """A server of the games, without a screen."""
    sources = [f"gym:{name}?screen=0" for name in GAMES]
    async with stdio_peer(tmp_path_factory.mktemp("games"), sources) as found:
        yield found


async def play(
    peer: Peer, game: str, learn: Callable[[str], Player], *, seed: int, steps: int = 200
) -> float:
    """Play an episode to its end, and return the grade.

    Args:
        peer: The server.
        game: Which game.
        learn: Makes a player of what is told at the start.
        seed: Of the episode.
        steps: How many it may have.
    """
    begun = await peer.ok(
        "start_task",
        template="highest_return",
        environment=game,
        arguments={"steps": steps},
        seed=seed,
    )
    task, choose = held(begun), learn(begun.text)
    meant = dict(re.findall(r"(\d) ([a-z ]+)[;.]", task.prompt))
    numbers = {name: int(number) for number, name in meant.items()}
    seen = await peer.ok("step", session=task.session, actions=[])
    for _ in range(steps):
        if "The episode ended" in seen.text:
            break
        assert seen.image is None
        args = {"action": numbers[choose(seen.text)]}
        action = {"type": "custom", "action": "step", "args": args}
        seen = await peer.ok("step", session=task.session, actions=[action])
    reply = await peer.ok("response", session=task.session, answer="done")
    return reply.structured["reward"]


def rows_after(told: str, heading: str) -> list[str]:
    """The lines of a map, which follow its heading."""
    lines = told[told.index(heading) :].splitlines()[1:]
    width = len(lines[0])
    return [
        line for i, line in enumerate(lines) if all(len(each) == width for each in lines[: i + 1])
    ]


def where(text: str) -> Square:
    """The square that a text tells."""
    found = re.search(r"row (\d+), column (\d+)", text)
    assert found
    return int(found[1]), int(found[2])


MOVES: dict[str, Square] = {
    "left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0),
    "west": (0, -1), "south": (1, 0), "east": (0, 1), "north": (-1, 0),
}  # fmt: skip


def first_move(
    start: Square, goal: Square, ways: Callable[[Square], Iterator[tuple[str, Square]]]
) -> str:
    """The first move of a shortest way."""
    came: dict[Square, str] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for move, there in ways(here):
            if there not in came and there != start:
                came[there] = came.get(here, move)
                waiting.append(there)
    return came[goal]


def on_ice(told: str) -> Player:
    """A player who knows how slippery it is: the best move in each square, by value iteration."""
    rows = rows_after(told, "The lake (S start")
    (chance,) = re.findall(r"with a chance of ([\d.]+), and to either side", told)
    straight = float(chance)
    turns = ["left", "down", "right", "up"]
    size = len(rows)
    value = {(r, c): 0.0 for r in range(size) for c in range(size)}

    def after(square: Square, move: str) -> float:
        if rows[square[0]][square[1]] in "HG":
            return float(rows[square[0]][square[1]] == "G")
        at, total = turns.index(move), 0.0
        for turn, share in ((-1, (1 - straight) / 2), (0, straight), (1, (1 - straight) / 2)):
            down, right = MOVES[turns[(at + turn) % 4]]
            there = (
                min(max(square[0] + down, 0), size - 1),
                min(max(square[1] + right, 0), size - 1),
            )
            total += share * value[there]
        return total

    for _ in range(500):
        value = {square: max(after(square, move) for move in turns) for square in value}
    return lambda text: max(turns, key=lambda move: after(where(text), move))


def by_cliff(told: str) -> Player:
    """A player who goes the shortest way around."""
    rows = rows_after(told, "The map (S start")
    goal = next((r, c) for r, row in enumerate(rows) for c, x in enumerate(row) if x == "G")

    def ways(square: Square) -> Iterator[tuple[str, Square]]:
        for move in ("left", "down", "right", "up"):
            r, c = square[0] + MOVES[move][0], square[1] + MOVES[move][1]
            if 0 <= r < len(rows) and 0 <= c < len(rows[0]) and rows[r][c] != "C":
                yield move, (r, c)

    return lambda text: first_move(where(text), goal, ways)


def by_taxi(told: str) -> Player:
    """A driver who reads the walls on the map."""
    rows = rows_after(told, "The map (R red")[1:-1]
    stops = {name: (int(r), int(c)) for name, r, c in re.findall(STOP, told)}

    def ways(square: Square) -> Iterator[tuple[str, Square]]:
        for move in ("west", "south", "east", "north"):
            r, c = square[0] + MOVES[move][0], square[1] + MOVES[move][1]
            between = rows[square[0]][2 * max(c, square[1])] if r == square[0] else ":"
            if 0 <= r < len(rows) and 0 <= c < len(rows) and between == ":":
                yield move, (r, c)

    def choose(text: str) -> str:
        waits = re.search(r"The passenger waits at (\w+)", text)
        (goal,) = re.findall(r"The destination is (\w+)", text)
        to = stops[waits[1] if waits else goal]
        if where(text) == to:
            return "pick up" if waits else "drop off"
        return first_move(where(text), to, ways)

    return choose


STOP = r"(\w+) is row (\d+), column (\d+)"


def at_cards(told: str) -> Player:
    """A player who draws like a dealer, and once more where an ace saves it."""
    assert "Above 21 you lose at once." in told

    def choose(text: str) -> str:
        (total,) = re.findall(r"Your cards add up to (\d+)", text)
        enough = 18 if "with an ace as 11" in text else 17
        return "stick" if int(total) >= enough else "hit"

    return choose


def under_pole(told: str) -> Player:
    """A player who pushes where the pole falls to."""
    assert "pole angle [rad], positive to the right" in told  # once: steps tell the numbers

    def choose(text: str) -> str:
        (angle,) = re.findall(r"pole angle: (\S+)", text)
        (turning,) = re.findall(r"pole angular velocity: (\S+)", text)
        return "push right" if float(angle) + 0.3 * float(turning) > 0 else "push left"

    return choose


@pytest.mark.long
async def test_a_slippery_lake_is_crossed(peer: Peer) -> None:
    """The best that can be done there gets to the goal three times of four; chance, once of 60."""
    grades = [await play(peer, "FrozenLake-v1", on_ice, seed=seed, steps=100) for seed in range(6)]
    assert sum(grades) >= 3


async def test_a_passenger_is_driven_home(peer: Peer) -> None:
    """No step too many: the return is what the shortest way gives."""
    assert await play(peer, "Taxi-v4", by_taxi, seed=3) > 0.97


async def test_the_cliff_is_passed(peer: Peer) -> None:
    """By the shortest way, which has 13 steps."""
    assert await play(peer, "CliffWalking-v1", by_cliff, seed=0) == 1.0


async def test_cards_are_played(peer: Peer) -> None:
    """A player who knows when to stop wins some; one who only draws wins nothing."""
    grades = [await play(peer, "Blackjack-v1", at_cards, seed=seed) for seed in range(12)]
    assert sum(grades) >= 4


async def test_a_pole_is_balanced(peer: Peer) -> None:
    """For as long as the episode may have."""
    assert await play(peer, "CartPole-v1", under_pole, seed=1, steps=120) == pytest.approx(
        120 / 500
    )


async def test_the_rules_are_told_at_the_start_and_again_on_request(peer: Peer) -> None:
    """`start_task` and `task_status` have them, as text and as a field; steps omit them."""
    begun = await peer.ok(
        "start_task", template="highest_return", environment="Taxi-v4", arguments={}, seed=3
    )
    rules = begun.structured["rules"]
    assert "|R: | : :G|" in rules
    assert "drops them at their destination" in rules
    assert rules in begun.text
    session = held(begun).session
    assert "|R: | : :G|" not in (await peer.ok("step", session=session, actions=[])).text
    again = await peer.ok("task_status", session=session)
    assert again.structured["rules"].startswith(rules)
    assert again.structured["rules"] in again.text
    await peer.ok("cancel_task", session=session)

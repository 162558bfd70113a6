"""Observations in words."""

from typing import Any

import anyio
import gymnasium
import numpy as np
import pytest
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Gymnasium
from hud_mcp.plugins.gymnasium.known import known
from hud_mcp.plugins.gymnasium.words import in_words, plain, units_in_words
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio


async def text_of(env_id: str, *actions: Any, **options: Any) -> str:
    """What an agent reads of an environment, after some actions."""
    spec = Gymnasium(env_id, screen=False, **options)
    with anyio.fail_after(PATIENCE_S):
        world = await spec.open(Opening(seed=2, context=spec.context_space.default))
        for action in actions:
            await world.act(CustomAction(action="step", args={"action": action}))
        text = (await world.observe(Look())).text or ""
        await world.close()
    return text


class Plain:
    """An environment that nobody knows."""

    class unwrapped:  # noqa: N801  # Gymnasium's name
        """Without a spec."""

        spec = None


@each_of(
    ("seen", "lines"),
    [
        (np.array([0.5, 2.0, 1e-9]), ["observation: [0.5, 2, 1e-09]"]),
        (np.int64(3), ["observation: 3"]),
        (7, ["observation: 7"]),
        ("go north", ["observation: go north"]),
        ((1, 2.5, np.bool_(True)), ["observation: 1, 2.5, yes"]),
        (
            {"position": np.array([1, 2]), "inside": {"door": 1, "word": "open"}},
            ["position: [1, 2]", "inside.door: 1", "inside.word: open"],
        ),
        (
            np.zeros((96, 96, 3), np.uint8),
            ["observation: a picture of 96 by 96 by 3; look at the screenshot"],
        ),
        (
            np.arange(100.0),
            ["observation: an array of 100, from 0 to 99, on average 49.5"],
        ),
        (np.array([[1, 2], [3, 4]]), ["observation:\n1 2\n3 4"]),
        (np.array([[True, False]]), ["observation:\n1 0"]),
        (np.array([[0.5, 2.0], [3, 4]]), ["observation: [[0.5, 2], [3, 4]]"]),
        (np.zeros((20, 20), int), ["observation:" + f"\n{' '.join('0' * 20)}" * 20]),
        (np.array([np.inf, -np.inf, np.nan]), ["observation: [inf, -inf, nan]"]),
    ],
)
def test_any_observation_has_words(seen: Any, lines: list[str]) -> None:
    """Short things in full, long ones by what they are."""
    assert in_words(seen, Plain()) == lines


def test_numbers_have_names_and_units_where_they_are_given() -> None:
    """Units and remarks are told apart from the numbers, and a flag is yes or no."""
    names = [("height", "m"), ("speed, upwards", ""), ("on the ground", "yes or no")]
    seen = np.array([1.25, -3, 1])
    assert in_words(seen, Plain(), names) == ["height: 1.25", "speed: -3", "on the ground: yes"]
    assert units_in_words(seen, names) == ["Numbers: height [m]; speed, upwards."]
    assert units_in_words(seen[:2], names) == []
    same = [("speed, upwards", "m/s"), ("speed, to the right", "m/s")]
    assert in_words(seen[:2], Plain(), same) == ["speed, upwards: 1.25", "speed, to the right: -3"]


def test_numbers_of_one_group_share_a_line_and_its_unit() -> None:
    """A robot's joints are many, and all of them turn."""
    names = [("angle | knee", "rad"), ("angle | hip", "rad"), ("speed | hip", "rad/s"), ("x", "")]
    assert in_words(np.array([0.5, 1, 2, 3]), Plain(), names) == [
        "angle [rad]: knee=0.5, hip=1",
        "speed [rad/s]: hip=2",
        "x: 3",
    ]
    assert units_in_words(np.zeros(4), names) == []


@each_of(
    "env_id",
    [
        "CartPole-v1",
        "Acrobot-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "Pendulum-v1",
        "LunarLander-v3",
        "LunarLanderContinuous-v3",
        "BipedalWalker-v3",
        "BipedalWalkerHardcore-v3",
    ],
)
async def test_every_number_of_a_known_environment_has_a_name(env_id: str) -> None:
    """As many names as numbers, and each action has a meaning."""
    text = await text_of(env_id)
    assert "observation:" not in text
    env = gymnasium.make(env_id)
    found = known(env)
    assert len(found.numbers) == env.observation_space.shape[0]  # type: ignore[index]
    count = getattr(env.action_space, "n", None) or env.action_space.shape[0]  # type: ignore[index]
    assert len(found.actions) == count
    assert found.about in text
    env.close()


async def test_cartpole_reads_like_this() -> None:
    """The whole text, as an agent gets it."""
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=2)
    position, velocity, angle, turning = (f"{value:.4g}" for value in env.step(1)[0])
    assert await text_of("CartPole-v1", 1) == (
        "Step 1 of 500.\n"
        "A pole stands on a cart. The episode ends when the pole leans more than 12° (0.2095 rad) "
        "or the cart is more than 2.4 m from the middle.\n"
        "Each step is rewarded with 1, the last one included.\n"
        "Numbers: cart position [m]; cart velocity [m/s], positive to the right; "
        "pole angle [rad], positive to the right; pole angular velocity [rad/s].\n"
        f"cart position: {position}\n"
        f"cart velocity: {velocity}\n"
        f"pole angle: {angle}\n"
        f"pole angular velocity: {turning}\n"
        'Send {"type": "custom", "action": "step", "args": {"action": 0}}, or "actions" with a '
        "list; an action is a whole number: 0 push left; 1 push right."
    )


@each_of(
    ("env_id", "said"),
    [
        ("Taxi-v4", "The taxi is in row"),
        ("Taxi-v4", "5 drop off"),
        ("FrozenLake-v1", "You are in row 0, column 0."),
        ("FrozenLake-v1", "row 0 is at the top):\nSFFF\nFHFH\nFFFH\nHFFG"),
        ("CliffWalking-v1", "You are in row 3, column 0."),
        ("Blackjack-v1", "Your cards add up to"),
        ("CarRacing-v3", "steering, -1 is left from -1 to 1; gas from 0 to 1"),
        ("CarRacing-v3", "a picture of 96 by 96 by 3"),
    ],
)
async def test_numbers_that_stand_for_places_are_told_as_places(env_id: str, said: str) -> None:
    """What the documentation decodes is decoded here."""
    assert said in await text_of(env_id)


async def test_a_grid_is_told_from_where_the_agent_stands() -> None:
    """The mission, what is carried, what is ahead, and what is seen where."""
    text = await text_of("MiniGrid-DoorKey-5x5-v0", "right", "forward")
    assert "Mission: use the key to open the door and then get to the goal." in text
    assert "You carry nothing." in text
    assert "Right ahead of you: a yellow key." in text
    assert text.count("a yellow key") == 1, "nothing is told twice"
    assert "an action is a whole number: 0 left; 1 right; 2 forward; 3 pickup;" in text
    assert "You carry a yellow key." in await text_of(
        "MiniGrid-DoorKey-5x5-v0", "right", "forward", "pickup"
    )


def test_a_grid_is_told_in_rows_and_columns_where_it_is_seen_whole() -> None:
    """Objects have colours, doors states."""
    image = np.ones((3, 3, 3), np.uint8)
    image[..., 1:] = 0
    image[0, 0], image[2, 1], image[1, 2] = (10, 0, 1), (4, 4, 2), (8, 1, 0)
    seen = {"image": image, "direction": np.int64(3), "mission": "open the door"}
    assert in_words(seen, Plain()) == [
        "Mission: open the door.",
        "You face up.",
        "red agent: column 0, row 0",
        "goal: column 1, row 2",
        "locked yellow door: column 2, row 1",
    ]


def test_what_is_beside_and_far_is_told_by_steps() -> None:
    """To the left, to the right, and ahead; the nearest first."""
    image = np.ones((3, 3, 3), np.uint8)
    image[0, 2], image[2, 0], image[1, 0] = (5, 0, 0), (6, 2, 0), (2, 5, 0)
    seen = {"image": image, "direction": np.int64(0), "mission": "look"}
    assert in_words(seen, Plain())[2:] == [
        "You carry nothing.",
        "Ahead: 1 free square, then a wall.",
        "You see a red key: 1 to the left.",
        "You see a blue ball: 2 ahead and 1 to the right.",
    ]


def test_infos_become_what_json_holds() -> None:
    """Arrays too; long ones become what they are."""
    info = {1: np.arange(2), "a": (np.float32(0.5), None), "b": np.zeros(1000), "c": {"d": True}}
    assert plain(info) == {
        "1": [0, 1],
        "a": [0.5, None],
        "b": "an array of 1000, from 0 to 0, on average 0",
        "c": {"d": True},
    }

"""Spaces and their values arrive on the other side as they were."""

from typing import Any

import gymnasium
import numpy as np
import orjson
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from tables import each_of

from hud_mcp import Gymnasium
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.gymnasium.spaces import (
    space_from_json,
    space_to_json,
    value_from_json,
    value_to_json,
)

SPACES: list[spaces.Space[Any]] = [
    spaces.Discrete(4, start=-1),
    spaces.Box(-np.inf, np.inf, (2, 3), np.float32),
    spaces.Box(np.array([-1.0, 0.1]), np.array([1.0, np.inf]), dtype=np.float64),
    spaces.Box(0, 255, (20, 20, 3), np.uint8),
    spaces.MultiDiscrete([3, 4], start=[1, 0]),
    spaces.MultiBinary((2, 2)),
    spaces.Text(8, min_length=2, charset="ab c"),
    spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Dict({"c": spaces.Box(0, 1, ())})}),
    spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (1,))]),
]


@each_of("space", SPACES, ids=lambda s: type(s).__name__)
def test_a_space_and_its_values_survive_the_wire(space: spaces.Space[Any]) -> None:
    """Equal spaces, equal values of equal kinds, whatever their numbers."""
    there = space_from_json(orjson.loads(orjson.dumps(space_to_json(space))))
    assert there == space
    space.seed(1)
    for _ in range(5):
        value = space.sample()
        read = value_from_json(orjson.loads(orjson.dumps(value_to_json(value))), there)
        assert read in space
        assert data_equivalence(read, value)


def test_numbers_that_json_does_not_have_survive_too() -> None:
    """An observation may be infinite, or no number at all."""
    space = spaces.Box(-np.inf, np.inf, (3,))
    value = np.array([np.inf, -np.inf, np.nan], np.float32)
    read = value_from_json(orjson.loads(orjson.dumps(value_to_json(value))), space)
    np.testing.assert_array_equal(read, value)


@pytest.mark.long
def test_a_mission_is_a_text() -> None:
    """MiniGrid's missions have a space of their own."""
    described = Gymnasium("MiniGrid-DoorKey-5x5-v0").spaces
    assert described is not None
    space = space_from_json(described["observation"])
    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0")
    seen, _ = env.reset(seed=1)
    read = value_from_json(orjson.loads(orjson.dumps(value_to_json(seen))), space)
    assert read in space
    assert read["mission"] == seen["mission"]


def test_a_space_that_cannot_be_described_is_named() -> None:
    """With those that can."""
    with pytest.raises(InvalidEnvironment, match=r"A Graph space cannot be described .* Discrete"):
        space_to_json(spaces.Graph(spaces.Discrete(2), None))

"""Any environment in contexts, by a declaration of what its features set."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from hud_mcp.carl import CARLAttributesEnv, ContextFeature, ContextSpace
from hud_mcp.errors import InvalidContext


def test_features_set_the_attributes_that_they_are_declared_for() -> None:
    """Each by its own name, with a default and bounds from the declaration or the environment."""
    env = CARLAttributesEnv(
        gymnasium.make("CartPole-v1"),
        attributes={"pull": "gravity", "mass": "masscart"},
        features=[ContextFeature(name="pull", default=9.8, lower=1, upper=20)],
        derived={"total_mass": lambda env: env.masscart + env.masspole},
        contexts={"moon": {"pull": 1.62}, "heavy": {"mass": 5}},
    )
    assert isinstance(env.get_context_space(), ContextSpace)
    assert env.get_default_context() == {"pull": 9.8, "mass": 1.0}
    assert env.get_context_features()["mass"] == ContextFeature(name="mass", default=1.0)
    bare: Any = env.unwrapped
    seen, _ = env.reset(seed=1)
    assert (bare.gravity, bare.masscart, bare.total_mass) == (1.62, 1.0, 1.1)
    assert seen in env.observation_space
    seen, _ = env.reset(seed=1)
    assert (bare.gravity, bare.masscart, bare.total_mass) == (9.8, 5.0, 5.1)
    assert seen["context"]["mass"] == [5]
    with pytest.raises(InvalidContext, match=r"pull: 30 is not within \[1.0, 20.0\]"):
        env.contexts = {0: {"pull": 30}}


def test_an_id_is_enough() -> None:
    """Options go to Gymnasium, and the trajectory changes with the feature."""
    ends: list[np.ndarray] = []
    for wind in (15.0, 5.0):
        env = CARLAttributesEnv(
            "LunarLander-v3",
            attributes={"wind": "wind_power"},
            contexts={0: {"wind": wind}},
            enable_wind=True,
        )
        env.reset(seed=1)
        for _ in range(5):
            seen = env.step(0)[0]
        ends.append(seen["state"])
    assert not np.array_equal(ends[0], ends[1])


class Nested(gymnasium.Env[np.ndarray, int]):
    """An environment with an object inside."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    class Engine:
        """Its part."""

        def __init__(self) -> None:
            """With a power."""
            self.power = 3

    def __init__(self) -> None:
        """Make the part."""
        self.engine = Nested.Engine()
        self.name = [1]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin."""
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}


def test_a_dot_leads_into_an_object() -> None:
    """An integer stays one."""
    bare = Nested()
    env = CARLAttributesEnv(bare, attributes={"power": "engine.power"}, contexts={0: {"power": 7}})
    env.reset(seed=1)
    assert bare.engine.power == 7
    with pytest.raises(InvalidContext, match=r"power: 1.5 is not an integer"):
        env.contexts = {0: {"power": 1.5}}


def test_a_declaration_that_cannot_work_is_refused() -> None:
    """With the attribute that was meant."""
    with pytest.raises(InvalidContext, match=r"has no attribute 'gravty'. Did you mean 'gravity'"):
        CARLAttributesEnv("CartPole-v1", attributes={"g": "gravty"})
    with pytest.raises(InvalidContext, match="which holds a list; a feature is a number"):
        CARLAttributesEnv(Nested(), attributes={"name": "name"})
    with pytest.raises(InvalidContext, match=r"'mas' sets no attribute. Did you mean 'mass'"):
        CARLAttributesEnv(
            "CartPole-v1",
            attributes={"mass": "masscart"},
            features=[ContextFeature(name="mas", default=1.0)],
        )

"""An environment that a later session is given is as one that was just made."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import NormalizeObservation
from tables import each_of

from hud_mcp import Gymnasium
from hud_mcp.plugins.gymnasium.spec import _begins_anew
from hud_mcp.values.action import CustomAction
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio


async def played(spec: Gymnasium, seed: int | None, steps: int = 6) -> tuple[list[Any], Any]:
    """What a session sees, up to its end, and the environment that it had."""
    world: Any = await spec.open(Opening(seed=seed))
    env = world._env  # which one it is, nothing tells
    seen = [np.array(world.episode.seen)]
    for number in range(steps):
        if not world.episode.over:
            await world.act(CustomAction(action="step", args={"action": number % 2}))
            seen.append(np.array(world.episode.seen))
    await world.close()
    return seen, env


@each_of("env_id", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1"])
@each_of("seed", [7, None])
async def test_a_later_session_sees_what_a_first_one_would(env_id: str, seed: int | None) -> None:
    """It has the environment of another seed and another length, and nothing of its chance."""
    spec = Gymnasium(env_id, screen=False)
    _, before = await played(spec, 3, steps=4)
    again, env = await played(spec, seed)
    alone, _ = await played(Gymnasium(env_id, screen=False), seed)
    assert env is before
    assert len(again) == len(alone)
    np.testing.assert_array_equal(np.array(again), np.array(alone))


async def test_what_a_template_has_touched_is_not_given_to_another() -> None:
    """An attribute that was set through `call` ends with its session."""
    spec = Gymnasium("CartPole-v1", screen=False)
    world: Any = await spec.open(Opening(seed=1))
    await world.call(lambda env: setattr(env.unwrapped, "gravity", 1.0))
    await world.close()
    _, env = await played(spec, 1)
    assert env.unwrapped.gravity == 9.8


async def test_a_wrapper_that_remembers_is_not_given_to_another() -> None:
    """The running mean of a session's observations says nothing to the next one."""
    gymnasium.register(
        "Normalized-v0",
        entry_point="gymnasium.envs.classic_control.cartpole:CartPoleEnv",
        additional_wrappers=(NormalizeObservation.wrapper_spec(),),
    )
    try:
        spec = Gymnasium("Normalized-v0", screen=False)
        first, _ = await played(spec, 1)
        second, _ = await played(spec, 1)
    finally:
        del gymnasium.registry["Normalized-v0"]
    np.testing.assert_array_equal(np.array(first), np.array(second))


async def test_two_sessions_at_once_never_have_the_same_environment() -> None:
    """One is kept once, even if its session is closed twice."""
    spec = Gymnasium("CartPole-v1", screen=False)
    first: Any = await spec.open(Opening(seed=1))
    await first.close()
    await first.close()
    one: Any = await spec.open(Opening(seed=1))
    other: Any = await spec.open(Opening(seed=1))
    assert one._env is not other._env  # which one it is, nothing tells
    await one.close()
    await other.close()


async def test_a_map_that_was_drawn_is_not_given_to_another() -> None:
    """FrozenLake draws its map as it is made; a later session's map is another one."""
    spec = Gymnasium("FrozenLake-v1", screen=False, options={"map_name": None})
    _, before = await played(spec, 1)
    _, after = await played(spec, 1)
    assert after is not before


async def test_an_own_wrapper_of_a_known_name_is_not_given_to_another() -> None:
    """A class is known by its module too, as anybody may call a wrapper `TimeLimit`."""
    env: Any = gymnasium.make("CartPole-v1")
    assert _begins_anew(env)
    assert not _begins_anew(type("TimeLimit", (gymnasium.Wrapper,), {})(env))

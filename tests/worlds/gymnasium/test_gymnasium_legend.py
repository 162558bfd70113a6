"""What a first look explains: rewards, maps, chances; and that it is told once."""

from typing import Any

import anyio
import pytest
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Gymnasium, Opening
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


@each_of(
    ("env_id", "options", "said"),
    [
        ("FrozenLake-v1", {}, "The ice is slippery: a step goes where you choose with a chance of"),
        ("FrozenLake-v1", {"is_slippery": False}, "The ice is not slippery"),
        ("FrozenLake-v1", {}, "A hole ends the episode."),
        ("FrozenLake-v1", {"reward_schedule": (5, -1, 0)}, "nothing is known of them"),
        ("Taxi-v4", {}, "|R: | : :G|"),
        ("Taxi-v4", {}, "is rewarded with 20"),
        ("Taxi-v4", {"is_rainy": True}, "The streets are wet"),
        ("CliffWalking-v1", {}, "SCCCCCCCCCCG"),
        ("CliffWalking-v1", {"is_slippery": True}, "The ground is slippery"),
        ("FrozenLake-v1", {"map_name": "8x8"}, "SFFFFFFF"),
        ("Blackjack-v1", {}, "the dealer draws to 17 or more"),
        ("Blackjack-v1", {}, "A win is rewarded with 1, a draw with 0, and a loss costs 1."),
        ("Blackjack-v1", {}, "An ace and a 10 at the start win, unless"),
        ("Blackjack-v1", {"sab": False, "natural": True}, "is rewarded with 1.5"),
        ("CartPole-v1", {}, "Each step is rewarded with 1"),
        ("LunarLander-v3", {"continuous": True}, "A crash costs 100"),
        ("MiniGrid-Empty-5x5-v0", {}, "what the mission says is rewarded with 1"),
        ("Ant-v5", {}, "then outer forces on each body: an array of 78"),
        ("Ant-v5", {}, "motor of ankle_4 from -1 to 1"),
        ("Humanoid-v5", {}, "angle [rad]: abdomen_z="),
        ("CarRacing-v3", {"continuous": False}, "text cannot describe it. Look at the screenshot"),
    ],
)
async def test_a_first_look_explains(env_id: str, options: dict[str, Any], said: str) -> None:
    """What the environment's documentation says, as far as this one was made so."""
    with anyio.fail_after(PATIENCE_S):
        world: Any = await Gymnasium(env_id, options=options).open(Opening(seed=1))
        try:
            assert said in str((await world.observe(Look())).text)
        finally:
            await world.close()


async def test_the_rules_are_told_once() -> None:
    """A look at the same place has them too; after a step they are left out."""
    with anyio.fail_after(PATIENCE_S):
        world: Any = await Gymnasium("Taxi-v4").open(Opening(seed=1))
        try:
            told: list[bool] = []
            for acts in (False, False, True, False):
                if acts:
                    step = CustomAction(type="custom", action="step", args={"action": "north"})
                    await world.act(step)
                text = str((await world.observe(Look())).text)
                told.append("|R: | : :G|" in text and "4 pick up" in text)
                assert "The taxi is in row" in text
            assert told == [True, True, False, False]
        finally:
            await world.close()


async def test_the_rules_told_at_the_start_are_in_no_look() -> None:
    """They come before any look, without what the prompt says, as often as they are asked for."""
    with anyio.fail_after(PATIENCE_S):
        world: Any = await Gymnasium("Taxi-v4", screen=False).open(Opening(seed=1))
        try:
            told = world.explain()
            assert "|R: | : :G|" in told
            assert "4 pick up" in told
            assert "4 pick up" not in world.explain(told)
            for _ in range(2):
                assert "|R: | : :G|" not in str((await world.observe(Look())).text)
            await world.act(CustomAction(type="custom", action="step", args={"action": "north"}))
            assert "|R: | : :G|" not in str((await world.observe(Look())).text)
            assert world.explain() == told
        finally:
            await world.close()


@each_of(
    ("env_id", "said"),
    [
        ("Reacher-v5", "fingertip's x less the target's: "),
        ("Pusher-v5", "goal z: "),
        ("InvertedDoublePendulum-v5", "force of the rail's end on the cart: "),
        ("MiniGrid-Empty-5x5-v0", "a locked door needs the key"),
    ],
)
async def test_what_no_model_names_is_named(env_id: str, said: str) -> None:
    """The numbers that a robot's own code puts together have names, and MiniGrid's actions too."""
    with anyio.fail_after(PATIENCE_S):
        world: Any = await Gymnasium(env_id, screen=False).open(Opening(seed=1))
        try:
            assert said in str((await world.observe(Look())).text)
        finally:
            await world.close()

"""The world with nothing in it."""

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.environment.spec import NoWorld
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.action import ClickAction, Point, WaitAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio


async def test_waiting_takes_as_long_as_was_asked() -> None:
    """`wait` returns after its time, in milliseconds."""
    world = await NoWorld().open(Opening())
    began = anyio.current_time()
    with anyio.fail_after(PATIENCE_S):
        await world.act(WaitAction(time=50))
    assert 0.04 < anyio.current_time() - began < 1


async def test_any_other_action_is_refused_with_advice() -> None:
    """A click has no place here, and the error says what to do instead."""
    world = await NoWorld().open(Opening())
    with pytest.raises(ActionFailed, match="tools, or answer"):
        await world.act(ClickAction(point=Point(x=1, y=1)))


async def test_there_is_nothing_to_see() -> None:
    """An observation is empty, even where a picture was asked for."""
    world = await NoWorld().open(Opening())
    seen = await world.observe(Look(image="png"))
    assert seen.text is None
    assert seen.image is None


async def test_a_closed_world_says_so() -> None:
    """After `close`, which may be called twice, other calls fail clearly."""
    world = await NoWorld().open(Opening())
    await world.close()
    await world.close()
    with pytest.raises(EnvironmentFailed, match="closed"):
        await world.observe(Look())

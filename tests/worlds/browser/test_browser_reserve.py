"""Contexts in reserve: how many there are, for whom, and for how long."""

from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S, until

from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.browser import reserve as reserve_module

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


@pytest.mark.long
async def test_as_many_are_ready_as_sessions_took(tmp_path: Path) -> None:
    """Three sessions at once leave three contexts for the next three, and no more."""
    shared, spec = Shared(), Browser(tmp_path, start=None)
    with anyio.fail_after(PATIENCE_S):
        worlds = [await spec.open(Opening(shared=shared)) for _ in range(3)]
        reserve = worlds[0]._calls.reserve
        await reserve.until_filled()
        ready = reserve.ready
        assert len(ready) == 3
        more = [await spec.open(Opening(shared=shared)) for _ in range(3)]
        assert {world.page for world in more} == {slot.page for slot in ready}
        for world in (*worlds, *more):
            await world.close()
        await shared.close()


@pytest.mark.long
async def test_the_reserve_is_bounded_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no more than its bound, and one alone after a time without sessions."""
    monkeypatch.setattr(reserve_module, "MOST_READY", 2)
    shared, spec = Shared(), Browser(tmp_path, start=None)
    with anyio.fail_after(PATIENCE_S):
        worlds = [await spec.open(Opening(shared=shared)) for _ in range(4)]
        reserve = worlds[0]._calls.reserve
        await reserve.until_filled()
        assert len(reserve.ready) == 2
        monkeypatch.setattr(reserve_module, "GIVE_BACK_S", 0.05)  # over while it is filled again
        worlds.append(await spec.open(Opening(shared=shared)))
        await reserve.until_filled()
        await until(lambda: [slot.usable for slot in reserve.ready] == [True])
        for world in worlds:
            await world.close()
        await shared.close()


@pytest.mark.long
async def test_one_kind_alone_that_nobody_repeats_stays_ready(tmp_path: Path) -> None:
    """Sessions that each differ from the last leave one context for the latest kind."""
    shared = Shared()
    with anyio.fail_after(PATIENCE_S):
        worlds = [
            await Browser(tmp_path, start=None, viewport=(800 + n, 600)).open(
                Opening(shared=shared)
            )
            for n in range(3)
        ]
        reserve = worlds[0]._calls.reserve
        await reserve.until_filled()
        latest = await Browser(tmp_path, start=None, viewport=(802, 600)).open(
            Opening(shared=shared)
        )
        assert latest.options.width == 802
        for world in (*worlds, latest):
            await world.close()
        await shared.close()

"""The text of each page that a solution walks through has its words, and a ref for each element."""

import re
from collections.abc import AsyncIterator

import anyio
import pytest
from plays import play_oracle
from waiting import PATIENCE_S
from whole_text import faults_of

from hud_mcp import Task, Taskset
from hud_mcp.loading.sets import find_taskset
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Shared
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

SAMPLE = "shop-buy-lamp"
"""The row that `make test` plays; `make long` plays one of each template."""

ROWS = {
    row.template: row
    for name in ("web", "quickstart")
    for row in reversed(Taskset.load(find_taskset(name)))
    if row.env in ("browser", "web") and row.template
}


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all rows."""
    services = Shared()
    yield services
    with anyio.CancelScope(shield=True):
        await services.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.id, marks=[] if row.id == SAMPLE else pytest.mark.long)
        for row in ROWS.values()
    ],
)
async def test_each_page_of_a_solution_is_told_whole(
    row: Task, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the site shows at that moment: lists, forms, menus, dialogs, drafts."""
    observe = BrowserWorld.observe
    seen: set[str] = set()
    faults: list[str] = []

    async def observe_and_compare(world: BrowserWorld, look: Look) -> Observation:
        observation = await observe(world, look)
        text = re.sub(r"\b(?:f\d+)?e\d+\b", "", observation.text or "")
        if text and text not in seen:
            seen.add(text)
            with monkeypatch.context() as patch:
                patch.setattr(BrowserWorld, "observe", observe)
                faults.extend(f"{world.url}: {fault}" for fault in await faults_of(world))
        return observation

    monkeypatch.setattr(BrowserWorld, "observe", observe_and_compare)
    with anyio.fail_after(10 * PATIENCE_S):
        play = await play_oracle(row, shared)
    assert play.grade is not None
    assert play.grade.reward == 1
    assert seen
    assert faults == []

"""Browsers that a test makes as it likes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from snapshots import Make

from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld


@pytest.fixture
async def make(shared: Shared, tmp_path: Path) -> AsyncIterator[Make]:
    """Open a world on the pages in a folder, which all worlds of a test share."""
    worlds: list[BrowserWorld] = []

    async def open_world(
        pages: str | dict[str, str] | None = None, *, services: Shared | None = None, **options: Any
    ) -> BrowserWorld:
        for name, html in (
            {"index.html": pages} if isinstance(pages, str) else pages or {}
        ).items():
            (tmp_path / name).write_text(html)
        opening = Opening(folder=tmp_path, shared=services or shared, seed=3)
        world = await Browser(".", **options).open(opening)
        worlds.append(world)
        return world

    yield open_world
    for world in worlds:
        await world.close()

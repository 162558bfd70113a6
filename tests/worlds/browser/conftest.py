"""One Chromium for all tests of the browser, and worlds that close themselves."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld

Browse = Callable[..., Awaitable[BrowserWorld]]


@pytest.fixture(scope="session")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """The process's shared services: the browser that isolated sessions share."""
    services = Shared()
    yield services
    await services.close()


@pytest.fixture
async def browse(shared: Shared, tmp_path: Path) -> AsyncIterator[Browse]:
    """Open a world on a site of the given pages; it is closed after the test."""
    worlds: list[BrowserWorld] = []

    async def open_world(
        pages: str | Mapping[str, str] = "<h1>Empty</h1>",
        *,
        context: Mapping[str, Any] | None = None,
        seed: int | None = None,
        log: Callable[[str], None] = lambda _line: None,
        services: Shared | None = None,
        **options: Any,
    ) -> BrowserWorld:
        folder = tmp_path / f"site{len(worlds)}"
        folder.mkdir()
        for name, html in ({"index.html": pages} if isinstance(pages, str) else pages).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(html)
        opening = Opening(
            folder=tmp_path,
            shared=services or shared,
            context=context or {},
            seed=seed,
            log=log,
        )
        world = await Browser(folder.name, **options).open(opening)
        worlds.append(world)
        return world

    yield open_world
    for world in worlds:
        await world.close()

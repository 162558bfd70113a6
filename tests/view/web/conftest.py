"""What the tests of the pages share: a record, and one Chromium."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Browser, async_playwright, expect
from recorded import CHROMIUM, PATIENCE_S, Run

from hud_mcp.store import Store

# Its own 5 s are too few for a machine that is busy.
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """An empty job."""
    store = Store(tmp_path / "store.sqlite3")
    yield Run(store, tmp_path)
    with anyio.fail_after(PATIENCE_S):
        await store.close()


@pytest.fixture(scope="session")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    """One Chromium for all tests of the pages."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    async with async_playwright() as driver:
        arguments = ["--no-sandbox"] if root else []
        launched = await driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield launched
        await launched.close()

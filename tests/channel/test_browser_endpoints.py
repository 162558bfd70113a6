"""A session's browser over `cdp/1.3`, as the channel publishes it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Error, Page, async_playwright
from ssh_peer import published
from waiting import PATIENCE_S, until
from wire import Served, process, served

from hud_mcp.channel.client import ChannelClient
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.wire.streams import ChannelRefused
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

ENV = """
from hud_mcp import Browser, BrowserWorld, Environment

env = Environment("pages", version="1.0.0", world=Browser(site="site"))


@env.template()
async def note(browser: BrowserWorld, word: str = "tea"):
    await browser.goto("/")
    await browser.page.evaluate("word => document.title = word", word)
    yield f"Write {word} into the note."
    yield float(await browser.page.input_value("#note") == word)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An environment with a page to write on."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>-</title><textarea id=note></textarea>")
    (tmp_path / "env.py").write_text(ENV)
    return tmp_path / "env.py"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What the servers of a test share."""
    return tmp_path / "store.sqlite3"


@pytest.fixture
async def here(source: Path, store: Path) -> AsyncIterator[Served]:
    """It, served in this process."""
    async with served(load_environments([str(source)])[0], store) as running:
        yield running


def channel(port: int, **options: Any) -> Any:
    """A client of a channel."""
    return ChannelClient.connect(f"tcp://127.0.0.1:{port}", **options)


@asynccontextmanager
async def page_of(client: ChannelClient) -> AsyncIterator[Page]:
    """The one page that a session's address shows, as Playwright sees it through the channel."""
    binding = published(client.bindings, "cdp/1.3")
    async with client.forward(binding["name"]) as (host, port), async_playwright() as playwright:
        url = urlsplit(binding["url"])._replace(netloc=f"{host}:{port}").geturl()
        browser = await playwright.chromium.connect_over_cdp(url, timeout=PATIENCE_S * 1000)
        ((page,),) = [context.pages for context in browser.contexts]
        yield page
        await browser.close()


@pytest.mark.long
async def test_a_grader_sees_what_was_done_over_devtools(here: Served, store: Path) -> None:
    """Each session's address shows its own page alone; the record says that it was used."""
    async with channel(here.port) as one, channel(here.port) as two:
        assert published(one.bindings, "cdp/1.3")["name"] == "browser"
        with pytest.raises(Error, match=r"start one with tasks\.start"):
            async with page_of(one):
                pass
        await one.start("note", {"word": "one"})
        await two.start("note", {"word": "two"})
        for word, client in (("one", one), ("two", two)):
            async with page_of(client) as page:
                assert await page.title() == word
                await page.fill("#note", word)
        assert (await two.grade(""))["score"] == (await one.grade(""))["score"] == 1.0
        with pytest.raises(Error, match="was graded at"):
            async with page_of(one):
                pass
    reader = Store(store)
    for row in await reader.list_trajectories():
        kept = await reader.load_trajectory(row.id)
        assert [step.kind for step in kept.steps] == ["direct", "response"]
        assert kept.steps[0].actions[0]["tool"] == "cdp/1.3"
        assert "used its world directly over cdp/1.3, once" in (kept.logs or "")
    await reader.close()


@pytest.mark.stress
async def test_a_browser_comes_back_as_its_client_left_it(source: Path, store: Path) -> None:
    """From the snapshot of its last disconnection, after its server was killed."""
    with server(store, source) as first:
        async with channel(first.port) as client:
            await client.start("note", {"word": "on"})
            session = client.session_id
            async with page_of(client) as page:
                await page.fill("#note", "on")
            await until(lambda: steps(store))
            first.kill()
    with server(store, source) as second:
        async with channel(second.port, session_id=session) as client:
            async with page_of(client) as page:
                assert await page.input_value("#note") == "on"
            assert (await client.grade(""))["score"] == 1.0


@pytest.mark.stress
async def test_a_browser_that_was_in_use_is_not_graded_without_it(
    source: Path, store: Path
) -> None:
    """Its server was killed under its client: the task is lost, and is no 0."""
    with server(store, source) as first:
        async with channel(first.port) as client:
            await client.start("note", {"word": "on"})
            session = client.session_id
            with suppress(Error):  # its client is cut off
                async with page_of(client) as page:
                    await page.fill("#note", "on")
                    first.kill()
    with server(store, source) as second:
        async with channel(second.port, session_id=session) as client:
            with pytest.raises(ChannelRefused, match="used its world directly"):
                await client.grade("")


def server(store: Path, source: Path) -> Any:
    """A server in a process of its own."""
    return process(store, source=source)


def steps(store: Path) -> int:
    """How many steps are recorded."""
    connection = sqlite3.connect(store)
    try:
        return connection.execute("SELECT count(*) FROM steps").fetchone()[0]
    finally:
        connection.close()

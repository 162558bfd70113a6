"""Snapshots of what a site stores, in the browser and in its own state."""

# ruff: noqa: E501  # pages are easier to read unbroken

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from snapshots import Make, act, go, read, restore, shop, snapshot
from waiting import PATIENCE_S

from hud_mcp.values.action import (
    ClickAction,
    CustomAction,
    TypeAction,
)
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

STORED = """<p id=o></p><script>
  const seen = [document.cookie, localStorage.l, sessionStorage.s, localStorage.visits];
  localStorage.visits = 1 + +(localStorage.visits || 0);
  const asked = indexedDB.open('notes', 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore('n');
  const opened = new Promise(done => asked.addEventListener('success', done));
  window.put = value => new Promise(async done => {
    await opened; const t = asked.result.transaction('n', 'readwrite'); t.objectStore('n').put(value, 'k'); t.oncomplete = () => done(); });
  asked.onsuccess = () => { asked.result.transaction('n').objectStore('n').get('k').onsuccess =
    e => { o.textContent = JSON.stringify([...seen, e.target.result && e.target.result.deep[0]]); } };
</script>"""


async def test_cookies_and_every_storage_are_there_when_pages_start(make: Make) -> None:
    """Scripts find them as the page loads, and what loading changed is set right again."""
    world = await make(STORED)
    context = world.page.context
    await context.add_cookies(
        [{"name": "h", "value": "1", "url": world.site_url, "httpOnly": True, "expires": 4e9}]
    )
    await world.page.evaluate(
        "async () => { document.cookie = 'c=2'; localStorage.l = 'ä\\ud800'; sessionStorage.s = 'S';"
        " await put({ deep: [7] }); }"
    )
    other = await restore(await make(), await snapshot(world))
    await other.page.wait_for_function("o.textContent", timeout=PATIENCE_S * 1000)
    seen = json.loads(await other.text())
    assert seen == ["c=2", "ä\ud800", "S", "1", 7]
    assert await other.page.evaluate("localStorage.visits") == "1"
    cookies = await other.page.context.cookies()
    assert [c for c in cookies if c["name"] == "h"] == [
        c for c in await context.cookies() if c["name"] == "h"
    ]


@pytest.mark.long
async def test_what_setup_stored_gives_way_to_what_was_stored(make: Make) -> None:
    """What the session deleted after its setup does not come back."""
    page = "<script>localStorage.a = sessionStorage.b = 1; document.cookie = 'c=1'</script>"
    world = await make({"index.html": page, "two.html": "<h1>Two</h1>"})
    await act(world, go("/two.html"))
    await world.page.evaluate(
        "() => { localStorage.clear(); sessionStorage.clear(); document.cookie = 'c=; max-age=0'; }"
    )
    other = await restore(await make(), await snapshot(world))
    held = await other.page.evaluate(
        "[localStorage.length, sessionStorage.length, document.cookie]"
    )
    assert held == [0, 0, ""]


@pytest.fixture
async def elsewhere(shared: Shared, tmp_path: Path) -> AsyncIterator[BrowserWorld]:
    """Another site, on a port of its own, that can go away."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<h1>Elsewhere</h1><input id=q><p id=o></p><script>o.textContent = localStorage.v || 'nothing'</script>"
    )
    world = await Browser(folder, start=None).open(Opening(shared=shared))
    yield world
    await world.close()


@pytest.mark.long
async def test_a_page_that_does_not_load_any_more_shows_its_error(
    make: Make, elsewhere: BrowserWorld, tmp_path: Path
) -> None:
    """A server that is gone and a file that is gone: the other tabs come back, notes say which."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make(
        {"index.html": f"<a href={address}/ target=_blank>a</a><a href=/gone.html target=_blank>b</a><input id=i>",
         "gone.html": "<h1>Here</h1>"}, **allow)  # fmt: skip
    first = CustomAction(action="switch_tab", args={"index": 1})
    await act(world, ClickAction(selector="a >> nth=0"), first, ClickAction(selector="a >> nth=1"))
    await act(world, first, TypeAction(selector="#i", text="typed"))
    before = await read(world)
    assert f"2 {address}/ | 3 http://site.localhost/gone.html" in before
    data = await snapshot(world)
    await elsewhere.close()
    other = await make(**allow)
    await anyio.Path(tmp_path / "gone.html").unlink()
    text = await read(await restore(other, data))
    assert f"The page {address}/ did not open again: HTTP status 502" in text
    assert "gone.html did not open again: HTTP status 404" in text
    assert "typed" in text
    assert text.count("Note:") == 2
    await act(other, CustomAction(action="switch_tab", args={"index": 3}))
    assert "There is no /gone.html" in await read(other)


@pytest.mark.long
async def test_storage_of_sites_that_were_left_comes_back(
    make: Make, elsewhere: BrowserWorld
) -> None:
    """Written and left in one action, in a closed popup, and in a frame of another site."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make("<h1>Home</h1>", **allow)
    await world.page.evaluate("localStorage.home = sessionStorage.home = 'sweet'")
    await snapshot(world)
    await act(world, go(address))
    await world.page.evaluate("localStorage.v = 'there'")
    await world.goto("/")
    await world.page.evaluate("localStorage.later = 1")
    await act(world, go(address))
    data = await snapshot(world)
    assert await snapshot(world) == data
    other = await restore(await make(**allow), data)
    assert "there" in await other.text()
    await act(other, CustomAction(action="back"))
    held = await other.page.evaluate("[localStorage.home, localStorage.later, sessionStorage.home]")
    assert held == ["sweet", "1", "sweet"]


@pytest.mark.long
async def test_a_frame_of_another_site_keeps_its_own_storage(
    make: Make, elsewhere: BrowserWorld
) -> None:
    """It is apart from what that site stores in a page of its own, and its script finds it."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make(f"<h1>Home</h1><iframe src={address}/></iframe>", **allow)
    frame = world.page.frames[1]
    await frame.evaluate("localStorage.v = 'apart'")
    await frame.locator("#q").fill("typed")
    other = await restore(await make(**allow), await snapshot(world))
    frame = other.page.frames[1]
    assert await frame.inner_text("#o") == "apart"
    assert await frame.locator("#q").input_value() == "typed"


COUNTED = "<h1>Shop</h1><p id=o></p><script>fetch('/api/visit').then(r => r.json()).then(j => o.textContent = j.visits)</script>"


@pytest.mark.long
async def test_the_sites_state_comes_back_in_place(make: Make) -> None:
    """What a template holds of it stays part of it, and loading the page again counts as nothing."""
    spec = {"backend": shop, "state": {"cart": {"items": []}, "old": 1}}
    world = await make(COUNTED, **spec)
    world.state["cart"]["items"].append({"id": "lamp", "price": 2.5})
    del world.state["old"]
    other = await make(**spec)
    page = other.page
    state, cart, items = other.state, other.state["cart"], other.state["cart"]["items"]
    await restore(other, await snapshot(world))
    assert (
        other.state
        == world.state
        == {"cart": {"items": [{"id": "lamp", "price": 2.5}]}, "visits": 1}
    )
    assert (other.state is state, state["cart"] is cart, cart["items"] is items) == (
        True,
        True,
        True,
    )
    assert other.page is page
    await act(other, CustomAction(action="reload"))
    assert state["visits"] == 2

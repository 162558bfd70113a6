"""What a grader may believe in a browser: a page of its own, and a site whose GETs only read."""

# ruff: noqa: E501  # pages are easier to read unbroken

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed, InvalidEnvironment
from hud_mcp.values.action import ClickAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest, SiteResponse

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "graders.md").read_text()
Browse = Callable[..., Awaitable[BrowserWorld]]


async def backend(request: SiteRequest, state: dict[str, Any]) -> SiteResponse | dict[str, Any]:
    """Orders that are posted; a page of them, one for who is logged in, and one that counts."""
    if request.method == "POST":
        state["orders"] += 1
    if request.path == "/api/counting":
        state["seen"] = state.get("seen", 0) + 1
    if request.path == "/api/mine":
        return SiteResponse(text=f"<h1>{request.headers.get('cookie', 'nobody')}</h1>")
    return SiteResponse(text=f"<h1>{state['orders']} orders</h1>")


SITE = {
    "index.html": "<h1>Shop</h1><button onclick='fetch(`/api/orders`, {method: `POST`})'>Buy</button>"
}


async def test_a_grader_has_a_page_where_the_agent_has_not_been(browse: Browse) -> None:
    """What scripts of the session forged, stored and registered is not there; what it did is."""
    world = await browse(
        SITE, backend=backend, state={"orders": 0}, context={"viewport_width": 700}
    )
    await world.observe(Look())
    await world.act(ClickAction(selector="button"))
    await world.page.evaluate(
        """() => { document.body.innerHTML = '<h1>99 orders</h1>'; localStorage.x = 1;
        document.cookie = 'who=ann'; Element.prototype.__defineGetter__('innerText', () => 'forged') }"""
    )
    with anyio.fail_after(PATIENCE_S):
        async with world.verifier("/api/orders") as page:
            assert await page.inner_text("h1") == "1 orders"
            assert await page.evaluate("() => [localStorage.length, innerWidth]") == [0, 700]
        assert page.is_closed()
        async with world.verifier("/api/mine") as page:
            assert await page.inner_text("h1") == "nobody"
        async with world.verifier("/api/mine", with_cookies=True) as page:
            assert "who=ann" in await page.inner_text("h1")
    assert "99 orders" in await world.text(), "the agent's page is as it left it"
    assert len(world.page.context.pages) == 1


@pytest.mark.long
async def test_a_page_of_a_graders_own_keeps_to_the_sessions_hosts(browse: Browse) -> None:
    """An address off the list and one that is an error are refused, and nothing stays open."""
    world = await browse(SITE, backend=backend, state={"orders": 0})
    browser = world.page.context.browser
    assert browser is not None
    before = set(browser.contexts)
    for address in ("http://example.com/", "/gone.html"):
        with anyio.fail_after(PATIENCE_S), pytest.raises(ActionFailed):
            async with world.verifier(address):
                pytest.fail("it was opened")
    async with world.verifier("/") as page:
        said = await page.evaluate(
            "() => fetch('http://example.com/').then(r => r.status, () => 0)"
        )
        assert said in (0, 403)
    assert not {
        c for c in set(browser.contexts) - before if c.pages and c.pages[0].url.startswith("http")
    }


@pytest.mark.long
async def test_a_get_that_changes_the_state_is_reported_and_fails_a_graders_look(
    browse: Browse,
) -> None:
    """The log names it once; POST may change what it likes."""
    lines: list[str] = []
    world = await browse(SITE, backend=backend, state={"orders": 0}, log=lines.append)
    await world.act(ClickAction(selector="button"))
    assert world.changed_by_get == ()
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(InvalidEnvironment, match="GET /api/counting changed"),
    ):
        async with world.verifier("/api/counting") as page:
            assert "orders" in await page.inner_text("h1")
    await world.goto("/api/counting")
    assert world.changed_by_get == ("GET /api/counting",)
    assert (
        len([line for line in lines if "GET /api/counting changed the site's state" in line]) == 1
    )


@pytest.mark.long
async def test_a_get_that_changes_the_state_is_told_of_who_asked(browse: Browse) -> None:
    """An agent that asked before hides none of a grader's, and one that asks meanwhile adds none."""

    async def careless(request: SiteRequest, state: dict[str, Any]) -> SiteResponse:
        if request.path.startswith("/api/counting"):
            state["seen"] = state.get("seen", 0) + 1
        if request.path == "/api/counting/badly":
            raise ValueError
        return SiteResponse(text=f"<h1>{state.get('seen', 0)}</h1>")

    world = await browse(SITE, backend=careless, state={})
    await world.goto("/api/counting")
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(InvalidEnvironment, match="GET /api/counting changed"),
    ):
        async with world.verifier("/api/counting"):
            pass
    await world.goto("/")
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(InvalidEnvironment, match="/api/counting/badly"),
    ):
        async with world.verifier("/api/counting/badly", allow_status={500}):
            pass
    await world.page.evaluate("""() => {
        let n = 0; const ask = () => fetch(`/api/counting/${n++}`).finally(() => setTimeout(ask, 5));
        ask(); return fetch('/api/counting/first') }""")
    with anyio.fail_after(PATIENCE_S):
        async with world.verifier("/api/orders") as page:
            seen = int(await page.inner_text("h1"))
            while int(await page.inner_text("h1")) == seen:
                await page.reload()
    assert "GET /api/counting/1" in world.changed_by_get


async def test_nothing_that_an_agents_page_leaves_reaches_a_graders(browse: Browse) -> None:
    """A service worker that answers for the site, a shared worker, a channel, a window's name."""
    uploads: dict[str, str] = {}

    async def wiki(request: SiteRequest, state: dict[str, Any]) -> SiteResponse:
        if request.method == "POST":
            uploads[request.path] = request.body.decode()
        text = uploads.get(request.path, "<h1>honest</h1>")
        kind = "text/javascript" if request.path.endswith(".js") else "text/html"
        headers = {"content-type": kind, "service-worker-allowed": "/"}
        return SiteResponse(text=text, headers=headers)

    world = await browse(SITE, backend=wiki, state={})
    await world.page.evaluate(
        """async () => {
        const put = (path, text) => fetch(path, { method: 'POST', body: text });
        await put('/api/sw.js', `const forged = () => new Response('<h1>forged</h1>',
            { headers: { 'content-type': 'text/html' } });
            oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim());
            onfetch = e => { if (e.request.mode === 'navigate') e.respondWith(forged()) };`);
        await put('/api/shared.js', `onconnect = e => e.ports[0].postMessage('forged')`);
        await navigator.serviceWorker.register('/api/sw.js', { scope: '/' });
        await navigator.serviceWorker.ready;
        new SharedWorker('/api/shared.js', 'x'); name = 'forged';
        const channel = new BroadcastChannel('x');
        setInterval(() => channel.postMessage('forged'), 5);
        const cache = await caches.open('x'); await cache.put('/', new Response('forged')); }"""
    )
    with anyio.fail_after(PATIENCE_S):
        await world.goto("/api/page")
        assert await world.text() == "forged", "it works where the agent is"
        for cookies in (False, True):
            async with world.verifier("/api/page", with_cookies=cookies) as page:
                assert await page.inner_text("h1") == "honest"
                told = await page.evaluate(
                    """async () => {
                    const heard = await new Promise(done => { setTimeout(() => done('nothing'), 300);
                        new BroadcastChannel('x').onmessage = e => done(e.data) });
                    const workers = await navigator.serviceWorker.getRegistrations();
                    return [heard, name, workers.length, (await caches.keys()).length] }"""
                )
                assert told == ["nothing", "", 0, 0]


@pytest.mark.long
async def test_the_accessibility_tree_is_read_past_the_pages_scripts(browse: Browse) -> None:
    """Roles, names and values, of frames too; a script that overrides the DOM changes nothing."""
    world = await browse(
        {
            "index.html": "<h1>Orders</h1><p>3 open</p><img alt=Logo src=x><label>Name <input value=Ann></label><iframe src=/inner.html></iframe>",
            "inner.html": "<button>Inside</button>",
        }
    )
    await world.page.evaluate(
        "() => { for (const n of ['innerText', 'textContent']) Object.defineProperty(Node.prototype, n, { get: () => 'forged' }); document.querySelector = () => null }"
    )
    text = await world.accessible_text()
    for told in ("heading Orders", "3 open", "image Logo", "textbox Name: Ann", "button Inside"):
        assert told in text, text
    assert "forged" not in text


@pytest.mark.long
async def test_the_pages_program_grades_the_order_and_not_the_page(shared: Shared) -> None:
    """docs/graders.md: an order gets 1, and a page that only says so 0."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (block,) = (each for each in blocks if "browser.verifier" in each)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "docs/graders.md", "exec"), names)
    for script, reward in (
        ("fetch('/api/till', {method: 'POST'}).then(r => r.text())", 1.0),
        ("document.getElementById('n').textContent = '1 orders'", 0.0),
    ):
        world = await names["env"].world.open(Opening(shared=shared))
        playing = names["order"].run({}, world)
        assert await anext(playing) == "Order one."
        await world.page.evaluate(script)
        with anyio.fail_after(PATIENCE_S):
            assert await playing.asend("done") == reward
        await playing.aclose()
        await world.close()

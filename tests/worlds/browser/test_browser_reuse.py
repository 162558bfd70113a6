"""A context that sessions have one after the other: what the next one finds of the last."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.action import ClickAction, KeyDownAction, PressAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest, SiteResponse

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

WORKER = """
addEventListener('fetch', event => {
  if (event.request.url.endsWith('/claimed')) event.respondWith(new Response('worker'));
});
addEventListener('install', () => skipWaiting());
addEventListener('activate', event => event.waitUntil(clients.claim()));
"""

LEAVE = """async () => {
  localStorage.mark = sessionStorage.mark = window.name = 'left';
  document.cookie = 'mark=left';
  history.pushState({}, '', '/?two');
  await new Promise((done, fail) => {
    const asked = indexedDB.open('left', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('s');
    asked.onsuccess = () => { asked.result.close(); done(); };
    asked.onerror = fail;
  });
  await (await caches.open('left')).put('/x', new Response('left'));
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  await (await navigator.storage.getDirectory()).getFileHandle('left', { create: true });
  addEventListener('pagehide', () => {
    localStorage.late = sessionStorage.late = 'left';
    document.cookie = 'late=left';
  });
  addEventListener('beforeunload', event => { event.preventDefault(); });
}"""

FOUND = """async () => {
  const files = [];
  for await (const name of (await navigator.storage.getDirectory()).keys()) files.push(name);
  const claimed = await fetch('/claimed');
  return {
    local: JSON.stringify(localStorage), session: JSON.stringify(sessionStorage),
    cookie: document.cookie, name: window.name, history: history.length, files,
    databases: await indexedDB.databases(), caches: await caches.keys(),
    workers: (await navigator.serviceWorker.getRegistrations()).length, claimed: claimed.status,
    permission: (await navigator.permissions.query({ name: 'geolocation' })).state,
    online: navigator.onLine, random: Math.random(),
  };
}"""

PAGE = "<title>Page</title><input aria-label=Name><button onclick='n.textContent++'>Add</button>"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with a page, a frame and a service worker."""
    frame = "<p id=n>0</p><iframe srcdoc='<button>Inside</button>'></iframe>"
    (tmp_path / "index.html").write_text(PAGE + frame)
    (tmp_path / "worker.js").write_text(WORKER)
    return tmp_path


@pytest.fixture
async def fresh() -> AsyncIterator[Shared]:
    """Shared services whose browser nobody else has."""
    services = Shared()
    yield services
    await services.close()


async def leave_everything(world: BrowserWorld) -> None:
    """Do in a session all that could outlast it."""
    page = world.page
    await page.context.grant_permissions(["geolocation"], origin=world.site_url)
    await page.evaluate(LEAVE)
    await world.act(TypeAction(selector="input", text="left"))
    for keys in (["Control", "a"], ["Control", "c"]):
        await world.act(PressAction(keys=keys))
    await world.act(KeyDownAction(keys=["Shift"]))
    await page.evaluate("open('/?popup')")
    await world.set_offline(offline=True)


@pytest.mark.long
async def test_a_reused_context_is_as_good_as_new(site: Path, fresh: Shared) -> None:
    """The second session has the first one's page, and finds what a session on a new one finds."""
    spec = Browser(site, reuses_contexts=True)
    opening = Opening(shared=fresh, principal="ada", seed=3)
    with anyio.fail_after(PATIENCE_S):
        first = await spec.open(opening)
        expected: Any = await first.page.evaluate(FOUND)
        assert expected["local"] == "{}"
        await leave_everything(first)
        page, context = first.page.context.pages[0], first.page.context
        await first.close()
        second = await spec.open(opening)
        assert second.page is page
        assert len(context.pages) == 1
        assert await second.page.evaluate(FOUND) == expected
        await second.act(ClickAction(selector="input"))
        await second.act(PressAction(keys=["Control", "v"]))
        await second.act(PressAction(keys=["a"]))  # no Shift is held
        assert await second.page.input_value("input") == "a"
        await second.close()


@pytest.mark.long
async def test_a_session_waits_for_the_page_that_is_being_cleared(
    site: Path, fresh: Shared
) -> None:
    """Of two that begin while the first one's page is cleared, one takes it, and one a new one."""
    spec = Browser(site, reuses_contexts=True)
    opening = Opening(shared=fresh, principal="ada")
    opened: list[BrowserWorld] = []

    async def begin() -> None:
        opened.append(await spec.open(opening))

    with anyio.fail_after(PATIENCE_S):
        first = await spec.open(opening)
        context = first.page.context
        async with anyio.create_task_group() as group:
            group.start_soon(first.close)
            await anyio.lowlevel.checkpoint()
            group.start_soon(begin)
            group.start_soon(begin)
        assert [world.page.context is context for world in opened].count(True) == 1
        for world in opened:
            await world.close()


async def test_a_reused_page_reads_as_a_new_one(site: Path, fresh: Shared) -> None:
    """Text and refs are the same, of frames too, so that a recorded session fits either."""
    spec = Browser(site, reuses_contexts=True)
    with anyio.fail_after(PATIENCE_S):
        texts: list[str | None] = []
        for _ in range(3):
            world = await spec.open(Opening(shared=fresh))
            await world.goto("/?again")
            texts.append((await world.observe(Look())).text)
            await world.act(ClickAction(ref="f1e2"))
            await world.act(ClickAction(ref="e3"))
            assert (await world.text()).endswith("1")
            texts[-1] = f"{texts[-1]}{(await world.observe(Look())).text}"
            await world.close()
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.long
async def test_no_other_principal_or_environment_gets_a_context(site: Path, fresh: Shared) -> None:
    """One that an ended session had is for its own kind alone."""
    spec, other = Browser(site, reuses_contexts=True), Browser(site, reuses_contexts=True)
    with anyio.fail_after(PATIENCE_S):
        first = await spec.open(Opening(shared=fresh, principal="ada"))
        mine = first.page
        await first.close()
        for browser, principal in ((spec, "bob"), (spec, None), (other, "ada")):
            world = await browser.open(Opening(shared=fresh, principal=principal))
            assert world.page is not mine
            await world.close()
        again = await spec.open(Opening(shared=fresh, principal="ada"))
        assert again.page is mine
        await again.close()


@pytest.mark.long
async def test_a_page_that_cannot_be_left_is_closed(site: Path, fresh: Shared) -> None:
    """A session that crashed its page, or was entered over DevTools, leaves nothing to reuse."""
    spec = Browser(site, reuses_contexts=True)
    with anyio.fail_after(PATIENCE_S):
        world = await spec.open(Opening(shared=fresh))
        world.used_directly = True
        await world.close()
        assert world.page.is_closed()
        ordinary = await Browser(site).open(Opening(shared=fresh))
        await ordinary.close()
        assert ordinary.page.is_closed()


@pytest.mark.long
async def test_a_reused_page_keeps_the_sites_files_alone(site: Path, fresh: Shared) -> None:
    """A script comes once for two sessions; what the backend lets a page keep comes anew."""
    (site / "index.html").write_text(f"{PAGE}<script src=app.js></script><p id=n>0</p>")
    (site / "app.js").write_text("document.title = 'with script'")
    sizes = "() => performance.getEntriesByType('resource').map(each => each.transferSize > 0)"

    async def backend(_request: SiteRequest, state: dict[str, Any]) -> SiteResponse:
        state["asked"] = state.get("asked", 0) + 1
        return SiteResponse(json=state["asked"], headers={"cache-control": "max-age=1000"})

    ask = "async () => (await fetch('/api/count')).json()"
    with anyio.fail_after(PATIENCE_S):
        for spec, fetched in (
            (Browser(site, reuses_contexts=True), [True, False]),
            (Browser(site, reuses_contexts=True, backend=backend), [True, True]),
            (Browser(site), [True, True]),
        ):
            for expected in fetched:
                world = await spec.open(Opening(shared=fresh))
                assert await world.page.title() == "with script"
                assert await world.page.evaluate(sizes) == [expected]
                if spec._backend:
                    assert await world.page.evaluate(ask) == 1
                    assert world.state == {"asked": 1}
                await world.close()


@pytest.mark.parametrize("options", [{"allow": ["example.com"]}, {"tasks_open_hosts": True}])
def test_a_browser_with_other_hosts_reuses_nothing(options: dict[str, Any]) -> None:
    """Caches and sockets of other hosts are not the site's to clear."""
    with pytest.raises(InvalidEnvironment, match="reuses_contexts"):
        Browser(reuses_contexts=True, **options)

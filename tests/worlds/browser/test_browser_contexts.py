"""A context's features, each as a page sees it: the network that is slow or gone, larger text."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed, InvalidContext
from hud_mcp.values.action import ClickAction, CustomAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest

Browse = Callable[..., Awaitable[BrowserWorld]]

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

WAITED = """() => performance.getEntries()
  .filter(e => e.entryType === 'navigation' || e.entryType === 'resource')
  .map(e => [e.name.split('/').pop(), e.responseStart - e.requestStart])"""

FETCH = """() => fetch('/api/now').then(r => r.text(), error => String(error))"""

PAGE = """<link rel=stylesheet href=page.css><h1 onclick="window.open('about:blank')">Shop</h1>
<button id=ask onclick="fetch('/api/now').then(r => r.json()).then(j => o.textContent = j.now,
  e => o.textContent = 'failed')">Ask</button><p id=o></p>
<button id=worker onclick="new Worker('worker.js').onmessage = e => o.textContent = e.data">W
</button>"""
WORKER = """const began = performance.now();
fetch('/api/now').then(() => postMessage('took ' + (performance.now() - began)));"""
FILES = {"index.html": PAGE, "page.css": "h1 { color: red }", "worker.js": WORKER}


async def answer(_request: SiteRequest, _state: dict[str, Any]) -> dict[str, Any]:
    """Answer everything with the same."""
    return {"now": "noon"}


@pytest.fixture
async def outside_port() -> AsyncIterator[int]:
    """The port of a server beside the site."""
    answer = (
        b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n"
        b"Connection: close\r\n\r\nok"
    )

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        group.cancel_scope.cancel()
    await listener.aclose()


async def test_each_request_of_a_slow_network_takes_longer(browse: Browse) -> None:
    """A page measures the latency on its document, its files, its calls and those of a worker."""
    with anyio.fail_after(PATIENCE_S):
        world = await browse(FILES, backend=answer, context={"latency_ms": 150})
        await world.act(ClickAction(selector="#ask"))
        waited = dict(await world.page.evaluate(WAITED))
        assert set(waited) >= {"", "page.css", "now"}
        assert all(150 <= ms < 2000 for ms in waited.values()), waited
        await world.act(ClickAction(selector="#worker"))
        await world.page.wait_for_function("o.textContent.startsWith('took')")
        assert float((await world.text()).rpartition("took ")[2].split()[0]) >= 150


@pytest.mark.long
async def test_a_slow_answer_is_waited_for(browse: Browse) -> None:
    """What an action brings is there when it returns, beyond the bound of a quick network."""
    with anyio.fail_after(PATIENCE_S):
        world = await browse(
            {"index.html": PAGE.replace("j.now", "(await (await fetch('/api/then')).json()).now")
             .replace("j => o", "async j => o")},
            backend=answer,
            context={"latency_ms": 1200},
        )  # fmt: skip
        await world.act(ClickAction(selector="#ask"))
        assert "noon" in await world.text()


@pytest.mark.long
async def test_an_allowed_host_is_as_far_away_as_the_site(
    browse: Browse, outside_port: int
) -> None:
    """Requests to other hosts than the session's own site wait too."""
    host = f"127.0.0.1:{outside_port}"
    probe = f"""async () => {{ const t = performance.now();
      await fetch('http://{host}/a').then(r => r.text()); return performance.now() - t; }}"""
    with anyio.fail_after(PATIENCE_S):
        world = await browse(FILES, allow=[host], context={"latency_ms": 200})
        assert await world.page.evaluate(probe) >= 200
        quick = await browse(FILES, allow=[host])
        assert await quick.page.evaluate(probe) < 200


async def test_offline_begins_with_the_agent(browse: Browse) -> None:
    """Setup reads the site; what the agent does finds no network, and pages know it."""
    with anyio.fail_after(PATIENCE_S):
        world = await browse(
            {**FILES, "a.html": "<h1>A</h1>"}, backend=answer, context={"offline": True}
        )
        await world.goto("/a.html")
        await world.goto("/")
        assert await world.page.evaluate("navigator.onLine") is True
        assert "# Shop" in str((await world.observe(Look())).text)
        assert await world.page.evaluate("navigator.onLine") is False
        await world.act(ClickAction(selector="#ask"))
        assert "failed" in await world.text()
        with pytest.raises(ActionFailed, match="ERR_INTERNET_DISCONNECTED"):
            await world.act(CustomAction(action="goto", args={"url": "/a.html"}))


@pytest.mark.long
async def test_the_network_can_be_switched(browse: Browse) -> None:
    """A template or a tool gives it back and takes it away; new tabs are in the same state."""
    with anyio.fail_after(PATIENCE_S):
        world = await browse(FILES, backend=answer, context={"offline": True})
        await world.set_offline(offline=False)
        await world.observe(Look())
        assert "noon" in await world.page.evaluate(FETCH)
        await world.set_offline(offline=True)
        assert "Failed to fetch" in await world.page.evaluate(FETCH)
        await world.act(ClickAction(selector="h1"))
        assert len(world.page.context.pages) == 2
        assert await world.page.evaluate("navigator.onLine") is False


SIZES = """() => ['p', 'rem', 'px', 'code'].map(id =>
  parseFloat(getComputedStyle(document.getElementById(id)).fontSize))"""
TEXT = """<p id=p onclick="window.open('/')">Text</p><p id=rem style="font-size: 0.75rem">Text</p>
<p id=px style="font-size: 12px">Text</p><code id=code>Text</code>
<iframe srcdoc="<p id=inner>Text</p>"></iframe>"""
INNER = """() => { const d = document.querySelector('iframe').contentDocument;
  return parseFloat(d.defaultView.getComputedStyle(d.querySelector('#inner')).fontSize); }"""


@pytest.mark.long
async def test_text_is_larger_on_every_page(browse: Browse) -> None:
    """The document, its frame, the next document and a tab that it opens all have larger text."""
    with anyio.fail_after(PATIENCE_S):
        plain = await browse(TEXT)
        assert await plain.page.evaluate(SIZES) == [16, 12, 12, 13]
        world = await browse({"index.html": TEXT, "b.html": TEXT}, context={"font_scale": 1.5})
        for path in ("/", "/b.html"):
            await world.goto(path)
            assert await world.page.evaluate(SIZES) == [24, 18, 12, 20]
            assert await world.page.evaluate(INNER) == 24
        tall = "() => document.getElementById('p').getBoundingClientRect().height"
        assert await world.page.evaluate(tall) > 1.4 * await plain.page.evaluate(tall)
        await world.act(ClickAction(selector="#p"))
        assert len(world.page.context.pages) == 2
        assert await world.page.evaluate(SIZES) == [24, 18, 12, 20]


async def test_a_page_in_reserve_serves_any_network(shared: Shared) -> None:
    """Latency and offline cost no page in reserve; another size of text is another page."""
    quick = {"viewport_width": 777}
    slow = {**quick, "latency_ms": 5, "offline": True}
    spec = Browser()
    with anyio.fail_after(PATIENCE_S):
        first = await spec.open(Opening(shared=shared, context=quick))
        await first._calls.reserve.until_filled()
        ready = first._calls.reserve.ready[-1]
        second = await spec.open(Opening(shared=shared, context=slow))
        assert second.page is ready.page
        large = await spec.open(Opening(shared=shared, context={**quick, "font_scale": 2}))
        assert large.page.viewport_size == first.page.viewport_size
        assert first._slot.options != large._slot.options
        for world in (first, second, large):
            await world.close()


@pytest.mark.long
async def test_a_snapshot_comes_back_under_its_context(browse: Browse) -> None:
    """A page that was read without a network is there again, still without one, its text large."""
    context = {"offline": True, "font_scale": 1.5, "latency_ms": 20}
    with anyio.fail_after(PATIENCE_S):
        first = await browse({"index.html": TEXT + "<input aria-label=Name>"}, context=context)
        await first.act(ClickAction(selector="input"))
        await first.page.fill("input", "Ada")
        seen = await first.observe(Look())
        kept = await first.snapshot()
        second = await browse({"index.html": TEXT + "<input aria-label=Name>"}, context=context)
        await second.restore(kept)
        assert await second.page.evaluate("navigator.onLine") is False
        assert await second.page.evaluate(SIZES) == [24, 18, 12, 20]
        assert (await second.observe(Look())).text == seen.text
        await second.set_offline(offline=False)
        third = await browse({"index.html": TEXT}, context=context)
        await third.restore(await second.snapshot())
        assert await third.page.evaluate("navigator.onLine") is True


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"latency_ms": -1}, r"latency_ms: -1 is not within \[0.0, 2000.0\]"),
        ({"offline": "yes"}, "offline: 'yes' is not true or false"),
        ({"font_scale": 9}, r"font_scale: 9 is not within \[0.5, 3.0\]"),
    ],
)
async def test_a_network_that_cannot_be_is_refused(
    shared: Shared, context: dict[str, Any], said: str
) -> None:
    """Before anything is opened."""
    with pytest.raises(InvalidContext, match=said):
        await Browser().open(Opening(shared=shared, context=context))

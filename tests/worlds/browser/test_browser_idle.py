"""An action returns when its page has settled: not before, and not much later."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.values.action import ClickAction, CustomAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest, SiteResponse

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]


async def slow(request: SiteRequest, state: dict[str, Any]) -> SiteResponse | dict[str, Any]:
    """Answer after 300 ms; `/api/hang` only after 20 s, `/api/nothing` with no content."""
    state.setdefault("paths", []).append(request.path)
    if request.path == "/api/nothing":
        return SiteResponse(status=204, text="")
    if request.path == "/api/file":
        return SiteResponse(
            text="a,b", headers={"content-disposition": "attachment; filename=r.csv"}
        )
    await anyio.sleep(20 if request.path == "/api/hang" else 0.3)
    if request.path == "/api/page":
        return SiteResponse(text="<h1 id=o>Slow page</h1>")
    return {"answer": 42}


async def click(world: BrowserWorld, selector: str = "button") -> float:
    """Click, and return how long that took, in seconds."""
    began = anyio.current_time()
    with anyio.fail_after(PATIENCE_S):
        await world.act(ClickAction(selector=selector))
    return anyio.current_time() - began


async def shown(world: BrowserWorld) -> str:
    """What the output of a test's page says now."""
    return await world.page.inner_text("#o")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "handler",
    [
        "setTimeout(() => o.textContent = 'done', 100)",
        "setTimeout(() => setTimeout(() => o.textContent = 'done', 150), 150)",
        "fetch('/api/x').then(r => r.json()).then(() => o.textContent = 'done')",
        "fetch('/api/x').then(() => setTimeout(() => o.textContent = 'done', 100))",
        "setTimeout(() => fetch('/api/x').then(() => o.textContent = 'done'), 100)",
        "{ const x = new XMLHttpRequest(); x.onload = () => o.textContent = 'done'; x.open('GET', '/api/x'); x.send(); }",
        "requestAnimationFrame(() => requestAnimationFrame(() => o.textContent = 'done'))",
        "{ const c = new MessageChannel(); c.port1.onmessage = () => o.textContent = 'done'; c.port2.postMessage(1); }",
        "{ const s = document.createElement('script'); s.src = '/late.js'; document.body.append(s); }",
        "import('/late.js')",
    ],
)
async def test_what_a_click_brings_about_is_there_when_it_returns(
    browse: Browse, handler: str
) -> None:
    """Timers, slow fetches, frames, messages and late scripts: their result is seen."""
    world = await browse(
        {"index.html": f'<button onclick="{handler}">go</button><p id=o>-</p>',
         "late.js": "document.getElementById('o').textContent = 'done'"},
        backend=slow,
    )  # fmt: skip
    assert await click(world) < 2
    assert await shown(world) == "done"


CHAINED = """
import { ask } from '/second.js';
document.getElementById('o').textContent = 'loading';
const first = await (await fetch('/api/first')).json();
const second = await ask(first.answer);
document.getElementById('o').textContent = 'done ' + second.answer;
"""


@pytest.mark.long
async def test_a_page_whose_modules_ask_in_a_chain_is_there_when_goto_returns(
    browse: Browse,
) -> None:
    """Modules run after the document was read, and ask after that: both are waited for."""
    world = await browse(
        {
            "index.html": "<p>start</p>",
            "app/index.html": "<p id=o>-</p><script type=module src=/first.js></script>",
            "first.js": CHAINED,
            "second.js": "export const ask = async x => (await fetch('/api/second?x=' + x)).json()",
        },
        backend=slow,
    )
    for _ in range(5):
        with anyio.fail_after(PATIENCE_S):
            await world.act(CustomAction(action="goto", args={"url": "/app/"}))
        assert await shown(world) == "done 42"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "html",
    [
        "<a href=/api/page>go</a>",
        "<form action=/api/page><input type=submit id=go></form>",
        "<button onclick=\"location = '/api/page'\">go</button>",
        "<button onclick=\"setTimeout(() => location.href = '/api/page', 200)\">go</button>",
        "<button onclick=\"location = '/hop.html'\">go</button>",
        "<a href=/api/page target=_blank>go</a>",
    ],
)
async def test_a_click_that_leaves_returns_on_the_new_page(browse: Browse, html: str) -> None:
    """A document that takes 300 ms to come, also by way of another one or in a new tab."""
    hop = "<script>setTimeout(() => location.replace('/api/page'), 50)</script>"
    world = await browse({"index.html": html, "hop.html": hop}, backend=slow)
    await click(world, "a, button, input")
    assert await shown(world) == "Slow page"


async def test_typing_waits_for_what_it_triggers(browse: Browse) -> None:
    """A search that is debounced by 200 ms and then fetched is there when typing returns."""
    world = await browse(
        "<input id=i oninput=\"clearTimeout(window.t); t = setTimeout(() => fetch('/api/s')"
        '.then(r => r.json()).then(j => o.textContent = j.answer), 200)"><p id=o>-</p>',
        backend=slow,
    )
    with anyio.fail_after(PATIENCE_S):
        await world.act(TypeAction(selector="#i", text="shoes"))
    assert await shown(world) == "42"


@pytest.mark.long
async def test_a_short_transition_is_over_in_the_picture(browse: Browse) -> None:
    """A menu that slides in for 300 ms has arrived when the click returns."""
    world = await browse(
        "<style>#m{transition:left .3s;position:absolute;left:-200px}#m.on{left:0}</style>"
        "<button style='margin:90px' onclick=\"m.className='on'\">menu</button><div id=m>Menu</div>",
        context={"reduced_motion": "no-preference"},
    )
    await click(world)
    assert await world.page.evaluate("() => m.getBoundingClientRect().left") == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "script",
    [
        "function f() { o.style.left = Math.random() + 'px'; requestAnimationFrame(f) } f()",
        "setInterval(() => o.textContent = Math.random(), 10)",
        "function p() { o.textContent = Math.random(); setTimeout(p, 50) } p()",
        "(async () => { for (;;) { await new Promise(r => setTimeout(r, 30)); o.textContent++ } })()",
        "o.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 400, iterations: Infinity })",
        "new EventSource('/api/hang'); fetch('/api/hang')",
    ],
)
async def test_a_page_that_never_rests_does_not_hold_an_action_up(
    browse: Browse, script: str
) -> None:
    """Endless animations, polling and hanging requests cost less than a second."""
    world = await browse(
        f"<button onclick='b.textContent=1'>go</button><b id=b></b><p id=o>-</p><script>{script}</script>",
        backend=slow,
    )
    await click(world)
    assert await click(world) < 1


@pytest.mark.long
async def test_a_request_that_hangs_is_waited_for_once(browse: Browse) -> None:
    """A click that starts a request without an end returns at the bound, and then at once."""
    world = await browse(
        "<button onclick=\"fetch('/api/hang?' + Math.random())\">go</button>", backend=slow
    )
    assert 1.5 < await click(world) < 3
    assert await click(world) < 1


@pytest.mark.long
@pytest.mark.parametrize("path", ["/api/nothing", "/api/file", "mailto:someone@example.com"])
async def test_a_link_that_leads_nowhere_does_not_hold_an_action_up(
    browse: Browse, path: str
) -> None:
    """No content, a download, another program's scheme: the page stays, and so does the pace."""
    world = await browse(f"<a href='{path}'>go</a><button>x</button>", backend=slow)
    assert await click(world, "a") < 1.5
    assert await click(world) < 1
    assert world.url == "http://site.localhost/"


@pytest.mark.long
async def test_a_refused_download_is_told(browse: Browse) -> None:
    """A download does not reach the disk; the text says which one it was."""
    world = await browse("<a href=/api/file>go</a>", backend=slow)
    await click(world, "a")
    assert "'r.csv' was refused" in ((await world.observe(Look())).text or "")


async def test_going_somewhere_returns_with_the_page_complete(browse: Browse) -> None:
    """After `goto`, scripts, styles and pictures of the page have been loaded."""
    world = await browse(
        {"index.html": "x", "two.html": "<script>document.title = 'a'</script><img src=/p.svg id=p>"
         "<script type=module src=/m.js></script><p id=o></p>",
         "p.svg": "<svg xmlns='http://www.w3.org/2000/svg' width='7' height='7'/>",
         "m.js": "o.textContent = 'module'"},
    )  # fmt: skip
    with anyio.fail_after(PATIENCE_S):
        await world.act(CustomAction(action="goto", args={"url": "two.html"}))
    assert await shown(world) == "module"
    assert await world.page.evaluate("() => p.naturalWidth") == 7

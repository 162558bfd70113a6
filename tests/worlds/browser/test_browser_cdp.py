"""`cdp/1.3`: a client finds one session's pages, uses them, and leaves them as they are."""

import asyncio
import base64
import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from cdp_client import CdpClient, cdp_client
from PIL import Image
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.bridge.screens import attach_browser
from hud_mcp.plugins.hud.endpoints.cdp import CdpAccess, CdpServer
from hud_mcp.plugins.hud.wire.streams import dial, splice
from hud_mcp.values.action import ClickAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref
from hud_mcp.world import Shared
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]
Admit = Callable[[BrowserWorld], CdpAccess]

PAGES = {
    "index.html": """<title>One</title><h1>First</h1><input id=field>
<button id=copy onclick="out.textContent = field.value">Copy</button><p id=out></p>
<button id=open onclick="window.open('/two.html')">Open</button>
<script>document.cookie = 'mine=1'</script>""",
    "two.html": "<title>Two</title><h1>Second</h1>",
}

PLAYWRIGHT = """
import json, sys
from playwright.sync_api import sync_playwright

told = {}
with sync_playwright() as playwright:
    browser = playwright.chromium.connect_over_cdp(sys.argv[1], timeout=20000)
    [context] = browser.contexts
    [page] = context.pages
    told["before"] = [page.url, page.inner_text("h1")]
    page.fill("#field", "typed")
    page.click("#field")
    page.keyboard.type(" too")
    page.click("#copy")
    told["copied"] = page.inner_text("#out")
    told["picture"] = page.screenshot()[:4].hex()
    with page.expect_popup() as popup:
        page.click("#open")
    popup.value.wait_for_load_state()
    told["popup"] = [popup.value.url, popup.value.inner_text("h1")]
    popup.value.close()
    own = context.new_page()
    own.goto("http://site.localhost/two.html")
    told["own"] = own.title()
    own.close()
    context.add_cookies([{"name": "theirs", "value": "2", "url": "http://site.localhost/"}])
    told["cookies"] = sorted(cookie["name"] for cookie in context.cookies())
    session = context.new_cdp_session(page)
    told["own session"] = session.send("Runtime.evaluate", {"expression": "6 * 7"})["result"]
    told["appearance"] = page.evaluate(
        "[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]")
    told["pages"] = len(context.pages)
    browser.close()
print(json.dumps(told))
"""
"""A program of somebody else's, in another process."""

HUD = """
import asyncio, json, sys
from hud.capabilities import Capability
from hud.capabilities.cdp import CDPClient

async def main():
    client = await CDPClient.connect(Capability(
        name="browser", protocol="cdp/1.3", url=sys.argv[1], params={}))
    got = await client.send("Runtime.evaluate", {"expression": "document.title"})
    shot = await client.send("Page.captureScreenshot", {"format": "png"})
    document = await client.send("DOM.getDocument")
    await client.close()
    print(json.dumps([got["result"]["value"], shot["data"][:6], document["root"]["nodeName"]]))

asyncio.run(main())
"""


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[CdpServer]:
    """A server on some port."""
    opened = await CdpServer.open()
    yield opened
    await opened.close()


@pytest.fixture
def admit(server: CdpServer) -> Admit:
    """Publish a world's browser."""

    def publish(world: BrowserWorld) -> CdpAccess:
        async def find() -> BrowserWorld:
            return world

        return server.admit("browser", find)

    return publish


async def run(program: str, url: str, python: str = sys.executable) -> object:
    """What a program that is given an address prints, as JSON."""
    with anyio.fail_after(PATIENCE_S):
        process = await anyio.run_process(
            [python, "-c", program, url], stderr=subprocess.STDOUT, check=False
        )
    assert process.returncode == 0, process.stdout.decode()
    return json.loads(process.stdout)


@asynccontextmanager
async def tunnel(access: CdpAccess) -> AsyncIterator[str]:
    """The same address behind another port, as a client of the control channel has it."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await splice((reader, writer), await dial(access.capability))

    near = await asyncio.start_server(carry, "127.0.0.1", 0)
    parts = urlsplit(access.capability.url)
    try:
        yield parts._replace(netloc=f"127.0.0.1:{near.sockets[0].getsockname()[1]}").geturl()
    finally:
        near.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["ws", "http", "tunnel"])
async def test_playwright_in_another_process_uses_the_session_and_leaves_it_as_it_is(
    form: str, browse: Browse, admit: Admit
) -> None:
    """It reads, types, clicks, pictures, follows a popup, opens a page, and closes its side."""
    world = await browse(PAGES, context={"color_scheme": "dark", "viewport_width": 700})
    access = admit(world)
    async with tunnel(access) as through:
        url = {"ws": access.capability.url, "tunnel": through.replace("ws://", "http://")}
        told = await run(PLAYWRIGHT, url.get(form, access.capability.url.replace("ws:", "http:")))
    assert told == {
        "before": ["http://site.localhost/", "First"],
        "copied": "typed too",
        "picture": "89504e47",
        "popup": ["http://site.localhost/two.html", "Second"],
        "own": "Two",
        "cookies": ["mine", "theirs"],
        "own session": {"type": "number", "value": 42, "description": "42"},
        "appearance": [700, True],
        "pages": 1,
    }
    text = (await world.observe(Look())).text or ""
    assert "typed too" in text
    await world.act(TypeAction(selector="#field", text="!"))
    await world.act(ClickAction(selector="#copy"))
    assert await world.page.inner_text("#out") != "typed too"
    looks = "[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]"
    assert await world.page.evaluate(looks) == [700, True]


@pytest.mark.long
async def test_our_own_bridge_acts_on_it_as_on_a_browser_of_its_own(
    browse: Browse, admit: Admit
) -> None:
    """A world made of the address reads with refs, acts by them, and is closed; ours stays."""
    world, shared = await browse(PAGES), Shared()
    try:
        far = await attach_browser(admit(world).capability.url, shared)
        text = (await far.observe(Look())).text or ""
        ref = find_ref(text, "textbox")
        assert ref is not None, text
        await far.act(TypeAction(ref=ref, text="over the bridge"))
        await far.act(ClickAction(selector="#copy"))
        await far.act(ClickAction(selector="#open"))
        assert "Second" in ((await far.observe(Look())).text or "")
        assert far.is_open
        await far.close()
        assert await world.page.context.pages[0].inner_text("#out") == "over the bridge"
        assert "Second" in ((await world.observe(Look())).text or "")
    finally:
        await shared.close()


@pytest.mark.long
async def test_a_picture_over_the_bridge_has_the_pixels_of_the_sessions_screen(
    browse: Browse, admit: Admit
) -> None:
    """At two pixels per CSS pixel, a client that sets no screen of its own gets them too."""
    size = {"viewport_width": 300, "viewport_height": 200, "device_scale_factor": 2.0}
    world = await browse(PAGES, context=size)
    async with cdp_client(admit(world).capability.url) as client:
        picture = base64.b64decode((await client.result("Page.captureScreenshot"))["data"])
    assert Image.open(io.BytesIO(picture)).size == (600, 400)


async def test_commands_without_a_session_are_for_the_page_that_is_shown(
    browse: Browse, admit: Admit
) -> None:
    """That is how a client of HUD's speaks: page commands on the address as it is."""
    world = await browse(PAGES)
    async with cdp_client(admit(world).capability.url) as client:
        for domain in ("Page", "Runtime", "DOM"):
            await client.result(f"{domain}.enable")
        assert await client.evaluate("document.title") == "One"
        await client.result("Page.navigate", url="http://site.localhost/two.html")
        navigated = await client.event("Page.frameNavigated")
        assert "sessionId" not in navigated
        await client.event("Page.loadEventFired")
        assert await client.evaluate("document.title") == "Two"
        first = world.page
        await world.page.context.new_page()
        await first.close()
        await client.event("Inspector.detached")
        assert await client.evaluate("location.href") == "about:blank"


async def test_huds_own_client_speaks_to_it(browse: Browse, admit: Admit, hud_python: Path) -> None:
    """The class that HUD's `open("cdp")` gives, on the capability's address."""
    world = await browse(PAGES)
    told = await run(HUD, admit(world).capability.url, str(hud_python))
    assert told == ["One", "iVBORw", "#document"]


@pytest.mark.long
async def test_the_pages_about_a_browser_lead_to_its_pages(browse: Browse, admit: Admit) -> None:
    """The list names each page's own address, at the host that the client came to."""
    world = await browse(PAGES)
    access = admit(world)
    other = await world.page.context.new_page()
    async with tunnel(access) as through, httpx.AsyncClient() as http:
        here = through.replace("ws://", "http://")
        version = (await http.get(f"{here}/json/version")).json()
        assert version["webSocketDebuggerUrl"] == through
        assert version["Browser"].startswith("Chrome/")
        listed = (await http.get(f"{here}/json/list")).json()
        assert [page["url"] for page in listed] == ["about:blank", "http://site.localhost/"]
        assert (await http.get(f"{here}/json")).json() == listed
        assert (await http.get(f"{here}/json/new")).status_code == 404
        async with cdp_client(listed[1]["webSocketDebuggerUrl"]) as client:
            assert await client.evaluate("document.title") == "One"
            assert "to a page" in await client.refusal("Target.getTargets")
            assert "to a page" in await client.refusal("Target.createTarget", url="about:blank")
            assert (await client.result("Browser.getVersion"))["protocolVersion"] == "1.3"
            await other.close()
            await world.page.close()
            await client.event("Inspector.detached")
            assert "closed" in await client.refusal("Page.reload")


@pytest.mark.long
async def test_workers_and_frames_of_other_processes_are_spoken_to(
    browse: Browse, admit: Admit
) -> None:
    """Sessions below a page's come flat, to any depth, and nothing is held for the client."""
    pages = {
        "index.html": "<h1>Top</h1><iframe src='http://127.0.0.1:{port}/'></iframe>"
        "<script>new Worker('/w.js')</script>",
        "w.js": "self.answer = 42",
    }
    inner = await browse("<h1>Inner</h1><script>self.answer = 43</script>")
    port = urlsplit(inner.site_address).port
    pages["index.html"] = pages["index.html"].replace("{port}", str(port))
    shared = Shared()
    try:
        world = await browse(
            pages, services=shared, allow=[f"127.0.0.1:{port}"], arguments=["--site-per-process"]
        )
        async with cdp_client(admit(world).capability.url) as client:
            page = await client.attach((await client.pages())[0]["targetId"])
            await client.result(
                "Target.setAutoAttach", page,
                autoAttach=True, waitForDebuggerOnStart=True, flatten=True,
            )  # fmt: skip
            answers: dict[str, object] = {}
            for _child in range(2):
                child = await client.event("Target.attachedToTarget")
                while child.get("sessionId") != page:  # our own attaching
                    child = await client.event("Target.attachedToTarget")
                assert not child["params"]["waitingForDebugger"]
                kind = child["params"]["targetInfo"]["type"]
                answers[kind] = await client.evaluate("self.answer", child["params"]["sessionId"])
            assert answers == {"worker": 42, "iframe": 43}
            assert "refused" in await client.refusal(
                "Target.setAutoAttach", page, autoAttach=True, flatten=False
            )
        await world.close()
    finally:
        await shared.close()


@pytest.mark.long
async def test_new_pages_are_told_to_whoever_asked_for_them(browse: Browse, admit: Admit) -> None:
    """By discovery and by attaching, until it is turned off; ends are told too."""
    world = await browse(PAGES)
    async with cdp_client(admit(world).capability.url) as client:
        await client.result("Target.setDiscoverTargets", discover=True)
        await client.event("Target.targetCreated")
        await client.result("Target.setAutoAttach", autoAttach=True, flatten=True)
        await client.event("Target.attachedToTarget")
        await world.page.evaluate("() => void window.open('/two.html')")
        created = (await client.event("Target.targetCreated"))["params"]["targetInfo"]
        attached = (await client.event("Target.attachedToTarget"))["params"]
        assert attached["targetInfo"]["targetId"] == created["targetId"]
        assert created["openerId"]
        await client.result("Target.closeTarget", targetId=created["targetId"])
        assert (await client.event("Target.detachedFromTarget"))["params"]["sessionId"] == (
            attached["sessionId"]
        )
        assert (await client.event("Target.targetDestroyed"))["params"] == {
            "targetId": created["targetId"]
        }
        await client.result("Target.setAutoAttach", autoAttach=False, flatten=True)
        await client.event("Target.detachedFromTarget")
        made = (await client.result("Target.createTarget", url="about:blank"))["targetId"]
        assert len(await client.pages()) == 2
        assert not any(e["method"] == "Target.attachedToTarget" for e in client.events), made


@pytest.mark.long
async def test_a_page_that_loads_while_its_client_prepares_is_told_to_have_loaded(
    browse: Browse, admit: Admit
) -> None:
    """What a document went through comes after the answer: clients listen from there on."""
    world = await browse(PAGES)
    async with cdp_client(admit(world).capability.url) as client:
        [page] = await client.pages()
        session = await client.attach(page["targetId"])
        await client.result("Page.enable", session)
        await client.result("Page.setLifecycleEventsEnabled", session, enabled=True)
        assert "load" in _lifecycle(client)  # a document of before its time: as Chromium has it
        await client.result("Page.setLifecycleEventsEnabled", session, enabled=False)
        await client.result("Page.navigate", session, url="http://site.localhost/two.html")
        document = (await client.event("Page.frameNavigated"))["params"]["frame"]["loaderId"]
        await client.event("Page.loadEventFired")
        client.events.clear()
        await client.result("Page.setLifecycleEventsEnabled", session, enabled=True)
        assert not _lifecycle(client)
        while (told := await client.event("Page.lifecycleEvent"))["params"]["name"] != "load":
            continue
        assert told["params"]["loaderId"] == document
        await client.result("Page.navigate", session, url="http://site.localhost/")
        while (await client.event("Page.lifecycleEvent"))["params"]["name"] != "load":
            continue


def _lifecycle(client: CdpClient) -> list[str]:
    said = [each for each in client.events if each.get("method") == "Page.lifecycleEvent"]
    return [each["params"]["name"] for each in said]


async def test_a_session_on_the_browser_ends_with_what_it_opened(
    browse: Browse, admit: Admit
) -> None:
    """Detaching from it detaches its pages, and none of the others."""
    world = await browse(PAGES)
    async with cdp_client(admit(world).capability.url) as client:
        page = (await client.pages())[0]["targetId"]
        kept = await client.attach(page)
        below = (await client.result("Target.attachToBrowserTarget"))["sessionId"]
        lost = (await client.result("Target.attachToTarget", below, targetId=page, flatten=True))[
            "sessionId"
        ]
        assert await client.evaluate("1 + 1", lost) == 2
        assert "not found" in await client.refusal("Target.detachFromTarget", sessionId=lost)
        await client.result("Target.detachFromTarget", sessionId=below)
        assert "not found" in await client.refusal("Runtime.evaluate", lost, expression="1")
        assert "not found" in await client.refusal("Target.getTargets", below)
        assert await client.evaluate("1 + 1", kept) == 2


@pytest.mark.long
async def test_an_address_without_a_browser_says_why(server: CdpServer) -> None:
    """The error of whoever looks for the world is what the client is told."""

    async def find() -> BrowserWorld:
        raise EnvironmentFailed("The session has not started. Start a task first.")

    url = server.admit("browser", find).capability.url
    async with httpx.AsyncClient() as http:
        answer = await http.get(url.replace("ws://", "http://") + "/json/version")
    assert (answer.status_code, answer.text.strip()) == (
        503, "The session has not started. Start a task first.",
    )  # fmt: skip
    with pytest.raises(Exception, match="503"):
        async with cdp_client(url):
            pass


@pytest.mark.long
def test_nothing_of_it_is_loaded_before_it_is_used() -> None:
    """Importing the server's module imports neither the WebSocket library nor Playwright."""
    program = "import sys, hud_mcp.plugins.hud.endpoints.cdp; print([m for m in ('websockets', 'playwright') if m in sys.modules])"  # noqa: E501
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert told.stdout.strip() == "[]"

"""What `cdp/1.3` does not give: other sessions, the browser, the machine, other hosts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from cdp_client import cdp_client
from waiting import PATIENCE_S
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from hud_mcp.errors import ActionFailed
from hud_mcp.plugins.hud.endpoints.cdp import CdpServer
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[CdpServer]:
    """A server on some port."""
    opened = await CdpServer.open()
    yield opened
    await opened.close()


def address(server: CdpServer, world: BrowserWorld) -> str:
    """Publish a world's browser."""

    async def find() -> BrowserWorld:
        return world

    return server.admit("browser", find).capability.url


class Outside:
    """A server on another loopback port, which notes what reaches it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.host = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer with a short text."""
        self.lines.append(await reader.readline())
        writer.write(
            b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/html\r\n"
            b"Content-Length: 7\r\nConnection: close\r\n\r\nOutside"
        )
        writer.close()


@pytest.fixture
async def outside(anyio_backend: str) -> AsyncIterator[Outside]:
    """A host that no allow-list names."""
    host = Outside()
    listener = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.host = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield host
    listener.close()


async def test_other_sessions_are_neither_seen_nor_reached(
    browse: Browse, server: CdpServer
) -> None:
    """Not their targets, nor events of them, contexts, cookies; the same words as for nothing."""
    mine, theirs = await browse("<h1>Mine</h1>"), await browse("<h1>Theirs</h1>")
    await theirs.page.evaluate("() => { document.cookie = 'secret=1'; localStorage.x = '2' }")
    async with (
        cdp_client(address(server, mine)) as client,
        cdp_client(address(server, theirs)) as other,
    ):
        [their_page] = await other.pages()
        [my_page] = await client.pages()
        assert their_page["browserContextId"] != my_page["browserContextId"]
        everything = [{"type": "browser"}, {}]
        await client.result("Target.setDiscoverTargets", discover=True, filter=everything)
        await client.result(
            "Target.setAutoAttach", autoAttach=True, flatten=True, filter=everything
        )
        await theirs.page.evaluate("() => void window.open('/')")
        with anyio.fail_after(PATIENCE_S):
            while len(await other.pages()) < 2:
                await anyio.lowlevel.checkpoint()
        unknown = await client.refusal("Target.attachToTarget", targetId="X", flatten=True)
        for page in await other.pages():
            about = {"targetId": page["targetId"]}
            for method in ("attachToTarget", "closeTarget", "activateTarget", "getTargetInfo"):
                assert unknown == await client.refusal(f"Target.{method}", **about, flatten=True)
        infos = (await client.result("Target.getTargets", filter=everything))["targetInfos"]
        assert {info["browserContextId"] for info in infos} == {my_page["browserContextId"]}
        theirs_id = their_page["browserContextId"]
        for method in ("Storage.getCookies", "Storage.clearCookies", "Target.createTarget"):
            assert method in await client.refusal(method, browserContextId=theirs_id, url="")
        cookies = await client.result("Storage.getCookies")
        assert cookies == {"cookies": []} == await client.result("Network.getAllCookies")
        page = await client.attach(my_page["targetId"])
        # In a page, Chromium itself would take another context's name.
        own = await client.result("Storage.getCookies", page, browserContextId=theirs_id)
        assert own == {"cookies": []}
        assert theirs_id not in str(client.events)
        assert their_page["targetId"] not in str(client.events)
        sessions = (await other.result("Target.attachToBrowserTarget"))["sessionId"]
        assert "not found" in await client.refusal("Target.getTargets", sessions)
    cookies = await theirs.page.context.cookies()
    assert [cookie["name"] for cookie in cookies] == ["secret"]


BROWSER_WIDE = (
    "Browser.close", "Browser.crash", "Browser.crashGpuProcess", "Browser.grantPermissions",
    "Browser.resetPermissions", "Browser.setPermission", "Browser.getWindowForTarget",
    "Browser.setWindowBounds", "Browser.getBrowserCommandLine", "Browser.getHistograms",
    "Browser.executeBrowserCommand", "Browser.cancelDownload", "Target.createBrowserContext",
    "Target.disposeBrowserContext", "Target.exposeDevToolsProtocol", "Target.setRemoteLocations",
    "Target.sendMessageToTarget", "Target.autoAttachRelated", "Target.openDevTools",
)  # fmt: skip

BEYOND_THE_PAGE = (
    "SystemInfo.getInfo", "SystemInfo.getProcessInfo", "Tracing.start", "Tracing.end",
    "Tracing.requestMemoryDump", "IO.read", "IO.resolveBlob", "IO.close", "Memory.getDOMCounters",
    "Memory.simulatePressureNotification", "Security.setIgnoreCertificateErrors",
    "Security.setOverrideCertificateErrors", "Tethering.bind", "HeapProfiler.takeHeapSnapshot",
    "Debugger.enable", "Page.setBypassCSP", "Page.crash", "Page.setDownloadBehavior",
    "Page.setWebLifecycleState", "DOM.setFileInputFiles", "DOM.getFileInfo",
    "Network.loadNetworkResource", "Network.overrideNetworkState", "Network.setUserAgentOverride",
    "Network.takeResponseBodyForInterceptionAsStream", "Fetch.takeResponseBodyAsStream",
    "Emulation.setTimezoneOverride", "Emulation.setLocaleOverride",
    "Emulation.setCPUThrottlingRate",
    "Emulation.setScriptExecutionDisabled", "Emulation.setUserAgentOverride",
    "Emulation.setVirtualTimePolicy", "Emulation.setTouchEmulationEnabled",
    "Storage.overrideQuotaForOrigin", "Storage.setInterestGroupTracking", "ServiceWorker.enable",
    "Extensions.loadUnpacked", "FileSystem.getDirectory", "PWA.install", "Autofill.trigger",
    "DeviceAccess.enable", "Cast.enable", "BackgroundService.startObserving", "Nothing.atAll",
    "Page", "", "Page.", ".enable",
)  # fmt: skip


async def test_what_is_of_the_browser_or_the_machine_is_refused_by_name(
    browse: Browse, server: CdpServer
) -> None:
    """To the browser, to a page, and without a session; the browser goes on."""
    world = await browse("<h1>Still here</h1>")
    async with cdp_client(address(server, world)) as client:
        page = await client.attach((await client.pages())[0]["targetId"])
        for method in (*BROWSER_WIDE, *BEYOND_THE_PAGE):
            for session in ("", page):
                said = await client.refusal(method, session)
                assert said.startswith(f"{method} is refused: "), said
        assert await client.evaluate("document.body.innerText", page) == "Still here"


@pytest.mark.long
async def test_what_clients_ask_of_every_browser_changes_nothing(
    browse: Browse, server: CdpServer
) -> None:
    """What is so already is answered; anything else is what the task's context decides."""
    world = await browse("x", context={"viewport_width": 640, "color_scheme": "dark"})
    media = "Emulation.setEmulatedMedia"

    def scheme(value: str) -> list[dict[str, str]]:
        return [{"name": "prefers-color-scheme", "value": value}]

    async with cdp_client(address(server, world)) as client:
        size = {"width": 640, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        await client.result("Emulation.setDeviceMetricsOverride", **size)
        await client.result(media, media="", features=scheme("light"))
        await client.result(media, features=scheme("dark"))
        await client.result("Network.emulateNetworkConditions", offline=False, latency=0)
        await client.result("Browser.setDownloadBehavior", behavior="allow", downloadPath="/tmp")
        looks = "[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]"
        assert await client.evaluate(looks) == [640, True]
        size["width"] = 641
        refused = [
            await client.refusal("Emulation.setDeviceMetricsOverride", **size),
            await client.refusal(media, media="print"),
            await client.refusal(media, features=scheme("sepia")),
            await client.refusal("Network.emulateNetworkConditions", offline=True, latency=0),
            await client.refusal("Network.emulateNetworkConditions", downloadThroughput=1000),
        ]
        assert all("is refused" in text for text in refused)
        assert "640 x 800" in refused[0]
        clip = {"x": 0, "y": 0, "width": 20_000, "height": 20_000, "scale": 1}
        assert "pixels" in await client.refusal("Page.captureScreenshot", clip=clip)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", " file:///etc/passwd", "fi\tle:///etc/passwd",
        "http:\\\\site.localhost/", "chrome://version", "chrome-untrusted://x",
        "view-source:about:blank",
        "devtools://devtools/bundled/inspector.html", "about:version", "javascript:alert(1)",
        "data:text/html,x", "blob:null/x", "filesystem:file:///x", "ftp://site.localhost/",
        "http://evil.example/", "http://site.localhost.evil.example/", "http://site.localhost@evil.example/",
        "http://site.localhost:81/", "//site.localhost/", "/", "http://", "http://[/", "http://127.0.0.1:1/",
    ],
)  # fmt: skip
async def test_addresses_are_those_that_actions_may_open(
    url: str, browse: Browse, server: CdpServer
) -> None:
    """Of pages, of new pages, and of requests that are sent elsewhere."""
    world = await browse("<h1>Here</h1>")
    async with cdp_client(address(server, world)) as client:
        for method in ("Page.navigate", "Target.createTarget"):
            assert (await client.refusal(method, url=url)).startswith(f"{method} is refused: ")
        said = await client.refusal("Fetch.continueRequest", requestId="1", url=url)
        assert said.startswith("Fetch.continueRequest is refused: ")
        assert len(await client.pages()) == 1
    assert world.url == "http://site.localhost/"


@pytest.mark.long
@pytest.mark.parametrize("url", ["http://[/", "http://]", "http://[::1"])
async def test_an_address_that_is_none_fails_as_an_action_does(url: str, browse: Browse) -> None:
    """Whoever names it is told, and the session goes on."""
    world = await browse("x")
    with pytest.raises(ActionFailed, match="is not an address"):
        await world.goto(url)
    assert world.url == "http://site.localhost/"


async def test_no_script_of_a_client_reads_files_or_reaches_another_host(
    browse: Browse, server: CdpServer, outside: Outside, tmp_path: Path
) -> None:
    """Not from a world that may read every origin, nor past service workers, nor offline's end."""
    (tmp_path / "key.txt").write_text("the answer")
    file, http = f"file://{tmp_path}/key.txt", f"http://{outside.host}/"
    world = await browse({"index.html": "<h1>Here</h1>", "sw.js": "onfetch = () => 0"})
    reach = f"""(async () => {{
      const got = [];
      for (const url of ['{file}', '{http}']) {{
        await fetch(url).then(r => r.text()).then(t => got.push(t), e => got.push(String(e)));
        await new Promise(done => {{
          const x = new XMLHttpRequest();
          x.onloadend = () => {{ got.push(x.responseText); done() }};
          try {{ x.open('GET', url); x.send() }} catch (e) {{ done() }}
        }});
        await new Promise(done => {{
          const f = document.createElement('iframe');
          f.onload = () => {{
            let text = '';
            try {{ text = f.contentDocument.body.innerText }} catch (e) {{}}
            got.push(text); done();
          }};
          f.src = url; document.body.append(f); setTimeout(done, 1000);
        }});
        const opened = window.open(url);
        new WebSocket('ws://{outside.host}/');
      }}
      return got.join(' ');
    }})()"""
    async with cdp_client(address(server, world)) as client:
        await client.evaluate("navigator.serviceWorker.register('/sw.js').then(() => 1)")
        for method, params in (
            ("Network.enable", {}), ("Network.setBypassServiceWorker", {"bypass": True}),
            ("Network.setCacheDisabled", {"cacheDisabled": True}),
            ("Network.setExtraHTTPHeaders", {"headers": {"Host": outside.host}}),
            ("Fetch.enable", {"patterns": []}), ("Fetch.disable", {}),
        ):  # fmt: skip
            await client.result(method, **params)
        tree = await client.result("Page.getFrameTree")
        isolated = await client.result(
            "Page.createIsolatedWorld",
            frameId=tree["frameTree"]["frame"]["id"], grantUniveralAccess=True,
        )  # fmt: skip
        for more in ({}, {"contextId": isolated["executionContextId"]}):
            got = await client.evaluate(reach, **more, userGesture=True)
            assert "the answer" not in got
            assert "Outside" not in got
        for page in await client.pages():
            session = await client.attach(page["targetId"])
            shown = await client.evaluate("document.documentElement.innerText", session)
            assert "the answer" not in shown
            assert "Outside" not in shown
        assert "refused" in await client.refusal(
            "Input.dispatchDragEvent", type="drop", x=1, y=1,
            data={"items": [], "files": [str(tmp_path / "key.txt")], "dragOperationsMask": 1},
        )  # fmt: skip
        assert "refused" in await client.refusal("Page.printToPDF", transferMode="ReturnAsStream")
    assert outside.lines == []


@pytest.mark.long
async def test_the_same_script_reaches_a_host_that_is_allowed(
    browse: Browse, server: CdpServer, outside: Outside
) -> None:
    """So the test above can fail."""
    world = await browse("<h1>Here</h1>", allow=[outside.host])
    async with cdp_client(address(server, world)) as client:
        got = await client.evaluate(f"fetch('http://{outside.host}/').then(r => r.text())")
        assert got == "Outside"
        await client.result("Page.navigate", url=f"http://{outside.host}/")
    assert len(outside.lines) >= 2


@pytest.mark.long
async def test_an_offline_session_stays_offline(browse: Browse, server: CdpServer) -> None:
    """A client neither ends it by asking, nor by coming and going."""
    world = await browse("<h1>Here</h1>")
    await world.set_offline(offline=True)
    fetch = "fetch('/').then(() => 'online', () => 'offline')"
    async with cdp_client(address(server, world)) as client:
        await client.result("Network.enable")
        await client.result("Network.emulateNetworkConditions", offline=False, latency=0)
        assert await client.evaluate(fetch) == "offline"
        await client.result("Network.disable")
        assert await client.evaluate(fetch) == "offline"
    assert await world.page.evaluate(f"() => {fetch}") == "offline"


async def test_only_the_whole_address_opens_anything(browse: Browse, server: CdpServer) -> None:
    """Not without its secret, not with another, not from a web page."""
    world = await browse("x")
    url = address(server, world)
    place, _, secret = url.rpartition("/")
    wrong = [place, f"{place}/", f"{url}x", url[:-1], f"{place}/{secret[::-1]}", f"{place}/%00"]
    wrong += [f"{place}/{secret}/devtools/other", url.replace("/devtools/browser", "")]
    for bad in wrong:
        with pytest.raises(InvalidStatus) as caught:
            await connect(bad)
        assert caught.value.response.status_code == 404
        assert secret.encode() not in caught.value.response.body
    with pytest.raises(InvalidStatus) as caught:
        await connect(url, origin="http://site.localhost")
    assert caught.value.response.status_code == 403
    async with cdp_client(url) as client:
        assert len(await client.pages()) == 1


@pytest.mark.long
async def test_a_page_of_the_session_cannot_use_its_own_address(
    browse: Browse, server: CdpServer
) -> None:
    """Even if it learns the address: the port is not a host of the allow-list."""
    world = await browse("x")
    url = address(server, world)
    told = await world.page.evaluate(
        """url => new Promise(done => {
          const socket = new WebSocket(url);
          socket.onopen = () => done('open'); socket.onerror = () => done('closed');
        })""",
        url,
    )
    assert told == "closed"

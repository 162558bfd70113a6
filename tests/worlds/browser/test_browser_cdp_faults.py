"""Clients of `cdp/1.3` that are slow, wrong or gone, and browsers that end under them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel
import httpx
import pytest
from cdp_client import CdpClient, cdp_client
from playwright.async_api import Error
from waiting import PATIENCE_S
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hud_mcp.plugins.hud.endpoints import cdp
from hud_mcp.plugins.hud.endpoints.cdp import CdpAccess, CdpServer
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[CdpServer]:
    """A server on some port, which leaves no task behind."""
    before = asyncio.all_tasks()
    opened = await CdpServer.open()
    yield opened
    with anyio.fail_after(PATIENCE_S):
        await opened.close()
        left = [
            t for t in asyncio.all_tasks() - before if "cdp" in repr(t) or "websockets" in repr(t)
        ]
        if left:
            await asyncio.wait(left, timeout=5)
    assert not [task for task in left if not task.done()]


def admit(server: CdpServer, world: BrowserWorld) -> CdpAccess:
    """Publish a world's browser."""

    async def find() -> BrowserWorld:
        return world

    return server.admit("browser", find)


async def sessions_on(world: BrowserWorld) -> int:
    """How many DevTools sessions on the browser itself there are, this one included."""
    browser = world.page.context.browser
    assert browser is not None
    cdp = await browser.new_browser_cdp_session()
    infos: list[dict[str, object]] = []
    cdp.on("Target.targetCreated", lambda event: infos.append(event["targetInfo"]))
    await cdp.send("Target.setDiscoverTargets", {"discover": True, "filter": [{}]})
    await cdp.detach()
    return sum(info["type"] == "browser" and bool(info["attached"]) for info in infos)


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what a fault leads to."""
    with anyio.fail_after(PATIENCE_S):
        while not await true():
            await anyio.lowlevel.checkpoint()


async def works(client: CdpClient) -> bool:
    """Whether a client reaches its page."""
    return await client.evaluate("6 * 7") == 42


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "raw", ["", "nonsense", "[]", "1", "null", b"\xff", '{"id":NaN}', '{"id":1e999}', "[" * 100_000]
)
async def test_what_is_no_message_ends_its_connection_and_no_other(
    raw: str | bytes, browse: Browse, server: CdpServer
) -> None:
    """The reason is told; numbers that are no JSON never reach the browser's driver."""
    url = admit(server, await browse("x")).capability.url
    async with cdp_client(url) as good:
        async with connect(url) as socket:
            await socket.send(raw)
            client = CdpClient(socket)
            assert (await client.closed())[0] == 1007
        assert await works(good)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "message",
    [
        {}, {"id": 1}, {"method": "Page.enable"}, {"id": "1", "method": "Page.enable"},
        {"id": 1, "method": 5}, {"id": 1, "method": "Page.enable", "params": []},
        {"id": True, "method": "Page.enable"}, {"id": 1, "method": "Page.enable", "sessionId": []},
        {"id": 1, "method": "Page.enable", "sessionId": {"a": 1}}, {"id": 1, "method": None},
    ],
)  # fmt: skip
async def test_a_message_of_the_wrong_form_is_answered_with_an_error(
    message: dict[str, object], browse: Browse, server: CdpServer
) -> None:
    """Under the id that it came with, and the connection goes on."""
    async with cdp_client(admit(server, await browse("x")).capability.url) as client:
        await client.socket.send(json.dumps(message))
        answer = json.loads(await client.socket.recv())
        assert answer["error"]["code"] == -32600
        assert answer["id"] == message.get("id")
        assert await works(client)


ODD: tuple[object, ...] = (None, 0, -1.5, True, "", "x", [], [1], {}, {"a": []}, "\ud800")


@pytest.mark.long
@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("Target.attachToTarget", ("targetId", "flatten")),
        ("Target.detachFromTarget", ("sessionId",)),
        ("Target.setAutoAttach", ("autoAttach", "flatten", "filter")),
        ("Target.setDiscoverTargets", ("discover", "filter")),
        ("Target.getTargetInfo", ("targetId",)),
        ("Target.getTargets", ("filter",)),
        ("Target.createTarget", ("url", "browserContextId")),
        ("Target.activateTarget", ("targetId",)),
        ("Storage.setCookies", ("cookies", "browserContextId")),
        ("Page.navigate", ("url",)),
        ("Page.captureScreenshot", ("clip",)),
        ("Input.dispatchDragEvent", ("data", "type")),
        ("Fetch.continueRequest", ("url", "requestId")),
        ("Emulation.setDeviceMetricsOverride", ("width", "height", "mobile")),
        ("Emulation.setEmulatedMedia", ("media", "features")),
        ("Network.emulateNetworkConditions", ("offline", "latency", "downloadThroughput")),
    ],
)
async def test_odd_parameters_are_answered(
    method: str, names: tuple[str, ...], browse: Browse, server: CdpServer
) -> None:
    """Whatever their kind: one answer each, and the client's page still there after them."""
    async with cdp_client(admit(server, await browse("x")).capability.url) as client:
        for name in names:
            for odd in ODD:
                params: dict[str, object] = {"flatten": True, "autoAttach": True}
                answer = await client.call(method, **{**params, name: odd})
                assert answer.keys() & {"result", "error"}, (name, odd)
        assert await works(client)


@pytest.mark.long
async def test_a_message_that_is_too_long_ends_its_connection(
    browse: Browse, server: CdpServer
) -> None:
    """With the protocol's own code for it; one below the limit is performed."""
    url = admit(server, await browse("x")).capability.url
    async with cdp_client(url) as client:
        assert await client.evaluate(f"'{'x' * 8_000_000}'.length") == 8_000_000
        with contextlib.suppress(OSError):
            await client.send("Runtime.evaluate", expression="x" * 17_000_000)
        assert (await client.closed())[0] == 1009
    async with cdp_client(url) as client:
        assert await works(client)


@pytest.mark.long
async def test_a_client_that_does_not_read_is_dropped(
    browse: Browse, server: CdpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When more waits for it than is kept; the session and its other client go on."""
    monkeypatch.setattr(cdp, "_MOST_OUT_CHARS", 8 * 1024 * 1024)
    world = await browse("<h1>Here</h1>")
    url = admit(server, world).capability.url
    before = await sessions_on(world)
    async with cdp_client(url) as good:
        slow = await connect(url, max_size=None, max_queue=1)
        client = CdpClient(slow)
        with contextlib.suppress(OSError):
            for _each in range(14):
                await client.send(
                    "Runtime.evaluate", expression="'x'.repeat(5e6)", returnByValue=True
                )

        async def dropped() -> bool:
            return await sessions_on(world) == before + 1

        await until(dropped)
        assert await works(good)
        slow.transport.abort()
        await slow.wait_closed()
    assert "Here" in ((await world.observe(Look())).text or "")


@pytest.mark.long
async def test_one_long_answer_reaches_a_client_that_reads(
    browse: Browse, server: CdpServer
) -> None:
    """The bound is on what piles up, and not on what a page has to say."""
    async with cdp_client(admit(server, await browse("x")).capability.url) as client:
        assert len(await client.evaluate("'x'.repeat(3.5e7)")) == 35_000_000
        assert await works(client)


async def test_a_client_that_vanishes_leaves_nothing_behind(
    browse: Browse, server: CdpServer
) -> None:
    """Its sessions end, and what it had stopped goes on."""
    world = await browse("<h1>Here</h1>")
    access = admit(server, world)
    before = await sessions_on(world)
    async with connect(access.capability.url) as socket:
        client = CdpClient(socket)
        await client.result("Target.setAutoAttach", autoAttach=True, flatten=True)
        await client.result("Fetch.enable")
        id_ = await client.send("Runtime.evaluate", expression="fetch('/x').then(r => r.status)")
        await client.event("Fetch.requestPaused")
        await client.answer(id_)
        assert await sessions_on(world) == before + 1
        socket.transport.abort()

    async def left() -> bool:
        return await sessions_on(world) == before and not access.clients

    await until(left)
    with anyio.fail_after(PATIENCE_S):
        assert await world.page.evaluate("() => fetch('/').then(r => r.status)") == 200


async def test_two_clients_at_once_do_not_disturb_each_other(
    browse: Browse, server: CdpServer
) -> None:
    """Each has its own ids, events and interception; both see what either one does."""
    url = admit(server, await browse("<h1>Here</h1>")).capability.url
    async with cdp_client(url) as one, cdp_client(url) as two:
        await one.result("Runtime.enable")
        await one.evaluate("window.mark = 'by one'")
        assert await two.evaluate("window.mark") == "by one"
        await two.evaluate("console.log('by two')")
        said = await one.event("Runtime.consoleAPICalled")
        assert said["params"]["args"][0]["value"] == "by two"
        made = (await one.result("Target.createTarget", url="about:blank"))["targetId"]
        assert made in [page["targetId"] for page in await two.pages()]
        await asyncio.gather(*[works(client) for client in (one, two)])
        assert not two.events


@pytest.mark.long
async def test_there_are_bounds_on_clients_sessions_and_pages(
    browse: Browse, server: CdpServer
) -> None:
    """Each is told with its number, and what was there before works on."""
    access = admit(server, await browse("x"))
    url = access.capability.url
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(cdp_client(url)) for _each in range(16)]
        with pytest.raises(InvalidStatus) as caught:
            await connect(url)
        assert b"16 clients" in caught.value.response.body
        client = clients[0]
        told = ""
        while not told:
            answer = await client.call("Target.attachToBrowserTarget")
            told = answer.get("error", {}).get("message", "")
        assert "500 sessions" in told
        told = ""
        while not told:
            answer = await clients[1].call("Target.createTarget", url="about:blank")
            told = answer.get("error", {}).get("message", "")
        assert "40 pages" in told
        assert await works(clients[2])


@pytest.mark.long
async def test_a_page_that_crashes_is_told_and_takes_no_other_session_with_it(
    browse: Browse, server: CdpServer
) -> None:
    """The client learns it as from Chromium; another session's client notices nothing."""
    world, other = await browse("x"), await browse("y")
    async with (
        cdp_client(admit(server, world).capability.url) as client,
        cdp_client(admit(server, other).capability.url) as unharmed,
    ):
        await client.result("Target.setDiscoverTargets", discover=True)
        await client.result("Inspector.enable")
        with contextlib.suppress(Error, TimeoutError):
            await world.page.goto("chrome://crash", timeout=1000)
        await client.event("Inspector.targetCrashed")
        await client.event("Target.targetCrashed")
        assert await works(unharmed)


@pytest.mark.long
async def test_a_world_that_closes_ends_its_clients_and_no_others(
    browse: Browse, server: CdpServer
) -> None:
    """With the reason, and an answer for what was asked and not answered."""
    world, other = await browse("x"), await browse("y")
    async with (
        cdp_client(admit(server, world).capability.url) as client,
        cdp_client(admit(server, other).capability.url) as unharmed,
    ):
        assert await works(client)
        waiting = await client.send(
            "Runtime.evaluate", expression="new Promise(() => 0)", awaitPromise=True
        )
        assert len(await client.pages()) == 1
        await world.close()
        assert await client.closed() == (1001, "The session's browser is closed.")
        assert any(e.get("id") == waiting and "error" in e for e in client.events)
        assert await works(unharmed)


@pytest.mark.long
async def test_an_address_of_a_world_that_has_closed_does_not_hang(
    browse: Browse, server: CdpServer
) -> None:
    """Whoever keeps handing out a closed world: its clients are told, its pages are none."""
    world = await browse("x")
    url = admit(server, world).capability.url
    await world.close()
    async with cdp_client(url) as client:
        assert await client.closed() == (1011, "The session's browser is closed.")
    async with httpx.AsyncClient() as http:
        answer = await http.get(url.replace("ws://", "http://") + "/json/list")
        assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.long
async def test_an_admission_that_closes_drops_its_clients_and_no_others(
    browse: Browse, server: CdpServer
) -> None:
    """Its address opens nothing any more; the session goes on, under other addresses too."""
    world = await browse("<h1>Here</h1>")
    before = await sessions_on(world)
    first, second = admit(server, world), admit(server, world)
    async with (
        cdp_client(first.capability.url) as client,
        cdp_client(second.capability.url) as stays,
    ):
        assert await works(client)
        with anyio.fail_after(PATIENCE_S):
            await first.close()
            await first.close()
        assert not first.clients
        await client.closed()
        with pytest.raises(InvalidStatus):
            await connect(first.capability.url)
        assert await works(stays)
        assert await sessions_on(world) == before + 1
    assert "Here" in ((await world.observe(Look())).text or "")


@pytest.mark.long
async def test_a_server_that_closes_leaves_the_sessions_as_they_are(browse: Browse) -> None:
    """Its port is free, and each client's connection over; closing twice is not an error."""
    world, server = await browse("<h1>Here</h1>"), await CdpServer.open()
    before = await sessions_on(world)
    async with cdp_client(admit(server, world).capability.url) as client:
        assert await works(client)
        with anyio.fail_after(PATIENCE_S):
            await server.close()
            await server.close()
        await client.closed()
    with pytest.raises(OSError, match="connect"):
        await anyio.connect_tcp("127.0.0.1", server.port)
    assert await sessions_on(world) == before
    assert "Here" in ((await world.observe(Look())).text or "")


async def test_strangers_at_the_port_are_answered_or_left(
    browse: Browse, server: CdpServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that say nothing or nonsense hold nobody up, and no log holds an address."""
    caplog.set_level("DEBUG")
    access = admit(server, await browse("x"))
    silent = await anyio.connect_tcp("127.0.0.1", server.port)
    rude = await anyio.connect_tcp("127.0.0.1", server.port)
    async with silent, rude:
        await rude.send(b"PUT /json/new HTTP/1.1\r\n\r\n")
        with anyio.fail_after(PATIENCE_S), contextlib.suppress(anyio.EndOfStream):
            assert b"HTTP" in await rude.receive()
        async with cdp_client(access.capability.url) as client:
            assert await works(client)
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("hud_mcp")]
    assert not [text for text in ours if access.secret in text]
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


@pytest.mark.long
async def test_what_nests_too_deep_to_be_read_is_an_error_and_not_a_silence(
    browse: Browse, server: CdpServer
) -> None:
    """Each answer comes, whatever the depth, and the shared driver goes on."""
    async with cdp_client(admit(server, await browse("x")).capability.url) as client:
        for depth in (100, 300, 450, 900, 2000):
            nest = f"let a = 0; for (let i = 0; i < {depth}; i++) a = [a]; a"
            answer = await client.call("Runtime.evaluate", expression=nest, returnByValue=True)
            assert answer.keys() & {"result", "error"}
        assert await works(client)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("depth", [50, 95, 105, 400, 900])
async def test_parameters_that_nest_too_deep_harm_nobody(
    depth: int, browse: Browse, server: CdpServer
) -> None:
    """For the browser and for a page there is an answer, where Chromium itself has none."""
    url = admit(server, await browse("x")).capability.url
    nest = "[" * depth + "]" * depth
    async with cdp_client(url) as good:
        for method, name in (("Storage.setCookies", "cookies"), ("Runtime.evaluate", "x")):
            async with cdp_client(url) as client:
                message = f'{{"id": 7, "method": "{method}", "params": {{"{name}": {nest}}}}}'
                await client.socket.send(message)
                assert "error" in await client.answer(7)
        assert await works(good)


@pytest.mark.long
async def test_a_dialog_holds_no_client_up(browse: Browse, server: CdpServer) -> None:
    """The session's rule answers it, and the client is told of it as by Chromium."""
    world = await browse("x")
    async with cdp_client(admit(server, world).capability.url) as client:
        await client.result("Page.enable")
        assert await client.evaluate("confirm('sure?')") is True
        opened = await client.event("Page.javascriptDialogOpening")
        assert opened["params"]["message"] == "sure?"
        await client.event("Page.javascriptDialogClosed")
    assert "sure?" in ((await world.observe(Look())).text or "")


@pytest.mark.long
async def test_clients_that_leave_while_they_are_let_in_leave_nothing_behind(
    browse: Browse, server: CdpServer
) -> None:
    """At whatever moment: after their first bytes, when they are let in, at the first answer."""
    world = await browse("x")
    access = admit(server, world)
    before = await sessions_on(world)
    for turns in range(0, 60, 3):
        socket = await connect(access.capability.url)
        with contextlib.suppress(ConnectionClosed):
            await socket.send('{"id": 1, "method": "Runtime.evaluate", "params": {}}')
        for _turn in range(turns):
            await anyio.lowlevel.checkpoint()
        socket.transport.abort()

    async def left() -> bool:
        return not access.clients and await sessions_on(world) == before

    with anyio.fail_after(PATIENCE_S):
        while access.clients:
            await anyio.lowlevel.checkpoint()
    await until(left)

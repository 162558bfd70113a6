"""Which hosts the row of a task opens, to whom, and by which addresses."""

import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.environment.calls import task_hosts
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.task import Task
from hud_mcp.values.action import ClickAction, CustomAction, WaitAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Open = Callable[..., Awaitable[BrowserWorld]]


class Site:
    """A site of this machine, which notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(f"{self.headers['host']}{self.path}")
                body = b"<!doctype html><title>Here</title><h1>It is here</h1>"
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on the loopback."""
    made = Site()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
async def open_row(shared: Shared) -> AsyncIterator[Open]:
    """Open a browser for a row's hosts; it is closed after the test."""
    worlds: list[BrowserWorld] = []

    async def open_world(*allow: str, **more: Any) -> BrowserWorld:
        spec = Browser(start=None, tasks_open_hosts=True)
        worlds.append(await spec.open(Opening(shared=shared, allow=allow, **more)))
        return worlds[-1]

    yield open_world
    for world in worlds:
        await world.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names that lead to addresses of the test's choice, as a name server would say."""
    known: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host in known:
            kind = socket.SOCK_STREAM
            return [(socket.AF_INET, kind, 6, "", (a, port)) for a in known[host]]
        return real(host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


async def told(world: BrowserWorld) -> str:
    """What the agent reads."""
    return (await world.observe(Look())).text or ""


async def test_a_trusted_row_opens_its_own_host_and_no_other(open_row: Open, site: Site) -> None:
    """Its port is reached from pages and actions; another port of the same machine is not."""
    world = await open_row(f"127.0.0.1:{site.port}")
    await world.goto(f"http://127.0.0.1:{site.port}/")
    assert "It is here" in await told(world)
    await world.act(
        CustomAction(action="goto", args={"url": f"http://127.0.0.1:{site.port}/again"})
    )
    other = Site()
    try:
        with pytest.raises(ActionFailed, match="may not be opened"):
            await world.act(
                CustomAction(action="goto", args={"url": f"http://127.0.0.1:{other.port}"})
            )
        page = f"<a href='http://127.0.0.1:{other.port}/'>Other</a>"
        await world.load_html(page)
        await world.act(ClickAction(selector="a"))
        assert f"'127.0.0.1:{other.port}' was not reached" in await told(world)
        assert other.asked == []
    finally:
        other.server.shutdown()
        other.server.server_close()
    assert site.asked[:2] == [f"127.0.0.1:{site.port}/", f"127.0.0.1:{site.port}/again"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "host", ["localhost:80", "127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254", "[::1]:80",
             "[fd00::1]", "x.localhost", "0.0.0.0", "100.64.0.1"]
)  # fmt: skip
async def test_an_imported_row_opens_no_local_address(open_row: Open, host: str) -> None:
    """The session does not begin, and the text says by what it could; with that, it does."""
    with pytest.raises(EnvironmentFailed, match=r"not the user's own\. Start with --allow"):
        await open_row(host, is_trusted=False)
    await open_row(host, is_trusted=False, local_hosts=(host,))
    await open_row(host)


@pytest.mark.long
async def test_a_name_that_leads_home_is_refused_to_an_imported_row(
    open_row: Open, site: Site, names: dict[str, list[str]]
) -> None:
    """Also where it has a public address beside; the agent reads which host was refused."""
    names["evil.example"] = ["127.0.0.1"]
    host = f"evil.example:{site.port}"
    imported = await open_row("evil.example", is_trusted=False)
    with pytest.raises(ActionFailed, match="leads to an address that the task may not open"):
        await imported.goto(f"http://{host}/")
    await imported.load_html(f"<a href='http://{host}/x'>Go</a><img src='http://{host}/y'>")
    await imported.act(ClickAction(selector="a"))
    await imported.act(WaitAction(time=50))
    assert f"'{host}' was not reached: it leads to an address" in await told(imported)
    anything = await open_row("*")
    with pytest.raises(ActionFailed, match="leads to an address"):
        await anything.goto(f"http://{host}/")
    assert site.asked == []
    for allowed in (
        await open_row("evil.example"),
        await open_row("evil.example", is_trusted=False, local_hosts=("evil.example",)),
    ):
        await allowed.goto(f"http://{host}/")
        assert "It is here" in await told(allowed)


async def test_sessions_of_one_process_share_no_hosts(open_row: Open, site: Site) -> None:
    """What one row opens stays shut to the next, in the same Chromium, also without delay."""
    host = f"127.0.0.1:{site.port}"
    first = await open_row(host)
    second = await open_row("example.com")
    third = await open_row()
    assert first.page.context.browser is second.page.context.browser
    await first.goto(f"http://{host}/")
    count = len(site.asked)
    for world in (second, third):
        with pytest.raises(ActionFailed, match="may not be opened"):
            await world.goto(f"http://{host}/")
        await world.load_html(
            f"<script>fetch('http://{host}/f', {{mode: 'no-cors'}});"
            f"new WebSocket('ws://{host}/w')</script><iframe src='http://{host}/i'></iframe>"
        )
        assert f"'{host}' was not reached" in await told(world)
    assert len(site.asked) == count


@pytest.mark.long
async def test_an_option_is_needed_for_rows_to_open_hosts(shared: Shared, site: Site) -> None:
    """In every other environment, what a row names opens nothing."""
    host = f"127.0.0.1:{site.port}"
    world = await Browser(start=None).open(Opening(shared=shared, allow=(host,)))
    try:
        with pytest.raises(ActionFailed, match="may not be opened"):
            await world.goto(f"http://{host}/")
    finally:
        await world.close()
    assert site.asked == []


@pytest.mark.long
async def test_a_session_with_opened_hosts_comes_back_from_a_snapshot(
    open_row: Open, site: Site
) -> None:
    """It is not replayed; its page is loaded again where it was, under the same hosts."""
    spec = Browser(start=None, tasks_open_hosts=True)
    assert spec.replays_with(())
    assert not spec.replays_with(("example.com",))
    host = f"127.0.0.1:{site.port}"
    world = await open_row(host)
    await world.goto(f"http://{host}/kept")
    again = await open_row(host)
    with anyio.fail_after(PATIENCE_S):
        await again.restore(await world.snapshot())
    assert again.url == f"http://{host}/kept"


def test_hosts_of_a_row_are_those_of_its_setup_and_config() -> None:
    """With the twin of each; evaluate opens nothing."""
    task = Task(
        prompt="x",
        gym="hud-browser",
        setup=[("goto", "https://example.com/a"), ("goto", "/path"), ("goto", "www.b.org:81/x"),
               ("goto", "localhost:3000"), ("goto", "http://127.0.0.1/")],
        evaluate=[("url_match", "https://secret.example")],
        config={"allow": ["*.c.net"]},
    )  # fmt: skip
    assert task_hosts(task) == (
        "example.com", "www.example.com", "www.b.org:81", "b.org:81", "localhost:3000",
        "127.0.0.1:80", "*.c.net",
    )  # fmt: skip


async def test_what_is_no_host_is_told_before_anything_opens(open_row: Open) -> None:
    """A row's `allow` with a scheme is an error that says how hosts are written."""
    with pytest.raises(EnvironmentFailed, match=r"row cannot open hosts: 'https://a\.b' is"):
        await open_row("https://a.b")

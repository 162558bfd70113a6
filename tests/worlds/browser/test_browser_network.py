"""What a page may reach: its own site and the allow-list, by whatever way it tries."""

# ruff: noqa: E501  # pages are easier to read unbroken

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import anyio.abc
import pytest
from reaching import own_address
from waiting import PATIENCE_S

from hud_mcp.values.action import ClickAction, CustomAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Shared
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest, SiteResponse

Browse = Callable[..., Awaitable[BrowserWorld]]


class Outside:
    """A server on another port of every address of the machine, which notes what reaches it."""

    def __init__(self, port: int, udp: socket.socket) -> None:
        self.port = port
        self.udp = udp
        self.address = "127.0.0.1"
        self.requests: list[str] = []

    @property
    def host(self) -> str:
        """Its address without a scheme."""
        return f"{self.address}:{self.port}"

    def heard_udp(self) -> bool:
        """Whether a datagram came."""
        try:
            return bool(self.udp.recv(10))
        except BlockingIOError:
            return False

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Answer every request with an empty page."""
        async with stream:
            try:
                line = (await stream.receive()).split(b"\r\n")[0].decode("latin-1")
                self.requests.append(line)
                await stream.send(
                    b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\n"
                    b"Content-Type: text/html\r\nContent-Length: 9\r\nConnection: close\r\n\r\n<h1>Out"
                    b"</"
                )
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    """A forbidden server, and a UDP port of the same number's kind."""
    listener = await anyio.create_tcp_listener(local_host="0.0.0.0")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("0.0.0.0", 0))
    udp.setblocking(False)
    server = Outside(listener.extra(anyio.abc.SocketAttribute.local_port), udp)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.serve)
        yield server
        group.cancel_scope.cancel()
    await listener.aclose()
    udp.close()


def attempts(host: str, udp: str) -> dict[str, str]:
    """A site whose pages try to reach a host in every way that there is."""
    http = f"http://{host}"
    worker = f"fetch('{http}/worker').catch(() => 0); postMessage(1)"
    return {
        "index.html": f"""<title>Try</title>
<link rel=stylesheet href={http}/css><link rel=prefetch href={http}/prefetch>
<link rel=preload as=image href={http}/preload><link rel=preconnect href={http}>
<link rel=modulepreload href={http}/modulepreload><link rel=icon href={http}/icon>
<link rel=dns-prefetch href=http://leak.example><link rel=manifest href={http}/manifest>
<script src={http}/script></script><script type=module>import('{http}/module').catch(() => 0)</script>
<img src={http}/img><img src={http}/lazy loading=lazy><iframe src={http}/iframe></iframe>
<object data={http}/object></object><embed src={http}/embed><video src={http}/video></video>
<audio src={http}/audio></audio><svg><image href={http}/svg /></svg>
<style>@import url({http}/import); @font-face {{ font-family: f; src: url({http}/font) }}
body {{ font-family: f; background: url({http}/background) }}</style>
<script type=speculationrules>{{"prefetch":[{{"urls":["{http}/speculate"]}}]}}</script>
<script>
const quiet = f => {{ try {{ const p = f(); p && p.catch && p.catch(() => 0) }} catch {{}} }};
quiet(() => fetch('{http}/fetch')); quiet(() => fetch('{http}/nocors', {{ mode: 'no-cors' }}));
quiet(() => fetch('/api/hop')); quiet(() => navigator.sendBeacon('{http}/beacon', 'x'));
quiet(() => {{ const x = new XMLHttpRequest(); x.open('GET', '{http}/xhr'); x.send() }});
quiet(() => {{ new WebSocket('ws://{host}/ws') }}); quiet(() => {{ new EventSource('{http}/events') }});
quiet(() => {{ new WebTransport('https://{host}/wt').ready.catch(() => 0) }});
quiet(() => {{ new Worker('/worker.js') }}); quiet(() => {{ new SharedWorker('/worker.js') }});
quiet(() => navigator.serviceWorker.register('/service.js'));
quiet(() => fetch('http://localhost:{host.rpartition(":")[2]}/localhost'));
quiet(() => fetch('http://[::1]:{host.rpartition(":")[2]}/six'));
quiet(() => fetch('file:///etc/passwd').then(r => r.text()).then(t => localStorage.stolen = t)
  .catch(() => 0).then(() => localStorage.tried = 'a file'));
quiet(() => {{ const p = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:{udp}' }}] }});
  p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)) }});
</script>""",
        "links.html": f"""<a id=link href={http}/link>link</a><a id=tab href={http}/tab target=_blank>tab</a>
<a id=ping href=/ping.html ping={http}/ping>ping</a>
<form id=form action={http}/form method=post><button>post</button></form><a id=hop href=/api/hop>hop</a>
<a id=download download href={http}/download>download</a>
<button id=open onclick="window.open('{http}/open')">open</button>""",
        "worker.js": worker,
        "service.js": f"fetch('{http}/service').catch(() => 0)",
        "ping.html": "<h1>Pinged</h1>",
        "refresh.html": f"<meta http-equiv=refresh content='0; url={http}/refresh'>",
    }


async def provoke(browse: Browse, outside: Outside, **options: object) -> BrowserWorld:
    """Open the page of attempts, click its links, follow its refresh."""

    async def hop(request: SiteRequest, state: object) -> SiteResponse:
        return SiteResponse.redirect(f"http://{outside.host}/redirect")

    udp = f"{outside.address}:{outside.udp.getsockname()[1]}"
    world = await browse(attempts(outside.host, udp), backend=hop, **options)
    with anyio.fail_after(PATIENCE_S):
        for link in ("#link", "#hop", "form button", "#open", "#tab", "#ping", "#download"):
            await world.goto("/links.html")
            await world.act(ClickAction(selector=link))
        async with world.page.expect_request(lambda asked: asked.url.endswith("/refresh")) as asked:
            await world.goto("/refresh.html")
        await (await asked.value).response()
        await world.goto("/ping.html")
    return world


@pytest.mark.sampled(1)
@pytest.mark.anyio
@pytest.mark.browser
@pytest.mark.parametrize("allow", [(), ("*",)], ids=str)
async def test_nothing_but_the_site_is_reached_by_any_way(
    browse: Browse, outside: Outside, tmp_path: Path, allow: tuple[str, ...]
) -> None:
    """Thirty ways out, none of which reaches another port, a file, UDP or a name server.

    Nor do they where the public web is allowed, and the port is of the machine's own address.
    """
    services, net_log = Shared(), tmp_path / "net.json"
    if allow:
        outside.address = own_address() or outside.address
    arguments = (f"--log-net-log={net_log}", "--net-log-capture-mode=Everything")
    try:
        world = await provoke(browse, outside, services=services, arguments=arguments, allow=allow)
        kept = await world.page.evaluate("() => ({ ...localStorage })")
        assert kept == {"tried": "a file"}
        await world.close()
    finally:
        await services.close()
    assert outside.requests == []
    assert not outside.heard_udp()
    looked_up = _names_asked_of_a_resolver(net_log)
    assert looked_up <= {"127.0.0.1"}


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.browser
async def test_the_same_ways_lead_out_where_the_list_allows(
    browse: Browse, outside: Outside
) -> None:
    """With the host on the list, the same page reaches it: the test above can fail."""
    await provoke(browse, outside, allow=[outside.host])
    reached = {line.split()[1] for line in outside.requests}
    expected = {
        "/css", "/script", "/img", "/iframe", "/fetch", "/xhr", "/nocors", "/beacon", "/worker",
        "/service", "/link", "/download", "/redirect", "/form", "/open", "/tab", "/refresh", "/ws",
        "/events", "/module", "/font", "/background", "/preload",
    }  # fmt: skip
    assert expected <= reached


def _names_asked_of_a_resolver(net_log: Path) -> set[str]:
    text = net_log.read_text().rstrip().rstrip(",")
    log = json.loads(text if text.endswith("}") else text + "]}")
    kinds = log["constants"]["logEventTypes"]
    jobs = {kinds[k] for k in kinds if k.startswith("HOST_RESOLVER_") and "JOB" in k}
    jobs |= {kinds[k] for k in kinds if k in ("DNS_TRANSACTION", "HOST_RESOLVER_SYSTEM_TASK")}
    return {
        event["params"].get("host") or event["params"].get("hostname", "?")
        for event in log["events"]
        if event["type"] in jobs and event.get("params", {}).keys() & {"host", "hostname"}
    }


@pytest.mark.anyio
@pytest.mark.browser
async def test_what_was_refused_is_told_to_the_agent(browse: Browse) -> None:
    """The text names the host that was not reached; a refused document says why."""
    world = await browse("<img src=http://cdn.example/x.png><a href=http://news.example/>news</a>")
    assert "'cdn.example' was not reached" in ((await world.observe(Look())).text or "")
    await world.act(ClickAction(selector="a"))
    assert "may not be reached from here" in await world.text()


@pytest.mark.anyio
@pytest.mark.browser
async def test_sessions_do_not_reach_each_others_sites(browse: Browse) -> None:
    """One session's port is closed to another session's pages, and the origin is each one's own."""
    first = await browse("<h1>First</h1>")
    second = await browse(f"<h1>Second</h1><iframe src={first.site_address}/></iframe>")
    await second.goto("/")
    assert "Second" in await second.text()
    frames = [await frame.inner_text("body") for frame in second.page.frames[1:]]
    assert not any("First" in text for text in frames)


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.browser
async def test_permissions_are_denied_without_asking(browse: Browse) -> None:
    """Camera, notifications and place are refused, and nothing waits for an answer."""
    world = await browse("<button>x</button>")
    with anyio.fail_after(PATIENCE_S):
        answers = await world.page.evaluate(
            """async () => [
              await navigator.mediaDevices.getUserMedia({ video: true }).catch(e => e.name),
              await Notification.requestPermission(),
              await new Promise(r => navigator.geolocation.getCurrentPosition(() => r('ok'),
                e => r(e.code))),
            ]"""
        )
    assert answers[0] in ("NotAllowedError", "NotFoundError")
    assert answers[1:] == ["denied", 1]


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.browser
async def test_an_agent_goes_where_the_list_allows(browse: Browse, outside: Outside) -> None:
    """An allowed host may be opened by URL, and without its scheme by path it is not mistaken."""
    world = await browse(allow=[outside.host])
    await world.act(CustomAction(action="goto", args={"url": f"http://{outside.host}/there"}))
    assert world.url == f"http://{outside.host}/there"

"""The gateway itself, asked in ways that no browser would ask it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from reaching import HERE, OWN, Service, fake_names, serving
from waiting import PATIENCE_S

from hud_mcp.base.egress import AllowList
from hud_mcp.base.gateway import Gateway

pytestmark = pytest.mark.anyio


@pytest.fixture
def service() -> Iterator[Service]:
    """A service on the loopback, which is on the list."""
    with serving("127.0.0.1") as started:
        yield started


@pytest.fixture
def refused() -> list[tuple[str, bool]]:
    """What the gateway has told its owner of."""
    return []


@pytest.fixture
async def port(service: Service, refused: list[tuple[str, bool]]) -> AsyncIterator[int]:
    """The gateway's own port."""
    listener = socket.create_server(("127.0.0.1", 0))
    own: int = listener.getsockname()[1]
    gateway = Gateway(
        AllowList([f"127.0.0.1:{service.port}", "listed.example", "*.web.example"]),
        most=4,
        on_refused=lambda host, listed: refused.append((host, listed)),
    )
    await gateway.open(listener)
    yield own
    await gateway.close()


async def send(port: int, text: str) -> str:
    """Send bytes, and return all that comes back."""
    with anyio.fail_after(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text.encode("latin-1"))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer.decode("latin-1")


async def test_the_far_side_is_told_the_host_that_is_connected_to(
    port: int, service: Service
) -> None:
    """A client cannot name another host of a shared server; its own proxy headers stay here."""
    host = f"127.0.0.1:{service.port}"
    head = f"GET http://{host}/a?b=c HTTP/1.1\r\nHost: evil.example\r\nhost : x\r\n"
    answer = await send(port, f"{head}Proxy-Authorization: secret\r\n\r\n")
    assert answer.startswith("HTTP/1.0 200")
    assert service.asked == [f"{host}/a?b=c"]


@pytest.mark.parametrize(
    ("target", "heard"),
    [("http://HOST", "/"), ("http://HOST?q", "/?q"), ("http://HOST/x//y?", "/x//y?"),
     ("http://me:pw@HOST/p", "/p")],
)  # fmt: skip
async def test_a_path_arrives_as_it_was_asked_for(
    port: int, service: Service, target: str, heard: str
) -> None:
    """Also where it is empty, and nothing of a user's name goes with it."""
    host = f"127.0.0.1:{service.port}"
    await send(port, f"GET {target.replace('HOST', host)} HTTP/1.1\r\n\r\n")
    assert service.asked == [f"{host}{heard}"]


@pytest.mark.parametrize(
    "target",
    ["http://ALLOWED@evil.example/", "http://ALLOWED\\@evil.example/", "http://evil.example/ALLOWED",
     "http://ALLOWED#@evil.example/x", "http://evil.example?@ALLOWED/", "HTTP://evil.example:80/",
     "http://localhost:PORT/", "http://0x7f.1:1/"],
)  # fmt: skip
async def test_a_look_alike_reaches_only_what_is_listed(
    port: int, service: Service, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The host that is judged is the one that is connected to, however the address is written."""
    asked = fake_names(monkeypatch, {})
    allowed = f"127.0.0.1:{service.port}"
    target = target.replace("ALLOWED", allowed).replace("PORT", str(service.port))
    answer = await send(port, f"GET {target} HTTP/1.1\r\nHost: {allowed}\r\n\r\n")
    assert asked == []
    if answer.startswith("HTTP/1.1 403"):
        assert service.asked == []
    else:  # a fragment: what is asked is the listed host itself
        assert [each.partition("/")[0] for each in service.asked] == [allowed]


@pytest.mark.parametrize(
    "line",
    ["GET / HTTP/1.1", "CONNECT", "CONNECT http://listed.example HTTP/1.1", "GET ws://x/ HTTP/1.1",
     "CONNECT [::1 HTTP/1.1", "CONNECT listed.example:99999 HTTP/1.1", "\x00\xff", "GET http:// x"],
)  # fmt: skip
async def test_nonsense_is_told_what_this_is(port: int, line: str) -> None:
    """It is an answer in HTTP, and the gateway goes on."""
    assert "This is an HTTP proxy" in await send(port, f"{line}\r\n\r\n")


async def test_a_refusal_says_whether_the_name_or_its_address_is_the_reason(
    port: int, refused: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads no address that it did not know."""
    fake_names(monkeypatch, {"listed.example": ["127.0.0.1"], "a.web.example": ["10.1.2.3"]})
    other = await send(port, "CONNECT other.example:80 HTTP/1.1\r\n\r\n")
    listed = await send(port, "CONNECT listed.example:80 HTTP/1.1\r\n\r\n")
    below = await send(port, "CONNECT a.web.example:80 HTTP/1.1\r\n\r\n")
    assert "may not be reached from here" in other
    assert "leads to" not in other
    for text in (listed, below):
        assert text.startswith("HTTP/1.1 403")
        assert "It leads to an address that the list does not open." in text
        assert "10.1.2.3" not in text
    assert refused == [
        ("other.example:80", False), ("listed.example:80", True), ("a.web.example:80", True),
    ]  # fmt: skip


@pytest.mark.parametrize("host", [f"{'a' * 64}.web.example", "a..web.example", "b.web.example"])
async def test_a_name_that_nobody_knows_does_not_answer(port: int, host: str) -> None:
    """Nor does one that no name server could be asked for."""
    answer = await send(port, f"CONNECT {host}:80 HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 502")
    assert "does not answer" in answer


@pytest.mark.skipif(OWN is None, reason="not on this machine: it has no network")
async def test_a_second_address_is_tried_where_the_first_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name with an address that nothing answers at is reached by its other one."""
    fake_names(monkeypatch, {"two.example": ["240.0.0.1", HERE]})
    listener = socket.create_server(("127.0.0.1", 0))
    gateway = Gateway(AllowList(["two.example"]), most=4)
    with serving(HERE) as here:
        await gateway.open(listener)
        url = f"http://two.example:{here.port}/second"
        await send(listener.getsockname()[1], f"GET {url} HTTP/1.1\r\n\r\n")
        await gateway.close()
        assert here.paths == {"/second"}


async def test_no_more_connections_than_are_allowed(port: int, service: Service) -> None:
    """The next one is told so, and those that are open go on."""
    host = f"127.0.0.1:{service.port}"
    held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    with anyio.fail_after(PATIENCE_S):
        for _each in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
            assert b"200" in await reader.readline()
            held.append((reader, writer))
        assert "429" in await send(port, f"CONNECT {host} HTTP/1.1\r\n\r\n")
        reader, writer = held[0]
        writer.write(b"GET /on HTTP/1.0\r\n\r\n")
        await reader.readuntil(b"Here")
        for _reader, writer in held:
            writer.close()
            await writer.wait_closed()
    assert service.paths == {"/on"}

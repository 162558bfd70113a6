"""The gateway's server against clients that keep no rules."""

import asyncio
from contextlib import AsyncExitStack, suppress

import anyio
import psutil
import pytest
from gateway_world import MESSAGE, Got, RunHere, Writer, gateway_to, provider, said
from waiting import until

from hud_mcp.plugins.models.gateway.http1 import Bounds

pytestmark = pytest.mark.anyio


async def reply(_got: Got, writer: Writer) -> None:
    """The provider's reply to everything."""
    await writer.whole(said())


def head(run: RunHere, *more: str, method: str = "POST", path: str = "/v1/messages") -> bytes:
    """The head of a request with the run's key."""
    lines = [f"{method} {path} HTTP/1.1", "host: x", f"x-api-key: {run.key}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_upgrade_is_refused_at_once(method: str) -> None:
    """So a program that tries a WebSocket first falls back; the provider is not asked."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        more = ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13")
        came = await run.raw(head(run, *more, method=method, path="/v1/responses"))
    assert came.startswith(b"HTTP/1.1 426 ")
    assert there.got == []


async def test_an_offer_of_http2_is_overlooked() -> None:
    """Some clients make it in each plain request."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        headers = {"x-api-key": run.key, "connection": "upgrade", "upgrade": "h2c"}
        came = await run.ask("/v1/messages", MESSAGE, headers)
    assert came.status_code == 200


async def test_a_body_in_chunks_passes_whole() -> None:
    """Its length is not said before."""
    parts = [b'{"model": "claude-opus-5", ', b'"max_tokens": 9, "messages": []}']
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        asked = head(run, "transfer-encoding: chunked") + chunks + b"0\r\n\r\n"
        came = await run.raw(asked, until=b'"usage"')
    assert came.startswith(b"HTTP/1.1 200 ")
    assert [got.body for got in there.got] == [b"".join(parts)]


async def test_requests_of_one_connection_follow_each_other() -> None:
    """Also where they are sent before a reply has come, and a body is announced."""
    body = b'{"model": "claude-opus-5", "max_tokens": 9, "messages": []}'
    length = f"content-length: {len(body)}"
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        one = head(run, length) + body
        three = one + head(run, length, "expect: 100-continue") + body
        came = await run.raw(three + head(run, length, "connection: close") + body)
    assert came.count(b"HTTP/1.1 200 ") == 3
    assert len(there.got) == 3


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_without_end_is_refused_at_its_bound(*, is_chunked: bool) -> None:
    """In the form of its dialect, though the client still writes; nothing is sent on."""
    bounds = Bounds(body_bytes=1_000_000, linger_s=0.5)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
    ):
        more = "transfer-encoding: chunked" if is_chunked else "content-length: 99999999999"
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        body = chunk * 20 if is_chunked else b"x" * 1_300_000
        came = await run.raw(head(run, more) + body, until=b"1,000,000 bytes")
    assert came.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in came
    assert there.got == []


@pytest.mark.parametrize("sent", ["GET / HT", "POST /v1/messages HTTP/1.1\r\nhost: x\r\n", ""])
async def test_a_slow_head_is_not_waited_for(sent: str) -> None:
    """However much of it has come."""
    bounds = Bounds(head_s=0.3)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
    ):
        came = await run.raw(sent.encode())
    assert came.startswith(b"HTTP/1.1 408 ") if sent else came == b""


async def test_a_slow_body_is_not_waited_for() -> None:
    """It has its own time."""
    bounds = Bounds(body_s=0.3, linger_s=0.1)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
    ):
        came = await run.raw(head(run, "content-length: 10") + b"{")
    assert came.startswith(b"HTTP/1.1 408 ")
    assert b"takes 0.3 s at most" in came


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"POST http://127.0.0.1/v1/messages HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"POST /v1beta/models/../x:generateContent HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(200))
         + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"y" * 100_000, 431),
    ],
)  # fmt: skip
async def test_what_is_no_plain_request_is_refused(sent: bytes, status: int) -> None:
    """And the gateway serves on."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.raw(sent)
        after = await run.ask("/v1/messages", MESSAGE)
    assert came.startswith(b"HTTP/1.1 %d " % status)
    assert after.status_code == 200
    assert len(there.got) == 1


async def test_a_thousand_silent_connections_keep_no_run_out() -> None:
    """The oldest strangers make room; who has shown a key stays."""
    bounds = Bounds(strangers=64)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
        AsyncExitStack() as stack,
    ):
        port = int(run.url.rpartition(":")[2])
        kept = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        await kept.send(head(run, "connection: keep-alive", method="GET", path="/v1/models"))
        assert b"claude-opus-5" in await kept.receive()
        streams: list[asyncio.StreamWriter] = []
        for _ in range(1_000):
            with suppress(OSError):
                streams.append((await asyncio.open_connection("127.0.0.1", port))[1])
            if len(streams) > 300:
                streams.pop(0).close()
        came = await run.ask("/v1/messages", MESSAGE)
        await kept.send(head(run, method="GET", path="/v1/models"))
        assert b"claude-opus-5" in await kept.receive()
        for stream in streams:
            stream.close()
    assert came.status_code == 200


async def test_a_run_has_so_many_connections_and_requests_at_once() -> None:
    """More are refused so that a client comes again; those that are under way go on."""
    go_on = anyio.Event()

    async def wait(_got: Got, writer: Writer) -> None:
        await go_on.wait()
        await writer.whole(said())

    statuses: list[int] = []

    async def ask(run: RunHere) -> None:
        statuses.append((await run.ask("/v1/messages", MESSAGE)).status_code)

    async with (
        provider(wait) as there,
        gateway_to(there.url) as gateway,
        gateway.run() as run,
        gateway.run() as other,
        anyio.create_task_group() as group,
    ):
        for _ in range(16):
            group.start_soon(ask, run)
        await until(lambda: len(there.got) == 16)
        refused = await run.ask("/v1/messages", MESSAGE)
        group.start_soon(ask, other)
        await until(lambda: len(there.got) == 17)
        go_on.set()
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert statuses == [200] * 17


async def test_the_gateway_listens_on_loopback_alone() -> None:
    """No other machine reaches it."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        assert run.url.startswith("http://127.0.0.1:")
        port = int(run.url.rpartition(":")[2])
        found = psutil.Process().net_connections("tcp")
    listening = [each.laddr for each in found if each.status == psutil.CONN_LISTEN]
    assert [ip for ip, at in listening if at == port] == ["127.0.0.1"]

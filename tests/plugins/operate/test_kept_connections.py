"""Requests that one replica forwards to another over connections that it keeps."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from starlette.types import Message
from waiting import PATIENCE_S

from hud_mcp.plugins.operate.replicas.forwarding import (
    FORWARDED,
    Forwarding,
    Once,
    Outcome,
    Secret,
    SentBefore,
)
from hud_mcp.plugins.operate.replicas.route import Arrival
from hud_mcp.plugins.operate.values import OtherReplica
from hud_mcp.session.caller import Caller

pytestmark = pytest.mark.anyio

SECRET = Secret(b"5" * 64)
BODY = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}'


@dataclass
class Listener:
    """Answers requests of HTTP/1.1, and leaves some of them.

    Attributes:
        leaves: Which requests it leaves without an answer, counted from 0 over all connections.
        stays: Whether it takes more connections after that.
        connections: How many came.
        signatures: Of each request that came whole.
    """

    leaves: frozenset[int] = frozenset()
    stays: bool = True
    connections: int = 0
    signatures: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """Listen; the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        async with self._server:
            yield f"http://{host}:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(
                    line.lower().split(": ", 1)
                    for line in head.decode().split("\r\n")[1:]
                    if ": " in line
                )
                await reader.readexactly(int(fields["content-length"]))
                self.signatures.append(fields[FORWARDED])
                if len(self.signatures) - 1 in self.leaves:
                    if not self.stays:
                        self._server.close()
                    break
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


async def forward(forwarding: Forwarding, address: str, *, draining: bool = False) -> Outcome:
    """Forward one request; a reply arrives whole."""
    told: list[Message] = []

    async def send(message: Message) -> None:
        told.append(message)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    arrival = Arrival({}, receive, send, "POST", {}, BODY, Caller(), "w", is_forwarded=False)
    to = OtherReplica("srv-other", address, is_draining=draining)
    with anyio.fail_after(PATIENCE_S):
        outcome = await forwarding.forward(arrival, None, to, sender="srv-own")
    if outcome is Outcome.ANSWERED:
        assert b"".join(message.get("body", b"") for message in told) == b"ok"
    return outcome


@asynccontextmanager
async def forwarding() -> AsyncGenerator[Forwarding]:
    """What forwards, closed at the end."""
    made = Forwarding(SECRET)
    try:
        yield made
    finally:
        await made.close()


async def test_requests_one_after_the_other_go_over_one_connection() -> None:
    """Each has a signature of its own; to a replica that leaves, each has its own connection."""
    other = Listener()
    async with other.running() as address, forwarding() as made:
        for _ in range(5):
            assert await forward(made, address) is Outcome.ANSWERED
        assert other.connections == 1
        for _ in range(3):
            assert await forward(made, address, draining=True) is Outcome.ANSWERED
    assert other.connections == 4
    assert len(set(other.signatures)) == 8


async def test_a_request_on_a_connection_that_closes_goes_once_more() -> None:
    """With the same signature, so that a replica which has begun it does not do it twice."""
    other = Listener(leaves=frozenset({1}))
    async with other.running() as address, forwarding() as made:
        assert await forward(made, address) is Outcome.ANSWERED
        assert await forward(made, address) is Outcome.ANSWERED
    assert other.connections == 2
    first, left, again = other.signatures
    assert first != left == again


@pytest.mark.parametrize("stays", [True, False])
async def test_a_request_that_is_left_twice_may_have_been_done(*, stays: bool) -> None:
    """Whether the other replica is still there or not: nobody knows what it did before."""
    other = Listener(leaves=frozenset({1, 2}), stays=stays)
    async with other.running() as address, forwarding() as made:
        assert await forward(made, address) is Outcome.ANSWERED
        assert await forward(made, address) is Outcome.BROKEN
    assert len(other.signatures) == 2 + stays


async def test_a_replica_that_is_not_there_did_nothing() -> None:
    """A kept connection that was closed before it is used is not used."""
    other = Listener()
    async with forwarding() as made:
        async with other.running() as address:
            assert await forward(made, address, draining=True) is Outcome.ANSWERED
        assert await forward(made, address) is Outcome.UNREACHED


def test_a_signature_is_good_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is remembered for as long as it is valid, and no longer."""
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    once = Once()
    once.add("a")
    now_s += 100.0
    once.add("b")
    for mac in ("a", "b"):
        with pytest.raises(SentBefore):
            once.add(mac)
    now_s += 21.0
    once.add("a")
    with pytest.raises(SentBefore):
        once.add("b")

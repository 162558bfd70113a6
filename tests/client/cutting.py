"""A proxy on loopback that loses what it is told to lose, between a client and a real server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import anyio.abc

__all__ = ["Cutting", "cutting"]


class Cutting:
    """Forwards requests, one a connection, and loses replies.

    Attributes:
        url: Where it listens.
        lose: Of how many replies nothing comes back, though the server has done the call.
        refuse: How many requests it drops before the server hears of them.
        answer: Status lines that it gives itself, one a request, in place of the server's reply.
        seen: How many requests the server got.
    """

    def __init__(self, url: str, host: str, port: int) -> None:
        self.url = url
        self.lose = 0
        self.refuse = 0
        self.answer: list[str] = []
        self.seen = 0
        self._host = host
        self._port = port

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        """Handle one connection."""
        async with client:
            try:
                request = await _whole(client)
                if not request:
                    return
                if self.refuse:
                    self.refuse -= 1
                    return
                if self.answer:
                    line = self.answer.pop(0)
                    await client.send(f"HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n".encode())
                    return
                self.seen += 1
                async with await anyio.connect_tcp(self._host, self._port) as server:
                    await server.send(_alone(request))
                    reply = b"".join([piece async for piece in server])
                if self.lose:
                    self.lose -= 1
                    await client.send(reply[: len(reply) // 2])
                    return
                await client.send(reply)
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                return


@asynccontextmanager
async def cutting(url: str) -> AsyncIterator[Cutting]:
    """A proxy before the server of an address."""
    parts = urlsplit(url)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    proxy = Cutting(f"http://127.0.0.1:{port}{parts.path}", parts.hostname or "", parts.port or 80)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, proxy.serve)
        yield proxy
        group.cancel_scope.cancel()


async def _whole(stream: anyio.abc.SocketStream) -> bytes:
    """One request, head and body."""
    got = b""
    while b"\r\n\r\n" not in got:
        try:
            got += await stream.receive()
        except anyio.EndOfStream:
            return b""
    head, _, body = got.partition(b"\r\n\r\n")
    fields = [line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:]]
    length = next((int(value) for name, value in fields if name == b"content-length"), 0)
    while len(body) < length:
        body += await stream.receive()
    return head + b"\r\n\r\n" + body


def _alone(request: bytes) -> bytes:
    """The same request, after whose reply the server closes."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"connection: close"]) + b"\r\n\r\n" + body

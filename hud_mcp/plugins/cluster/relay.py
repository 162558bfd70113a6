"""A loopback port that stays, before servers that come and go on other machines."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketAttribute, SocketStream

from hud_mcp.base.serving.listening import LOOPBACK

__all__ = ["relay"]

_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
_CONNECT_S = 5.0


@asynccontextmanager
async def relay(target: Callable[[], str | None]) -> AsyncGenerator[int]:
    """Carry each connection to where a server is by then, while the block runs.

    Args:
        target: The URL of a server; None where there is none now: the connection is closed, and
            its client tries again.

    Yields:
        The port.
    """

    async def carry(client: SocketStream) -> None:
        async with client:
            url = target()
            if url is None:
                return
            parts = urlsplit(url)
            with suppress(*_BROKEN, TimeoutError):
                with anyio.fail_after(_CONNECT_S):
                    server = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
                async with server, anyio.create_task_group() as group:
                    group.start_soon(_pump, client, server)
                    await _pump(server, client)
                    group.cancel_scope.cancel()

    listener = await anyio.create_tcp_listener(local_host=LOOPBACK)
    port: int = listener.extra_attributes[SocketAttribute.local_port]()
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, carry)
        yield port
        group.cancel_scope.cancel()


async def _pump(source: ByteReceiveStream, sink: ByteSendStream) -> None:
    with suppress(*_BROKEN):
        async for chunk in source:
            await sink.send(chunk)

"""A channel that listens, in the form in which asyncio hands servers out."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Self

import anyio

__all__ = ["BoundChannel"]


class BoundChannel:
    """A channel that listens, used as an `asyncio.Server` is. Made by `bind`.

    Closing it leaves what is held to the next server on the store, as `Channel.close` does.

    Args:
        server: What listens.
        close_channel: Ends the channel, and everything that belongs to it.
    """

    def __init__(
        self, server: asyncio.Server, close_channel: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._server = server
        self._close_channel = close_channel
        self._is_closing = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Where it listens; none after it was closed."""
        return tuple(self._server.sockets)

    def is_serving(self) -> bool:
        """Whether it accepts peers."""
        return self._server.is_serving()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it runs on."""
        return self._server.get_loop()

    async def start_serving(self) -> None:
        """Nothing is left to do: it accepts peers since it was bound."""

    async def serve_forever(self) -> None:
        """Wait until it is closed, or this is cancelled; it is closed then."""
        try:
            await self._is_closing.wait()
        finally:
            self.close()
            with anyio.CancelScope(shield=True):
                await self.wait_closed()

    def close(self) -> None:
        """Accept nobody any more, and begin to end. It may be called twice."""
        if self._closing is None:
            self._server.close()
            self._is_closing.set()
            self._closing = self._server.get_loop().create_task(self._close_channel())

    async def wait_closed(self) -> None:
        """Wait until everything that belongs to it has ended; before `close`, for nothing."""
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()
        await self.wait_closed()

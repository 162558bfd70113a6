"""Waiting for descriptors that do not block: pipes and terminals, without threads."""

import asyncio
import os

__all__ = ["readable", "write_all"]


async def readable(fd: int) -> None:
    """Wait until there is something to read, or the end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write everything.

    Raises:
        OSError: EPIPE where nobody reads any more.
    """
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await _writable(fd)


async def _writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)

"""The I/O of a piece of work: requests over HTTP and waits, with an event loop and without."""

import time
from typing import Any, TypeVar

import anyio
import httpx

from hud_mcp_client.wire import Arrived, Fault, Pause, Reader, Send, Work

__all__ = ["AsyncTransport", "SyncTransport"]

T = TypeVar("T")

_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


def _timeout(silence_s: float) -> httpx.Timeout:
    return httpx.Timeout(silence_s, connect=min(10.0, silence_s))


def _fault(exc: httpx.TransportError) -> Fault:
    said = str(exc)
    reason = type(exc).__name__ + (f": {said}" if said else "")
    return Fault(reason, sent=not isinstance(exc, _UNSENT))


class AsyncTransport:
    """Performs work in an event loop.

    Args:
        url: The server's address, with its `/mcp`.
        silence_s: The silence after which a request has failed.
    """

    def __init__(self, url: str, *, silence_s: float) -> None:
        self._url = url
        self._http = httpx.AsyncClient(timeout=_timeout(silence_s))

    async def perform(self, work: Work[T]) -> T:
        """Perform a piece of work, and return what it returns."""
        came: Any = None
        while True:
            try:
                todo = work.send(came)
            except StopIteration as stop:
                done: T = stop.value
                return done
            came = None
            if isinstance(todo, Pause):
                await anyio.sleep(todo.seconds)
                continue
            try:
                came = await self._send(todo)
            except httpx.TransportError as exc:
                came = _fault(exc)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _send(self, todo: Send) -> Arrived:
        request = self._http.build_request(
            todo.method, self._url, content=todo.body, headers=dict(todo.headers)
        )
        response = await self._http.send(request, stream=True)
        try:
            reader = Reader(todo.id)
            if _is_stream(response):
                async for piece in response.aiter_text():
                    if (message := reader.feed(piece)) is not None:
                        return Arrived(response.status_code, response.headers, message)
                return Arrived(response.status_code, response.headers)
            await response.aread()
            return Arrived(
                response.status_code, response.headers, reader.whole(response.text), response.text
            )
        finally:
            await response.aclose()


class SyncTransport:
    """Performs work while its caller waits.

    Args:
        url: The server's address, with its `/mcp`.
        silence_s: The silence after which a request has failed.
    """

    def __init__(self, url: str, *, silence_s: float) -> None:
        self._url = url
        self._http = httpx.Client(timeout=_timeout(silence_s))

    def perform(self, work: Work[T]) -> T:
        """Perform a piece of work, and return what it returns."""
        came: Any = None
        while True:
            try:
                todo = work.send(came)
            except StopIteration as stop:
                done: T = stop.value
                return done
            came = None
            if isinstance(todo, Pause):
                time.sleep(todo.seconds)
                continue
            try:
                came = self._send(todo)
            except httpx.TransportError as exc:
                came = _fault(exc)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _send(self, todo: Send) -> Arrived:
        request = self._http.build_request(
            todo.method, self._url, content=todo.body, headers=dict(todo.headers)
        )
        response = self._http.send(request, stream=True)
        try:
            reader = Reader(todo.id)
            if _is_stream(response):
                for piece in response.iter_text():
                    if (message := reader.feed(piece)) is not None:
                        return Arrived(response.status_code, response.headers, message)
                return Arrived(response.status_code, response.headers)
            response.read()
            return Arrived(
                response.status_code, response.headers, reader.whole(response.text), response.text
            )
        finally:
            response.close()


def _is_stream(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")

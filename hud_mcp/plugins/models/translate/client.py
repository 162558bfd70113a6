"""The client of HTTP for replies that pass while they come."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from httpx2 import AsyncByteStream, AsyncClient, Request, Response

from hud_mcp.plugins.models.gateway.upstream import Proxied, Redirected, chunks_of
from hud_mcp.plugins.models.wire import Rewrite, WireClient, redirect_text

__all__ = ["PassingClient", "sending"]

_SENT: ContextVar[list[str]] = ContextVar("_SENT")


@contextmanager
def sending() -> Generator[list[str]]:
    """Note in a list each address to which the block sends a request."""
    sent: list[str] = []
    token = _SENT.set(sent)
    try:
        yield sent
    finally:
        _SENT.reset(token)


class _Bytes(AsyncByteStream):
    """A body as it comes, without our key."""

    def __init__(self, reply: Response, key: str) -> None:
        self._reply = reply
        self._chunks = chunks_of(
            Proxied(reply), key
        )  # once: a library reads what is left by another loop

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._reply.aclose()


class PassingClient(WireClient):
    """A client whose streams are not read here; `receive` gets whole replies."""

    def __init__(self, key: str, receive: Rewrite | None) -> None:
        super().__init__(receive=receive)
        self._key = key

    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        """Send a request, and return its reply.

        Raises:
            Redirected: The provider names another address, which may not have the key.
        """
        sent = await self._rewritten(request)
        sent.headers["accept-encoding"] = "identity"
        _SENT.get().append(str(sent.url))
        options["follow_redirects"] = False
        came = await AsyncClient.send(self, sent, stream=True, **options)
        if came.is_redirect:
            await came.aclose()
            raise Redirected(redirect_text(came.status_code, came.headers.get("location", "")))
        headers = [(k, v) for k, v in came.headers.multi_items() if k.lower() not in _ENCODED]
        reply = Response(
            came.status_code, headers=headers, stream=_Bytes(came, self._key), request=sent
        )
        if stream and reply.is_success:
            return reply
        body = await reply.aread()
        return self._read(sent, reply, body) if reply.is_success else reply


_ENCODED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers of the body's encoding, which `chunks_of` undoes."""

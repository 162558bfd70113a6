"""A client of HTTP that rewrites JSON on its way to a provider, and on its way back.

The models' library has no place for providers' computer tools: it knows functions alone. So such
a tool is a function to it, and what the provider is sent and sends is put right here.
"""

from collections.abc import Callable
from typing import Any

import orjson
from httpx2 import AsyncClient, Request, Response, Timeout

__all__ = ["WireClient"]

Rewrite = Callable[[dict[str, Any]], dict[str, Any]]

_TIMEOUT = Timeout(600.0, connect=10.0)
_SIZES = ("content-length", "content-encoding", "transfer-encoding")
"""Headers that tell of a body that is another one afterwards."""


class WireClient(AsyncClient):
    """A client for one provider's library.

    Args:
        send: Rewrites the body of each request.
        receive: Rewrites the body of each reply that is not a refusal; None for as it is.
        headers: Of each request; one that is there already gets the value too, after a comma.
    """

    def __init__(self, send: Rewrite, receive: Rewrite | None, headers: dict[str, str]) -> None:
        super().__init__(timeout=_TIMEOUT, follow_redirects=True)
        self._rewrite_sent = send
        self._rewrite_received = receive
        self._more = headers

    async def send(self, request: Request, **options: Any) -> Response:
        """Send a request, rewritten, and return its reply, rewritten."""
        body = orjson.loads(await request.aread())
        headers = {k: v for k, v in request.headers.multi_items() if k.lower() not in _SIZES}
        for name, value in self._more.items():
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        sent = Request(
            request.method, request.url, headers=headers,
            content=orjson.dumps(self._rewrite_sent(body)), extensions=request.extensions,
        )  # fmt: skip
        reply = await super().send(sent, **options)
        receive = self._rewrite_received
        if receive is None or not reply.is_success:
            return reply
        kept = [(k, v) for k, v in reply.headers.multi_items() if k.lower() not in _SIZES]
        try:
            received = receive(orjson.loads(await reply.aread()))
        except (ValueError, TypeError, AttributeError, KeyError):  # for its library to refuse
            return reply
        return Response(
            reply.status_code, headers=kept, content=orjson.dumps(received), request=sent
        )

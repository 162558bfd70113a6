"""The client of HTTP that every model is asked through.

It mends lone surrogates in replies, which no library can write again. It rewrites JSON on its
way, because the models' library knows functions alone, and not providers' computer tools.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from httpx2 import AsyncClient, Limits, Request, Response, Timeout

from hud_mcp.plugins.models.replies import REDIRECTED, NotAReply, mend_surrogates, read_json

Rewrite = Callable[[dict[str, Any]], dict[str, Any]]

_TIMEOUT = Timeout(600.0, connect=10.0)
_LIMITS = Limits(max_connections=1000, max_keepalive_connections=100)
"""The bounds of the libraries' own clients. A job has as many requests in flight as runs."""
_SIZES = ("content-length", "content-encoding", "transfer-encoding")
"""Headers that tell of a body that is another one afterwards."""


class WireClient(AsyncClient):
    """An HTTP client for one provider's library, which may rewrite the bodies that pass.

    `receive` gets replies of status 200, and raises `NotAReply` for a body that is none.
    """

    def __init__(
        self,
        send: Rewrite | None = None,
        receive: Rewrite | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(timeout=_TIMEOUT, limits=_LIMITS)
        self._rewrite_sent = send
        self._rewrite_received = receive
        self._more = headers or {}

    async def send(self, request: Request, **options: Any) -> Response:
        """Send a request, rewritten, and return its reply, rewritten."""
        sent = await self._rewritten(request)
        # A redirect to another host would get the key, which libraries send in headers. They ask
        # for redirects in each request, whatever the client says.
        options["follow_redirects"] = False
        reply = await super().send(sent, **options)
        if reply.is_redirect:
            await reply.aclose()
            to = reply.headers.get("location", "")
            return _refusal(sent, 400, redirect_text(reply.status_code, to), REDIRECTED)
        if not reply.is_success:
            return reply
        return self._read(sent, reply, await reply.aread())

    async def _rewritten(self, request: Request) -> Request:
        content = await request.aread()
        headers = {k: v for k, v in request.headers.multi_items() if k.lower() not in _SIZES}
        for name, value in self._more.items():  # as one header of several values
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        if self._rewrite_sent is not None:
            content = orjson.dumps(self._rewrite_sent(orjson.loads(content)))
        # A library's own timeout allows minutes for a connection.
        extensions = {**request.extensions, "timeout": _TIMEOUT.as_dict()}
        return Request(
            request.method, request.url, headers=headers, content=content, extensions=extensions
        )

    def _read(self, sent: Request, reply: Response, body: bytes) -> Response:
        kept = [(k, v) for k, v in reply.headers.multi_items() if k.lower() not in _SIZES]
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            events = mend_surrogates(body.decode("utf-8", "replace")).encode()
            return Response(reply.status_code, headers=kept, content=events, request=sent)
        try:
            received = read_json(body)
            if self._rewrite_received is not None:
                received = self._rewrite_received(received)
        except NotAReply as exc:
            return _refusal(sent, exc.status, str(exc), exc.code, retry=reply.headers)
        except (ValueError, TypeError, AttributeError, KeyError):  # for its library to refuse
            return Response(reply.status_code, headers=kept, content=body, request=sent)
        return Response(
            reply.status_code, headers=kept, content=orjson.dumps(received), request=sent
        )


def redirect_text(status: int, location: str) -> str:
    """Return the sentence for a redirect, which is not followed."""
    # A query or a user in it may be a secret.
    parts = urlsplit(location)
    where = f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
    return (
        f"It redirects to {where} (status {status}). No redirect is followed, because "
        "the key would go along. If that address is right, give it with --base-url"
    )


def _refusal(
    request: Request, status: int, message: str, code: str, retry: Mapping[str, str] | None = None
) -> Response:
    """Return an error in the form that every library reads. It keeps the time to wait."""
    error = {"message": message, "type": code, "code": code, "status": code}
    kept = {name: value for name, value in (retry or {}).items() if name.startswith("retry-after")}
    return Response(status, json={"error": error}, headers=kept, request=request)

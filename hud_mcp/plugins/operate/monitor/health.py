"""Whether a server is alive, and whether it can be given more work."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.operate.monitor.metrics import Metrics
from hud_mcp.server.web.auth import Hosts
from hud_mcp.session.registry import Sessions

__all__ = ["Health", "State", "health_routes", "metrics_route"]


State = Literal["ready", "starting", "draining", "store unavailable"]
"""The states of a server that answers."""

_WRITE_S = 2.0
"""A store that takes longer to take a write is not ready."""

_FRESH_S = 1.0
"""An answer holds for this time, so that frequent questions make no work."""


class Health:
    """The state of a server whose registry `sessions` returns; None before there is one."""

    def __init__(self, sessions: Callable[[], Sessions | None]) -> None:
        self._sessions = sessions
        self._writing: asyncio.Future[None] | None = None
        self._written: bool = False
        self._looked_s: float | None = None

    async def state(self) -> State:
        """Return the state of the server now."""
        sessions = self._sessions()
        if sessions is None:
            return "starting"
        if not sessions.takes_new:
            return "draining"
        written = await self._writes(sessions)
        if not sessions.takes_new:  # it was told to stop meanwhile
            return "draining"
        return "ready" if written else "store unavailable"

    async def _writes(self, sessions: Sessions) -> bool:
        """Whether the store takes a write. One question to it serves all callers of the moment."""
        now_s = time.monotonic()
        if self._looked_s is not None and now_s - self._looked_s < _FRESH_S:
            return self._written
        if self._writing is None:
            self._writing = sessions.store.check_writable()
        writing = self._writing
        done, _ = await asyncio.wait({writing}, timeout=_WRITE_S)
        if not done:  # it may go on: the next one who asks waits for the same
            return False
        if self._writing is writing:
            self._writing = None
            self._looked_s = time.monotonic()
            self._written = _succeeded(writing)
        return _succeeded(writing)


def _succeeded(writing: "asyncio.Future[None]") -> bool:
    if writing.cancelled():
        return False
    error = writing.exception()
    if error is not None and not isinstance(error, HudMcpError):
        raise error
    return error is None


_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Answer = Callable[[Request], Awaitable[Response]]


def health_routes(health: Health) -> list[BaseRoute]:
    """Make `/healthz`, which answers as long as the process does, and `/readyz`.

    They answer under any Host, as the answer is the state alone.
    """

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_HEADERS)

    async def ready(_request: Request) -> Response:
        state = await health.state()
        status = 200 if state == "ready" else 503
        return PlainTextResponse(f"{state}\n", status, headers=_HEADERS)

    return [Route("/healthz", alive), Route("/readyz", ready)]


def metrics_route(metrics: Metrics, *, token: str | None, hosts: Hosts | None) -> BaseRoute:
    """Make the route `/metrics`.

    Args:
        metrics: The counts.
        token: The bearer token of its readers; None lets anybody read who reaches it.
        hosts: The names by which the server may be addressed; None for any.
    """

    async def tell(request: Request) -> Response:
        if hosts is not None and not hosts.allows(request.headers.get("host", "")):
            text = "This server does not answer to that Host; --allow-host adds one."
            return PlainTextResponse(text, 421, headers=_HEADERS)
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token is not None and not (
            scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), token.encode())
        ):
            text = "Send the token of --metrics-token as a bearer token."
            return PlainTextResponse(text, 401, {**_HEADERS, "www-authenticate": "Bearer"})
        body, kind = metrics.render(request.headers.get("accept", ""))
        return Response(body, headers={**_HEADERS, "content-type": kind})

    return Route("/metrics", tell)

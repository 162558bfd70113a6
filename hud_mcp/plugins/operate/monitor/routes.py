"""The addresses of a server's state and metrics. They tell nothing else."""

import secrets
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from hud_mcp.plugins.operate.monitor.health import Health
from hud_mcp.plugins.operate.monitor.metrics import Metrics
from hud_mcp.server.web.auth import Hosts

__all__ = ["health_routes", "metrics_route"]

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Answer = Callable[[Request], Awaitable[Response]]


def health_routes(health: Health) -> list[BaseRoute]:
    """`/healthz`, which answers as long as the process does, and `/readyz`.

    Whoever watches a server may call it by any name: the answer is the state alone.
    """

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_HEADERS)

    async def ready(_request: Request) -> Response:
        state = await health.state()
        status = 200 if state == "ready" else 503
        return PlainTextResponse(f"{state}\n", status, headers=_HEADERS)

    return [Route("/healthz", alive), Route("/readyz", ready)]


def metrics_route(metrics: Metrics, *, token: str | None, hosts: Hosts | None) -> BaseRoute:
    """`/metrics`, for whoever has the token.

    Args:
        metrics: What is told.
        token: What shows who may read it, as a bearer token; None for everybody who reaches it.
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

"""The SDK's own middleware, which traces, where somebody can see the traces."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

__all__ = ["trace_where_seen"]


def trace_where_seen(server: Server[Any]) -> None:
    """Pass by what a new server has as middleware, unless its spans go somewhere.

    It costs more than the rest of a call. It runs once OpenTelemetry is set up in this process,
    and for a request that belongs to a trace of its caller's.
    """
    standard = tuple(server.middleware)

    def trace(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Awaitable[HandlerResult]:
        is_set_up = not isinstance(get_tracer_provider(), ProxyTracerProvider)
        is_seen = is_set_up or "traceparent" in (ctx.meta or ())
        return traced(ctx, call_next) if is_seen else call_next(ctx)

    async def traced(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        for middleware in reversed(standard):
            call_next = partial(middleware, call_next=call_next)
        # What `_meta` says goes before it, as the SDK looks there.
        token = attach(extract(ctx.request.headers)) if ctx.request is not None else None
        try:
            return await call_next(ctx)
        finally:
            if token is not None:
                detach(token)

    server.middleware[:] = [cast("ServerMiddleware[Any]", trace)]

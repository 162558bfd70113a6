"""Traces of calls, from request to record, for any OpenTelemetry backend.

The SDK makes the span of a request. Below it are the wait for earlier calls, the world's work, the
grading and the writes. No agent's words or pictures go along, no session's id and no caller's name.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread

from hud_mcp.base import __version__
from hud_mcp.base.telemetry import Span, add_fields, listen
from hud_mcp.errors import NotInstalled
from hud_mcp.plugins.operate import libraries

_ROOTS = frozenset({"call", "grade"})
"""Operations that are traced without a known request."""

_NAMES = {
    "queue": "session.queue",
    "grade": "session.grade",
    "open": "world.open",
    "act": "world.act",
    "action": "world.action",
    "observe": "world.observe",
    "store": "store.write",
}
"""The names of spans."""

_FLUSH_S = 5.0
"""The last spans may take so long to be sent, as the server ends."""


class Traces:
    """Makes spans of the events of this process."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def begin(self, span: Span, *, current: bool) -> Callable[[], None]:
        """Begin a span, if it is a part of a trace."""
        above = libraries.get_current_span()
        is_part = above.get_span_context().is_valid
        if (span.name == "call" and is_part) or not (is_part or span.name in _ROOTS):
            return _nothing
        made = self._tracer.start_span(_NAMES.get(span.name, span.name))
        context = libraries.set_span_in_context(made)
        token = libraries.attach(context) if current else None

        def end() -> None:
            if token is not None:
                libraries.detach(token)
            if span.is_void:
                return
            made.set_attributes(_attributes(span.attributes))
            if span.error is not None:
                made.set_attribute("error.type", span.error)
                made.set_status(libraries.StatusCode.ERROR)
            made.end()

        return end

    def add(self, name: str, amount: int, labels: Mapping[str, Any]) -> None:
        """Do nothing: a trace counts nothing."""

    def origin(self) -> Any:
        """Return the trace context of the running task; None if it has none."""
        is_part = libraries.get_current_span().get_span_context().is_valid
        return libraries.get_current() if is_part else None

    def follow(self, origin: Any, /) -> Callable[[], None]:
        """Go on in another task with a context."""
        token = libraries.attach(origin)
        return lambda: libraries.detach(token)


@asynccontextmanager
async def tracing() -> AsyncGenerator[None]:
    """Send traces while the body runs, to where the `OTEL_…` variables say.

    Raises:
        NotInstalled: The extra `otel` is missing; the text says how to install it.
    """
    try:
        provider = libraries.TracerProvider(
            resource=libraries.Resource.create(
                {"service.name": "hud-mcp", "service.version": __version__}
            )
        )
        provider.add_span_processor(libraries.BatchSpanProcessor(libraries.OTLPSpanExporter()))
    except ImportError as exc:
        raise NotInstalled(
            'Traces need OpenTelemetry: pip install "hud-mcp[otel]". Nothing was started.'
        ) from exc
    libraries.set_tracer_provider(provider)
    leave = listen(Traces(provider.get_tracer("hud-mcp", __version__)))
    forget = add_fields(_ids)
    try:
        yield
    finally:
        leave()
        forget()
        with anyio.move_on_after(_FLUSH_S, shield=True):
            await anyio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)


def _attributes(told: Mapping[str, Any]) -> dict[str, Any]:
    return {f"hud_mcp.{name}": value for name, value in told.items()}


def _ids() -> dict[str, str]:
    context = libraries.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _nothing() -> None:
    pass

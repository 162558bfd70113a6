"""The metrics that Prometheus scrapes, and the health of a server.

They hold no id of a session and no name of a caller.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from hud_mcp.base import __version__
from hud_mcp.base.telemetry import Span
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.operate import libraries
from hud_mcp.server.web.auth import Hosts
from hud_mcp.session.registry import Sessions

_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""From the time of a letter count to that of a slow grader."""

_OF_WORLD = ("environment", "result")

_TIMED = {
    "call": ("call", "Calls of tools, by tool and by how they ended.", ("tool", "result")),
    "queue": ("queue", "How long calls waited for those before them in their session.", ()),
    "open": ("world_open", "Opening of worlds.", _OF_WORLD),
    "act": ("world_act", "What worlds were asked to do, a call's actions in one.", _OF_WORLD),
    "observe": ("world_observe", "Looks at worlds.", _OF_WORLD),
    "grade": ("grading", "Grading, with the template's own cleaning up.", _OF_WORLD),
    "store": ("store_write", "Writes of the record, until they are durable.", ("result",)),
}
"""The timed operations: name, description and labels."""

_COUNTED = {
    "started": ("sessions_started", "Sessions that were started.", ("environment",)),
    "resumed": ("sessions_resumed", "Sessions that were resumed.", ("environment",)),
    "ended": (
        "sessions_ended",
        "Sessions that ended, by outcome and by whose doing it was.",
        ("environment", "outcome", "cause"),
    ),
    "quota": ("quota_refusals", "Starts that a quota refused.", ("quota",)),
}
_GAUGES = {"browsers": ("browsers", "Browsers that run.")}


class Metrics:
    """The counts of this process's events, rendered for a scrape.

    `sessions` returns the registry; None before there is one.
    """

    def __init__(self, sessions: Callable[[], Sessions | None]) -> None:
        self._sessions = sessions
        libraries.disable_created_metrics()  # a series more for each one, which few read
        self._registry = registry = libraries.CollectorRegistry()
        self._timed = {
            name: libraries.Histogram(
                f"hud_mcp_{called}_seconds", told, labels, buckets=_BUCKETS_S, registry=registry
            )
            for name, (called, told, labels) in _TIMED.items()
        }
        self._labels = {name: labels for name, (_, _, labels) in _TIMED.items()}
        self._counted = {
            name: libraries.Counter(f"hud_mcp_{called}", told, labels, registry=registry)
            for name, (called, told, labels) in _COUNTED.items()
        }
        self._gauges = {
            name: libraries.Gauge(f"hud_mcp_{called}", told, registry=registry)
            for name, (called, told) in _GAUGES.items()
        }
        self._refusals = libraries.Counter(
            "hud_mcp_refusals",
            "Calls that were refused or that failed, by the kind of error.",
            ("kind",),
            registry=registry,
        )
        self._queue = libraries.Gauge(
            "hud_mcp_store_queue", "Writes of the record that wait.", registry=registry
        )
        libraries.ProcessCollector(registry=registry)
        libraries.PlatformCollector(registry=registry)
        registry.register(_Now(sessions))

    def begin(self, span: Span, *, current: bool) -> Callable[[], None]:  # noqa: ARG002  # it counts in any case
        """Begin to time an operation."""
        began_s = time.perf_counter()
        if span.name == "store":
            self._queue.inc()

        def end() -> None:
            if span.name == "store":
                self._queue.dec()
            self._observe(span, time.perf_counter() - began_s)

        return end

    def _observe(self, span: Span, took_s: float) -> None:
        timed = self._timed.get(span.name)
        if timed is None or span.is_void:
            return
        if span.name == "call" and span.error is not None:
            self._refusals.labels(span.error).inc()
        names = self._labels[span.name]
        if names:
            known = {**span.attributes, "result": "ok" if span.error is None else "error"}
            timed = timed.labels(*(str(known.get(name, "")) for name in names))
        timed.observe(took_s)

    def add(self, name: str, amount: int, labels: Mapping[str, Any]) -> None:
        """Count an event."""
        if name in self._gauges:
            self._gauges[name].inc(amount)
        elif name in self._counted:
            self._counted[name].labels(**labels).inc(amount)

    def origin(self) -> None:
        """Return nothing: a count is a part of nothing."""
        return

    def follow(self, _origin: Any, /) -> Callable[[], None]:
        """Do nothing."""
        return lambda: None

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics for one scrape's Accept header, and their content type."""
        encode, kind = libraries.choose_encoder(accept)
        return encode(self._registry), kind


class _Now:
    """The numbers of sessions and their worlds, counted at each scrape."""

    def __init__(self, sessions: Callable[[], Sessions | None]) -> None:
        self._sessions = sessions

    def describe(self) -> Iterable[Any]:
        return ()

    def collect(self) -> Iterator[Any]:
        registry = self._sessions()
        living = [] if registry is None else registry.roster.living()
        served = [] if registry is None else list(registry.environments)
        states = Counter((each.environment.name, each.state.shown) for each in living)
        worlds = Counter(each.environment.name for each in living if each.life.world.is_open)
        states.update({(name, "open"): 0 for name in served})
        worlds.update(dict.fromkeys(served, 0))
        yield _family("sessions", "Sessions, by state.", ("environment", "state"), states)
        yield _family(
            "worlds",
            "Worlds that are open.",
            ("environment",),
            {(n,): v for n, v in worlds.items()},
        )
        waits = sum(each.life.turn.count for each in living)
        yield _family("calls_waiting", "Calls that wait or run in a session.", (), {(): waits})
        yield _family("info", "The version that runs.", ("version",), {(__version__,): 1})


def _family(
    name: str, told: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> Any:
    family = libraries.GaugeMetricFamily(f"hud_mcp_{name}", told, labels=labels)
    for given, value in sorted(values.items()):
        family.add_metric(given, value)
    return family


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

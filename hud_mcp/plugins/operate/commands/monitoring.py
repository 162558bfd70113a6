"""The state, metrics, traces and log of `hud-mcp serve`, for its operators."""

import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import click

from hud_mcp.base import libraries
from hud_mcp.base.listening import base_url, is_loopback, listen, port_of, read_address
from hud_mcp.base.telemetry import listen as listen_to_telemetry
from hud_mcp.plugins.operate import commands

__all__ = ["Monitor", "monitoring", "monitoring_options"]

logger = logging.getLogger(__name__)
CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_TOKEN = "HUD_MCP_METRICS_TOKEN"  # noqa: S105  # the name of one

_OPTIONS = (
    click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        hidden=True,
        help="Serve /metrics, /healthz and /readyz on this address.",
    ),
    click.option(
        "--metrics-token",
        metavar="SECRET",
        envvar=_TOKEN,
        hidden=True,
        help="The token of /metrics; without --metrics, it is at the address of --http.",
    ),
    click.option(
        "--traces",
        is_flag=True,
        hidden=True,
        help="Send traces to OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
    click.option(
        "--quota",
        "quotas",
        multiple=True,
        metavar="NAME=VALUE",
        hidden=True,
        help="Limit each caller over all servers of the store: sessions, starts_per_minute or "
        "stored_bytes, such as 5GB.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        hidden=True,
        help="The form of the log on stderr.",
    ),
)

_TOKEN_CHARS = 8
"""Shorter secrets are guessed."""


def monitoring_options(command: CommandT) -> CommandT:
    """Give a command the options that `Monitor` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Monitor:
    """The state, metrics and traces of one server, as the command's options ask for them.

    Raises:
        UsageError: The options contradict each other.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._address: str | None = options["metrics"]
        self._token: str | None = options["metrics_token"]
        os.environ.pop(_TOKEN, None)  # every child inherits what is left there
        self._traces: bool = options["traces"]
        self._hosts: tuple[str, ...] = options["hosts"]
        self._sessions: Any = None
        if self._token is not None and len(self._token) < _TOKEN_CHARS:
            raise click.UsageError(
                f"A --metrics-token needs at least {_TOKEN_CHARS} characters; make one with "
                "`openssl rand -hex 32`."
            )
        if self._token is not None and not (self._address or options["http"]):
            raise click.UsageError("--metrics-token is for --metrics or --http; name an address.")
        self._health = commands.Health(lambda: self._sessions)
        wanted = self._address is not None or self._token is not None
        self._metrics = commands.Metrics(lambda: self._sessions) if wanted else None

    def watch(self, sessions: Any) -> None:
        """Observe this registry from now on."""
        self._sessions = sessions

    def routes(self, hosts: Any) -> list[Any]:
        """Return the routes beside MCP over HTTP, for a server that these names address."""
        routes = commands.health_routes(self._health)
        if self._metrics is not None and self._address is None:
            routes.append(commands.metrics_route(self._metrics, token=self._token, hosts=hosts))
        return routes

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Count while the body runs, and answer on the address of its own, if it has one."""
        async with AsyncExitStack() as stack:
            if self._traces:
                await stack.enter_async_context(commands.tracing())
            if self._metrics is not None:
                stack.callback(listen_to_telemetry(self._metrics))
            if self._metrics is not None and self._address is not None:
                await stack.enter_async_context(self._serving(self._address, self._metrics))
            yield

    @asynccontextmanager
    async def _serving(self, address: str, metrics: Any) -> AsyncGenerator[None]:
        host, port = read_address(address, option="--metrics")
        listener = listen(host, port)
        # Whoever names an address that others reach is asked by names that are not known here.
        hosts = commands.Hosts(host, self._hosts) if is_loopback(host) else None
        routes = [
            *commands.health_routes(self._health),
            commands.metrics_route(metrics, token=self._token, hosts=hosts),
        ]
        logger.info("metrics are at %s/metrics", base_url(host, port_of(listener)))
        async with commands.serving(libraries.Router(routes), listener):
            yield


@asynccontextmanager
async def monitoring(options: dict[str, Any]) -> AsyncGenerator[None]:
    """Serve `options["monitor"]`, which this sets, while the body runs."""
    monitor = options["monitor"] = Monitor(options)
    async with monitor.running():
        yield

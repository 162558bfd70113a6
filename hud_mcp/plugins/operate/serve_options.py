"""The options of `hud-mcp serve` for operators: its metrics, traces and log, and replicas."""

import logging
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from hud_mcp.base import libraries
from hud_mcp.base.listening import base_url, is_loopback, listen, port_of, read_address
from hud_mcp.base.telemetry import listen as listen_to_telemetry
from hud_mcp.cli.tokens import read_secret
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.operate import surfaces

logger = logging.getLogger(__name__)
CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_TOKEN = "HUD_MCP_METRICS_TOKEN"  # noqa: S105  # the name of one
_SECRET = "HUD_MCP_REPLICA_SECRET"  # noqa: S105  # the same

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
        "--traces", is_flag=True, hidden=True, help="Send traces to OTEL_EXPORTER_OTLP_ENDPOINT."
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
    click.option(
        "--replica",
        metavar="TAG",
        help="Be one of several servers on this store, each with another TAG.",
    ),
    click.option(
        "--advertise",
        metavar="URL",
        hidden=True,
        help="Where other replicas reach this one. Default: the address of --http.",
    ),
    click.option(
        "--replica-secret-file",
        metavar="FILE",
        hidden=True,
        help=f"The secret of all replicas; or {_SECRET}.",
    ),
    click.option(
        "--drain-s",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        hidden=True,
        help="How long to wait at the end for sessions that cannot move. Default: 60.",
    ),
)

_TOKEN_CHARS = 8
"""Shorter secrets are guessed."""


def operator_options(command: CommandT) -> CommandT:
    """Give a command these options."""
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
        self._health = surfaces.Health(lambda: self._sessions)
        wanted = self._address is not None or self._token is not None
        self._metrics = surfaces.Metrics(lambda: self._sessions) if wanted else None

    def watch(self, sessions: Any) -> None:
        """Observe this registry from now on."""
        self._sessions = sessions

    def routes(self, hosts: Any) -> list[Any]:
        """Return the routes beside MCP over HTTP, for a server that these names address."""
        routes = surfaces.health_routes(self._health)
        if self._metrics is not None and self._address is None:
            routes.append(surfaces.metrics_route(self._metrics, token=self._token, hosts=hosts))
        return routes

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Count while the body runs, and answer on the address of its own, if it has one."""
        async with AsyncExitStack() as stack:
            if self._traces:
                await stack.enter_async_context(surfaces.tracing())
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
        hosts = surfaces.Hosts(host, self._hosts) if is_loopback(host) else None
        routes = [
            *surfaces.health_routes(self._health),
            surfaces.metrics_route(metrics, token=self._token, hosts=hosts),
        ]
        logger.info("metrics are at %s/metrics", base_url(host, port_of(listener)))
        async with surfaces.serving(libraries.Router(routes), listener):
            yield


@asynccontextmanager
async def monitoring(options: dict[str, Any]) -> AsyncGenerator[None]:
    """Serve `options["monitor"]`, which this sets, while the body runs."""
    monitor = options["monitor"] = Monitor(options)
    async with monitor.running():
        yield


_SECRET_CHARS = 32
"""Shorter secrets are guessed."""
_TAG = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_replica(options: dict[str, Any], sessions: Any, host: str) -> Any:
    """Read the options of a replica that listens on `host`; None if the server is the only one.

    Raises:
        HudMcpError: An option is missing or wrong.
    """
    tag, advertised = options["replica"], options["advertise"]
    secret = os.environ.pop(_SECRET, None)  # every child inherits what is left there
    if tag is None:
        return None
    if not _TAG.fullmatch(tag):
        raise HudMcpError(f"--replica {tag!r} is no tag: it takes 1 to 64 of A-Z, a-z, 0-9, _, -.")
    if advertised is None and host in ("0.0.0.0", "::", ""):  # noqa: S104  # refused here
        raise HudMcpError(
            f"Other replicas cannot reach {host!r}; give --advertise, such as http://10.0.0.2:8000."
        )
    if advertised is not None:
        advertised = _address(advertised)
    return surfaces.ReplicaServing(
        sessions,
        tag,
        _read_secret(options["replica_secret_file"], secret),
        advertised,
        **({} if options["drain_s"] is None else {"drain_s": options["drain_s"]}),
    )


def refuse_alone(options: dict[str, Any]) -> None:
    """Refuse options that say nothing without the others.

    Raises:
        UsageError: The text names the missing option.
    """
    if options["replica"] is None:
        for name in ("advertise", "replica_secret_file", "drain_s"):
            if options[name] is not None:
                shown = name.replace("_", "-")
                raise click.UsageError(f"--{shown} is of a replica; name one with --replica TAG.")
    elif not options["http"]:
        raise click.UsageError("--replica is for servers over HTTP; name an address by --http too.")


def _address(given: str) -> str:
    parts = urlsplit(given)
    bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not bare:
        raise HudMcpError(f"--advertise {given!r} is not like http://10.0.0.2:8000.")
    return f"{parts.scheme}://{parts.netloc}"


def _read_secret(file: str | None, secret: str | None) -> str:
    if file is not None:
        secret = read_secret("--replica-secret-file", file).strip()
    if secret is None:
        raise HudMcpError(
            f"--replica needs the secret of all replicas: --replica-secret-file, or {_SECRET}. "
            "Make one with `openssl rand -hex 32`."
        )
    if len(secret) < _SECRET_CHARS:
        raise HudMcpError(
            f"The replicas' secret needs at least {_SECRET_CHARS} characters; make one with "
            "`openssl rand -hex 32`."
        )
    return secret

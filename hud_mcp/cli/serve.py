"""`hud-mcp serve`: environments over MCP, on stdio unless HTTP is asked for."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TextIO
from urllib.parse import urlsplit

import anyio
import click
from pydantic import ValidationError

from hud_mcp.cli import surfaces
from hud_mcp.cli.bridges import listed_by, offer_published, open_bridges
from hud_mcp.cli.hosts import allow_option, read_hosts
from hud_mcp.cli.operator import read_operator_token
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.recording import record_option
from hud_mcp.cli.secrecy import keep_to_itself
from hud_mcp.cli.sources import load, only_environment
from hud_mcp.cli.startup import without_collecting
from hud_mcp.cli.tokens import read_tokens, token_file_option, with_operator
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.lazy import libraries
from hud_mcp.observation import DEFAULT_FORMAT, IMAGE_FORMATS
from hud_mcp.server.stdio.claim import claim_stdio
from hud_mcp.serving.listening import LOOPBACK, base_url, listen, port_of, read_address
from hud_mcp.session.limits import Limits
from hud_mcp.session.log import LineStream, configure_logging

__all__ = ["command"]

logger = logging.getLogger(__name__)

_LAST_PORT = 65_535
_SIGNALLED = {"sigint": 130, "sigterm": 143}
_LEAVE_S = 0.3
"""How long tasks that are left over may take to end. Everything is recorded by then."""


class _LivePort(click.ParamType[int]):
    """A port; what else follows `--live` was meant as a source."""

    name = "port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        try:
            port = int(value)
        except ValueError:
            self.fail(
                f"{value!r} is no port. Put SOURCE before it, as in `hud-mcp serve {value} "
                f"--live`, or name a port, as in `--live 0 {value}`; 0 is any free one.",
                param,
                ctx,
            )
        if not 0 <= port <= _LAST_PORT:
            self.fail(f"{port} is no port: they are 0 to {_LAST_PORT}.", param, ctx)
        return port


def _public_url(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if (
        "@" in parts.netloc
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise click.BadParameter(f"{value!r} is not like https://tasks.example.com.")
    return value.rstrip("/")


@click.command(
    epilog="Limits: "
    + ", ".join(f"{n} ({f.default})" for n, f in Limits.model_fields.items())
    + ". Without SOURCE, ./env.py is served if it is there, else the quickstart environments."
)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--taskset", "tasksets", multiple=True, metavar="FILE", help="Tasks to offer by id.")
@click.option("--split", help="Only tasks of one split of --taskset.")
@click.option("--python", metavar="FILE", help="The interpreter that has `hud`, for hud:….")
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="[NAME=]SECRET",
    envvar="HUD_MCP_TOKEN",
    help="Require a bearer token over HTTP; each NAME sees only its own sessions.",
)
@token_file_option
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST", help="Answer this Host too.")
@click.option(
    "--public-url",
    metavar="URL",
    callback=_public_url,
    help="Where people reach this server over HTTP, for links to live pages: the address of a "
    "proxy before it, such as https://tasks.example.com.",
)
@allow_option
@click.option("--store", metavar="URL", help="A SQLite file or a database URL for the record.")
@record_option
@click.option(
    "--reward",
    type=click.Choice(["hidden", "on_submit", "per_step"]),
    help="Who sees the reward; by default, what each template says, else on_submit.",
)
@click.option(
    "--image", type=click.Choice(IMAGE_FORMATS), default=DEFAULT_FORMAT, help="Format of pictures."
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    metavar="N",
    help="How often one caller may start the same task; as often as it likes by default.",
)
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Change a limit.")
@click.option(
    "--live",
    metavar="[PORT]",
    type=_LivePort(),
    is_flag=False,
    flag_value=0,
    help="On stdio: serve live pages of sessions on 127.0.0.1; over HTTP they always are. Put "
    "it after SOURCE, or name a port; 0 is any free one.",
)
@click.option(
    "--live-log", is_flag=True, help="Show logs on live pages; agents can read them there."
)
@click.option(
    "--channel",
    metavar="[HOST:]PORT",
    help="Serve the HUD control channel too, over the same sessions; of one environment.",
)
@click.option(
    "--channel-token",
    envvar="HUD_MCP_CHANNEL_TOKEN",
    help="What peers of the channel must send; HUD's own clients send none.",
)
@click.option(
    "--operator-token-file",
    metavar="FILE",
    help="Take the operator's calls, such as evaluate, from who sends the token in FILE; or in "
    "HUD_MCP_OPERATOR_TOKEN. Agents must not have it.",
)
@click.option("--job", hidden=True, help="The job that all sessions belong to.")
@click.option(
    "--end-with-stdin", is_flag=True, hidden=True, help="Over HTTP: end once stdin is closed."
)
@click.option(
    "--token-from-stdin", is_flag=True, hidden=True, help="Over HTTP: the first line is a token."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="What is logged to stderr.",
)
def command(**options: Any) -> None:
    """Serve environments over MCP.

    SOURCE is a shipped environment (browser, letter_count), a Python file (path/to/env.py),
    one environment of a file (env.py:name), or any Gymnasium environment with its options
    (gym:CARLCartPole?context=train&screen=0). Several can be served at once. HUD's are served
    too: tcp://host:port is a running one, hud:path/to/env.py one that is run as long as needed.
    """
    if options["split"] is not None and not options["tasksets"]:
        raise click.UsageError("--split chooses among the rows of a --taskset; name one.")
    if options["http"]:
        if options["token_from_stdin"]:
            keep_to_itself()
            options["tokens"] = (*options["tokens"], _read_token())
        sys.exit(_run(options, None))
    with claim_stdio() as streams:
        code = _run(options, streams)
    sys.exit(code)


def _run(options: dict[str, Any], streams: Any) -> int:
    configure_logging(options["log_level"])
    raise_file_limit()
    # Over HTTP too, nothing but the address is on standard output: whoever started the
    # server may read that line and no more, and a full pipe would stop a template's child.
    printed = private_stdout() if streams is None else sys.stdout
    sys.stdout = LineStream(sys.stderr)
    try:
        return anyio.run(_serve, options, streams, printed)
    except HudMcpError as exc:
        click.echo(f"Error: {exc}", err=True)
        return 1
    finally:
        sys.stdout = sys.__stdout__


def private_stdout() -> TextIO:
    """Keep standard output for ourselves; what children and libraries write goes to stderr."""
    private = os.dup(1)  # not inherited by children
    os.dup2(2, 1)
    return os.fdopen(private, "w")


async def _serve(options: dict[str, Any], streams: Any, printed: Any) -> int:
    operator_token = read_operator_token(options["operator_token_file"])
    options["tokens"] = read_tokens(options["tokens"], options["token_file"])
    with without_collecting():
        build_server, serve_stdio = surfaces.build_server, surfaces.serve_stdio
        environments, tasksets = load(
            options["sources"], options["tasksets"], split=options["split"]
        )
    bridges = AsyncExitStack()
    bridged = await bridges.enter_async_context(
        open_bridges(options["sources"], options["python"], [e.name for e in environments])
    )
    environments += bridged
    if not options["tasksets"]:
        tasksets += listed_by(bridged)
    sessions = surfaces.Sessions(
        environments,
        store=surfaces.Store(options["store"]),
        tasksets=tasksets,
        limits=read_limits(options["limits"]),
        reward_policy=options["reward"],
        job_id=options["job"],
        tries=options["tries"],
        local_hosts=read_hosts(options["allow"]),
        record=options["record"],
    )
    sessions.begin()
    await offer_published(sessions)
    options["operator_token"] = operator_token
    server = build_server(
        sessions,
        image=options["image"],
        operations=surfaces.Operations(sessions, token=operator_token) if operator_token else None,
    )
    try:
        async with _channel(options, sessions) as port:
            if options["http"]:
                code = await _serve_http(server, options, sessions, printed, port)
            else:
                async with _live_pages(options, sessions):
                    reason = await serve_stdio(server, streams)
                code = _SIGNALLED.get(str(reason.value).lower(), 0)
    finally:
        await sessions.close()
        await bridges.aclose()
    await leave(code)
    return code


async def leave(code: int) -> None:
    """End the process here if a task listens to no cancellation: its loop would wait for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    stuck = (await asyncio.wait(others, timeout=_LEAVE_S))[1] if others else set[Any]()
    if stuck:
        logger.warning("the process ends, although %d tasks do not", len(stuck))
        sys.stderr.flush()
        os._exit(code)


@asynccontextmanager
async def _channel(options: dict[str, Any], sessions: Any) -> AsyncGenerator[int | None]:
    """Serve the control channel while the body runs, if it is asked for; yields its port."""
    if options["channel"] is None:
        yield None
        return
    host, port = read_address(options["channel"], option="--channel")
    environment = only_environment(list(sessions.environments.values()), "--channel")
    channel = surfaces.Channel(
        environment,
        sessions=sessions,
        token=options["channel_token"],
        operator_token=options["operator_token"],
    )
    server = await channel.listen(host, port)
    bound = port_of(server)
    logger.info("the control channel is at tcp://%s:%d", host, bound)
    try:
        yield bound
    finally:
        await sessions.close()  # what is under way is answered before its connection ends
        await channel.close()


@asynccontextmanager
async def _live_pages(options: dict[str, Any], sessions: Any) -> AsyncGenerator[None]:
    """Serve live pages on a loopback port while the body runs, if they are asked for."""
    if options["live"] is None:
        yield
        return
    listener = listen(LOOPBACK, options["live"])
    sessions.serve_live_at(base_url(LOOPBACK, port_of(listener)))
    logger.info("live pages are at %s/live/", sessions.live_base)
    routes = surfaces.live_routes(
        sessions.store, hosts=surfaces.Hosts(LOOPBACK), log=options["live_log"]
    )
    async with surfaces.serving(libraries.Router(routes), listener):
        yield


def _read_token() -> str:
    """The first line of stdin, and not a byte of what follows."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode().strip()


def _end_with_stdin() -> None:
    """End in order once the process that holds the other end of stdin has gone, however it went."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


async def _serve_http(
    server: Any, options: dict[str, Any], sessions: Any, printed: Any, channel: int | None
) -> int:
    host, port = read_address(options["http"], option="--http")
    hosts = surfaces.Hosts(host, options["hosts"])
    public = options["public_url"]

    def announce(url: str) -> None:
        sessions.serve_live_at(public or base_url(host, urlsplit(url).port or 0))
        click.echo(f"HUD_MCP_URL={url}", file=printed)
        if channel is not None:
            click.echo(f"HUD_SERVE_PORT={channel}", file=printed)
        printed.flush()

    if options["end_with_stdin"]:
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    ended_by = await surfaces.serve_http(
        server,
        host=host,
        port=port,
        tokens=with_operator(options["tokens"], options["operator_token"]),
        allowed_hosts=options["hosts"],
        announce=announce,
        on_stop=sessions.close,
        max_body_bytes=4 * sessions.limits.argument_bytes,
        beside=surfaces.live_routes(sessions.store, hosts=hosts, log=options["live_log"]),
    )
    return 0 if ended_by is None else 128 + ended_by


def read_limits(given: Sequence[str]) -> Limits:
    """Read `NAME=VALUE` limits.

    Raises:
        HudMcpError: A name is unknown, or a value out of range.
    """
    values: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in Limits.model_fields:
            hint = did_you_mean(name, Limits.model_fields)
            raise HudMcpError(
                f"--limit {item}: write NAME=VALUE.{hint} The limits are: "
                f"{', '.join(Limits.model_fields)}."
            )
        values[name] = value
    try:
        return Limits.model_validate(values)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        raise HudMcpError(f"--limit {first['loc'][0]}: {first['msg'].lower()}.") from None

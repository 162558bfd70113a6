"""One server of `hud-mcp serve`, on stdio or over HTTP, from its start to its end."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

import anyio
import click
from anyio import lowlevel

from hud_mcp.base import libraries
from hud_mcp.base.egress import read_hosts
from hud_mcp.base.listening import LOOPBACK, base_url, listen, port_of, read_address
from hud_mcp.base.process import Deadline, interruptible, stop_signals
from hud_mcp.cli import surfaces
from hud_mcp.cli.greeting import greet_over_http, greet_over_stdio
from hud_mcp.cli.process import raise_file_limit, without_collecting
from hud_mcp.cli.reloading import Reloading
from hud_mcp.cli.sources import load, read_limits
from hud_mcp.cli.tokens import quotas_of_tokens, read_operator_token, read_tokens, with_operator
from hud_mcp.cli.wires import Served, routes_of, running
from hud_mcp.errors import HudMcpError
from hud_mcp.record.place import check_place
from hud_mcp.registry import service
from hud_mcp.session.log import LineStream, configure_logging

if TYPE_CHECKING:
    from hud_mcp.server.stdio.serve import StopReason

__all__ = ["leave", "private_stdout", "run"]

logger = logging.getLogger(__name__)

_SIGNALLED = {"sigint": 130, "sigterm": 143}
_LEAVE_S = 0.3
"""The time in which leftover tasks may end. Everything is recorded by then."""


def run(options: dict[str, Any], streams: Any) -> int:
    """Serve on the streams of the protocol, or over HTTP, until a signal or the client ends it.

    `options["greeted"]` is set if somebody reads the terminal. Return the exit status of the
    process.
    """
    configure_logging(options["log_level"], form=options["log_format"])
    raise_file_limit()
    # Over HTTP too, nothing but the address is on standard output: whoever started the
    # server may read that line and no more, and a full pipe would stop a template's child.
    printed = private_stdout() if streams is None else sys.stdout
    sys.stdout = LineStream(sys.stderr, form=options["log_format"])
    try:
        return anyio.run(_serve, options, streams, printed)
    except HudMcpError as exc:
        click.echo(f"Error: {exc}", err=True)
        return 1
    finally:
        sys.stdout = sys.__stdout__
        if streams is None:
            printed.close()


def private_stdout() -> TextIO:
    """Keep standard output for the protocol; output of children and libraries goes to stderr."""
    private = os.dup(1)  # not inherited by children
    os.dup2(2, 1)
    return os.fdopen(private, "w")


async def _serve(options: dict[str, Any], streams: Any, printed: Any) -> int:
    """Serve; a signal that comes before anything is served ends it as quietly as a later one."""
    came: list[int] = []

    def stop(number: signal.Signals) -> None:
        came.append(number)
        scope.cancel()

    with anyio.CancelScope() as scope, stop_signals(stop, patience=1):
        async with service("monitoring")(options):
            return await _serve_sessions(options, streams, printed)
    return 128 + came[0]


async def _serve_sessions(options: dict[str, Any], streams: Any, printed: Any) -> int:
    bridges = AsyncExitStack()
    try:
        sessions = await _open_sessions(options, bridges)
        options["monitor"].watch(sessions)
        deadline = Deadline(sessions.kill)
        try:
            sessions.begin()
            await service("published tools")(sessions)
            if options["without_mcp"]:
                tools = surfaces.LocalTools(sessions, image=options["image"])
                code = await surfaces.serve_calls(tools, streams, on_stop=deadline.begin)
            else:
                code = await _serve_mcp(options, sessions, streams, printed, deadline)
        finally:
            with anyio.CancelScope(shield=True):  # bounded in itself
                await sessions.close()
    finally:
        with anyio.CancelScope(shield=True):
            await bridges.aclose()
    await leave(code)
    deadline.finish()
    return code


async def _open_sessions(options: dict[str, Any], bridges: AsyncExitStack) -> Any:
    """Return the registry of the served sessions. The bridges stay open on the stack."""
    check_place(options["store"])
    options["operator_token"] = read_operator_token(options["operator_token_file"])
    options["tokens"] = read_tokens(options["tokens"], options["token_file"])
    limits = read_limits(options["limits"])
    own = quotas_of_tokens(options["token_file"])
    quotas = service("read quotas")(options["quotas"], own, living_s=limits.total_s)
    with interruptible(), without_collecting():
        if not options["without_mcp"]:
            _ = surfaces.build_server, surfaces.serve_stdio
        environments, tasksets = load(
            options["sources"], options["tasksets"], split=options["split"]
        )
    _refuse_impossible(environments)
    if options["reload"]:
        options["reloading"] = Reloading(options, bridges)
        options["reloading"].freeze(environments)
    bridged = await bridges.enter_async_context(
        surfaces.opened(
            options["sources"],
            python=options["python"],
            taken=[each.name for each in environments],
        )
    )
    environments += bridged
    if not options["tasksets"]:
        tasksets += service("listed by bridges")(bridged)
    return surfaces.Sessions(
        environments,
        store=surfaces.Store(options["store"], start_rule=quotas),
        tasksets=tasksets,
        limits=limits,
        reward_policy=options["reward"],
        job_id=options["job"],
        tries=options["tries"],
        local_hosts=read_hosts(options["allow"]),
        reloads=options["reload"],
    )


def _refuse_impossible(environments: Sequence[Any]) -> None:
    """Raise HudMcpError for a world that this operating system can never open, with advice."""
    for environment in environments:
        if (why := service("platform refusal")(environment.world)) is not None:
            raise HudMcpError(f"{environment.name} cannot run here. {why}")


async def _serve_mcp(
    options: dict[str, Any], sessions: Any, streams: Any, printed: Any, deadline: Deadline
) -> int:
    server = _build(sessions, options)

    def served(argument: str) -> Served:
        return Served(sessions, options, argument=argument)

    async with running(options["wires"], served) as lines, _following(options, sessions):
        if options["http"]:
            return await _serve_http(server, options, sessions, printed, lines, deadline)
        return await _serve_stdio(server, options, sessions, streams, deadline)


def _build(sessions: Any, options: dict[str, Any]) -> Any:
    token = options["operator_token"]
    server = surfaces.build_server(sessions, image=options["image"])
    if (tag := options["replica"]) is not None:
        service("mark results")(server, tag)
    if token:
        service("serve operations")(server, service("operations")(sessions, token=token))
    return server


@asynccontextmanager
async def _following(options: dict[str, Any], sessions: Any) -> AsyncGenerator[None]:
    if not options["reload"]:
        yield
        return
    async with options["reloading"].following(sessions):
        yield


async def _serve_stdio(
    server: Any, options: dict[str, Any], sessions: Any, streams: Any, deadline: Deadline
) -> int:
    async with _live_pages(options, sessions):
        await lowlevel.checkpoint()  # whoever was told to stop by now has nobody to greet
        if options["greeted"] is not None:
            click.echo(greet_over_stdio(sessions, options["greeted"]), err=True)
        reason = await surfaces.serve_stdio(
            server, streams, on_stop=lambda reason: deadline.begin(_status(reason))
        )
    return _status(reason)


def _status(reason: "StopReason") -> int:
    return _SIGNALLED.get(reason.value, 0)


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
async def _live_pages(options: dict[str, Any], sessions: Any) -> AsyncGenerator[None]:
    if options["live"] is None:
        yield
        return
    listener = listen(LOOPBACK, options["live"])
    sessions.live_base = base_url(LOOPBACK, port_of(listener))
    logger.info("live pages are at %s/live/", sessions.live_base)
    routes = service("live routes")(
        sessions.store, hosts=surfaces.Hosts(LOOPBACK), log=options["live_log"]
    )
    async with surfaces.serving(libraries.Router(routes), listener):
        yield


def _end_with_stdin() -> None:
    """End in order once the process that holds the other end of stdin has gone, however it went."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


async def _serve_http(  # noqa: PLR0917  # what one command has
    server: Any,
    options: dict[str, Any],
    sessions: Any,
    printed: Any,
    lines: Sequence[str],
    deadline: Deadline,
) -> int:
    host, port = read_address(options["http"], option="--http")
    hosts = surfaces.Hosts(host, options["hosts"])
    public = options["public_url"]

    def announce(url: str) -> None:
        sessions.live_base = public or base_url(host, urlsplit(url).port or 0)
        click.echo(f"HUD_MCP_URL={url}", file=printed)
        for line in lines:
            click.echo(line, file=printed)
        printed.flush()
        if options["greeted"] is not None:
            click.echo(greet_over_http(sessions, url, has_tokens=bool(tokens)), err=True)

    async def stop(number: signal.Signals | None) -> None:
        deadline.begin(0 if number is None else 128 + number)
        await sessions.close()

    if options["end_with_stdin"]:
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    tokens = with_operator(options["tokens"], options["operator_token"])
    beside = service("live routes")(sessions.store, hosts=hosts, log=options["live_log"])
    beside += options["monitor"].routes(hosts)
    beside += routes_of(
        options["wires"], lambda argument: Served(sessions, options, hosts, tokens, argument)
    )
    ended_by = await surfaces.serve_http(
        server,
        host=host,
        port=port,
        tokens=tokens,
        allowed_hosts=options["hosts"],
        announce=announce,
        on_stop=stop,
        max_body_bytes=4 * sessions.limits.argument_bytes,
        beside=beside,
        sockets=any(wire.sockets for _, wire, _ in options["wires"]),
        front=service("read replica")(options, sessions, host),
    )
    return 0 if ended_by is None else 128 + ended_by

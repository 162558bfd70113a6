"""MCP on stdio or over HTTP for `hud-mcp serve`, and the greeting of a person on a terminal."""

import json
import logging
import os
import signal
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import click
from anyio import lowlevel

from hud_mcp.base import libraries
from hud_mcp.base.listening import LOOPBACK, base_url, listen, port_of, read_address
from hud_mcp.base.process import Deadline, own_command
from hud_mcp.cli.tokens import read_page_token, with_operator
from hud_mcp.cli.wires import Served, routes_of, running
from hud_mcp.loading.source import is_also_a_set
from hud_mcp.registry import service
from hud_mcp.server.app import build_server
from hud_mcp.server.http import serve_http
from hud_mcp.server.stdio.serve import StopReason, serve_stdio
from hud_mcp.server.web.auth import Hosts, Tokens, may_operate
from hud_mcp.server.web.listener import serving

logger = logging.getLogger(__name__)

_SIGNALLED = {"sigint": 130, "sigterm": 143}


async def serve_mcp(
    options: dict[str, Any], sessions: Any, streams: Any, printed: Any, deadline: Deadline
) -> int:
    """Serve until a signal or the client ends it; return the exit status."""
    server = _build(sessions, options)

    def served(argument: str) -> Served:
        return Served(sessions, options, argument=argument)

    async with running(options["wires"], served) as lines, _following(options, sessions):
        if options["http"]:
            return await _serve_http(server, options, sessions, printed, lines, deadline)
        return await _serve_stdio(server, options, sessions, streams, deadline)


def _build(sessions: Any, options: dict[str, Any]) -> Any:
    token = options["operator_token"]
    server = build_server(sessions, image=options["image"])
    if (tag := options["replica"]) is not None:
        service("mark results")(server, tag)
    if token or options["oauth"] is not None:
        operations = service("operations")(sessions, token=token)
        service("serve operations")(server, operations, may_operate)
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
            click.echo(_greet_over_stdio(sessions, options["greeted"]), err=True)
        reason = await serve_stdio(
            server, streams, on_stop=lambda reason: deadline.begin(_status(reason))
        )
    return _status(reason)


def _status(reason: StopReason) -> int:
    return _SIGNALLED.get(reason.value, 0)


@asynccontextmanager
async def _live_pages(options: dict[str, Any], sessions: Any) -> AsyncGenerator[None]:
    if options["live"] is None:
        yield
        return
    listener = listen(LOOPBACK, options["live"])
    sessions.live_base = base_url(LOOPBACK, port_of(listener))
    logger.info("live pages are at %s/live/", sessions.live_base)
    routes = _live_routes(options, sessions, Hosts(LOOPBACK))
    async with serving(libraries.Router(routes), listener):
        yield


def _live_routes(options: dict[str, Any], sessions: Any, hosts: Hosts) -> Any:
    token = read_page_token(options["tokens"], replica=options["replica"])
    replies = None if token is None else service("replies on pages")(sessions, token)
    return service("live routes")(
        sessions.store, hosts=hosts, log=options["live_log"], replies=replies
    )


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
    hosts = Hosts(host, options["hosts"])
    public = options["public_url"]

    def announce(url: str) -> None:
        sessions.live_base = public or base_url(host, urlsplit(url).port or 0)
        click.echo(f"HUD_MCP_URL={url}", file=printed)
        for line in lines:
            click.echo(line, file=printed)
        printed.flush()
        if options["greeted"] is not None:
            click.echo(_greet_over_http(sessions, url, has_tokens=bool(tokens)), err=True)

    async def stop(number: signal.Signals | None) -> None:
        deadline.begin(0 if number is None else 128 + number)
        await sessions.close()

    if options["end_with_stdin"]:
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    tokens = with_operator(options["tokens"], options["operator_token"])
    identity = await service("read identity")(options, sessions, host)
    access = Tokens(tokens, identity) if tokens or identity is not None else None
    beside = _live_routes(options, sessions, hosts)
    beside += options["monitor"].routes(hosts)
    beside += routes_of(
        options["wires"], lambda argument: Served(sessions, options, hosts, access, argument)
    )
    ended_by = await serve_http(
        server,
        host=host,
        port=port,
        access=access,
        allowed_hosts=options["hosts"],
        announce=announce,
        on_stop=stop,
        max_body_bytes=4 * sessions.limits.argument_bytes,
        beside=beside,
        sockets=any(wire.sockets for _, wire, _ in options["wires"]),
        front=service("read replica")(options, sessions, host),
    )
    return 0 if ended_by is None else 128 + ended_by


def _greet_over_stdio(sessions: Any, arguments: Sequence[str]) -> str:
    """Return the text about the served sessions, with the configuration that starts them."""
    program, *first = own_command()
    shown = {"mcpServers": {"hud-mcp": {"command": program, "args": [*first, *arguments]}}}
    return (
        f"hud-mcp serves {_served(sessions)} over standard input and output, and waits for an MCP "
        "client.\nA client starts it by itself: `hud-mcp install` configures one, or paste "
        "this.\n\n"
        f"{json.dumps(shown, indent=2, ensure_ascii=False)}\n\nCtrl-C ends it."
    )


def _greet_over_http(sessions: Any, url: str, *, has_tokens: bool) -> str:
    """Return the text about the sessions that a URL serves. It shows no token."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    if has_tokens:
        entry["headers"] = {"Authorization": "Bearer TOKEN"}
    shown = {"mcpServers": {"hud-mcp": entry}}
    token = " TOKEN is one of this server's." if has_tokens else ""
    return (
        f"hud-mcp serves {_served(sessions)} at {url}, and waits for MCP clients.\n"
        f"Paste this into a client's configuration.{token}\n\n"
        f"{json.dumps(shown, indent=2, ensure_ascii=False)}\n\nCtrl-C ends it."
    )


def _served(sessions: Any) -> str:
    names = ", ".join(sessions.environments)
    count = len(sessions.tasks)
    also = [name for name in sessions.environments if is_also_a_set(name)]
    sets = f" [the environment; its set: --taskset {also[0]}]" if also else ""
    return f"{names}{sets} ({count} {'task' if count == 1 else 'tasks'})" if count else names + sets

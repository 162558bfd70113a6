"""The sessions of one server of `hud-mcp serve`, from its start to its end."""

import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
import click

from hud_mcp.base.egress import read_hosts
from hud_mcp.base.process import Deadline, interruptible, stop_signals
from hud_mcp.cli.interruption import leave, private_stdout
from hud_mcp.cli.process import raise_file_limit, without_collecting
from hud_mcp.cli.sources import Reloading, load_sources, read_limits
from hud_mcp.cli.tokens import quotas_of_tokens, read_operator_token, read_tokens
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import opened
from hud_mcp.record.place import check_place
from hud_mcp.registry import load, service
from hud_mcp.server.local import LocalTools
from hud_mcp.server.stdio.calls import serve_calls
from hud_mcp.session.log import LineStream, configure_logging
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store

logger = logging.getLogger(__name__)


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
            await sessions.prepare()
            if options["without_mcp"]:
                tools = LocalTools(sessions, image=options["image"])
                code = await serve_calls(tools, streams, on_stop=deadline.begin)
            else:
                code = await options["serve_mcp"](options, sessions, streams, printed, deadline)
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
            options["serve_mcp"] = load("hud_mcp.cli.mcp_serving:serve_mcp")
        environments, tasksets = load_sources(
            options["sources"], options["tasksets"], split=options["split"]
        )
    _refuse_impossible(environments)
    if options["reload"]:
        options["reloading"] = Reloading(options, bridges)
        options["reloading"].freeze(environments)
    bridged = await bridges.enter_async_context(
        opened(
            options["sources"], python=options["python"], taken=[each.name for each in environments]
        )
    )
    environments += bridged
    if not options["tasksets"]:
        tasksets += service("listed by bridges")(bridged)
    return Sessions(
        environments,
        store=Store(options["store"], start_rule=quotas),
        tasksets=tasksets,
        limits=limits,
        reward_policy=options["reward"],
        job_id=options["job"],
        tries=options["tries"],
        local_hosts=read_hosts(options["allow"]),
        reloads=options["reload"],
        look=options["look"],
    )


def _refuse_impossible(environments: Sequence[Any]) -> None:
    """Raise HudMcpError for a world that this operating system can never open, with advice."""
    for environment in environments:
        if (why := service("platform refusal")(environment.world)) is not None:
            raise HudMcpError(f"{environment.name} cannot run here. {why}")

"""The commands of the control channel: `channel serve`, and `serve --wire channel=[HOST:]PORT`."""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import click

from hud_mcp.base.egress import read_hosts
from hud_mcp.base.listening import port_of, read_address
from hud_mcp.cli.help import Group
from hud_mcp.cli.interruption import leave, private_stdout
from hud_mcp.cli.options import (
    FiniteFloat,
    WholeNumber,
    allow_option,
    no_record_option,
    store_option,
)
from hud_mcp.cli.process import raise_file_limit, without_collecting
from hud_mcp.cli.sources import load_sources, only_environment, read_limits
from hud_mcp.cli.tokens import read_one_token, read_operator_token, token_file_option
from hud_mcp.cli.wires import Served, Wire
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud import wire
from hud_mcp.record.place import check_place
from hud_mcp.session.log import LineStream, configure_logging
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store

logger = logging.getLogger(__name__)


@click.group("channel", Group)
def command() -> None:
    """Speak the HUD control channel."""


@command.command("serve")
@click.argument("source")
@click.option(
    "--env", "name", metavar="NAME", help="The environment's name, if SOURCE has several."
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port",
    "-p",
    type=WholeNumber(0, 65_535),
    metavar="N",
    default=0,
    help="The port; 0 takes any free port.",
)
@click.option(
    "--token",
    metavar="SECRET",
    envvar="HUD_MCP_CHANNEL_TOKEN",
    hidden=True,
    help="The token that clients must send in their first frame. HUD's own clients send none.",
)
@token_file_option
@click.option(
    "--operator-token-file",
    metavar="FILE",
    hidden=True,
    help="Accept operator calls with the token in FILE. Never give it to agents.",
)
@click.option(
    "--taskset",
    "tasksets",
    multiple=True,
    metavar="FILE",
    hidden=True,
    help="Offer the tasks of this file by their ids.",
)
@allow_option
@store_option
@no_record_option
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", hidden=True, help="Change a limit."
)
@click.option(
    "--idle",
    "idle_s",
    type=FiniteFloat(1),
    metavar="SECONDS",
    default=3600.0,
    help="Close a connection after this many silent seconds. Its task stays alive.",
)
@click.option("--job", hidden=True)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    metavar="LEVEL",
    default="info",
    hidden=True,
    help="Log to stderr from debug, info, warning or error on.",
)
def serve_command(**options: Any) -> None:
    """Serve one environment to HUD clients.

    SOURCE is a shipped environment, a Python file (path/to/env.py), or one environment of a file
    (env.py:name). The command prints the port on standard output as HUD_SERVE_PORT=….
    """
    configure_logging(options["log_level"])
    raise_file_limit()
    # The starter may read one line and no more; children must not fill its pipe.
    printed = private_stdout()
    sys.stdout = LineStream(sys.stderr)
    try:
        code = anyio.run(_serve, options, printed)
    except HudMcpError as exc:
        click.echo(f"Error: {exc}", err=True)
        code = 1
    finally:
        sys.stdout = sys.__stdout__
    sys.exit(code)


async def _serve(options: dict[str, Any], printed: Any) -> int:
    check_place(options["store"])
    operator_token = read_operator_token(options["operator_token_file"])
    token = read_one_token(options["token"], options["token_file"], check=False)
    source = f"{options['source']}:{options['name']}" if options["name"] else options["source"]
    with without_collecting():
        serve_channel = wire.serve
        environments, tasksets = load_sources([source], options["tasksets"])
    environment = only_environment(environments, "A channel")
    given = read_limits(options["limits"])
    limits = wire.CHANNEL_LIMITS.model_copy(
        update={name: getattr(given, name) for name in given.model_fields_set}
    )
    sessions = Sessions(
        environments,
        store=Store(options["store"]),
        tasksets=tasksets,
        limits=limits,
        local_hosts=read_hosts(options["allow"]),
        job_id=options["job"],
    )

    def announce(port: int) -> None:
        click.echo(f"HUD_SERVE_PORT={port}", file=printed)
        printed.flush()

    code = await serve_channel(
        environment,
        options["host"],
        options["port"],
        announce=announce,
        sessions=sessions,
        closes_sessions=True,
        token=token,
        operator_token=operator_token,
        idle_s=options["idle_s"],
    )
    await leave(code)
    return code


@asynccontextmanager
async def _listening(served: Served) -> AsyncGenerator[str]:
    option = "--wire channel"
    host, port = read_address(served.argument or "0", option=option)
    channel = wire.Channel(
        only_environment(list(served.sessions.environments.values()), option),
        sessions=served.sessions,
        token=served.options["channel_token"],
        operator_token=served.options["operator_token"],
    )
    server = await channel.listen(host, port)
    bound = port_of(server)
    logger.info("the control channel is at tcp://%s:%d", host, bound)
    try:
        yield f"HUD_SERVE_PORT={bound}"
    finally:
        await served.sessions.close()  # calls in flight are answered before their connection ends
        await channel.close()


WIRE = Wire(listening=_listening)

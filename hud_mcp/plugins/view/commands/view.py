"""`hud-mcp view`: the record in a browser."""

import sys
from typing import Any
from urllib.parse import quote

import anyio
import click

from hud_mcp.base.listening import base_url, is_loopback, listen, port_of
from hud_mcp.cli.finite import WholeNumber
from hud_mcp.cli.help import Command
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.recording import store_option
from hud_mcp.cli.tokens import read_one_token, token_file_option
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.view import commands
from hud_mcp.record.place import check_place
from hud_mcp.session.log import configure_logging

__all__ = ["command"]

PORT = 8199
"""Taken where none is named, if it is free; else any."""


@click.command(cls=Command)
@click.option(
    "--port", type=WholeNumber(0, 65_535), metavar="N", help="The port; 0 takes any free port."
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="The address to listen on.")
@store_option
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.option(
    "--token",
    metavar="SECRET",
    envvar="HUD_MCP_VIEW_TOKEN",
    help="The token that readers need. A HOST other than loopback requires one.",
)
@token_file_option
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Also accept requests with this Host header.",
)
@click.option(
    "--live-log", is_flag=True, help="Show logs on live pages; agents can read them there."
)
def command(**options: Any) -> None:
    """Show jobs, their trajectories and running sessions in a local web page."""
    configure_logging("warning")
    raise_file_limit()
    sys.exit(anyio.run(_view, options))


async def _view(options: dict[str, Any]) -> int:
    check_place(options["store"])
    host, store = options["host"], commands.Store(options["store"])
    token = read_one_token(options["token"], options["token_file"])
    if token is None and not is_loopback(host):
        raise HudMcpError(
            f"{host} is open to other machines, and the page shows everything; give a --token "
            "(or HUD_MCP_VIEW_TOKEN), or listen on 127.0.0.1."
        )
    if options["store"]:
        store.look_for_it()
    if store.exists:  # the page of a store that is not there yet shows what comes
        await store.list_jobs(0)  # what cannot be read is said here, and not on the page alone
    app = commands.viewer_app(
        store,
        host=host,
        allowed_hosts=options["hosts"],
        token=token,
        live_log=options["live_log"],
    )
    listener = _listen(host, options["port"])
    url = base_url(host, port_of(listener)) + (f"/?token={quote(token, safe='')}" if token else "/")

    def announce() -> None:
        click.echo(f"{url}  (Ctrl-C ends it)")
        if options["opens"]:
            click.launch(url)

    web = commands.WebServer(app, on_ready=announce)
    try:
        with listener:
            await web.serve(sockets=[listener])
    finally:
        await store.close()
    return 0


def _listen(host: str, port: int | None) -> Any:
    if port is not None:
        return listen(host, port)
    try:
        return listen(host, PORT)
    except HudMcpError:
        return listen(host, 0)

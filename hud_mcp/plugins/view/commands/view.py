"""`hud-mcp view`: the record in a browser."""

import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import anyio
import click
from rich.console import Console

from hud_mcp.base.listening import base_url, is_loopback, listen, port_of
from hud_mcp.cli.help import Command
from hud_mcp.cli.interruption import Interruption
from hud_mcp.cli.options import WholeNumber, store_option
from hud_mcp.cli.output import cell
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.tokens import read_one_token, token_file_option
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.view import commands
from hud_mcp.record.job import new_job_id
from hud_mcp.record.place import check_place
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store

PORT = 8199
"""The port without --port, if it is free; else any."""


@click.command(cls=Command)
@click.option(
    "--port", type=WholeNumber(0, 65_535), metavar="N", help="The port; 0 takes any free port."
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="The address to listen on.")
@store_option
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.option(
    "--token",
    hidden=True,
    metavar="SECRET",
    envvar="HUD_MCP_VIEW_TOKEN",
    help="The token that readers need. A HOST other than loopback requires one.",
)
@token_file_option
@click.option(
    "--allow-host",
    "hosts",
    hidden=True,
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
        store, host=host, allowed_hosts=options["hosts"], token=token, live_log=options["live_log"]
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


@asynccontextmanager
async def job_page(
    console: Console, store: Store, interruption: Interruption, *, wanted: bool, resumed: str | None
) -> AsyncGenerator[str]:
    """Serve a job's page while the body runs, if `wanted`, and print its link. Give the job's id.

    On a terminal the page stays after the body, until a signal. In a pipe it ends with the body,
    and a browser keeps its last state.
    """
    if not wanted:
        yield resumed or new_job_id()
        return
    job_id = await store.find_job_id(resumed) if resumed else new_job_id()
    # Agents run on this machine, and the page shows everything: none of them has the token.
    token = secrets.token_urlsafe(16)
    app = commands.viewer_app(store, token=token, coming=job_id)
    listener = listen("127.0.0.1", 0)
    url = f"{base_url('127.0.0.1', port_of(listener))}/?token={token}#job-{quote(job_id, safe='')}"
    async with commands.serving(app, listener):
        console.print(f"Watch it: {url}", soft_wrap=True, markup=False)
        yield job_id
        if sys.stdout.isatty() and interruption.signal is None:
            console.print(cell("The page stays open; Ctrl-C ends it.", "dim"))
            await interruption.run(anyio.sleep_forever)
            interruption.forget()  # the run had ended before

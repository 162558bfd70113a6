"""`hud-mcp eval --view`: a job's page while it runs, and for as long as somebody wants it."""

import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import quote

import anyio
from rich.console import Console

from hud_mcp.base.listening import base_url, listen, port_of
from hud_mcp.cli.interruption import Interruption
from hud_mcp.cli.output import cell
from hud_mcp.plugins.view import commands
from hud_mcp.record.job import new_job_id
from hud_mcp.store import Store

__all__ = ["job_page"]


@asynccontextmanager
async def job_page(
    console: Console,
    store: Store,
    interruption: Interruption,
    *,
    wanted: bool,
    resumed: str | None,
) -> AsyncGenerator[str]:
    """Serve a job's page while the body runs, if it is wanted; the link is printed first.

    Gives the job's id: that of `--resume`, or a new one.

    On a terminal the page stays after the body, until a signal. In a pipe it ends with the body,
    and a browser keeps what it shows.

    Args:
        console: Where the link is printed.
        store: Where the job is, or will be.
        interruption: The signal that ends the page on a terminal.
        wanted: Whether there is a page.
        resumed: The job that goes on; None for a new one.
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

"""Worlds whose end states come back from snapshots, graded by what a file says then."""

# ruff: noqa: ANN001, ANN201, ANN202, ASYNC240  # as authors write

from pathlib import Path

from page import backend

from hud_mcp import Browser, BrowserWorld, Environment, Shell, ShellWorld

desk = Environment("desk", world=Shell())
shop = Environment("shop", world=Browser(site="page_site", backend=backend, state={"orders": []}))


@desk.template()
async def note(shell: ShellWorld, key: str):
    """Grade a file that the agent wrote."""
    yield "Write tea into NOTE."
    yield float(await shell.read("NOTE") == Path(key).read_text())


@note.oracle
async def _(agent, key):
    await agent.tool("write_file", path="NOTE", content="tea")
    return "done"


@shop.tool(replayable=False)
async def note_order(browser: BrowserWorld, what: str) -> str:
    """Order what must not be ordered twice."""
    browser.state["orders"].append(what)
    return "ordered"


@shop.template()
async def order(browser: BrowserWorld, key: str):
    """Grade what arrived at the site."""
    yield "Order tea."
    yield float(browser.state["orders"] == [Path(key).read_text()])


@order.oracle
async def _(agent, key):
    await agent.tool("note_order", what="tea")
    return "done"

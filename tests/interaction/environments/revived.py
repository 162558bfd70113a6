"""A world of each kind, whose setup a test can hold while it is resumed."""

# ruff: noqa: ANN201, ASYNC240  # as authors write

from pathlib import Path

from board_world import Board, BoardSpec, wait_for_file
from page import backend

from hud_mcp import (
    Browser,
    BrowserWorld,
    Environment,
    Gymnasium,
    GymnasiumWorld,
    Shell,
    ShellWorld,
)

silent = Environment("silent")
slate = Environment("slate", world=BoardSpec())
pole = Environment("pole", world=Gymnasium("CartPole-v1", screen=False))
desk = Environment("desk", world=Shell())
shop = Environment("shop", world=Browser(site="page_site", backend=backend, state={"orders": []}))


async def pass_gate(gate: str) -> None:
    """Say that it is reached, and wait until it is opened."""
    Path(f"{gate}.entered").touch()
    await wait_for_file(f"{gate}.gate")


@silent.template()
async def say(gate: str):
    """Grade the answer alone."""
    await pass_gate(gate)
    answer = yield "Say done."
    yield float(answer == "done")


@slate.template()
async def jot(board: Board, gate: str):
    """Grade both notes, in order."""
    await pass_gate(gate)
    yield "Write tea, then milk."
    yield float(board.notes == ["tea", "milk"])


@pole.template()
async def hold(world: GymnasiumWorld, gate: str):
    """Grade how many steps there were."""
    await pass_gate(gate)
    yield "Take three steps."
    yield float(world.episode.steps == 3)


@desk.template()
async def file(shell: ShellWorld, gate: str):
    """Grade two lines of a file."""
    await pass_gate(gate)
    yield "Append tea, then milk, to NOTE."
    yield float(await shell.read("NOTE") == "tea\nmilk\n")


@shop.template()
async def buy(browser: BrowserWorld, gate: str):
    """Grade what arrived at the site."""
    await pass_gate(gate)
    yield "Order tea."
    yield float(browser.state["orders"] == ["tea"])

"""Tasks that end their server, fail in part, or never come to an end; and honest ones."""

# ruff: noqa: ANN001, ANN201, ANN202, ASYNC240  # as authors write

import os
import signal
from pathlib import Path

from board_world import Board, BoardSpec, has_notes, write_notes

from hud_mcp import Environment

GRAVE = Path(os.environ.get("MORTAL_GRAVE", "/nonexistent/grave"))
if GRAVE.exists():
    raise SystemExit("this server is not to start")


class LiveBoardSpec(BoardSpec):
    """A board that no replay rebuilds."""

    replayable = False


env = Environment("mortal", version="1.0.0", world=BoardSpec())
live = Environment("live", version="1.0.0", world=LiveBoardSpec())


def die() -> None:
    """End this process as an operating system does that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@env.template()
async def notes(board: Board, number: int = 12, print_noise: bool = False):  # noqa: FBT001, FBT002  # a task's
    """Ask for notes, and grade what is on the board."""
    if print_noise:
        print("printed by a template")
        os.system("echo echoed by its child")  # noqa: ASYNC221
    answer = yield f"Write {number} notes."
    yield 1.0 if has_notes(board, number) and answer == "done" else 0.0


@notes.oracle
async def _(agent, number):
    return await write_notes(agent, number)


@env.template()
async def dies_in_grading(times_file: str, times: int = 1):
    """End the server while it grades, so many times."""
    answer = yield "Answer."
    died = Path(times_file)
    count = len(died.read_text()) if died.exists() else 0
    if count < times:
        died.write_text("x" * (count + 1))
        die()
    yield 1.0 if answer == "right" else 0.0


@dies_in_grading.oracle
async def _(agent):
    return "right"


@env.template()
async def dies_for_good():
    """End the server, once, and keep every other one from starting."""
    yield "Answer."
    died = GRAVE.with_suffix(".dug")
    if not died.exists():
        died.touch()
        GRAVE.touch()
        die()
    yield 0.0


@dies_for_good.oracle
async def _(agent):
    return "anything"


@env.template()
async def unsteady(begun_file: str):
    """Fail in its setup the first time, and never again."""
    if not Path(begun_file).exists():
        Path(begun_file).touch()
        raise RuntimeError("not yet")
    yield "Answer."
    yield 1.0


@unsteady.oracle
async def _(agent):
    return "anything"


@env.template()
async def puzzling(board: Board):
    """Ask for what the oracle cannot do."""
    yield "Answer."
    yield 1.0


@puzzling.oracle
async def _(agent):
    await agent.look()
    raise ValueError("the oracle's own bug")


@env.template()
async def endless(board: Board):
    """Ask for what has no end."""
    yield "Look."
    yield 1.0


@endless.oracle
async def _(agent):
    while True:
        await agent.look()


@env.template()
async def by_file(board: Board, key: str):
    """Grade what is on the board by what a file says now."""
    yield "Write a note."
    yield 1.0 if board.notes == [Path(key).read_text().strip()] else 0.0


@by_file.oracle
async def _(agent, key):
    await agent.type(Path(key).read_text().strip(), enter=True)
    return "done"


@env.template()
async def once(board: Board):
    """Ask for a call that must not be repeated."""
    yield "Send it."
    yield 1.0 if board.notes == ["sent"] else 0.0


@once.oracle
async def _(agent):
    await agent.tool("send")
    return "done"


@env.tool(replayable=False)
async def send(board: Board) -> str:
    """Do what must not be done twice."""
    board.notes.append("sent")
    return "sent"


@live.template()
async def looked_at(board: Board):
    """Grade what is on a board that no replay rebuilds."""
    yield "Write tea."
    yield 1.0 if board.notes == ["tea"] else 0.0


@looked_at.oracle
async def _(agent):
    await agent.type("tea", enter=True)
    return "done"


@live.template()
async def answered(key: str = "plum"):
    """Grade the answer alone."""
    answer = yield "Which fruit?"
    yield 1.0 if answer == key else 0.0


@answered.oracle
async def _(agent):
    await agent.type("something", enter=True)
    return "plum"

"""An environment with a world, prompts of every kind of argument, and tools of its own."""

# ruff: noqa: ANN001, ANN201, ANN202, ASYNC230, ASYNC240  # as authors write

from pathlib import Path
from typing import Literal

import anyio
from board_world import Board, BoardSpec, wait_for_file

from hud_mcp import Answer, Environment, Grade, SubScore

env = Environment("board", version="1.2.3", world=BoardSpec())


@env.template(description="Write notes on the board")
async def collect(board: Board, marker: str = "none", wanted: tuple[str, ...] = ("tea", "milk")):
    """Grade what is on the board, not the answer."""
    board.marker = marker
    answer = yield f"[{marker}] Write these notes: {', '.join(wanted)}. Then answer 'done'."
    right = board.notes == list(wanted)
    yield Grade(
        reward=1.0 if right and answer == "done" else 0.25 if right else 0.0,
        subscores=(SubScore(name="notes", value=1.0 if right else 0.0),),
        content=f"{len(board.notes)} notes on the board of {marker}.",
    )


@collect.oracle
async def _(agent, wanted):
    for note in wanted:
        await agent.type(note, enter=True)
    return "done"


@env.template(description="Repeat the arguments")
async def arguments(  # noqa: PLR0917  # one of each kind
    name: str,
    kind: Literal["small", "large"] = "small",
    loud: bool = False,  # noqa: FBT001, FBT002  # a prompt's argument
    count: int = 3,
    ratio: float = 0.5,
    tags: tuple[str, ...] = (),
):
    """Ask for what the arguments were."""
    said = f"name={name!r} kind={kind!r} loud={loud!r} count={count!r} ratio={ratio!r} tags={tags}"
    answer = yield said
    yield 1.0 if answer == said else 0.0


@env.template(description="Sum two numbers", returns=int)
async def total(a: int = 2, b: int = 3):
    """Receive a typed answer."""
    answer: Answer[int] = yield f"What is {a} + {b}?"
    kind = type(answer.content).__name__
    yield {"score": float(answer.content == a + b), "content": f"read as {kind}: {answer.raw}"}


@env.template(description="A conversation as a prompt")
async def dialogue():
    """Yield several messages."""
    answer = yield [
        {"role": "user", "content": "Remember the word plum."},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": "Which word was it?"},
    ]
    yield answer == "plum"


@env.template(description="Takes its time to begin")
async def slow_start(seconds: float = 6.0):
    """Prepare for a while."""
    await anyio.sleep(seconds)
    yield "Ready at last."
    yield 1.0


@env.template(description="Rewards on the way", reward="per_step")
async def rewarded(board: Board):
    """Show rewards at each step."""
    yield "Collect rewards."
    yield 1.0


@env.template(description="Waits for a file while it grades, and notes each grading")
async def gated(entered: str, gate: str, gradings: str):
    """Grade when a test says so."""
    answer = yield "Answer when you like."
    with Path(gradings).open("a") as file:
        file.write(f"{answer}\n")
    Path(entered).touch()
    await wait_for_file(gate)
    yield 1.0 if answer == "right" else 0.5


@env.template(description="Waits for a file while it is set up")
async def gated_start(entered: str, gate: str):
    """Begin when a test says so."""
    Path(entered).touch()
    await wait_for_file(gate)
    answer = yield "Now."
    yield answer == "yes"


@env.tool
async def add_note(board: Board, text: str, times: int = 1) -> str:
    """Write a note on the board, several times if wanted."""
    board.notes.extend([text] * times)
    return f"{len(board.notes)} notes"


@env.tool(read_only=True)
async def count_notes(board: Board) -> dict[str, int]:
    """Count the notes."""
    return {"notes": len(board.notes)}


@env.tool(replayable=False)
async def send_note(board: Board) -> str:
    """Do what must not be done twice."""
    return f"{len(board.notes)} notes were sent"


@env.tool
async def broken_tool(board: Board) -> None:
    """Always raise."""
    raise RuntimeError("the tool's own bug")

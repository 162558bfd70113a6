"""An environment without templates: functions over a board, which rows with prompts name."""

# ruff: noqa: ANN201, ASYNC240  # as authors write

from pathlib import Path

from board_world import Board, BoardSpec

from hud_mcp import Answer, Environment, History

env = Environment("asked", version="0.1.0", world=BoardSpec())


@env.function(use="setup")
async def pin(board: Board, *notes: str):
    """Write notes on the board."""
    board.notes.extend(notes)


@env.function(name="board.mark", use="setup")
async def mark(board: Board, marker: str = "none"):
    """Say whose board it is."""
    board.marker = marker


@env.function(use="setup")
async def fail():
    """Never set anything up."""
    raise RuntimeError("the setup's own bug")


@env.function(use="evaluate")
async def pinned(board: Board, *notes: str):
    """Whether exactly these notes are on the board, in order."""
    return float(board.notes == list(notes))


@env.function(use="evaluate")
async def acted(history: History, count: int):
    """Whether the agent did so many things."""
    return float(len(history) == count)


@env.function(use="evaluate")
async def in_file(answer: Answer[str], path: str):
    """Whether the answer is what a file holds now."""
    return float(answer.raw == Path(path).read_text())


@env.function(use="evaluate")
async def words(board: Board):
    """What is on the board: no number."""
    return " ".join(board.notes)


@env.function(use="evaluate")
async def broken(board: Board, secret: str = ""):
    """Raise, with what it was given."""
    raise ValueError(f"cannot compare with {secret}")

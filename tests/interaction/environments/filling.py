"""A task that is solved in a shell, and one under which the disk of the store fills up."""

# ruff: noqa: ANN001, ANN201, ANN202  # as authors write

import os
from pathlib import Path

from hud_mcp import Environment

env = Environment("filling")


def fill():
    """Leave no room on the disk, if there is one to be filled."""
    disk = Path(os.environ["FILLING_DISK"])
    if not disk.is_dir():
        return
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(512))
        except OSError:
            return


@env.template()
async def say(when: str = "never"):
    """Ask for a word; the disk is full from its setup or from its grading on."""
    if when == "setup":
        fill()
    answer = yield "Say yes."
    if when == "grading":
        fill()
    yield float(answer == "yes")


@say.oracle
async def _(agent):  # of an oracle
    return "yes"

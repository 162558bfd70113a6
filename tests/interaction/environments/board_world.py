"""A small honest world: a board with a counter, notes and a screen; and ways to break it."""

# ruff: noqa: ASYNC110, ASYNC240  # the files are how a test in another process stops this one

import asyncio
import io
import random
from pathlib import Path
from typing import ClassVar

import anyio
from PIL import Image, ImageDraw

from hud_mcp import (
    Action,
    ActionEffect,
    Agent,
    ContextSpace,
    CustomAction,
    Look,
    Observation,
    Opening,
    Screenshot,
    WorldSpec,
)
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.context import ContextFeature

__all__ = ["Board", "BoardSpec", "has_notes", "wait_for_file", "write_notes"]


async def wait_for_file(path: str) -> None:
    """Return once a file is there: how a test holds a template or a world at one place."""
    while not Path(path).exists():
        await anyio.sleep(0.01)


class Board:
    """A live board: clicks count, typing and Enter make notes."""

    def __init__(self, opening: Opening) -> None:
        self.width = int(opening.context["width"])
        self.height = int(opening.context["height"])
        self.noise = bool(opening.context["noise"])
        self.marker = ""
        self.clicks: list[tuple[float, float]] = []
        self.notes: list[str] = []
        self.typed = ""
        self.close_text = ""
        self._seed = opening.seed or 0
        self._broken = False
        self._children: list[asyncio.subprocess.Process] = []
        self._acting = False
        self._log = opening.log

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action; two at once are a fault of the caller's, and said to be."""
        if self._acting:
            raise EnvironmentFailed("Two calls are in this world at once.")
        self._acting = True
        try:
            return await self._act(action)
        finally:
            self._acting = False

    async def _act(self, action: Action) -> ActionEffect:
        self._check()
        match action.type:
            case "click":
                if action.point is None:
                    raise ActionFailed("this board has no elements; click a point")
                self.clicks.append((action.point.x, action.point.y))
            case "type":
                self.typed += action.text
                if action.enter_after:
                    self._enter()
            case "press":
                if action.keys == ("enter",):
                    self._enter()
            case "wait":
                await anyio.sleep(action.time / 1000)
            case "custom":
                return await self._custom(action)
        return ActionEffect()

    def _enter(self) -> None:
        self.notes.append(self.typed)
        self.typed = ""

    async def _custom(self, action: CustomAction) -> ActionEffect:
        args = action.args or {}
        match action.action:
            case "refuse":
                raise ActionFailed("the board says no")
            case "raise":
                raise ValueError("the board's own bug")
            case "break":
                self._broken = True
                raise EnvironmentFailed("The board fell off the wall. Start the task again.")
            case "break_later":
                self._broken = True
            case "hold":
                Path(args["entered"]).touch()
                await wait_for_file(args["gate"])
            case "prize":
                return ActionEffect(reward=0.263748591, info={"hint": "STEP-INFO-MARK"})
            case "spawn":
                child = await asyncio.create_subprocess_exec("sleep", "600")
                self._children.append(child)
                return ActionEffect(text=f"spawned {child.pid}")
            case "print":
                print(args["text"])
            case "reward":
                return ActionEffect(**args)
            case other:
                raise ActionFailed(f"the board has no {other!r}")
        return ActionEffect(text=f"did {action.action}")

    async def observe(self, look: Look) -> Observation:
        """Say everything that is on the board, and draw it if a picture is asked for."""
        self._check()
        text = (
            f"marker={self.marker} clicks={self.clicks} notes={self.notes} typed={self.typed!r}"
            if look.text
            else None
        )
        return Observation(text=text, image=self._draw(look) if look.image else None)

    def _draw(self, look: Look) -> Screenshot:
        size = (self.width, self.height)
        if self.noise:
            raw = random.Random(self._seed).randbytes(3 * self.width * self.height)
            image = Image.frombytes("RGB", size, raw)
        else:
            image = Image.new("RGB", size, "white")
            ImageDraw.Draw(image).text((10, 10), f"{self.marker} {self.notes}", fill="black")
        out = io.BytesIO()
        if look.image == "png":
            image.save(out, "PNG")
        else:
            image.save(out, "JPEG", quality=look.quality)
        return Screenshot.from_bytes(out.getvalue())

    async def close(self) -> None:
        """Take the board down."""
        for child in self._children:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if self.close_text:
            raise RuntimeError(self.close_text)

    def _check(self) -> None:
        if self._broken:
            raise EnvironmentFailed("The board fell off the wall. Start the task again.")


class BoardSpec(WorldSpec):
    """Declares a board."""

    name = "board"
    world_type = Board
    actions: ClassVar[frozenset[str]] = frozenset({"click", "type", "press", "wait", "custom"})
    has_screen = True
    replayable = True
    context_space = ContextSpace(
        [
            ContextFeature(name="width", default=400, lower=100, upper=4000),
            ContextFeature(name="height", default=300, lower=100, upper=4000),
            ContextFeature(name="noise", default=False, description="Draw what compresses badly."),
        ]
    )

    async def open(self, opening: Opening) -> Board:
        """Put up a board."""
        return Board(opening)


def has_notes(board: Board, number: int) -> bool:
    """Whether exactly the notes that `write_notes` writes are on a board."""
    return board.notes == [f"note {i}" for i in range(number)]


async def write_notes(agent: Agent, number: int) -> str:
    """Write so many notes, in two ways by turns, and say what is to be answered."""
    for i in range(number):
        if i % 2:
            await agent.type(f"note {i}", enter=True)
        else:
            await agent.act({"type": "type", "text": f"note {i}", "enter_after": True})
    return "done"

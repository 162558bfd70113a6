"""A world of words that a test can hold at any moment of its being brought back."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from PIL import Image

from hud_mcp.environment import Environment
from hud_mcp.errors import ActionFailed
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.action import ActionEffect, TypeAction
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.grade import Grade
from hud_mcp.values.observation import Look, Observation, Screenshot
from hud_mcp.world import Opening, WorldSpec

__all__ = ["Moments", "Slate", "registry", "slates"]


class Moments:
    """Where a world or a template stops until its test lets it go on."""

    def __init__(self) -> None:
        self.held: str | None = None
        self.arrived = anyio.Event()
        self.go_on = anyio.Event()

    def hold(self, moment: str) -> None:
        """Stop at this moment from now on."""
        self.held = moment
        self.arrived, self.go_on = anyio.Event(), anyio.Event()

    async def pass_by(self, moment: str) -> None:
        """Stop here, if the test wants it."""
        if moment == self.held:
            self.arrived.set()
            await self.go_on.wait()


class Slate:
    """The words that were written, in order."""

    def __init__(self, moments: Moments) -> None:
        self.words: list[str] = []
        self.moments = moments

    async def act(self, action: object) -> ActionEffect:
        """Write a word."""
        await self.moments.pass_by(f"act {len(self.words)}")
        if not isinstance(action, TypeAction) or action.text == "refused":
            raise ActionFailed("The slate does not take that.")
        self.words.append(action.text)
        return ActionEffect(text=f"{len(self.words)} words", reward=len(action.text) / 2)

    async def observe(self, look: Look) -> Observation:
        """The words, and a picture of as many pixels."""
        await self.moments.pass_by("look")
        image = None
        if look.image is not None:
            out = io.BytesIO()
            Image.new("RGB", (len(self.words) + 1, 1)).save(out, "PNG")
            image = Screenshot.from_bytes(out.getvalue())
        return Observation(text=" ".join(self.words) if look.text else None, image=image)

    async def close(self) -> None:
        """Nothing is open."""


class KeptSlate(Slate):
    """One that can be written down."""

    async def snapshot(self) -> bytes:
        """Its words."""
        return " ".join(self.words).encode()

    async def restore(self, data: bytes) -> None:
        """Take the words up."""
        await self.moments.pass_by("restore")
        self.words = data.decode().split()


class SlateSpec(WorldSpec):
    """Declares a slate."""

    name = "slate"
    world_type = Slate
    actions = frozenset({"type"})
    has_screen = True
    context_space = ContextSpace()

    def __init__(self, moments: Moments, *, replayable: bool) -> None:
        self.moments = moments
        self.replayable = replayable

    async def open(self, _opening: Opening) -> Slate:
        """Take one."""
        await self.moments.pass_by("open")
        return Slate(self.moments) if self.replayable else KeptSlate(self.moments)


def slates(moments: Moments, *, replayable: bool = True) -> Environment:
    """An environment that grades whether tea and milk were written, and says what else."""
    env = Environment("slates", world=SlateSpec(moments, replayable=replayable))

    @env.template()
    async def fill(slate: Slate) -> Any:
        await moments.pass_by("setup")
        answer = yield "Write tea and milk."
        await moments.pass_by("grade")
        right = slate.words[:2] == ["tea", "milk"]
        yield Grade(reward=float(right), content=f"{' '.join(slate.words)}; {answer}")

    @env.template(reward="per_step")
    async def earn(slate: Slate) -> Any:
        yield "Write."
        yield float(len(slate.words))

    @env.template()
    async def cannot_begin(slate: Slate) -> Any:
        if not slate.words:
            raise RuntimeError("not today")
        yield "Write."
        yield 0.0

    @env.tool
    async def add(slate: Slate, word: str) -> str:
        """Write a word."""
        slate.words.append(word)
        return f"wrote {word}"

    return env


@asynccontextmanager
async def registry(store: Path, env: Environment, **more: Any) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    sessions = Sessions([env], store=Store(store), **more)
    try:
        yield sessions
    finally:
        with anyio.fail_after(20):
            await sessions.close()

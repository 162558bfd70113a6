"""What a contract is tested on: a world's declaration, and samples of its actions."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.environment.world import Opening, Shared, World, WorldSpec, as_world
from hud_mcp.testing.checks import (
    CALL_BOUND_S,
    look_at,
    observe,
)
from hud_mcp.values.action import (
    Action,
    CustomAction,
    WaitAction,
)
from hud_mcp.values.observation import Look

__all__ = ["Subject"]


class Subject:
    """The world whose contract is tested, and what is done with it.

    Override `make_spec`, and the samples as they apply.
    """

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """The declaration whose worlds are tested."""
        raise NotImplementedError

    @classmethod
    def make_opening(cls, shared: Shared) -> Opening:
        """What worlds are opened with: a context, a folder."""
        return Opening(shared=shared, seed=1)

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Actions that work in a new world, and after which it looks different."""
        return ()

    @classmethod
    def kept_actions(cls) -> Sequence[Action]:
        """Actions of which a snapshot keeps everything; of use where worlds have snapshots."""
        return cls.changing_actions()

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """Actions of types that the spec lists, which a new world must refuse."""
        return ()

    @classmethod
    def other_actions(cls) -> Sequence[Action]:
        """Actions that work in a new world, in order, of types and names that no other sample has.

        Every custom action that the spec announces stands here or in another list of samples.
        """
        return ()

    @classmethod
    def css_size(cls) -> tuple[int, int] | None:
        """Width and height of the screen in CSS pixels, or None where it is not known."""
        return None

    @asynccontextmanager
    async def an_opening(self) -> AsyncGenerator[Opening]:
        """An opening, whose shared services end with the test."""
        shared = Shared()
        try:
            yield self.make_opening(shared)
        finally:
            with anyio.fail_after(CALL_BOUND_S, shield=True):
                await shared.close()

    @asynccontextmanager
    async def a_world(self, opening: Opening) -> AsyncGenerator[World]:
        """A world of the spec, closed afterwards, within a bound."""
        spec = self.make_spec()
        context = spec.context_space.fill(opening.context)
        with anyio.fail_after(2 * CALL_BOUND_S):
            world = as_world(await spec.open(replace(opening, context=context)))
            try:
                yield world
            finally:
                await world.close()

    def samples(self) -> Sequence[Action]:
        """Actions that work in a new world, in order."""
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.changing_actions()]

    def samples_kept(self) -> Sequence[Action]:
        """Those of them of which a snapshot keeps everything."""
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.kept_actions()]

    async def live(self, opening: Opening) -> list[Any]:
        """Act and look in a new world, in every way of looking; return what was seen."""
        image = "png" if self.make_spec().has_screen else None
        looks = (Look(), Look(changes=True), Look(text=False, image=image), Look(changes=True))
        seen: list[Any] = []
        async with self.a_world(opening) as world:
            seen.append(await look_at(world))
            for i, action in enumerate([*self.samples(), *self.samples()]):
                effect = await world.act(action)
                found = await observe(world, looks[i % len(looks)])
                size = found.image and (found.image.width_px, found.image.height_px)
                seen.append((effect, found.text, size))
            seen.append(await look_at(world))
        return seen

    def refusals(self) -> Sequence[Action]:
        """Actions that a new world must refuse."""
        unknown = CustomAction(action="no such action")
        own = [unknown] if "custom" in self.make_spec().actions else []
        return [*own, *self.refused_actions()]

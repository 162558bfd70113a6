"""The contract of `hud_mcp.world.World` as tests, for any world to run.

Inherit `WorldContract` in a test class, override `make_spec`, and the samples where the
world takes more than `wait`:

    class TestMyWorld(WorldContract):
        @classmethod
        def make_spec(cls) -> WorldSpec:
            return MyWorld()

Each check is a sentence of the protocol. A world that fails one will surprise the
session that holds it, or the person who reads the record.
"""

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from PIL import Image

from hud_mcp.action import (
    ACTION_TYPES,
    Action,
    ActionEffect,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ResponseAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError
from hud_mcp.observation import Look, Observation, Screenshot
from hud_mcp.world import Opening, Restorable, Shared, World, WorldSpec

__all__ = ["CALL_BOUND_S", "WorldContract"]

CALL_BOUND_S = 30.0
"""Longer than any one call of a world may take."""

_SPOT = Point(x=1, y=1)
_ONE_OF_EACH: tuple[Action, ...] = (
    ClickAction(point=_SPOT),
    PressAction(keys=("a",)),
    KeyDownAction(keys=("shift",)),
    KeyUpAction(keys=("shift",)),
    TypeAction(text="a"),
    ScrollAction(point=_SPOT, scroll=_SPOT),
    MoveAction(point=_SPOT),
    WaitAction(time=1),
    DragAction(path=(_SPOT, _SPOT)),
    ScreenshotFetch(),
    PositionFetch(),
    ResponseAction(text="a"),
    CustomAction(action="no such action"),
)


class WorldContract:
    """What holds for every world. Override `make_spec`, and the samples as they apply."""

    pytestmark = pytest.mark.anyio

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
        """Actions of which a snapshot keeps everything; of use where worlds are `Restorable`."""
        return cls.changing_actions()

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """Actions of types that the spec lists, which a new world must refuse."""
        return ()

    @classmethod
    def css_size(cls) -> tuple[int, int] | None:
        """Width and height of the screen in CSS pixels, or None where it is not known."""
        return None

    @pytest.fixture
    async def opening(self) -> AsyncIterator[Opening]:
        """An opening whose shared services end with the test."""
        shared = Shared()
        yield self.make_opening(shared)
        with anyio.fail_after(CALL_BOUND_S):
            await shared.close()

    # The declaration.

    async def test_the_spec_declares_what_a_session_asks_it(self, opening: Opening) -> None:
        """Its name, its actions, its screen and its context space are there and consistent."""
        spec = self.make_spec()
        assert spec.name
        assert spec.actions <= frozenset(ACTION_TYPES) - {"response"}, "`response` is the session's"
        assert isinstance(spec.has_screen, bool)
        assert isinstance(spec.replayable, bool)
        assert spec.context_space.problems(spec.context_space.default) == []
        async with self.a_world(opening) as world:
            assert isinstance(world, spec.world_type)
            assert isinstance(world, World)

    # Acting.

    async def test_an_action_that_works_returns_an_effect(self, opening: Opening) -> None:
        """`act` returns an `ActionEffect`, and the samples change what is seen."""
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in self._samples():
                with anyio.fail_after(CALL_BOUND_S):
                    assert isinstance(await world.act(action), ActionEffect)
            if self.changing_actions():
                assert await look_at(world) != before, "changing_actions() changed nothing"

    async def test_types_that_are_not_declared_are_refused_and_change_nothing(
        self, opening: Opening
    ) -> None:
        """An action type that the spec does not list is refused, and the world is as before."""
        actions = self.make_spec().actions
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in _ONE_OF_EACH:
                if action.type not in actions:
                    await refused(world, action)
            assert await look_at(world) == before, "a refused action changed the world"

    async def test_a_refused_action_changes_nothing(self, opening: Opening) -> None:
        """What raises `ActionFailed` leaves the world as it was, and usable."""
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in self._refusals():
                await refused(world, action)
                assert await look_at(world) == before, f"{action} was refused, but changed it"
            for action in self._samples():
                await world.act(action)

    # Observing.

    async def test_looking_changes_nothing(self, opening: Opening) -> None:
        """Two observations without an action between them are equal."""
        async with self.a_world(opening) as world:
            for actions in ((), self._samples()):
                for action in actions:
                    await world.act(action)
                first = await look_at(world)
                assert await look_at(world) == first, "observing changed what is observed"

    async def test_only_what_was_asked_for_is_observed(self, opening: Opening) -> None:
        """No picture and no text come without being asked for."""
        async with self.a_world(opening) as world:
            seen = await observe(world, Look())
            assert isinstance(seen, Observation)
            assert seen.image is None, "a picture that nobody asked for"
            assert (await observe(world, Look(text=False))).text is None, "text, unasked for"

    async def test_the_text_keeps_to_its_limit(self, opening: Opening) -> None:
        """A text is no longer than `max_text_chars`."""
        async with self.a_world(opening) as world:
            text = (await observe(world, Look(max_text_chars=200))).text
            assert text is None or len(text) <= 200

    async def test_pictures_decode_and_map_to_the_screen(self, opening: Opening) -> None:
        """PNG and JPEG are what they say, and their scale leads back to the same screen."""
        if not self.make_spec().has_screen:
            return
        async with self.a_world(opening) as world:
            sizes: list[tuple[int, int]] = []
            for kind in ("png", "jpeg"):
                image = (await observe(world, Look(text=False, image=kind))).image
                assert image is not None, "the spec has a screen, and there is no picture"
                sizes.append(css_size_of(image, kind))
            assert sizes[0] == sizes[1], "PNG and JPEG map to screens of different sizes"
            assert self.css_size() in (None, sizes[0]), "the scale leads off the screen"

    async def test_without_a_screen_there_is_no_picture(self, opening: Opening) -> None:
        """A spec without a screen has worlds without pictures."""
        if self.make_spec().has_screen:
            return
        async with self.a_world(opening) as world:
            assert (await observe(world, Look())).image is None

    # Several worlds.

    async def test_two_worlds_are_independent(self, opening: Opening) -> None:
        """What is done in one world is not seen in another; closing one leaves the other."""
        async with self.a_world(opening) as other:
            before = await look_at(other)
            async with self.a_world(opening) as world:
                for action in self._samples():
                    await world.act(action)
                assert await look_at(other) == before, "one world saw what happened in another"
            assert await look_at(other) == before, "closing one world changed another"
            for action in self._samples():
                await other.act(action)

    async def test_worlds_may_act_at_the_same_time(self, opening: Opening) -> None:
        """Two worlds in use at once come to what one alone comes to."""
        ends: list[str] = []

        async def live() -> None:
            async with self.a_world(opening) as world:
                for action in self._samples():
                    await world.act(action)
                ends.append(await look_at(world))

        with anyio.fail_after(2 * CALL_BOUND_S):
            await live()
            async with anyio.create_task_group() as group:
                group.start_soon(live)
                group.start_soon(live)
        if self.make_spec().replayable:
            assert len(set(ends)) == 1, "worlds at the same time disturbed each other"

    # Coming back.

    async def test_a_replayable_world_comes_back_by_its_actions(self, opening: Opening) -> None:
        """Same seed, same context, same actions, same looks: the same observations."""
        if self.make_spec().replayable:
            assert await self._live(opening) == await self._live(opening), "the replay differs"

    async def test_a_replay_needs_no_seed(self, opening: Opening) -> None:
        """Where nobody chose a seed, a replayable world comes back as well."""
        unseeded = replace(opening, seed=None)
        if self.make_spec().replayable:
            assert await self._live(unseeded) == await self._live(unseeded), "the replay differs"

    async def test_a_snapshot_changes_nothing(self, opening: Opening) -> None:
        """A world of which a snapshot was taken looks and goes on as one of which none was."""
        async with self.a_world(opening) as world, self.a_world(opening) as other:
            if not isinstance(world, Restorable):
                return
            for action in (None, *self._kept()):
                for acting in (world, other):
                    if action is not None:
                        await acting.act(action)
                await snapshot(world)
                assert await look_at(world) == await look_at(other), "the snapshot shows"

    async def test_a_restored_world_goes_on_as_it_was(self, opening: Opening) -> None:
        """After any action, a new world that takes the snapshot up shows and does the same."""
        kept = self._kept()
        texts: list[str] = []
        snapshots: list[bytes] = []
        async with self.a_world(opening) as world:
            if not isinstance(world, Restorable):
                return
            texts.append(await look_at(world))
            for action in (*kept, *kept):
                await world.act(action)
                texts.append(await look_at(world))
                snapshots.append(await snapshot(world))
        for done in (1, len(kept)):
            async with self.a_world(opening) as other:
                await restore(other, snapshots[done - 1])
                assert await look_at(other) == texts[done], "the restored world looks different"
                again = await snapshot(other)
                for action, text in zip((*kept, *kept)[done:], texts[done + 1 :], strict=True):
                    await other.act(action)
                    assert await look_at(other) == text, f"{action} does something else now"
            async with self.a_world(opening) as third:
                await restore(third, again)
                assert await look_at(third) == texts[done], "a snapshot of it is not the same"

    async def test_what_is_no_snapshot_is_refused(self, opening: Opening) -> None:
        """Damaged bytes are an `EnvironmentFailed`, and the world is of no use after it."""
        async with self.a_world(opening) as world:
            if not isinstance(world, Restorable):
                return
            data = await snapshot(world)
        for damaged in (b"", b"no snapshot", data[: len(data) // 2]):
            async with self.a_world(opening) as other:
                with pytest.raises(EnvironmentFailed):
                    await restore(other, damaged)
                with pytest.raises(EnvironmentFailed):
                    await observe(other, Look())

    # Tasks, cancellation, the end.

    async def test_calls_may_come_from_different_tasks(self, opening: Opening) -> None:
        """Opened in one task, acted on in a second, observed in a third, closed in a fourth."""
        worlds: list[World] = []

        async def open_it() -> None:
            worlds.append(await self.make_spec().open(opening))

        async def act_on_it() -> None:
            for action in self._samples():
                await worlds[0].act(action)

        async def observe_it() -> None:
            await worlds[0].observe(Look())

        async def close_it() -> None:
            await worlds[0].close()

        for step in (open_it, act_on_it, observe_it, close_it):
            await in_its_own_task(step)

    async def test_a_cancelled_call_leaves_the_world_usable(self, opening: Opening) -> None:
        """Cut off at any moment, the next call works and comes back in time."""
        async with self.a_world(opening) as world:
            for delay_s in (0, 0.001, 0.005, 0.02):
                with anyio.move_on_after(delay_s):
                    for action in self._samples():
                        await world.act(action)
                    await world.observe(Look())
                    await anyio.sleep_forever()
            with anyio.fail_after(CALL_BOUND_S):
                for action in self._samples():
                    await world.act(action)
                await world.observe(Look())

    async def test_a_cancelled_opening_does_not_spoil_the_next(self, opening: Opening) -> None:
        """After an opening was cut off, another one works."""
        for delay_s in (0, 0.001, 0.02):
            with anyio.move_on_after(delay_s):
                world = await self.make_spec().open(opening)
                await world.close()
        async with self.a_world(opening) as world:
            await look_at(world)

    async def test_closing_twice_is_no_error(self, opening: Opening) -> None:
        """`close` may be called again, and returns in time."""
        with anyio.fail_after(CALL_BOUND_S):
            world = await self.make_spec().open(opening)
            await world.close()
            await world.close()

    async def test_a_closed_world_refuses_clearly(self, opening: Opening) -> None:
        """Acting and observing after `close` raise an error of this package's tree."""
        world = await self.make_spec().open(opening)
        await world.close()
        calls: list[Callable[[], Awaitable[Any]]] = [lambda: world.observe(Look())]
        calls += [lambda action=action: world.act(action) for action in self._samples()]
        for call in calls:
            with anyio.fail_after(CALL_BOUND_S), pytest.raises(HudMcpError):
                await call()

    # What the checks are made of.

    @asynccontextmanager
    async def a_world(self, opening: Opening) -> AsyncIterator[World]:
        """A world of the spec, closed afterwards, within a bound."""
        spec = self.make_spec()
        context = spec.context_space.fill(opening.context)
        with anyio.fail_after(2 * CALL_BOUND_S):
            world = await spec.open(replace(opening, context=context))
            try:
                yield world
            finally:
                await world.close()

    def _samples(self) -> Sequence[Action]:
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.changing_actions()]

    def _kept(self) -> Sequence[Action]:
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.kept_actions()]

    async def _live(self, opening: Opening) -> list[Any]:
        """Act and look in a new world, in every way of looking; return what was seen."""
        image = "png" if self.make_spec().has_screen else None
        looks = (Look(), Look(changes=True), Look(text=False, image=image), Look(changes=True))
        seen: list[Any] = []
        async with self.a_world(opening) as world:
            seen.append(await look_at(world))
            for i, action in enumerate([*self._samples(), *self._samples()]):
                effect = await world.act(action)
                found = await observe(world, looks[i % len(looks)])
                size = found.image and (found.image.width_px, found.image.height_px)
                seen.append((effect, found.text, size))
            seen.append(await look_at(world))
        return seen

    def _refusals(self) -> Sequence[Action]:
        unknown = CustomAction(action="no such action")
        own = [unknown] if "custom" in self.make_spec().actions else []
        return [*own, *self.refused_actions()]


async def observe(world: World, look: Look) -> Observation:
    """One observation, within a bound."""
    with anyio.fail_after(CALL_BOUND_S):
        return await world.observe(look)


async def look_at(world: World) -> str:
    """The world in words; an empty string where it has none."""
    return (await observe(world, Look())).text or ""


async def snapshot(world: World) -> bytes:
    """A snapshot, within a bound."""
    assert isinstance(world, Restorable)
    with anyio.fail_after(CALL_BOUND_S):
        return await world.snapshot()


async def restore(world: World, data: bytes) -> None:
    """Take a snapshot up, within a bound."""
    assert isinstance(world, Restorable)
    with anyio.fail_after(CALL_BOUND_S):
        await world.restore(data)


async def refused(world: World, action: Action) -> None:
    """Perform an action that must be refused.

    Raises:
        AssertionError: It was performed, or was refused by another error than `ActionFailed`.
    """
    try:
        with anyio.fail_after(CALL_BOUND_S):
            await world.act(action)
    except ActionFailed as exc:
        if not str(exc):
            pytest.fail(f"{action.type!r} was refused without a reason")
    except Exception as exc:  # noqa: BLE001  # whatever a wrong world raises is the finding
        pytest.fail(f"{action.type!r} was refused by {exc!r}, which is no ActionFailed")
    else:
        pytest.fail(f"{action.type!r} was not refused")


def css_size_of(image: Screenshot, kind: str) -> tuple[int, int]:
    """Check a picture against what it says about itself; return its screen's size."""
    with Image.open(io.BytesIO(image.data)) as decoded:
        decoded.load()
        assert decoded.format == kind.upper()
        assert decoded.size == (image.width_px, image.height_px), "the size that it says is wrong"
    assert image.mime_type == f"image/{kind}"
    return round(image.width_px * image.scale), round(image.height_px * image.scale)


async def in_its_own_task(step: Callable[[], Awaitable[None]]) -> None:
    """Run a step in a task of its own, and raise what it raises."""
    failures: list[BaseException] = []

    async def run() -> None:
        try:
            await step()
        except Exception as exc:  # noqa: BLE001  # raised below, outside of the group
            failures.append(exc)

    with anyio.fail_after(CALL_BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
    if failures:
        pytest.fail(f"a call from another task failed: {failures[0]!r}")

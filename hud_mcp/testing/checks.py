"""What the checks of the contract are made of: calls within a bound, and what is expected."""

import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from PIL import Image

from hud_mcp.environment.spec import Opening, Shared, WorldSpec
from hud_mcp.environment.world import World, as_world
from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import (
    Action,
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
from hud_mcp.values.observation import Look, Observation, Screenshot

__all__ = [
    "CALL_BOUND_S",
    "FEW_CHARS",
    "ONE_OF_EACH",
    "ContractBroken",
    "Subject",
    "called",
    "css_size_of",
    "expect",
    "expect_kind",
    "fails",
    "has_snapshots",
    "in_its_own_task",
    "look_at",
    "observe",
    "refused",
    "restore",
    "snapshot",
    "wrong_arguments",
]


CALL_BOUND_S = 30.0
"""Longer than any one call of a world may take."""

FEW_CHARS = 200
_SPOT = Point(x=1, y=1)
ONE_OF_EACH: tuple[Action, ...] = (
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


class ContractBroken(AssertionError):
    """A world does not do what every world does; the text says what."""


def expect(holds: object, text: str) -> None:
    """Raise what a check has found, unless it holds."""
    if not holds:
        raise ContractBroken(text)


def expect_kind(value: object, kind: type, of: str) -> None:
    """Expect a type of what an author's code returned."""
    expect(isinstance(value, kind), f"{of} returned {value!r}, which is no {kind.__name__}")


async def fails(call: Callable[[], Awaitable[Any]], error: type[Exception]) -> None:
    """Expect an error of a call, within a bound."""
    try:
        with anyio.fail_after(CALL_BOUND_S):
            await call()
    except error:
        return
    raise ContractBroken(f"no {error.__name__} was raised")


async def observe(world: World, look: Look) -> Observation:
    """One observation, within a bound."""
    with anyio.fail_after(CALL_BOUND_S):
        return await world.observe(look)


async def look_at(world: World) -> str:
    """The world in words; an empty string where it has none."""
    return (await observe(world, Look())).text or ""


async def snapshot(world: World) -> bytes:
    """A snapshot of a world that has them, within a bound."""
    with anyio.fail_after(CALL_BOUND_S):
        data = await world.snapshot()
    if data is None:
        raise ContractBroken("one snapshot of the spec's worlds has the state, and another is None")
    return data


async def has_snapshots(world: World) -> bool:
    """Whether a world can be restored."""
    with anyio.fail_after(CALL_BOUND_S):
        return await world.snapshot() is not None


async def restore(world: World, data: bytes) -> None:
    """Take a snapshot up, within a bound."""
    with anyio.fail_after(CALL_BOUND_S):
        await world.restore(data)


async def refused(world: World, action: Action) -> str:
    """Perform an action that must be refused, and return the reason.

    Raises:
        ContractBroken: It was performed, or was refused by another error than `ActionFailed`.
    """
    try:
        with anyio.fail_after(CALL_BOUND_S):
            await world.act(action)
    except ActionFailed as exc:
        if not str(exc):
            raise ContractBroken(f"{called(action)} was refused without a reason") from exc
        return str(exc)
    except Exception as exc:  # whatever a wrong world raises is the finding
        text = f"{called(action)} was refused by {exc!r}, which is no ActionFailed"
        raise ContractBroken(text) from exc
    raise ContractBroken(f"{called(action)} was not refused")


def called(action: Action) -> str:
    """The action's type, or a custom action's name with its arguments."""
    return str(action) if isinstance(action, CustomAction) else repr(action.type)


def wrong_arguments(
    schema: Mapping[str, Any], args: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Make arguments that a JSON schema forbids of arguments that it allows.

    Yields:
        The name of the wrong argument, and all arguments with it: unknown, missing, or of a
        type that the schema does not name.
    """
    if schema.get("additionalProperties") is False:
        yield "no_such_argument", {**args, "no_such_argument": 1}
    for name in schema.get("required", ()):
        yield name, {other: value for other, value in args.items() if other != name}
    for name, field in schema.get("properties", {}).items():
        if isinstance(field.get("type"), str):
            yield name, {**args, name: "no" if field["type"] == "boolean" else True}


def css_size_of(image: Screenshot, kind: str) -> tuple[int, int]:
    """Check a picture against what it says about itself; return its screen's size."""
    with Image.open(io.BytesIO(image.data)) as decoded:
        decoded.load()
        expect(decoded.format == kind.upper(), "the picture is of another kind")
        expect(decoded.size == (image.width_px, image.height_px), "the size that it says is wrong")
    expect(image.mime_type == f"image/{kind}", "its type is not what was asked for")
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
        raise ContractBroken(f"a call from another task failed: {failures[0]!r}")


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

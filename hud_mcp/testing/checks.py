"""The parts of the contract's checks: calls within a bound, expectations, and samples."""

import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

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
from hud_mcp.values.observation import Look, Screenshot

T = TypeVar("T")

CALL_BOUND_S = 30.0
"""A bound in seconds, longer than any one call of a world may take."""

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
    """The failure of a world to do what every world does; the text names it."""


def expect(holds: object, text: str) -> None:
    """Raise `ContractBroken` with a text, unless a condition holds."""
    if not holds:
        raise ContractBroken(text)


def expect_kind(value: object, kind: type, of: str) -> None:
    """Expect a value of an author's code to be of a type."""
    expect(isinstance(value, kind), f"{of} returned {value!r}, which is no {kind.__name__}")


async def fails(call: Callable[[], Awaitable[Any]], error: type[Exception]) -> None:
    """Expect a call to raise an error, within a bound."""
    try:
        await within(call())
    except error:
        return
    raise ContractBroken(f"no {error.__name__} was raised")


async def within(call: Awaitable[T]) -> T:
    """Return the result of a call, within a bound."""
    with anyio.fail_after(CALL_BOUND_S):
        return await call


async def look_at(world: World) -> str:
    """Return the world in words; an empty string if it has none."""
    return (await within(world.observe(Look()))).text or ""


async def snapshot(world: World) -> bytes:
    """Return a snapshot of a world that has them."""
    data = await within(world.snapshot())
    if data is None:
        raise ContractBroken("one snapshot of the spec's worlds has the state, and another is None")
    return data


async def refused(world: World, action: Action) -> str:
    """Perform an action that must be refused, and return the reason.

    Raises:
        ContractBroken: It was performed, refused without a reason, or by another error.
    """
    try:
        await within(world.act(action))
    except ActionFailed as exc:
        if not str(exc):
            raise ContractBroken(f"{called(action)} was refused without a reason") from exc
        return str(exc)
    except Exception as exc:  # whatever a wrong world raises is the finding
        text = f"{called(action)} was refused by {exc!r}, which is no ActionFailed"
        raise ContractBroken(text) from exc
    raise ContractBroken(f"{called(action)} was not refused")


def called(action: Action) -> str:
    """Return an action's type, or a custom action's name with its arguments."""
    return str(action) if isinstance(action, CustomAction) else repr(action.type)


def wrong_arguments(
    schema: Mapping[str, Any], args: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield arguments that a JSON schema forbids, made from allowed ones, by the wrong name."""
    if schema.get("additionalProperties") is False:
        yield "no_such_argument", {**args, "no_such_argument": 1}
    for name in schema.get("required", ()):
        yield name, {other: value for other, value in args.items() if other != name}
    for name, field in schema.get("properties", {}).items():
        if isinstance(field.get("type"), str):
            yield name, {**args, name: "no" if field["type"] == "boolean" else True}


def css_size_of(image: Screenshot, kind: str) -> tuple[int, int]:
    """Check a picture against its own metadata; return its screen's size in CSS pixels."""
    with Image.open(io.BytesIO(image.data)) as decoded:
        decoded.load()
        expect(decoded.format == kind.upper(), "the picture is of another kind")
        expect(decoded.size == (image.width_px, image.height_px), "the size that it says is wrong")
    expect(image.mime_type == f"image/{kind}", "its type is not what was asked for")
    return round(image.width_px * image.scale), round(image.height_px * image.scale)


async def in_its_own_task(step: Callable[[], Awaitable[None]]) -> None:
    """Run a step in a task of its own, and raise `ContractBroken` if it fails."""
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
    """The world whose contract is tested. Override `make_spec`, and the samples that apply."""

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """Return the declaration whose worlds are tested."""
        raise NotImplementedError

    @classmethod
    def make_opening(cls, shared: Shared) -> Opening:
        """Return the conditions under which worlds are opened, such as a context or a folder."""
        return Opening(shared=shared, seed=1)

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Return actions that work in a new world and change its look."""
        return ()

    @classmethod
    def kept_actions(cls) -> Sequence[Action]:
        """Return actions whose whole effect a snapshot keeps, for worlds with snapshots."""
        return cls.changing_actions()

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """Return actions of types that the spec lists, which a new world must refuse."""
        return ()

    @classmethod
    def other_actions(cls) -> Sequence[Action]:
        """Return actions for types and names without a sample; they work in a new world, in order.

        Every custom action that the spec announces stands here or in another list of samples.
        """
        return ()

    @classmethod
    def css_size(cls) -> tuple[int, int] | None:
        """Return the width and height of the screen in CSS pixels, or None if unknown."""
        return None

    @asynccontextmanager
    async def an_opening(self) -> AsyncGenerator[Opening]:
        """Provide an opening, whose shared services end with the test."""
        shared = Shared()
        try:
            yield self.make_opening(shared)
        finally:
            with anyio.fail_after(CALL_BOUND_S, shield=True):
                await shared.close()

    @asynccontextmanager
    async def a_world(self, opening: Opening) -> AsyncGenerator[World]:
        """Provide a world of the spec, and close it afterwards, within a bound."""
        spec = self.make_spec()
        context = spec.context_space.fill(opening.context)
        with anyio.fail_after(2 * CALL_BOUND_S):
            world = as_world(await spec.open(replace(opening, context=context)))
            try:
                yield world
            finally:
                await world.close()

    def samples(self) -> Sequence[Action]:
        """Return the actions that work in a new world, in order."""
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.changing_actions()]

    def samples_kept(self) -> Sequence[Action]:
        """Return the samples whose whole effect a snapshot keeps."""
        waits = [WaitAction(time=1)] if "wait" in self.make_spec().actions else []
        return [*waits, *self.kept_actions()]

    async def live(self, opening: Opening) -> list[Any]:
        """Act and look in a new world, in every way of looking; return everything seen."""
        image = "png" if self.make_spec().has_screen else None
        looks = (Look(), Look(changes=True), Look(text=False, image=image), Look(changes=True))
        seen: list[Any] = []
        async with self.a_world(opening) as world:
            seen.append(await look_at(world))
            for i, action in enumerate([*self.samples(), *self.samples()]):
                effect = await world.act(action)
                found = await within(world.observe(looks[i % len(looks)]))
                size = found.image and (found.image.width_px, found.image.height_px)
                seen.append((effect, found.text, size))
            seen.append(await look_at(world))
        return seen

    def refusals(self) -> Sequence[Action]:
        """Return all actions that a new world must refuse."""
        unknown = CustomAction(action="no such action")
        own = [unknown] if "custom" in self.make_spec().actions else []
        return [*own, *self.refused_actions()]

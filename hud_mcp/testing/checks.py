"""What the checks of the contract are made of: calls within a bound, and what is expected."""

import io
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
from PIL import Image

from hud_mcp.environment.world import World
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

"""A step: its draft while it is made, its view for the agent, and the pointer that it aims at."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson
from pydantic_core import to_jsonable_python

from hud_mcp.base.text import clip_text
from hud_mcp.environment.moves import WorldEvent
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, HudMcpError, InvalidAction
from hud_mcp.record.values import (
    SNAPSHOT,
    TARGETS,
    UNDONE,
    ScreenshotRecord,
    TrajectoryStep,
    utc_now,
)
from hud_mcp.values.action import Action, ActionEffect, Point, PositionFetch, Targeted, needs_target
from hud_mcp.values.call import FunctionConfig
from hud_mcp.values.observation import Look, Observation, Screenshot, TaskResult, fit_screenshot
from hud_mcp.values.reply import InputNeeded, ToolReply

StepKind = Literal[
    "step", "act", "screenshot", "tool", "direct", "response", "evaluate", "reset", "message",
    "user",
]  # fmt: skip
"""The kinds of calls, by their names in the record."""

_PLAIN = Look()


class Draft:
    """A step while it is made; `scale` is the world's pixels for one of the agent's picture."""

    __slots__ = (
        "actions", "answers", "delivered_image", "error", "events", "info", "interrupted", "kind",
        "look", "notes", "observation", "performed", "places", "reward", "scale", "snapshot",
        "started_at", "targets", "terminated", "truncated", "was_dead",
    )  # fmt: skip

    def __init__(
        self,
        kind: StepKind,
        actions: list[dict[str, Any]],
        *,
        scale: float = 1.0,
        look: Look = _PLAIN,
        was_dead: bool = False,
    ) -> None:
        self.kind: StepKind = kind
        self.actions = actions
        self.started_at = utc_now()
        self.scale = scale
        self.look = look
        self.was_dead = was_dead
        self.performed = 0
        self.observation: Observation | None = None
        self.error: str | None = None
        self.reward: float | None = None
        self.notes: list[str] = []
        self.events: list[WorldEvent] = []
        self.places: list[Point | None] = []
        self.targets: list[str | None] = []
        self.info: dict[str, Any] = {}
        self.terminated = False
        self.truncated = False
        self.delivered_image = False
        self.interrupted = False  # by something else than the call's own failure
        self.answers = False  # its last action is the answer, and is submitted
        self.snapshot: bytes | None = None

    def fail(self, error: str, *, interrupted: bool) -> None:
        """Note the reason why the call was not completed."""
        self.error = error
        self.interrupted = interrupted

    def undo(self) -> None:
        """Note that the world died and is resumed: nothing of the call stands."""
        self.performed, self.reward, self.places, self.targets = 0, None, [], []
        self.terminated = self.truncated = self.interrupted = False
        self.snapshot = self.observation = None
        self.events = []
        self.info = {UNDONE: "before" if self.was_dead else "during"}

    def add(self, effect: ActionEffect) -> None:
        """Add the effect of one action.

        In its info, a list is appended to that of the actions before, as with rewards. Any other
        value replaces the earlier one, except the number of the first step.
        """
        self.performed += 1
        self.places.append(effect.place)
        self.targets.append(effect.target)
        if effect.text:
            self.notes.append(effect.text)
        if effect.reward is not None:
            self.reward = (self.reward or 0) + effect.reward
        self.terminated |= effect.terminated
        self.truncated |= effect.truncated
        for name, value in effect.info.items():
            before = self.info.get(name)
            if isinstance(value, list) and isinstance(before, list):
                self.info[name] = [*cast("list[Any]", before), *cast("list[Any]", value)]
            elif name != "first_step" or before is None:
                self.info[name] = value

    def step(self, index: int, of_snapshot: Mapping[str, Any] | None = None) -> TrajectoryStep:
        """Return the step for the record, with the note on the snapshot after it."""
        seen, look = self.observation, self.look
        info = {**self.info, TARGETS: self.targets} if any(self.targets) else self.info
        if of_snapshot:
            info = {**info, SNAPSHOT: dict(of_snapshot)}
        told = {} if look is _PLAIN else look.model_dump(mode="json", exclude_defaults=True)
        return TrajectoryStep(
            index=index,
            kind=self.kind,
            actions=list(self.actions),
            performed=self.performed,
            scale=self.scale,
            places=tuple(self.places) if any(self.places) else (),
            look=told,
            delivered_image=self.delivered_image,
            interrupted=self.interrupted,
            observation_text=seen.text if seen else None,
            screenshot=ScreenshotRecord.of(seen.image) if seen and seen.image else None,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            info=to_jsonable_python(info, fallback=str) if info else {},
            error=self.error,
            notes=tuple(self.notes),
            events=tuple(self.events),
            started_at=self.started_at,
            ended_at=utc_now(),
        )


@dataclass(frozen=True, slots=True)
class Stepped:
    """The result of a call: the agent's view, also of a repeated call read from the record.

    `error` tells why the next action was not performed. `reward` is None if the agent may not see
    it. `reply` is that of another server, which goes to the agent unchanged. `needed` are its
    questions, before the step is made.
    """

    result: TaskResult
    performed: int
    error: str | None = None
    notes: tuple[str, ...] = ()
    answered: bool = False
    is_repeat: bool = False
    reward: float | None = None
    reply: ToolReply | None = None
    needed: InputNeeded | None = None


def as_shown(
    draft: Draft, *, deliver_image: bool, rewards_shown: bool, answered: bool = False
) -> Stepped:
    """Return a step for the agent."""
    seen = draft.observation or Observation()
    if seen.image is not None and not deliver_image:
        seen = Observation(text=seen.text, values=seen.values)
    return Stepped(
        result=TaskResult(
            observation=seen,
            terminated=draft.terminated,
            truncated=draft.truncated,
            info=draft.info,
        ),
        performed=draft.performed,
        error=None if answered else draft.error,
        notes=tuple(draft.notes),
        answered=answered,
        reward=draft.reward if rewards_shown else None,
    )


def why(exc: Exception) -> str:
    """The text of a failure that stops nothing."""
    known = isinstance(exc, HudMcpError | TimeoutError)
    return str(exc) if known else f"{type(exc).__name__}: {exc}"


def as_actions(calls: Sequence[FunctionConfig]) -> list[dict[str, Any]]:
    """Return calls as a step's actions, in the form of tool calls."""
    return [{"tool": call.function, "args": list(call.args)} for call in calls]


def why_stopped(exc: BaseException, where: str) -> str:
    """Return the record's text for a call that was not completed."""
    if isinstance(exc, asyncio.CancelledError):
        return f"stopped {where}"
    return str(exc) if isinstance(exc, HudMcpError) else f"{type(exc).__name__}: {exc}"


def which_failed(actions: Sequence[Action], performed: int, exc: Exception) -> str:
    """Name the refused action, and the reason."""
    failed = actions[performed]
    if len(actions) == 1:
        return f"{failed.type} failed: {exc}"
    rest = len(actions) - performed - 1
    tail = f" The {rest} after it were not performed." if rest else ""
    return f"actions[{performed}]: {failed.type} failed: {exc}{tail}"


def tool_observation(value: Any, look: Look) -> Observation:
    """Return a tool's result, within the budget of an observation."""
    if isinstance(value, ToolReply):
        value = value.observation()
    if isinstance(value, Screenshot):
        value = Observation(image=value)
    if not isinstance(value, Observation):
        value = Observation(text=_tool_text(value))
    text = None if value.text is None else clip_text(value.text, look.max_text_chars)
    image = None if value.image is None else fit_screenshot(value.image, look)
    return Observation(text=text, image=image)


def _tool_text(value: Any) -> str:
    if value is None:
        return "Done."
    if isinstance(value, str):
        return value
    return orjson.dumps(to_jsonable_python(value, fallback=str)).decode()


class Pointer:
    """The pointer's last place, in the world's pixels, once it was placed."""

    __slots__ = ("_at", "placed")

    def __init__(self) -> None:
        self.placed = False
        self._at: Point | None = None  # None: it was on an element that is out of view now

    def check(self, actions: Sequence[Action], *, follows: bool) -> None:
        """Refuse a click without a place, unless it follows a placed pointer.

        Raises:
            InvalidAction: Such a click is among the actions; none of them may be performed.
        """
        placed = follows and self.placed
        for i, action in enumerate(actions):
            if action.is_aimless and not placed:
                where = f"actions[{i}]" if len(actions) > 1 else "action"
                raise InvalidAction(f"{where}: {needs_target(action.type)}.")
            placed |= follows and action.moves_pointer

    async def act(self, action: Action, world: World) -> ActionEffect:
        """Perform an action that aims at the pointer, or moves it, in the world's pixels.

        Raises:
            ActionFailed: The pointer's place is unknown, or `World.act` raised this.
        """
        aimed = action
        if action.is_aimless:
            aimed = action.model_copy(update={"point": await self._place(action, world)})
        effect = await world.act(aimed)
        self.note(aimed, effect.place)
        if aimed is action or effect.place is not None or not isinstance(aimed, Targeted):
            return effect
        return effect.model_copy(update={"place": aimed.point})

    async def _place(self, action: Action, world: World) -> Point:
        at = self._at
        if at is None and self.placed:
            told = (await world.act(PositionFetch())).info.get("point")
            at = None if told is None else Point.model_validate(told)
        if at is None:
            raise ActionFailed(f"{needs_target(action.type)}.")
        return at

    def note(self, action: Action, place: Point | None) -> None:
        """Follow a performed action, in the world's pixels, to the place of its target."""
        if action.moves_pointer:
            self.placed, self._at = True, action.pointer_after(self._at, place)


def in_picture_pixels(effect: ActionEffect, scale: float) -> ActionEffect:
    """Return an effect with its place in pixels of the agent's picture."""
    point = effect.info.get("point")
    if scale == 1 or not isinstance(point, dict):
        return effect
    place = {
        axis: round(value / scale, 1) for axis, value in cast("dict[str, float]", point).items()
    }
    text = f"The pointer is at ({place['x']:g}, {place['y']:g})."
    return effect.model_copy(update={"text": text, "info": {**effect.info, "point": place}})

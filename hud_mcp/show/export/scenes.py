"""What the frames of a moving picture show, before anything is drawn: a plan from the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hud_mcp.action import DragAction, Point, Targeted, parse_action
from hud_mcp.errors import InvalidAction
from hud_mcp.record.trajectory import ScreenshotRecord, Trajectory, TrajectoryStep
from hud_mcp.show.web.words import RefNames, describe_action

__all__ = ["Mark", "Scene", "choose", "scenes_of"]

Tone = Literal["plain", "good", "bad", "dim"]

_SHORTEST_MS, _LONGEST_MS, _END_MS = 900, 3600, 3500
_LOOK_MS = 700
_MS_PER_CHARACTER = 35
_FULL = 1 - 1e-6
"""The reward from which on an end is shown as a success."""


@dataclass(frozen=True)
class Mark:
    """One action's place.

    Attributes:
        kind: The action's type.
        points: In pixels of the scene's picture; of a scroll without a place, none.
        performed: Whether it was performed.
        number: Which of the step's actions it is, from 1; 0 where it is the only one.
        scroll: How far a scroll went, in CSS pixels.
        clicks: How often it clicked.
    """

    kind: str
    points: tuple[tuple[float, float], ...]
    performed: bool
    number: int = 0
    scroll: tuple[float, float] = (0.0, 0.0)
    clicks: int = 1


@dataclass(frozen=True)
class Scene:
    """One frame.

    Attributes:
        picture: What the agent saw; None where there is only text.
        text: What it read, for a frame without a picture.
        heading: A line above that text, or None.
        badge: The step's number, or how it ended.
        words: What was done.
        note: What went wrong, or None.
        marks: What is drawn on the picture.
        tone: How the badge looks.
        hold_ms: How long it is shown.
    """

    picture: ScreenshotRecord | None
    text: str
    badge: str
    words: str
    hold_ms: int
    heading: str | None = None
    note: str | None = None
    marks: tuple[Mark, ...] = ()
    tone: Tone = "plain"


def scenes_of(trajectory: Trajectory) -> list[Scene]:
    """Plan a trajectory's frames: what was asked, each step on what came before it, the end."""
    task = trajectory.task
    text = trajectory.prompt or "The task had no prompt yet."
    opening = Scene(
        picture=None,
        heading=task.id,
        text=text,
        badge="task",
        words=f"{trajectory.environment}, template {task.template}",
        hold_ms=_reading_ms(text),
    )
    scenes = [opening]
    picture: ScreenshotRecord | None = None
    seen = text
    names = RefNames()
    for step in trajectory.steps:
        if step.actions or picture is not None:
            scene = _step_scene(step, len(trajectory.steps), picture, seen, names)
            scenes.append(replace(scene, heading=task.id))
        picture = step.screenshot or picture
        seen = step.observation_text or seen
        names.read(step.observation_text)
    return [*scenes, replace(_end_scene(trajectory, picture, seen), heading=task.id)]


def choose(scenes: Sequence[Scene], most: int) -> list[Scene]:
    """Choose so many scenes, evenly; the first and the last are among them."""
    if len(scenes) <= most:
        return list(scenes)
    last = len(scenes) - 1
    return [scenes[round(i * last / (most - 1))] for i in range(most)]


def _step_scene(
    step: TrajectoryStep,
    count: int,
    picture: ScreenshotRecord | None,
    seen: str,
    names: Mapping[str, str],
) -> Scene:
    words = "; ".join(describe_action(action, names) for action in step.actions) or "look"
    rejected = len(step.actions) - step.performed
    return Scene(
        picture=picture,
        text=seen,
        badge=f"{step.index + 1}/{count}",
        words=words,
        note=step.error,
        marks=_marks(step, picture) if picture is not None else (),
        tone="bad" if step.error and rejected else "plain",
        hold_ms=_reading_ms(words + (step.error or "")) if step.actions else _LOOK_MS,
    )


def _end_scene(trajectory: Trajectory, picture: ScreenshotRecord | None, seen: str) -> Scene:
    outcome, reward = trajectory.outcome, trajectory.reward
    scene = Scene(
        picture=picture,
        text=seen,
        badge="goes on",
        words=f"not ended yet, after {len(trajectory.steps)} steps",
        hold_ms=_END_MS,
        tone="dim",
    )
    if outcome is None:
        return scene
    if reward is None:
        badge = outcome.value.replace("_", " ")
        words = trajectory.error or "no grade"
        return replace(scene, badge=badge, words=words, tone="bad")
    content = trajectory.receipt.content if trajectory.receipt else None
    tone: Tone = "good" if reward >= _FULL else "bad" if reward <= 0 else "plain"
    return replace(scene, badge=f"reward {reward:g}", words=content or "graded", tone=tone)


def _marks(step: TrajectoryStep, picture: ScreenshotRecord) -> tuple[Mark, ...]:
    """Where the actions were, in pixels of the picture before them."""
    found: list[Mark] = []
    for number, raw in enumerate(step.actions):
        ratio = step.scale / picture.scale
        reached = step.places[number] if number < len(step.places) else None
        if reached is not None:  # of what a ref or a selector named, and in CSS pixels
            raw, ratio = _at(raw, reached), 1 / picture.scale  # noqa: PLW2901
        mark = _mark(raw, ratio, performed=number < step.performed)
        if mark is not None:
            found.append(replace(mark, number=number + 1 if len(step.actions) > 1 else 0))
    return tuple(found)


def _at(raw: Mapping[str, Any], place: Point) -> dict[str, Any]:
    """An action on a point, in place of the ref or the selector that it named."""
    kept = {k: v for k, v in raw.items() if k not in ("ref", "selector")}
    return {**kept, "point": {"x": place.x, "y": place.y}}


def _mark(raw: Mapping[str, Any], ratio: float, *, performed: bool) -> Mark | None:
    try:
        action = parse_action(raw, pointed=False)
    except InvalidAction:
        return None  # a tool's call

    def place(point: Point) -> tuple[float, float]:
        return point.x * ratio, point.y * ratio

    if isinstance(action, DragAction):
        return Mark("drag", tuple(place(p) for p in action.path), performed)
    point = action.point if isinstance(action, Targeted) else None
    points = (place(point),) if point is not None else ()
    if action.type == "scroll" and action.scroll is not None:
        return Mark("scroll", points, performed, scroll=(action.scroll.x, action.scroll.y))
    if not points:
        return None
    clicks = 1 + len(action.pattern or ()) if action.type == "click" else 1
    return Mark(action.type, points, performed, clicks=clicks)


def _reading_ms(text: str) -> int:
    return min(_LONGEST_MS, _SHORTEST_MS + _MS_PER_CHARACTER * len(text))

"""The plan of a moving picture: the contents of each frame, from the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.transcript import read_action, said_steps
from hud_mcp.record.values import ScreenshotRecord, TrajectoryStep
from hud_mcp.values.action import Point

Tone = Literal["plain", "good", "bad", "dim"]

_SHORTEST_MS, _LONGEST_MS, _END_MS = 900, 3600, 3500
_LOOK_MS = 700
_MS_PER_CHARACTER = 35
_FULL = 1 - 1e-6
"""The reward from which on an end is shown as a success."""


@dataclass(frozen=True)
class Spot:
    """The marks of one action, in pixels of the scene's picture."""

    kind: str
    points: tuple[tuple[float, float], ...]  # several are a way; none of a scroll without a place
    performed: bool
    number: int = 0  # its place among the step's actions, from 1; 0 if it is alone
    scroll: tuple[float, float] | None = None  # in CSS pixels; None for any other action
    clicks: int = 1
    presses: bool = True  # it pressed something there


@dataclass(frozen=True)
class Scene:
    """One frame."""

    picture: ScreenshotRecord | None  # None if the agent saw only text
    text: str  # for a frame without a picture, below the heading
    badge: str  # the step's number, or its end
    words: str  # the actions in words
    hold_ms: int
    heading: str | None = None
    note: str | None = None  # the error
    marks: tuple[Spot, ...] = ()
    tone: Tone = "plain"


def scenes_of(trajectory: Trajectory) -> list[Scene]:
    """Plan the frames: the prompt, each step on the picture before it, the end."""
    task = trajectory.task
    text = trajectory.prompt or "The task had no prompt yet."
    first = next((s.screenshot for s in trajectory.steps if s.screenshot is not None), None)
    opening = Scene(
        picture=first,  # the first frame is all that many readers see
        heading=task.id,
        text=text,
        badge="task",
        words=f"{trajectory.environment}, template {task.template}" if first is None else text,
        hold_ms=_reading_ms(text),
    )
    scenes = [opening]
    picture: ScreenshotRecord | None = None
    seen = text
    for step, words in said_steps(trajectory.steps):
        if step.actions or picture is not None:
            scene = _step_scene(step, words, len(trajectory.steps), picture, seen)
            scenes.append(replace(scene, heading=task.id))
        picture = step.screenshot or picture
        seen = step.observation_text or seen
    return [*scenes, replace(_end_scene(trajectory, picture, seen), heading=task.id)]


def choose(scenes: Sequence[Scene], most: int) -> list[Scene]:
    """Choose so many scenes, evenly; the first and the last are among them."""
    if len(scenes) <= most:
        return list(scenes)
    last = len(scenes) - 1
    return [scenes[round(i * last / (most - 1))] for i in range(most)]


def _step_scene(
    step: TrajectoryStep, words: str, count: int, picture: ScreenshotRecord | None, seen: str
) -> Scene:
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
        badge = outcome.words
        words = trajectory.error or "no grade"
        return replace(scene, badge=badge, words=words, tone="bad")
    content = trajectory.receipt.content if trajectory.receipt else None
    tone: Tone = "good" if reward >= _FULL else "bad" if reward <= 0 else "plain"
    return replace(scene, badge=f"reward {reward:g}", words=content or "graded", tone=tone)


def _marks(step: TrajectoryStep, picture: ScreenshotRecord) -> tuple[Spot, ...]:
    found: list[Spot] = []
    for number, raw in enumerate(step.actions):
        reached = step.places[number] if number < len(step.places) else None
        spot = _spot(raw, step.scale, reached, picture.scale)
        if spot is not None:
            place = number + 1 if len(step.actions) > 1 else 0
            found.append(replace(spot, number=place, performed=number < step.performed))
    return tuple(found)


def _spot(
    raw: Mapping[str, Any], scale: float, reached: Point | None, picture_scale: float
) -> Spot | None:
    """Return the marks of an action; None for one without a place, such as a tool's call."""
    action = read_action(raw)
    if action is None or action.mark is None:
        return None
    mark = action.mark.on_page(scale, reached)
    places = mark.path or ((mark.point,) if mark.point is not None else ())
    if not places and mark.scroll is None:
        return None
    return Spot(
        action.type,
        tuple((place.x / picture_scale, place.y / picture_scale) for place in places),
        performed=False,
        scroll=None if mark.scroll is None else (mark.scroll.x, mark.scroll.y),
        clicks=mark.clicks,
        presses=mark.presses,
    )


def _reading_ms(text: str) -> int:
    return min(_LONGEST_MS, _SHORTEST_MS + _MS_PER_CHARACTER * len(text))

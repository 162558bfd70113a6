"""The steps of a trajectory as the pages show them, with the turns of its model."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hud_mcp.base.text import clip_and_count, clip_json
from hud_mcp.plugins.view.web.pages import Json, finite, is_hash, seconds
from hud_mcp.record.phrases import RefNames, describe_action, describe_step, read_action
from hud_mcp.record.trajectory import (
    ScreenshotRecord,
    TrajectoryStep,
)
from hud_mcp.record.transcript import call_text, removed_text, turn_facts
from hud_mcp.values.action import Point, Targeted
from hud_mcp.values.model_turn import RecordedTurn

__all__ = ["StepRows", "turn_row"]


_CHARS = 20_000
"""The most characters of one text; `hud-mcp trace --full` shows the rest."""


def turn_row(turn: RecordedTurn, started_at: datetime) -> Json:
    """Return a turn as a page draws it."""
    return {
        "number": turn.number,
        "after_s": seconds(started_at, turn.started_at),
        "took_s": seconds(turn.started_at, turn.ended_at),
        "facts": [f"{name} {_clipped(value)}" for name, value in turn_facts(turn)],
        "reasoning": _clipped(turn.reasoning),
        "text": _clipped(turn.text),
        "calls": [_clipped(call_text(call)) for call in turn.calls],
        "error": _clipped(turn.error),
        "removed": [f"{name}: {value}" for name, value in removed_text(turn)],
    }


def _clipped(text: str | None) -> str | None:
    return None if text is None else clip_and_count(text, _CHARS)


class StepRows:
    """The steps of one trajectory as they are read, in order and from the first one.

    Each has the picture that it acted on and the names of its targets, which stand in earlier
    steps. The record itself (`raw`) is for operators alone.
    """

    def __init__(self, started_at: datetime, *, raw: bool = False) -> None:
        self._raw = raw
        self.rows: list[Json] = []
        self.turn_count = 0
        self.pictures: dict[str, ScreenshotRecord] = {}
        self._started_at = started_at
        self._names = RefNames()
        self._turns: dict[int, list[Json]] = {}
        self.spans: list[tuple[float, float]] = []
        self._before: Json | None = None
        # CSS pixels per pixel of the picture that the agent's places are on, where a step
        # does not say it. A picture that was only taken for the record may be of another size.
        self._scale: float | None = None

    @property
    def turns_left(self) -> list[Json]:
        """The turns of its model that have led to no step yet."""
        return [row for rows in self._turns.values() for row in rows]

    def take_turns(self, turns: Sequence[RecordedTurn]) -> None:
        """Add turns of its model, before the steps that they led to; for operators alone."""
        for turn in turns:
            row = turn_row(turn, self._started_at)
            self._turns.setdefault(turn.before_step, []).append(row)
            self.spans.append((row["after_s"], row["took_s"]))
            self.turn_count = turn.number + 1

    def extend(self, steps: Sequence[TrajectoryStep]) -> list[Json]:
        """Add the steps that follow; return their rows."""
        if self._scale is None:
            self._scale = next((s.screenshot.scale for s in steps if s.screenshot), None)
        added = [self._add(step) for step in steps]
        self.rows += added
        return added

    def _add(self, step: TrajectoryStep) -> Json:
        shot = step.screenshot
        after = _shot(shot) if shot else None
        if shot is not None and is_hash(shot.sha256):
            self.pictures[shot.sha256] = shot
        known = "scale" in step.model_fields_set
        scale = step.scale if known else self._scale or 1.0
        row = {**_step(step, self._names, scale, self._started_at)}
        row |= {"before": self._before, "after": after}
        if self._raw:
            raw = step.model_dump(mode="json", exclude={"observation_text", "info"})
            # NaN and infinities, which JSON lacks, become null there.
            finite_raw = json.loads(json.dumps(raw), parse_constant=lambda _: None)
            row["raw"] = {**finite_raw, "info": row["info"]}
        row["turns"] = self._turns.pop(step.index, [])
        self._before = after or self._before
        if shot is not None and step.kind in ("step", "screenshot"):
            self._scale = shot.scale
        self._names.read(step.observation_text)
        return row


def _shot(shot: ScreenshotRecord) -> Json:
    return {
        "sha256": shot.sha256,
        "extension": shot.extension,
        "width": shot.width_px,
        "height": shot.height_px,
        "scale": shot.scale,
    }


def _step(
    step: TrajectoryStep, names: Mapping[str, str], scale: float, started_at: datetime
) -> Json:
    actions = [
        {**_action(raw, names, scale, _reached(step, i)), "state": _state(step, i)}
        for i, raw in enumerate(step.actions)
    ]
    return {
        "index": step.index,
        "kind": step.kind,
        "words": describe_step(step.kind, [action["words"] for action in actions]),
        "actions": actions,
        "text": step.observation_text,
        "reward": finite(step.reward),
        "terminated": step.terminated,
        "truncated": step.truncated,
        "info": clip_json(step.shown_info),
        "error": step.error,
        "after_s": seconds(started_at, step.started_at),
        "took_s": seconds(step.started_at, step.ended_at),
    }


def _state(step: TrajectoryStep, number: int) -> str:
    if number < step.performed:
        return "performed"
    return "failed" if step.error and number == step.performed else "not performed"


def _reached(step: TrajectoryStep, number: int) -> Point | None:
    return step.places[number] if number < len(step.places) else None


def _action(
    raw: Mapping[str, Any], names: Mapping[str, str], scale: float, reached: Point | None
) -> Json:
    drawn: Json = {"words": describe_action(raw, names)}
    action = read_action(raw)
    if action is None:
        return drawn
    drawn |= {"type": action.type, "note": action.note}
    if isinstance(action, Targeted):
        drawn["named"] = action.ref is not None or action.selector is not None
    if action.mark is None:
        return drawn
    mark = action.mark.on_page(scale, reached)
    if mark.point is not None:
        drawn["point"] = _pair(mark.point)
    if mark.path:
        drawn["path"] = [_pair(point) for point in mark.path]
    if mark.scroll is not None:
        drawn["scroll"] = _pair(mark.scroll)
    if mark.typed is not None:
        drawn["typed"] = mark.typed
    if not mark.presses:
        drawn["presses"] = False
    return drawn


def _pair(point: Point) -> list[float]:
    return [point.x, point.y]

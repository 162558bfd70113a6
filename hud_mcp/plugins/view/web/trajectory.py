"""The data of a trajectory's page, its steps with the model's turns, and its row in a table."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hud_mcp.analysis.tries import PASS_REWARD
from hud_mcp.base.text import clip, clip_and_count, clip_json
from hud_mcp.plugins.view.web.pages import Json, finite, is_hash, iso, seconds
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.transcript import (
    RefNames,
    call_text,
    describe_action,
    describe_step,
    read_action,
    removed_text,
    turn_facts,
)
from hud_mcp.record.values import USER_TURN, Pruning, Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.registry import service
from hud_mcp.values.action import Point, Targeted
from hud_mcp.values.grade import SubScore, cause_of
from hud_mcp.values.model_turn import RecordedTurn
from hud_mcp.values.outcome import INTERRUPTED, Cause, Outcome, OutcomeClass, class_of

_CHARS = 20_000
"""The most characters of one text; `hud-mcp trace --full` shows the rest."""
_WHY_CHARS = 200


def trajectory_row(
    found: Trajectory | TrajectorySummary,
    step_count: int,
    expected: Mapping[str, float | None] | None = None,
) -> Json:
    """Return the row of one trajectory in a table; `expected` has the right rewards by task."""
    task, ended = found.task, found.ended_at
    reward = finite(found.reward)
    erased = found.erased
    wanted = finite((expected or {}).get(task.id))
    met = reward is not None and wanted is not None and math.isclose(reward, wanted, abs_tol=1e-9)
    return {
        "id": found.id,
        "task": task.id,
        "description": task.title,
        "environment": found.environment,
        "template": task.template,
        "outcome": shown_outcome(found.outcome, found.cause, found.reward),
        "cause": found.cause,
        "reward": reward,
        "expected": wanted,
        "surprise": wanted is not None and not met and not erased,
        "started_at": iso(found.started_at),
        "seconds": seconds(found.started_at, ended) if ended else None,
        "step_count": step_count,
        "earlier": False,
        "foreign": found.foreign,
        "pruned": None if found.pruned is None else str(found.pruned),
        "erased": erased,
        "why": str(found.pruned) if erased else _why(found.receipt, reward),
        "damage": getattr(found, "damage", None),
    }


def shown_outcome(
    outcome: Outcome | None, cause: Cause | None, reward: float | None
) -> OutcomeClass:
    """Return a run's outcome as the filter of outcomes has it."""
    shown = class_of(outcome, cause, reward)
    return shown if outcome is None or shown is INTERRUPTED else outcome


def detail(trajectory: Trajectory, expected: Mapping[str, float | None] | None = None) -> Json:
    """Return the data of a trajectory's page without its steps."""
    receipt, pruned = trajectory.receipt, trajectory.pruned
    return {
        **trajectory_row(trajectory, pruned.steps if pruned else len(trajectory.steps), expected),
        "job": trajectory.job_id,
        "environment_version": trajectory.environment_version,
        "seed": trajectory.seed if trajectory.seed is None else str(trajectory.seed),
        "args": clip_json(trajectory.task.inputs),
        "context": clip_json(trajectory.context),
        "prompt": trajectory.prompt,
        "answer": _clipped(trajectory.answer),
        "logs": trajectory.logs,
        "use": None if trajectory.use is None else str(trajectory.use),
        "user": None if trajectory.user is None else str(trajectory.user),
        "receipt": _receipt(receipt, pruned) if receipt else None,
        "tools": service("server use of runs")([trajectory]),
    }


def damaged_detail(
    found: TrajectorySummary, expected: Mapping[str, float | None] | None = None
) -> Json:
    """Return the same of a damaged record. The damage stands in for its log."""
    unread = ("environment_version", "seed", "prompt", "answer", "use", "user", "receipt")
    return {
        **trajectory_row(found, found.step_count, expected),
        **dict.fromkeys(unread),
        "job": found.job_id,
        "args": clip_json(found.task.args),
        "context": clip_json(found.context),
        "logs": found.damage,
    }


def _why(receipt: Receipt | None, reward: float | None) -> str | None:
    if receipt is None or (reward is not None and reward >= PASS_REWARD):
        return None
    said = receipt.error or (None if reward is None else receipt.content or _missed(receipt))
    return clip(" ".join(said.split()), _WHY_CHARS) if said else None


def _missed(receipt: Receipt) -> str | None:
    names = [
        score.name
        for score in receipt.subscores
        if (score.value < PASS_REWARD if score.weight > 0 else score.value > 0)
    ]
    return f"missed: {', '.join(names)}" if names else None


def _receipt(receipt: Receipt, pruned: Pruning | None) -> Json:
    facts = {
        "cause": cause_of(receipt.outcome, receipt.cause).value,
        "reward policy": receipt.reward_policy,
        "answer": receipt.answer_digest,
        "task": receipt.task_digest,
        "environment": receipt.environment_digest,
        "hud-mcp": receipt.package_version,
    }
    if pruned is not None:
        facts["pruned"] = str(pruned).removeprefix("pruned ")
    if receipt.notes:
        facts["notes"] = " ".join(receipt.notes)
    return {
        "subscores": [_subscore(s) for s in receipt.subscores],
        "content": receipt.content,
        "info": clip_json(receipt.info),
        "error": receipt.error,
        "facts": facts,
    }


def _subscore(score: SubScore) -> Json:
    return {
        "name": score.name,
        "value": score.value,
        "weight": score.weight,
        "info": clip_json(score.info),
        "children": [_subscore(child) for child in score.children],
    }


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
            row["user"] = step.info.get(USER_TURN, {}).get("turn")
        if step.kind == "message":
            row["says"] = step.actions[0].get("text")
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
    places = (*step.places, *(None for _ in step.actions))
    actions = [
        {**_action(raw, names, scale, places[i]), "state": _state(step, i)}
        for i, raw in enumerate(step.actions)
    ]
    return {
        "index": step.index,
        "kind": step.kind,
        "words": describe_step(step.kind, [action["words"] for action in actions]),
        "actions": actions,
        "text": step.observation_text,
        **({"events": [str(event) for event in step.events]} if step.events else {}),
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

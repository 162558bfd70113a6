"""The data of a trajectory's page without its steps, and its row in a table."""

import math
from collections.abc import Mapping, Sequence

from hud_mcp.analysis.tries import PASS_REWARD
from hud_mcp.base.text import clip, clip_and_count, clip_json
from hud_mcp.plugins.view.web.pages import Json, finite, iso, seconds
from hud_mcp.record.trajectory import (
    Receipt,
    Trajectory,
    TrajectoryStep,
    TrajectorySummary,
)
from hud_mcp.record.values import Pruning
from hud_mcp.values.action import is_answer
from hud_mcp.values.grade import SubScore, cause_of
from hud_mcp.values.outcome import INTERRUPTED, Cause, Outcome, OutcomeClass, class_of

__all__ = ["damaged_detail", "detail", "shown_outcome", "trajectory_row"]

_ANSWER_CHARS = 20_000
_WHY_CHARS = 200


def trajectory_row(
    found: Trajectory | TrajectorySummary,
    step_count: int,
    expected: Mapping[str, float | None] | None = None,
) -> Json:
    """Return the row of one trajectory in a table; `expected` has the right rewards by task."""
    task, ended = found.task, found.ended_at
    reward = finite(found.reward)
    erased = found.pruned is not None and not found.pruned.grade_kept
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
    receipt = trajectory.receipt
    return {
        **trajectory_row(trajectory, _step_count(trajectory), expected),
        "job": trajectory.job_id,
        "environment_version": trajectory.environment_version,
        "seed": trajectory.seed if trajectory.seed is None else str(trajectory.seed),
        "args": clip_json(trajectory.task.inputs),
        "context": clip_json(trajectory.context),
        "prompt": trajectory.prompt,
        "answer": _answer(trajectory.steps),
        "logs": trajectory.logs,
        "use": None if trajectory.use is None else str(trajectory.use),
        "receipt": _receipt(receipt, trajectory.pruned) if receipt else None,
    }


def _answer(steps: Sequence[TrajectoryStep]) -> str | None:
    """Return the agent's last answer; None if it gave no answer, or its answer was removed."""
    given = [
        str(action["text"])
        for step in steps
        for action in step.actions[: step.performed]
        if step.kind != "tool" and is_answer(action)
    ]
    return clip_and_count(given[-1], _ANSWER_CHARS) if given else None


def _step_count(trajectory: Trajectory) -> int:
    return trajectory.pruned.steps if trajectory.pruned else len(trajectory.steps)


def damaged_detail(
    found: TrajectorySummary, expected: Mapping[str, float | None] | None = None
) -> Json:
    """Return the same of a damaged record. The damage stands in for its log."""
    return {
        **trajectory_row(found, found.step_count, expected),
        "job": found.job_id,
        "environment_version": None,
        "seed": None,
        "args": clip_json(found.task.args),
        "context": clip_json(found.context),
        "prompt": None,
        "answer": None,
        "logs": found.damage,
        "use": None,
        "receipt": None,
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

"""What the pages show of the record, as plain JSON values.

The viewer sends them, the single file holds them, and the live page is told a part of them.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import orjson

from hud_mcp import __version__
from hud_mcp.action import Point, Targeted
from hud_mcp.analysis.generalisation import generalisation
from hud_mcp.analysis.statistics import (
    Estimate,
    JobStatistics,
    counting,
    job_statistics,
    outcome_class,
)
from hud_mcp.clipping import clip_json
from hud_mcp.grade import SubScore, cause_of
from hud_mcp.loading.provenance import clusters_of, recorded_unused
from hud_mcp.outcome import INTERRUPTED, OutcomeClass, outcome_classes
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import (
    Receipt,
    ScreenshotRecord,
    Trajectory,
    TrajectoryStep,
    TrajectorySummary,
)
from hud_mcp.show.phrases import RefNames, describe_action, describe_step, read_action
from hud_mcp.task import Task

__all__ = [
    "Json",
    "StepRows",
    "damaged_detail",
    "detail",
    "encode",
    "expected_rewards",
    "is_hash",
    "job_data",
    "trajectory_row",
]

Json = dict[str, Any]

_HASH = re.compile(r"[0-9a-f]{64}")


def encode(value: Any) -> bytes:
    """A value as JSON, whatever text is in it."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half of a surrogate pair, or an integer beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def is_hash(text: str) -> bool:
    """Whether a text is a SHA-256 as the record writes it."""
    return _HASH.fullmatch(text) is not None


def expected_rewards(job: Job, tasks: Iterable[Task]) -> dict[str, float | None] | None:
    """The rewards that a built-in agent should get; None for any other agent's job.

    Args:
        job: What was run.
        tasks: Its rows, whose validation says it.
    """
    if job.agent not in ("oracle", "nop"):
        return None
    wanted = {t.id: getattr(t.validation, job.agent) if t.validation else None for t in tasks}
    return wanted or None


def job_data(
    job: Job | None,
    tasks: Iterable[Task],
    found: Sequence[Trajectory | TrajectorySummary],
    rows: Sequence[Json],
) -> Json:
    """The head of a job's page; rows that a later try stands in for are marked as such.

    Args:
        job: What was run; None for sessions that belong to no job, which are all counted.
        tasks: What it is to run; none where that was not recorded.
        found: Its trajectories.
        rows: The same, as `trajectory_row` gives them.
    """
    versions = {t.receipt.package_version for t in found if t.receipt}
    head = {"job": _job(job), "versions": sorted(versions) or [__version__]}
    if job is None:
        rewards = [row["reward"] for row in rows if row["reward"] is not None]
        mean = fmean(rewards) if rewards else None
        return {
            **head,
            "mean": mean,
            "rewarded": len(rewards),
            "wanted": len(rows),
            "outcomes": _shown_outcomes(Counter(row["outcome"] for row in rows)),
            "statistics": [],
            "contexts": None,
        }
    runs = [_Run(t) for t in found]
    rows_of = list(tasks)
    clusters = clusters_of([*rows_of, *(run.task for run in counting(runs))])
    figures = job_statistics(
        (t.id for t in rows_of), runs, group=job.group, planned=job.planned, clusters=clusters
    )
    unused = recorded_unused(job.metadata)
    by_context = generalisation(runs, group=job.group, tasks=rows_of, unused=unused)
    counted = {run for task in figures.tasks for run in task.runs}
    for row in rows:
        row["earlier"] = row["id"] not in counted and not row["foreign"]
        row["surprise"] = row["surprise"] and not row["foreign"]
    mean = None if job.is_proof else figures.mean
    return {
        **head,
        "mean": mean.value if mean else None,
        "rewarded": mean.runs if mean else 0,
        "wanted": figures.wanted,
        "outcomes": _shown_outcomes(figures.outcomes),
        "statistics": [] if job.is_proof else _figures(figures),
        "contexts": by_context.model_dump(mode="json") if by_context else None,
    }


class _Run:
    """A trajectory as its figures are computed from it."""

    def __init__(self, found: Trajectory | TrajectorySummary) -> None:
        self.id = found.id
        self.task_id = found.task.id
        self.outcome = found.outcome
        self.cause = found.cause
        self.overloaded = found.overloaded
        self.reward = found.reward
        self.started_at = found.started_at
        self.task = found.task
        self.context = found.context
        self.foreign = found.foreign


def _outcome(found: Trajectory | TrajectorySummary) -> OutcomeClass:
    """How it ended, as the filter of outcomes has it."""
    shown = outcome_class(_Run(found))
    return shown if found.outcome is None or shown is INTERRUPTED else found.outcome


def _figures(figures: JobStatistics) -> list[Json]:
    """What stands below the mean: how sure it is, pass rates, and what was tried before."""
    told: list[Json] = []
    if figures.mean is not None:
        told.append(_figure("mean reward", figures.mean))
    for rate in figures.passes:
        if rate.pass_at_k is not None:
            told.append(_figure(f"pass@{rate.k}", rate.pass_at_k))
        if rate.pass_hat_k is not None and rate.k > 1:
            told.append(_figure(f"pass^{rate.k}", rate.pass_hat_k))
    if figures.earlier_tries:
        told.append({"name": "earlier tries, not counted", "value": figures.earlier_tries})
    if figures.overloaded:
        told.append({"name": "runs on an overloaded machine", "value": figures.overloaded})
    if figures.foreign:
        told.append({"name": "foreign to the plan, not counted", "value": figures.foreign})
    if figures.planned is False:
        told.append({"name": "unplanned", "value": "every session begun in it counts"})
    return told


def _figure(name: str, estimate: Estimate) -> Json:
    return {"name": name, **estimate.model_dump()}


def _job(job: Job | None) -> Json:
    if job is None:
        return {"id": "", "name": "Sessions without a job", "taskset": None, "agent": None,
                "created_at": None, "metadata": None, "damage": None}  # fmt: skip
    return {
        "id": job.id,
        "name": job.name,
        "taskset": job.taskset,
        "agent": job.agent,
        "created_at": _iso(job.created_at),
        "metadata": clip_json(job.metadata),
        "damage": job.damage,
    }


def _shown_outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """How many runs ended in each way; what is rare stands there where it happened."""
    return {
        each.value: counts.get(each, 0)
        for each in outcome_classes()
        if not each.is_rare or counts.get(each)
    }


def trajectory_row(
    found: Trajectory | TrajectorySummary,
    step_count: int,
    expected: Mapping[str, float | None] | None = None,
) -> Json:
    """What a table shows of one trajectory.

    Args:
        found: Its record, whole or in short.
        step_count: How many steps it has.
        expected: The reward that each task should get, by its id; None where any will do.
    """
    task, ended = found.task, found.ended_at
    reward = _finite(found.reward)
    wanted = _finite((expected or {}).get(task.id))
    met = reward is not None and wanted is not None and math.isclose(reward, wanted, abs_tol=1e-9)
    return {
        "id": found.id,
        "task": task.id,
        "description": task.title,
        "environment": found.environment,
        "template": task.template,
        "outcome": _outcome(found),
        "cause": found.cause,
        "reward": reward,
        "expected": wanted,
        "surprise": wanted is not None and not met,
        "started_at": _iso(found.started_at),
        "seconds": _seconds(found.started_at, ended) if ended else None,
        "step_count": step_count,
        "earlier": False,
        "foreign": found.foreign,
        "damage": getattr(found, "damage", None),
    }


def detail(trajectory: Trajectory, expected: Mapping[str, float | None] | None = None) -> Json:
    """What a trajectory's own page shows, but for its steps.

    Args:
        trajectory: Its record.
        expected: The reward that each task should get, by its id; None where any will do.
    """
    receipt = trajectory.receipt
    return {
        **trajectory_row(trajectory, len(trajectory.steps), expected),
        "job": trajectory.job_id,
        "environment_version": trajectory.environment_version,
        "seed": trajectory.seed if trajectory.seed is None else str(trajectory.seed),
        "args": clip_json(trajectory.task.inputs),
        "context": clip_json(trajectory.context),
        "prompt": trajectory.prompt,
        "logs": trajectory.logs,
        "receipt": _receipt(receipt) if receipt else None,
    }


def damaged_detail(
    found: TrajectorySummary, expected: Mapping[str, float | None] | None = None
) -> Json:
    """The same of a trajectory whose record is damaged: what is wrong stands in for its log."""
    return {
        **trajectory_row(found, found.step_count, expected),
        "job": found.job_id,
        "environment_version": None,
        "seed": None,
        "args": clip_json(found.task.args),
        "context": clip_json(found.context),
        "prompt": None,
        "logs": found.damage,
        "receipt": None,
    }


def _receipt(receipt: Receipt) -> Json:
    facts = {
        "cause": cause_of(receipt.outcome, receipt.cause).value,
        "reward policy": receipt.reward_policy,
        "answer": receipt.answer_digest,
        "task": receipt.task_digest,
        "environment": receipt.environment_digest,
        "hud-mcp": receipt.package_version,
    }
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


class StepRows:
    """The steps of one trajectory as they are read, in order and from the first one.

    Each has the picture that it acted on and the names of its targets, which stand in the
    steps before it.

    Args:
        started_at: When the trajectory began.

    Attributes:
        rows: What the pages show of each.
        pictures: The pictures that its steps have, by hash.
    """

    def __init__(self, started_at: datetime) -> None:
        self.rows: list[Json] = []
        self.pictures: dict[str, ScreenshotRecord] = {}
        self._started_at = started_at
        self._names = RefNames()
        self._before: Json | None = None
        # CSS pixels per pixel of the picture that the agent's places are on, where a step
        # does not say it. A picture that was only taken for the record may be of another size.
        self._scale: float | None = None

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
        "reward": _finite(step.reward),
        "terminated": step.terminated,
        "truncated": step.truncated,
        "info": clip_json(step.shown_info),
        "error": step.error,
        "after_s": _seconds(started_at, step.started_at),
        "took_s": _seconds(step.started_at, step.ended_at),
    }


def _state(step: TrajectoryStep, number: int) -> str:
    if number < step.performed:
        return "performed"
    return "failed" if step.error and number == step.performed else "not performed"


def _reached(step: TrajectoryStep, number: int) -> Point | None:
    """Where what an action named was."""
    return step.places[number] if number < len(step.places) else None


def _action(
    raw: Mapping[str, Any], names: Mapping[str, str], scale: float, reached: Point | None
) -> Json:
    """What is drawn of an action, in CSS pixels, and what is said of it."""
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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _seconds(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds(), 3)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")

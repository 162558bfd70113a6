"""What a job's page shows of it: its head, its figures, its outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from hud_mcp import __version__
from hud_mcp.analysis.estimate import Estimate
from hud_mcp.analysis.generalisation import generalisation
from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.analysis.tries import counting
from hud_mcp.clipping import clip_json
from hud_mcp.loading.protocols import recorded_protocol
from hud_mcp.loading.provenance import SETS, clusters_of, recorded_left_out, recorded_unused
from hud_mcp.outcome import outcome_classes
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import (
    Trajectory,
    TrajectorySummary,
)
from hud_mcp.show.web.groups import groupings_data
from hud_mcp.show.web.values import Json, iso
from hud_mcp.task import Task

__all__ = ["expected_rewards", "job_data"]


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
            "groupings": [],
            "contexts": None,
        }
    runs = [_Figured(t) for t in found]
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
        "statistics": [] if job.is_proof else [*_figures(figures), *_left_out(job), *_trust(job)],
        "groupings": groupings_data(job, rows_of, runs, rows),
        "contexts": by_context.model_dump(mode="json") if by_context else None,
    }


class _Figured:
    """A trajectory as its figures are computed from it."""

    def __init__(self, found: Trajectory | TrajectorySummary) -> None:
        self.id = found.id
        self.task_id = found.task.id
        self.outcome = found.outcome
        self.cause = found.cause
        self.overloaded = found.overloaded
        self.reward = found.reward
        self.started_at = found.started_at
        self.ended_at = found.ended_at
        self.task = found.task
        self.context = found.context
        self.foreign = found.foreign
        self.erased = found.pruned is not None and not found.pruned.grade_kept
        self.use = found.use


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
    told += _used(figures)
    if figures.earlier_tries:
        told.append({"name": "earlier tries, not counted", "value": figures.earlier_tries})
    if figures.overloaded:
        told.append({"name": "runs on an overloaded machine", "value": figures.overloaded})
    if figures.foreign:
        told.append({"name": "foreign to the plan, not counted", "value": figures.foreign})
    if figures.pruned:
        told.append({"name": "pruned, not counted", "value": figures.pruned})
    if figures.planned is False:
        told.append({"name": "unplanned", "value": "every session begun in it counts"})
    return told


def _used(figures: JobStatistics) -> list[Json]:
    """What the model used, in all and a task."""
    use, tasks = figures.use, len(figures.tasks)
    if use is None:
        return []
    told = [{"name": "model, in all", "value": str(use)}]
    return told + ([{"name": "model, a task", "value": use.per(tasks)}] if tasks > 1 else [])


def _left_out(job: Job) -> list[Json]:
    """How many tasks of the set are not in the plan, by why."""
    return [
        {"name": f"left out, not counted: {each.reason}", "value": each.count}
        for each in recorded_left_out(job.metadata)
    ]


def _trust(job: Job) -> list[Json]:
    """That nothing kept its agent from what the evaluation knew, where that is so."""
    if not job.trusts_agent:
        return []
    return [{"name": "agent in the evaluation's own process", "value": "trusted"}]


def _figure(name: str, estimate: Estimate) -> Json:
    return {"name": name, **estimate.model_dump()}


def _job(job: Job | None) -> Json:
    if job is None:
        return {"id": "", "name": "Sessions without a job", "taskset": None, "agent": None,
                "created_at": None, "metadata": None, "damage": None, "protocol": None}  # fmt: skip
    protocol = recorded_protocol(job.metadata)
    return {
        "id": job.id,
        "name": job.name,
        "taskset": job.taskset,
        "agent": job.agent,
        "created_at": iso(job.created_at),
        "metadata": clip_json({k: v for k, v in job.metadata.items() if k != SETS}),
        "damage": job.damage,
        "protocol": None if protocol is None else str(protocol),
    }


def _shown_outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """How many runs ended in each way; what is rare stands there where it happened."""
    return {
        each.value: counts.get(each, 0)
        for each in outcome_classes()
        if not each.is_rare or counts.get(each)
    }

"""What a job's page shows of it: its head, its figures, its outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from hud_mcp import __version__
from hud_mcp.analysis.report import JobReport, Row
from hud_mcp.base.text import clip_json
from hud_mcp.environment.task import Task
from hud_mcp.loading.protocols import recorded_protocol
from hud_mcp.loading.provenance import SETS
from hud_mcp.plugins.view.brief_run import BriefRun
from hud_mcp.plugins.view.web.groups import groupings_data
from hud_mcp.plugins.view.web.trajectories import shown_outcome
from hud_mcp.plugins.view.web.values import Json, finite, iso
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import (
    Trajectory,
    TrajectorySummary,
)
from hud_mcp.values.outcome import outcome_classes

__all__ = ["JobFigures", "expected_rewards", "figure_job", "job_data"]


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
    """The head of a job's page; each row is marked with what the others say of it.

    Args:
        job: What was run; None for sessions that belong to no job, which are all counted.
        tasks: What it is to run; none where that was not recorded.
        found: Its trajectories.
        rows: The same, as `trajectory_row` gives them.
    """
    figures = figure_job(job, tasks, [_Figured(t) for t in found])
    for row in rows:
        row.update(figures.marks(row["id"], row["task"], left_out=row["foreign"] or row["erased"]))
        row["surprise"] = row["surprise"] and not row["foreign"]
    return figures.head


@dataclass(frozen=True)
class JobFigures:
    """What a job's runs amount to, and what that says of each of them.

    Attributes:
        head: The head of the job's page.
        counted: The ids of the runs that count; None where all do.
        places: By what runs are grouped by and by a task's id, its groups' places in the list.
    """

    head: Json
    counted: frozenset[str] | None
    places: Mapping[str, Mapping[str, Sequence[int]]]

    def marks(self, run_id: str, task_id: str, *, left_out: bool) -> Json:
        """What a row is told of the others."""
        told: Json = {"earlier": self.is_earlier(run_id, left_out=left_out)}
        return told if self.counted is None else {**told, "groups": self.groups_of(task_id)}

    def is_earlier(self, run_id: str, *, left_out: bool) -> bool:
        """Whether a later try stands in for a run, unless it is left out for another reason."""
        return self.counted is not None and run_id not in self.counted and not left_out

    def groups_of(self, task_id: str) -> dict[str, Sequence[int]]:
        """The places of a task's groups, by what runs are grouped by."""
        return {by: of_task.get(task_id, ()) for by, of_task in self.places.items()}


def figure_job(job: Job | None, tasks: Iterable[Task], runs: "Sequence[FiguredRun]") -> JobFigures:
    """Compute what the head of a job's page shows.

    Args:
        job: What was run; None for sessions that belong to no job, which are all counted.
        tasks: What it is to run; none where that was not recorded.
        runs: Its trajectories in short.
    """
    head = {
        "job": _job(job),
        "versions": sorted({run.version for run in runs if run.version}) or [__version__],
    }
    if job is None:
        return JobFigures({**head, **_loose(runs)}, None, {})
    report = JobReport(job, tasks, runs)
    figures, mean, by_context = report.statistics, report.mean, report.by_context
    groupings, places = groupings_data(report)
    head |= {
        "mean": mean.value if mean else None,
        "rewarded": mean.runs if mean else 0,
        "wanted": figures.wanted,
        "outcomes": _shown_outcomes(figures.outcomes),
        "statistics": [_figure(row) for row in report.rows],
        "groupings": groupings,
        "spending": None if report.spending is None else asdict(report.spending),
        "contexts": by_context.model_dump(mode="json") if by_context else None,
    }
    counted = frozenset(run for task in figures.tasks for run in task.runs)
    return JobFigures(head, counted, places)


def _loose(runs: "Sequence[FiguredRun]") -> Json:
    """The figures of sessions that belong to no job."""
    rewards = [reward for run in runs if (reward := finite(run.reward)) is not None]
    outcomes = Counter(shown_outcome(run.outcome, run.cause, run.reward).value for run in runs)
    return {
        "mean": fmean(rewards) if rewards else None,
        "rewarded": len(rewards),
        "wanted": len(runs),
        "outcomes": _shown_outcomes(outcomes),
        "statistics": [],
        "groupings": [],
        "spending": None,
        "contexts": None,
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
        self.step_count = len(found.steps) if isinstance(found, Trajectory) else found.step_count
        self.version = found.receipt.package_version if found.receipt else None


FiguredRun = BriefRun | _Figured


def _figure(row: Row) -> Json:
    told = {"value": row.value} if row.estimate is None else row.estimate.model_dump()
    return {"name": row.name, **told}


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

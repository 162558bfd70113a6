"""The data of a job's page and of the list of jobs: heads, figures, groups, progress."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import TYPE_CHECKING

from hud_mcp.analysis.comparison import ComparedTask, JobRuns, TaskResult, compare_jobs
from hud_mcp.analysis.groups import DIMENSIONS, Dimension, Grouping, RunGroup
from hud_mcp.analysis.report import JobReport, Row
from hud_mcp.analysis.tries import BriefRun
from hud_mcp.base import __version__
from hud_mcp.base.text import clip_json
from hud_mcp.environment.task import Task
from hud_mcp.loading.protocols import recorded_protocol
from hud_mcp.loading.provenance import SETS
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.plugins.view.web.pages import Json, finite, iso, seconds
from hud_mcp.plugins.view.web.trajectory import shown_outcome
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import utc_now
from hud_mcp.registry import service
from hud_mcp.store import Store
from hud_mcp.store.lease import LEASE_S
from hud_mcp.values.outcome import outcome_classes

if TYPE_CHECKING:
    from hud_mcp.plugins.view.sql.outline import JobProgress


def expected_rewards(job: Job, tasks: Iterable[Task]) -> dict[str, float | None] | None:
    """Return the rewards that a built-in agent should get; None for any other agent's job."""
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
    """Return the head of a job's page, and mark each row of `trajectory_row` by the other runs."""
    figures = figure_job(job, tasks, [_in_short(each) for each in found])
    for row in rows:
        row.update(figures.marks(row["id"], row["task"], left_out=row["foreign"] or row["erased"]))
        row["surprise"] = row["surprise"] and not row["foreign"]
    counted = [each for each in found if figures.counted is None or each.id in figures.counted]
    return {**figures.head, "tools": service("server use of runs")(counted)}


@dataclass(frozen=True)
class JobFigures:
    """The figures of a job's page, and the marks of each of its runs."""

    head: Json
    counted: frozenset[str] | None  # None if all runs count
    # of a task's groups in the list, by the grouping and by the task's id
    places: Mapping[str, Mapping[str, Sequence[int]]]

    def marks(self, run_id: str, task_id: str, *, left_out: bool) -> Json:
        """Return the marks of a row that depend on other runs."""
        told: Json = {"earlier": self.is_earlier(run_id, left_out=left_out)}
        return told if self.counted is None else {**told, "groups": self.groups_of(task_id)}

    def is_earlier(self, run_id: str, *, left_out: bool) -> bool:
        """Whether a later try stands in for a run, unless it is left out for another reason."""
        return self.counted is not None and run_id not in self.counted and not left_out

    def groups_of(self, task_id: str) -> dict[str, Sequence[int]]:
        """Return the places of a task's groups, by what runs are grouped by."""
        return {by: of_task.get(task_id, ()) for by, of_task in self.places.items()}


def figure_job(job: Job | None, tasks: Iterable[Task], runs: Sequence[BriefRun]) -> JobFigures:
    """Compute the head of a job's page; sessions without a job all count."""
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


def _loose(runs: Sequence[BriefRun]) -> Json:
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


def _in_short(found: Trajectory | TrajectorySummary) -> BriefRun:
    return BriefRun(
        id=found.id,
        task=found.task,
        environment=found.environment,
        started_at=found.started_at,
        ended_at=found.ended_at,
        outcome=found.outcome,
        cause=found.cause,
        reward=found.reward,
        overloaded=found.overloaded,
        context=found.context,
        foreign=found.foreign,
        step_count=len(found.steps) if isinstance(found, Trajectory) else found.step_count,
        erased=found.erased,
        version=found.receipt.package_version if found.receipt else None,
        use=found.use,
        user=found.user,
    )


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
    """Return the number of runs by outcome, with rare outcomes only if they happened."""
    return {
        each.value: counts.get(each, 0)
        for each in outcome_classes()
        if not each.is_rare or counts.get(each)
    }


_SAID: frozenset[Dimension] = frozenset({"difficulty", "skill"})
"""The dimensions with a single group worth showing: rows state them themselves."""

_PLOTTED: frozenset[Dimension] = frozenset({"set", "difficulty", "skill"})

_WORDS: dict[Dimension, str] = {"split": "context split"}


def groupings_data(report: JobReport) -> tuple[list[Json], dict[str, dict[str, list[int]]]]:
    """Return the groupings with their figures, and each task's places in their lists of groups."""
    job = report.job
    by = () if job.is_proof else DIMENSIONS
    shown = report.groupings(by, wanted=_is_shown, passes=False)
    places = {grouping.by: _places(grouping) for grouping in shown}
    told, by_name = [_grouping(grouping) for grouping in shown], {**places}
    if job.group > 1 and not job.is_proof:
        repeated = _repeated(report)
        told.insert(0, repeated)
        by_name[REPEATED] = {each["name"]: [i] for i, each in enumerate(repeated["groups"])}
    return told, by_name


REPEATED = "task"
"""The first grouping of a job's runs if each task has several runs."""


def _repeated(report: JobReport) -> Json:
    seconds: dict[str, float] = {}
    for run in report.runs:
        if run.ended_at is not None:
            took = (run.ended_at - run.started_at).total_seconds()
            seconds[run.task_id] = seconds.get(run.task_id, 0.0) + took
    found = compare_jobs([JobRuns(report.tasks, report.runs, report.job.group)])
    groups = [
        _task(task, result, seconds.get(task.id, 0.0))
        for task in found.tasks
        for result in task.results
        if result is not None
    ]
    return {
        "by": REPEATED,
        "words": "task",
        "overlapping": False,
        "plotted": False,
        "repeated": True,
        "groups": groups,
    }


def _task(task: ComparedTask, found: TaskResult, seconds: float) -> Json:
    mean = finite(found.mean)
    return {
        "name": task.id,
        "title": task.id,
        "tasks": 1,
        "wanted": found.wanted,
        "graded": found.graded,
        "passed": found.passed,
        "unrewarded": found.unrewarded,
        # The runs of one task are one cluster, of which there is no interval over tasks.
        "mean": None if mean is None else {"value": mean, "low": None, "reason": None},
        "outcomes": found.outcomes,
        "seconds": float(f"{seconds:.3g}"),  # of thousands of tasks each digit counts
        "use": None,
    }


def _is_shown(by: Dimension, names: Collection[str]) -> bool:
    return any(names) and (len(names) > 1 or by in _SAID)


def _places(grouping: Grouping) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, group in enumerate(grouping.groups):
        for task_id in group.tasks:
            found.setdefault(task_id, []).append(place)
    return found


def _grouping(grouping: Grouping) -> Json:
    return {
        "by": grouping.by,
        "words": _WORDS.get(grouping.by, grouping.by),
        "overlapping": grouping.overlapping,
        "plotted": grouping.by in _PLOTTED and len(grouping.groups) > 1,
        "groups": [
            {**_group(group), "title": grouping.title_of(group)} for group in grouping.groups
        ],
    }


def _group(group: RunGroup) -> Json:
    return {
        "name": group.name,
        "tasks": len(group.tasks),
        "wanted": group.wanted,
        "graded": group.graded,
        "passed": group.passed,
        "unrewarded": group.unrewarded,
        "mean": group.mean.model_dump() if group.mean else None,
        "outcomes": {name: count for name, count in group.outcomes.items() if count},
        "seconds": round(group.seconds, 3),
        "use": None if group.use is None else str(group.use),
    }


_PAUSE = timedelta(seconds=60)


async def jobs_data(store: Store) -> Json:
    """Return all jobs, the newest first, and the sessions that belong to none."""
    now = utc_now()
    outlines = Outlines(store.database)
    progress = await outlines.count_progress(now - timedelta(seconds=2 * LEASE_S))
    counts = await outlines.count_rewards()
    jobs = [
        {
            **_brief(job),
            **_counted(counts.get(job.id), is_proof=job.is_proof),
            **_progress(job, progress.get(job.id), now),
        }
        for job in await store.list_jobs()
    ]
    return {"jobs": jobs, "loose": _counted(counts[None]) if None in counts else None}


def _brief(job: Job) -> Json:
    return {
        "id": job.id,
        "name": job.name,
        "taskset": job.taskset,
        "agent": job.agent,
        "proof": job.is_proof,
        "created_at": job.created_at.isoformat(timespec="seconds"),
    }


def _counted(counts: tuple[int, int, float | None] | None, *, is_proof: bool = False) -> Json:
    total, graded, mean = counts or (0, 0, None)
    return {"total": total, "graded": graded, "mean": None if is_proof else mean}


def _progress(job: Job, found: "JobProgress | None", now: datetime) -> Json:
    if found is None:  # nothing of it has begun, and its tasks are not recorded
        nothing = {"wanted": 0, "ended": 0, "failed": 0, "seconds": None, "cost": None}
        return {"state": "stopped", **nothing}
    wanted = found.tasks * job.group
    last = max((at for at in (found.begun_at, found.ended_at) if at), default=job.created_at)
    is_whole = found.ended >= wanted
    is_running = found.running > 0 or (not is_whole and now - last < _PAUSE)
    state = "running" if is_running else "ended" if is_whole else "stopped"
    return {
        "state": state,
        "wanted": wanted,
        "ended": found.ended,
        "failed": found.failed,
        "seconds": None if is_running else seconds(job.created_at, max(last, job.created_at)),
        "cost": found.cost_usd,
    }

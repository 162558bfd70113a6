"""What a job's page shows of its runs by set, difficulty and skill, and by task if repeated."""

from collections.abc import Collection

from hud_mcp.analysis.comparison import ComparedTask, JobRuns, TaskResult, compare_jobs
from hud_mcp.analysis.groups import DIMENSIONS, Dimension, Grouping, RunGroup
from hud_mcp.analysis.report import JobReport
from hud_mcp.plugins.view.web.values import Json, finite

__all__ = ["REPEATED", "groupings_data"]

_SAID: frozenset[Dimension] = frozenset({"difficulty", "skill"})
"""Of these one group says something already, as it is what rows say of themselves."""

_PLOTTED: frozenset[Dimension] = frozenset({"set", "difficulty", "skill"})

_WORDS: dict[Dimension, str] = {"split": "context split"}


def groupings_data(report: JobReport) -> tuple[list[Json], dict[str, dict[str, list[int]]]]:
    """Return the groupings of a job's runs with their figures, and the groups of each task.

    Args:
        report: The job's report.

    Returns:
        The groupings, and by their names and the tasks' ids the places of its groups in the list.
    """
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
"""By what the runs of a job are grouped first where each task has several."""


def _repeated(report: JobReport) -> Json:
    """Each task with what its repeated runs came to."""
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
    """The places of a task's groups, by its id."""
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

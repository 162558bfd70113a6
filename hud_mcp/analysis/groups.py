"""The figures of a job's runs by groups of its tasks: set, difficulty, skill.

The same runs count as in the job, and intervals are over the same clusters. A set and an
environment have the figures of a job of them alone: other ones say nothing of their clusters and
ranges.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from pydantic import Field

from hud_mcp.analysis.context_table import TRAIN
from hud_mcp.analysis.intervals import (
    CONFIDENCE,
    Estimate,
    figure_text,
    is_in_range,
    mean_over_tasks,
)
from hud_mcp.analysis.tries import (
    PASS_REWARD,
    Scored,
    TaskStatistics,
    Try,
    choose_runs,
    counting,
    outcome_class,
    pass_rate,
    task_statistics,
)
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import clusters_of, split_of
from hud_mcp.values.action import Value
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import NOT_BEGUN, OutcomeClass, outcome_classes

Dimension = Literal["set", "difficulty", "skill", "environment", "template", "split"]
"""A property of rows by which runs are grouped."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

SetOf = Callable[[str], str | None]
Wanted = Callable[[Dimension, Collection[str]], bool]

WITHOUT = ""
"""The name of the group of rows that say nothing."""

_FIRST: dict[Dimension, Sequence[str]] = {
    "difficulty": ("easy", "medium", "hard"),
    "split": (TRAIN,),
}
"""The names that come before the others, in order."""

_ALONE: frozenset[Dimension] = frozenset({"set", "environment"})
"""The dimensions whose groups have the figures that a job of the group alone would have."""

_MOST_CHARS = 80


class RunGroup(Value):
    """The runs of some tasks of a job."""

    name: str = Field(description="Such as `easy`; empty for rows that say nothing.")
    tasks: tuple[str, ...] = Field(description="Ids, in the job's order.")
    wanted: int = Field(description="How many runs they are to have.")
    graded: int
    passed: int = Field(description="Graded runs whose reward reaches the threshold.")
    unrewarded: int = Field(description="Graded runs with a reward of 0, or below, that fail.")
    mean: Estimate | None = Field(description="The mean reward; None if nothing is graded.")
    pass_rate: Estimate | None = Field(
        description="pass@1; None if no run is scored, or where it was not asked for."
    )
    outcomes: dict[str, int] = Field(description="How many of the wanted runs, by class.")
    seconds: float = Field(description="What its runs took together, as far as they have ended.")
    use: ModelUse | None = Field(
        default=None,
        description="The model's usage for them, earlier tries too; None if unreported.",
    )

    @property
    def runs(self) -> int:
        """The number of counted runs that have begun."""
        return self.wanted - self.outcomes[NOT_BEGUN]

    @property
    def mean_text(self) -> str:
        """The mean reward with its interval, in words."""
        return "none" if self.mean is None else figure_text(self.mean.value, self.mean.ends)

    @property
    def ends(self) -> str:
        """The outcomes of its runs, in words."""
        words = {each.value: each.words for each in outcome_classes()}
        return ", ".join(f"{n} {words[name]}" for name, n in self.outcomes.items() if n)


class Grouping(Value):
    """All tasks of a job in groups.

    Where a task is in several groups, as it has several skills, its runs count in each of them.
    The groups' numbers then add up to more than the job's.
    """

    by: Dimension
    confidence: float
    overlapping: bool = Field(description="Whether some task is in more than one group.")
    groups: tuple[RunGroup, ...]

    @property
    def is_told(self) -> bool:
        """Whether any row says something."""
        return any(group.name != WITHOUT for group in self.groups)

    def title_of(self, group: RunGroup) -> str:
        """Return the title of a group, also of the one whose rows say nothing."""
        return group.name or f"no {self.by}"

    def __str__(self) -> str:
        """Return a line for each group."""
        width = max((len(self.title_of(group)) for group in self.groups), default=0)
        lines = [
            f"{self.title_of(group):<{width}}  {group.mean_text}"
            f" over {group.graded} graded of {group.wanted}; {group.ends}"
            for group in self.groups
        ]
        if self.overlapping:
            lines.append(f"A run counts in each {self.by} that its task has.")
        return "\n".join(lines)


def group_runs(
    tasks: Iterable[Task],
    runs: Iterable[Try],
    by: Iterable[Dimension] = DIMENSIONS,
    *,
    group: int = 1,
    threshold: float = PASS_REWARD,
    set_of: SetOf | None = None,
    wanted: Wanted | None = None,
    passes: bool = True,
) -> tuple[Grouping, ...]:
    """Compute the figures of a job's runs by groups of its tasks.

    Return one grouping for each dimension that `wanted` accepts by its name and groups. A dimension
    that no row states has a single group without a name.
    """
    table = _tabulate(tasks, counting(runs), group, threshold, passes=passes)
    found: list[Grouping] = []
    for one in by:
        members, overlapping = _members(table, one, set_of)
        if wanted is None or wanted(one, members):
            found.append(_grouping(table, one, members, overlapping=overlapping))
    return tuple(found)


@dataclass(frozen=True)
class _Row:
    task: Task
    rewards: Sequence[float]
    figures: TaskStatistics
    classes: Sequence[OutcomeClass]
    seconds: float


@dataclass(frozen=True)
class _Table:
    rows: Sequence[_Row]
    clusters: Mapping[str, str]
    group: int
    threshold: float
    in_range: bool
    passes: bool


def _tabulate(
    tasks: Iterable[Task], runs: Sequence[Try], group: int, threshold: float, *, passes: bool
) -> _Table:
    of_id = {task.id: task for task in tasks}
    of_task: dict[str, list[Try]] = {task_id: [] for task_id in of_id}
    for run in runs:
        of_id.setdefault(run.task_id, run.task)
        of_task.setdefault(run.task_id, []).append(run)
    clusters = clusters_of([*of_id.values(), *(run.task for run in runs)])
    rows: list[_Row] = []
    for task_id, all_runs in of_task.items():
        counted, earlier = choose_runs(all_runs, group)
        figures, rewards = task_statistics(task_id, counted, earlier, group, threshold)
        classes = [outcome_class(run) for run in counted]  # a row may be in many groups
        rows.append(_Row(of_id[task_id], rewards, figures, classes, _seconds(counted)))
    # Where one reward lies outside, nothing bounds those of the other groups either.
    in_range = all(is_in_range(reward) for row in rows for reward in row.rewards)
    return _Table(rows, clusters, group, threshold, in_range, passes)


def _members(
    table: _Table, by: Dimension, set_of: SetOf | None
) -> tuple[dict[str, list[_Row]], bool]:
    """Return the tasks of each group by its name, and whether some task is in several."""
    members: dict[str, list[_Row]] = {}
    overlapping = False
    shared = len({row.task.env for row in table.rows}) > 1
    for row in table.rows:
        names = _names_of(row.task, by, set_of, shared=shared) or (WITHOUT,)
        overlapping = overlapping or len(names) > 1
        for name in names:
            members.setdefault(name, []).append(row)
    return members, overlapping


def _grouping(
    table: _Table, by: Dimension, members: Mapping[str, Sequence[_Row]], *, overlapping: bool
) -> Grouping:
    groups = (
        _run_group(_alone(table, members[name]) if by in _ALONE else table, name, members[name])
        for name in _in_order(members, by)
    )
    return Grouping(by=by, confidence=CONFIDENCE, overlapping=overlapping, groups=tuple(groups))


def _alone(table: _Table, rows: Sequence[_Row]) -> _Table:
    clusters = clusters_of(row.task for row in rows)
    in_range = all(is_in_range(reward) for row in rows for reward in row.rewards)
    return replace(table, rows=rows, clusters=clusters, in_range=in_range)


def _seconds(runs: Iterable[Try]) -> float:
    return math.fsum(
        (run.ended_at - run.started_at).total_seconds() for run in runs if run.ended_at is not None
    )


def _run_group(table: _Table, name: str, rows: Sequence[_Row]) -> RunGroup:
    outcomes = dict.fromkeys((each.value for each in outcome_classes()), 0)
    for row in rows:
        outcomes[NOT_BEGUN] += row.figures.not_begun
        for each in row.classes:
            outcomes[each] += 1
    rewards = [reward for row in rows for reward in row.rewards]
    names = [table.clusters.get(row.task.id, row.task.id) for row in rows]
    parts = [
        (cluster, math.fsum(row.rewards), len(row.rewards))
        for cluster, row in zip(names, rows, strict=True)
    ]
    scored = [
        Scored(cluster, row.figures.scored, row.figures.passed)
        for cluster, row in zip(names, rows, strict=True)
    ]
    return RunGroup(
        name=name,
        tasks=tuple(row.task.id for row in rows),
        wanted=len(rows) * table.group,
        graded=len(rewards),
        passed=sum(row.figures.passed for row in rows),
        unrewarded=sum(reward <= 0 and reward < table.threshold for reward in rewards),
        mean=mean_over_tasks(parts, len(rewards), in_range=table.in_range, intervals=True),
        pass_rate=pass_rate(scored, 1, intervals=True).pass_at_k if table.passes else None,
        outcomes=outcomes,
        seconds=math.fsum(row.seconds for row in rows),
        use=ModelUse.sum_of(row.figures.use for row in rows),
    )


def _names_of(task: Task, by: Dimension, set_of: SetOf | None, *, shared: bool) -> tuple[str, ...]:
    """Return the groups that a task is in; `shared` templates of several environments differ."""
    said: Any
    match by:
        case "set":
            said = set_of(task.id) if set_of else None
        case "difficulty":
            said = task.metadata.get("difficulty")
        case "skill":
            said = task.metadata.get("skills")
        case "environment":
            said = task.env
        case "template":
            said = f"{task.env} {task.template}" if shared else task.template
        case "split":
            said = split_of(task)
    listed = cast("list[Any]", said) if isinstance(said, list) else [said]
    names = (_name(each) for each in listed)
    return tuple(dict.fromkeys(name for name in names if name))


def _name(said: Any) -> str:
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return WITHOUT
    return " ".join(str(said).split())[:_MOST_CHARS]


def _in_order(members: Mapping[str, Sequence[_Row]], by: Dimension) -> list[str]:
    """Order names for readers: from easy to hard, training first, sets as the job has them.

    Skills are many, and most have few tasks: the largest come first.
    """
    if by in ("set", "environment", "template"):
        return sorted(members, key=lambda name: name == WITHOUT)
    if by == "skill":
        return sorted(members, key=lambda name: (name == WITHOUT, -len(members[name]), name))
    first = _FIRST.get(by, ())
    places = {name: place for place, name in enumerate(first)}

    def key(name: str) -> tuple[bool, int, float, str]:
        number = float(name) if name.isdecimal() else math.inf
        return (name == WITHOUT, places.get(name.lower(), len(first)), number, name)

    return sorted(members, key=key)

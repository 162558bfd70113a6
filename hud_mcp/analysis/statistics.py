"""The statistics of a job's runs: the mean reward, pass rates, and the counts beside them."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import Field

from hud_mcp.analysis.intervals import (
    CONFIDENCE,
    Estimate,
    figure_text,
    is_in_range,
    mean_over_tasks,
)
from hud_mcp.analysis.tries import (
    PASS_REWARD,
    PassRate,
    Scored,
    TaskStatistics,
    Try,
    choose_runs,
    counting,
    group_sizes,
    outcome_class,
    pass_rate,
    task_statistics,
)
from hud_mcp.environment.conversation import UserUse
from hud_mcp.values.action import Value
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import (
    NOT_BEGUN,
    UNFINISHED,
    Counts,
    Outcome,
    OutcomeClass,
    outcome_classes,
)

__all__ = ["JobStatistics"]

_BUSY = "calls were refused while the machine was busy: run fewer at once"


class Aside(NamedTuple):
    """A count of runs that stands beside the figures of a job."""

    name: str  # in a terminal
    title: str  # on a page, which has no note
    number: int
    note: str


class JobStatistics(Value):
    """The figures of a job's runs.

    A run is scored if the agent caused its end: graded, cancelled, or expired. The mean covers
    graded runs. Pass rates cover scored runs; a scored run without a grade did not pass. Failures
    of infrastructure are in neither.
    """

    group: int = Field(description="Runs of each task that count.")
    threshold: float = Field(description="The lowest reward that passes.")
    confidence: float | None = Field(description="Of the intervals; None without them.")
    mean: Estimate | None = Field(description="The mean reward; None if nothing is graded.")
    passes: tuple[PassRate, ...]
    outcomes: dict[str, int] = Field(description="How many of the wanted runs, by class.")
    earlier_tries: int = Field(description="Runs that a later run replaced.")
    overloaded: int = Field(
        default=0, description="Counted runs whose calls the overloaded machine refused."
    )
    foreign: int = Field(
        default=0, description="Sessions outside the job's plan, which count nowhere."
    )
    pruned: int = Field(default=0, description="Runs with pruned grades, which count nowhere.")
    planned: bool | None = Field(
        default=None,
        description="Whether the job has a plan. False: every session begun in it counts. None "
        "of a job that was recorded before there were plans, where every one counts too.",
    )
    use: ModelUse | None = Field(
        default=None,
        description="The model's total usage, including earlier tries and foreign sessions; "
        "None if unreported.",
    )
    user: UserUse | None = Field(
        default=None,
        description="All conversations in figures, as `use` is summed; None without any.",
    )
    person: int = Field(default=0, description="Runs in which a person was the user.")
    tasks: tuple[TaskStatistics, ...]

    @property
    def wanted(self) -> int:
        """The number of runs that the job should have: the denominator of everything."""
        return len(self.tasks) * self.group

    @property
    def ended(self) -> int:
        """The number of them that have ended, with any outcome."""
        return self.wanted - self.outcomes[UNFINISHED] - self.outcomes[NOT_BEGUN]

    @property
    def infrastructure(self) -> int:
        """The number of them that failed because of infrastructure."""
        return self._number(
            each
            for each in outcome_classes()
            if each.counts is Counts.NOWHERE and each not in (UNFINISHED, NOT_BEGUN)
        )

    @property
    def to_resume(self) -> int:
        """The number of them that a resumed job runs again."""
        return self._number(each for each in outcome_classes() if each.tried_again)

    def __str__(self) -> str:
        """Return the figures as lines of text, each with its denominator."""
        classes = self._classes()
        return "\n".join([*self._figures(), *self._used(), *([""] if classes else []), *classes])

    def _number(self, classes: Iterable[OutcomeClass]) -> int:
        return sum(self.outcomes.get(each, 0) for each in classes)

    @property
    def estimates(self) -> list[tuple[str, Estimate | None]]:
        """The mean reward, then the pass rates, by their names; None for one of no run."""
        found: list[tuple[str, Estimate | None]] = [("mean reward", self.mean)]
        for rate in self.passes:
            found.append((f"pass@{rate.k}", rate.pass_at_k))
            if rate.k > 1:  # of one run, both rates are the same
                found.append((f"pass^{rate.k}", rate.pass_hat_k))
        return found

    @property
    def usage(self) -> list[tuple[str, str]]:
        """The model's usage: `in all`, and `a task` if there are several."""
        if self.use is None:
            return []
        found = [("in all", str(self.use))]
        tasks = len(self.tasks)
        return [*found, ("a task", self.use.per(tasks))] if tasks > 1 else found

    @property
    def asides(self) -> list[Aside]:
        """The counts of runs that stand beside the figures, without those that are 0."""
        found = [
            Aside(
                "earlier tries",
                "earlier tries, not counted",
                self.earlier_tries,
                "later runs stand in for them",
            ),
            Aside(
                "person as user",
                "runs with a person as user",
                self.person,
                "the user's words are its caller's: compare with no other run",
            ),
            Aside("overloaded", "runs on an overloaded machine", self.overloaded, _BUSY),
            Aside(
                "foreign",
                "foreign to the plan, not counted",
                self.foreign,
                "not in the job's plan: counted nowhere",
            ),
            Aside(
                "pruned",
                "pruned, not counted",
                self.pruned,
                "their grades are gone: counted nowhere",
            ),
        ]
        return [each for each in found if each.number]

    @property
    def mean_text(self) -> str:
        """The mean reward with its interval and its denominator, or the reason for none."""
        runs, tasks = _count(self.wanted, "run"), _count(len(self.tasks), "task")
        of = f"{runs} ({self.group} x {tasks})" if self.group > 1 else runs
        if self.mean is None:
            return f"none: nothing is graded of {of}"
        return f"{self._shown(self.mean)} over {self.mean.runs} graded of {of}"

    def _figures(self) -> list[str]:
        _, *rates = self.estimates
        lines = [f"mean reward  {self.mean_text}"]
        for name, estimate in rates:
            label, k = name.ljust(11), int(name[len("pass@") :])
            scored = "a scored run" if k == 1 else f"{k} scored runs"
            if estimate is None:
                lines.append(f"{label}  none: no task of {len(self.tasks)} has {scored}")
                continue
            over = f"{estimate.tasks} of {_count(len(self.tasks), 'task')} with {scored}"
            lines.append(f"{label}  {self._shown(estimate)} over {over}")
        return lines

    def _used(self) -> list[str]:
        names = {"in all": "model", "a task": "a task"}
        lines = [f"{names[name].ljust(11)}  {text}" for name, text in self.usage]
        return [*lines, f"{'user'.ljust(11)}  {self.user}"] if self.user is not None else lines

    def _shown(self, estimate: Estimate) -> str:
        if self.confidence is None:
            return f"{estimate.value:.3f}"
        few = estimate.clusters < estimate.tasks
        of = f", of {_count(estimate.clusters, 'cluster')}" if few else ""
        return figure_text(estimate.value, estimate.ends, confidence=self.confidence, of=of)

    def _classes(self) -> list[str]:
        notes = {each.value: each.note for each in outcome_classes()}
        rows = [(name, number, notes.get(name, "")) for name, number in self.outcomes.items()]
        rows = [row for row in rows if row[1]]
        rows += [(each.name, each.number, each.note) for each in self.asides]
        if [name for name, *_ in rows] == [Outcome.GRADED.value]:
            rows = []
        digits = len(str(self.wanted))
        lines = [f"{name.ljust(18)}  {number:>{digits}}  {note}" for name, number, note in rows]
        if self.planned is False:
            lines.append("unplanned: the job has no plan, so every session begun in it counts")
        return lines


def job_statistics(
    task_ids: Iterable[str],
    runs: Iterable[Try],
    *,
    group: int = 1,
    threshold: float = PASS_REWARD,
    intervals: bool = True,
    planned: bool | None = None,
    clusters: Mapping[str, str] | None = None,
) -> JobStatistics:
    """Compute the statistics of a job's runs, in any order.

    Intervals take tasks for independent of each other, not the runs of one task. A pass rate of one
    run a task has the interval of Clopper and Pearson. The mean has none if a reward lies outside 0
    to 1.

    Tasks that only have runs are added at the end. `planned` is copied to the result: each run says
    by `foreign` that it does not count. `clusters` has those of tasks that depend on each other
    (see `provenance.clusters_of`).
    """
    every = list(runs)
    runs = counting(every)
    erased = sum(run.erased and not run.foreign for run in every)
    rows, rewards, outcomes = _by_task(task_ids, runs, group, threshold)
    names = [(clusters or {}).get(row.task, row.task) for row in rows]
    sums = map(math.fsum, rewards)
    parts = [(name, total, row.graded) for name, total, row in zip(names, sums, rows, strict=True)]
    in_range = all(is_in_range(reward) for each in rewards for reward in each)
    graded = sum(row.graded for row in rows)
    mean = mean_over_tasks(parts, graded, in_range=in_range, intervals=intervals)
    scored = [Scored(name, row.scored, row.passed) for name, row in zip(names, rows, strict=True)]
    passes = [pass_rate(scored, k, intervals=intervals) for k in group_sizes(group)]
    return JobStatistics(
        group=group,
        threshold=threshold,
        confidence=CONFIDENCE if intervals else None,
        mean=mean,
        passes=tuple(passes),
        outcomes=outcomes,
        earlier_tries=sum(len(row.earlier) for row in rows),
        overloaded=_overloaded(runs, rows),
        foreign=len(every) - len(runs) - erased,
        pruned=erased,
        planned=planned,
        use=ModelUse.sum_of(run.use for run in every),
        user=UserUse.sum_of(run.user for run in every),
        person=sum(run.user is not None and run.user.by_person > 0 for run in runs),
        tasks=tuple(rows),
    )


def _by_task(
    task_ids: Iterable[str], runs: Iterable[Try], group: int, threshold: float
) -> tuple[list[TaskStatistics], list[list[float]], dict[str, int]]:
    of_task: dict[str, list[Try]] = {task_id: [] for task_id in task_ids}
    for run in runs:
        of_task.setdefault(run.task_id, []).append(run)
    # Classes without runs have their 0: readers look up any class.
    outcomes = dict.fromkeys((each.value for each in outcome_classes()), 0)
    rows: list[TaskStatistics] = []
    rewards: list[list[float]] = []
    for task_id, all_runs in of_task.items():
        counted, earlier = choose_runs(all_runs, group)
        for run in counted:
            outcomes[outcome_class(run)] += 1
        row, of_row = task_statistics(task_id, counted, earlier, group, threshold)
        outcomes[NOT_BEGUN] += row.not_begun
        rows.append(row)
        rewards.append(of_row)
    return rows, rewards, outcomes


def _overloaded(runs: Iterable[Try], rows: Iterable[TaskStatistics]) -> int:
    counted = {run_id for row in rows for run_id in row.runs}
    return sum(run.id in counted and run.overloaded > 0 for run in runs)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

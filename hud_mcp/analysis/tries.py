"""The tries of a task, in short: which of them count, which are run again, and pass rates."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import Field

from hud_mcp.analysis.intervals import Estimate, mean_over_tasks
from hud_mcp.environment.conversation import UserUse
from hud_mcp.environment.task import Task
from hud_mcp.values.action import Value
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import Cause, Counts, Outcome, OutcomeClass, class_of

PASS_REWARD = 1 - 1e-6
"""A reward from here on is a pass; below 1, as rewards are sums of weighted floats."""
_EVERY_K = 8
"""Up to this group size each k has a row; above, the powers of two and the size itself."""


class Try(Protocol):
    """One try of a task, in short: a `BriefRun`, or a `TrajectorySummary`."""

    @property
    def id(self) -> str:
        """The trajectory's id."""
        ...

    @property
    def task_id(self) -> str:
        """The task's id."""
        ...

    @property
    def task(self) -> Task:
        """The row."""
        ...

    @property
    def context(self) -> Mapping[str, Any]:
        """The features that its world was opened with."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """Its outcome; None while it runs."""
        ...

    @property
    def cause(self) -> Cause | None:
        """The cause of its end; None while it runs."""
        ...

    @property
    def reward(self) -> float | None:
        """None unless it was graded."""
        ...

    @property
    def started_at(self) -> datetime:
        """The time of its start."""
        ...

    @property
    def ended_at(self) -> datetime | None:
        """None while it runs."""
        ...

    @property
    def step_count(self) -> int:
        """The number of its steps."""
        ...

    @property
    def use(self) -> ModelUse | None:
        """Its model's usage; None if unreported."""
        ...

    @property
    def user(self) -> UserUse | None:
        """The figures of its conversation; None without one."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether it is not in its job's plan."""
        ...

    @property
    def erased(self) -> bool:
        """Whether its grade was pruned, so that it counts nowhere."""
        ...

    @property
    def overloaded(self) -> int:
        """The calls that the overloaded machine refused."""
        ...


@dataclass(slots=True)
class BriefRun:
    """A run without its prompt, its grade's words, its steps and its log."""

    id: str
    task: Task
    environment: str
    started_at: datetime
    ended_at: datetime | None = None  # None while it goes on, as outcome and cause
    outcome: Outcome | None = None
    cause: Cause | None = None
    reward: float | None = None  # None unless it was graded
    overloaded: int = 0  # the calls that the overloaded machine refused
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    foreign: bool = False  # not in its job's plan
    step_count: int = 0
    erased: bool = False  # its grade was pruned: it counts nowhere
    version: str | None = None  # the package that ended it
    use: ModelUse | None = None  # None if unreported
    user: UserUse | None = None  # None without a conversation
    damaged: bool = False  # something of its row cannot be read, and is absent here

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def seconds(self) -> float | None:
        """Its duration; None while it goes on."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()


TryT = TypeVar("TryT", bound=Try)


def outcome_class(run: Try) -> OutcomeClass:
    """Return the class that a run is counted in."""
    return class_of(run.outcome, run.cause, run.reward)


def counting(runs: Iterable[TryT]) -> list[TryT]:
    """Return the runs that count at all: neither foreign to the plan, nor with a pruned grade."""
    return [run for run in runs if not (run.foreign or run.erased)]


def is_infrastructure(run: Try) -> bool:
    """Whether a run says nothing of the agent: it broke, was lost, or has no end."""
    return outcome_class(run).counts is Counts.NOWHERE


def choose_runs(runs: Iterable[TryT], group: int) -> tuple[list[TryT], list[TryT]]:
    """Return the runs of one task that count, and its earlier tries, each the oldest first.

    The newest ones count, up to `group`, that are not infrastructure's failures. If these are too
    few, the newest of those failures count: first those that are not tried again.
    """
    oldest_first = sorted(runs, key=lambda run: (run.started_at, run.id))
    if len(oldest_first) <= group:
        return oldest_first, []
    newest_first = oldest_first[::-1]
    by_rank = sorted(newest_first, key=_rank)  # which keeps that order
    counted = {run.id for run in by_rank[:group]}
    return (
        [run for run in oldest_first if run.id in counted],
        [run for run in oldest_first if run.id not in counted],
    )


def _rank(run: Try) -> tuple[bool, bool]:
    return is_infrastructure(run), outcome_class(run).tried_again


def plan(task_ids: Iterable[str], runs: Iterable[Try], group: int) -> dict[str, int]:
    """Return the number of runs that each task still needs, so that none is to be tried again.

    Tasks that need none are not in it.
    """
    missing = dict.fromkeys(task_ids, group)
    for run in counting(runs):
        if run.task_id in missing and not outcome_class(run).tried_again:
            missing[run.task_id] -= 1
    return {task_id: number for task_id, number in missing.items() if number > 0}


class TaskStatistics(Value):
    """The figures of one task's runs."""

    task: str
    mean: float | None = Field(description="The mean reward of its graded runs that count.")
    graded: int = Field(description="How many those are.")
    scored: int = Field(description="Runs that passed or did not: all but infrastructure's.")
    passed: int
    runs: tuple[str, ...] = Field(description="Ids of the runs that count, oldest first.")
    earlier: tuple[str, ...] = Field(description="Ids of earlier tries, which do not.")
    not_begun: int = Field(description="Runs that were never started.")
    use: ModelUse | None = Field(
        default=None,
        description="What the model used for all of its runs, earlier tries too; None if not told.",
    )


def task_statistics(
    task_id: str, counted: Sequence[Try], earlier: Sequence[Try], group: int, threshold: float
) -> tuple[TaskStatistics, list[float]]:
    """Compute a task's figures; return its rewards beside them."""
    counts = [outcome_class(run).counts for run in counted]
    graded = [run.reward for run, each in zip(counted, counts, strict=True) if each is Counts.MEAN]
    rewards = [reward for reward in graded if reward is not None]
    row = TaskStatistics(
        task=task_id,
        mean=math.fsum(rewards) / len(rewards) if rewards else None,
        graded=len(rewards),
        scored=sum(each is not Counts.NOWHERE for each in counts),
        passed=sum(reward >= threshold for reward in rewards),
        runs=tuple(run.id for run in counted),
        earlier=tuple(run.id for run in earlier),
        not_begun=group - len(counted),
        use=ModelUse.sum_of(run.use for run in (*counted, *earlier)),
    )
    return row, rewards


class PassRate(Value):
    """The pass rates of k tries."""

    k: int
    pass_at_k: Estimate | None = Field(
        description="At least one of k passes; None if no task has k scored runs."
    )
    pass_hat_k: Estimate | None = Field(description="Each of k passes (pass^k).")


class Scored(NamedTuple):
    """The scored runs of one task. Tasks that depend on each other share a cluster."""

    cluster: str
    scored: int
    passed: int


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """Estimate, without bias, the chance that at least one of k runs passes.

    Chen et al., "Evaluating Large Language Models Trained on Code", 2021, arXiv 2107.03374,
    equation 1.
    """
    return 1 - math.comb(runs - passed, k) / math.comb(runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """Estimate, without bias, the chance that each of k runs passes.

    Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", 2024,
    arXiv 2406.12045.
    """
    return math.comb(passed, k) / math.comb(runs, k)


def group_sizes(group: int) -> list[int]:
    """Return the numbers of tries that have a row, if each task has so many runs."""
    if group <= _EVERY_K:
        return list(range(1, group + 1))
    powers = [2**i for i in range(group.bit_length()) if 2**i < group]
    return [*powers, group]


def pass_rate(tasks: Sequence[Scored], k: int, *, intervals: bool) -> PassRate:
    """Return the pass rate of k tries over the tasks with k scored runs; each counts the same."""
    having = [task for task in tasks if task.scored >= k]

    def mean(estimator: Callable[[int, int, int], float]) -> Estimate | None:
        parts = [(task.cluster, estimator(task.scored, task.passed, k), 1) for task in having]
        return mean_over_tasks(parts, sum(task.scored for task in having), intervals=intervals)

    at = mean(pass_at_k)
    return PassRate(k=k, pass_at_k=at, pass_hat_k=at if k == 1 else mean(pass_hat_k))

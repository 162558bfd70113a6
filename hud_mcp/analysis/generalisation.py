"""Reward by context: how well an agent does where it was trained, and where it was not.

A feature's values are put into bins; each has a mean for each split, and no two splits share
one. This module reads runs in short and does no I/O.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from hud_mcp.action import Value
from hud_mcp.analysis.bins import Cell, Shape, range_text, shape_of
from hud_mcp.analysis.intervals import (
    CONFIDENCE,
    Column,
    Interval,
    difference_interval,
    interval_text,
    is_in_range,
)
from hud_mcp.analysis.statistics import (
    Estimate,
    Run,
    choose_runs,
    counting,
    estimate_of,
    outcome_class,
)
from hud_mcp.context import Scalar
from hud_mcp.loading.provenance import (
    MOST_UNUSED,
    UnusedContexts,
    clusters_of,
    context_name,
    split_of,
)
from hud_mcp.outcome import Counts
from hud_mcp.task import Task

__all__ = [
    "Bin",
    "ContextualRun",
    "FeatureRewards",
    "Gap",
    "Generalisation",
    "SplitRewards",
    "generalisation",
]

TRAIN = "train"
"""The split that the others are compared with."""

WITHOUT = ""
"""The split of runs whose rows name none."""

_NAMED = 12
"""Of contexts that no run used; the text counts the others."""


class Bin(Value):
    """The runs under a value of a feature, or under values of a range."""

    label: str
    low: float | None = Field(default=None, description="The smallest value in it; a number's.")
    high: float | None = Field(default=None, description="The largest value in it.")
    at: float | None = Field(default=None, description="The mean value in it.")
    outside: bool = Field(description="Whether no training run has such a value.")
    rewards: dict[str, Estimate] = Field(
        description="By split, as `splits` calls them; those that have runs in it."
    )


class FeatureRewards(Value):
    """Reward by the values of one feature."""

    feature: str
    numeric: bool
    train_low: float | None = Field(default=None, description="The train range's lower end.")
    train_high: float | None = Field(default=None, description="Its upper end.")
    bins: tuple[Bin, ...]
    left_out: int = Field(default=0, description="Values that were too many to be shown.")


class SplitRewards(Value):
    """The runs of one split."""

    split: str = Field(description="`train`, another name, or empty where rows name none.")
    mean: Estimate | None = Field(description="None where no run counts.")
    given_up: int = Field(description="Runs that the agent gave up, which count as 0 in the mean.")
    ungraded: int = Field(description="Runs without a reward, which are in no mean.")


class Gap(Value):
    """The mean reward of training less that of a split that was held out."""

    split: str = Field(description="Which.")
    value: float | None = Field(description="None where there is none; `reason` says why.")
    low: float | None = Field(default=None, description="The interval's lower end, where known.")
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(default=None, description="Why there is no interval, or no gap.")
    tasks: int = Field(description="How many tasks have a part in it.")


class Generalisation(Value):
    """Reward by context of one job.

    Means are over graded runs and over those that the agent gave up. These count as 0, the least
    reward, as in pass@k; otherwise an agent would close the gap by giving up what is hard. Where
    rewards lie outside 0 to 1 no reward is known as the least: there they are in no mean, and a
    gap that they have a part in is not given.

    Intervals are over tasks: a row's `base_task` where its metadata has one, so that one task
    under several contexts is one. Where all rows are of one task, each row is one: then what is
    asked is how far another choice of contexts would have led.
    """

    confidence: float
    splits: tuple[SplitRewards, ...] = Field(description="Training first; one where none is named.")
    gaps: tuple[Gap, ...] = Field(description="One for each split that is held out.")
    features: tuple[FeatureRewards, ...] = Field(description="Those that vary between runs.")
    unused: tuple[str, ...] = Field(
        default=(), description="Contexts that were given and that no run used; the first of them."
    )
    unused_count: int = Field(default=0, description="How many those are.")

    def __str__(self) -> str:
        """The splits, the gaps, and a table for each feature, as lines of text."""
        return "\n".join(_text(self))


class ContextualRun(Run, Protocol):
    """A run with its row and its context; a `TrajectorySummary` is one."""

    @property
    def task(self) -> Task:
        """The row."""
        ...

    @property
    def context(self) -> Mapping[str, Any]:
        """The features that the world was opened with."""
        ...


def generalisation(
    runs: Iterable[ContextualRun],
    *,
    group: int = 1,
    tasks: Iterable[Task] = (),
    unused: UnusedContexts | None = None,
) -> Generalisation | None:
    """Compute reward by context.

    Args:
        runs: What has begun of a job, in any order.
        group: How many runs of each task count, as in `job_statistics`.
        tasks: The job's rows; a context that only such of them have as never began is unused.
        unused: The contexts that were given and that no row got.

    Returns:
        None where no feature of the context varies between the runs, no split is named, and
        every context was used.
    """
    rows = list(tasks)
    counted = _counted(runs, group, rows)
    features, splits = _varying(counted), _splits(counted)
    names, count = _unused(counted, rows, unused)
    if not features and set(splits) <= {WITHOUT} and not count:
        return None
    table = _Table(counted)
    return Generalisation(
        confidence=CONFIDENCE,
        splits=tuple(_split(table, split) for split in splits),
        gaps=tuple(_gaps(table, splits)),
        features=tuple(_feature(table, _shape(name, counted), splits) for name in features),
        unused=names,
        unused_count=count,
    )


@dataclass(frozen=True)
class _Run:
    """A run that counts.

    Attributes:
        task: The task whose runs are not independent of each other.
        split: Its row's.
        named: What the row's context is called.
        context: The features that the world had.
        reward: What it counts as in a mean; None where it is in none.
        is_given_up: Whether the agent ended it without an answer.
    """

    task: str
    split: str
    named: str | None
    context: Mapping[str, Any]
    reward: float | None
    is_given_up: bool


def _counted(runs: Iterable[ContextualRun], group: int, rows: Iterable[Task]) -> list[_Run]:
    of_task: dict[str, list[ContextualRun]] = {}
    for run in counting(runs):
        of_task.setdefault(run.task_id, []).append(run)
    chosen = [run for tries in of_task.values() for run in choose_runs(tries, group)[0]]
    rewards = {run.id: run.reward for run in chosen if _is_graded(run)}
    least = 0.0 if all(is_in_range(r) for r in rewards.values() if r is not None) else None
    clusters = clusters_of([*rows, *(run.task for run in chosen)])
    return [
        _Run(
            task=clusters.get(run.task_id, run.task_id),
            split=split_of(run.task) or WITHOUT,
            named=context_name(run.task),
            context={
                name: value
                for name, value in (run.context or run.task.context).items()
                if isinstance(value, Scalar)
            },
            reward=least
            if (is_given_up := outcome_class(run).counts is Counts.RATES)
            else rewards.get(run.id),
            is_given_up=is_given_up,
        )
        for run in chosen
    ]


def _is_graded(run: Run) -> bool:
    return outcome_class(run).counts is Counts.MEAN


def _unused(
    runs: Sequence[_Run], tasks: Iterable[Task], given: UnusedContexts | None
) -> tuple[tuple[str, ...], int]:
    used = {run.named for run in runs}
    waiting = dict.fromkeys(name for task in tasks if (name := context_name(task)) is not None)
    names = [name for name in waiting if name not in used]
    count = len(names) + (given.count if given else 0)
    return (*names, *(given.names if given else ()))[:MOST_UNUSED], count


def _varying(runs: Sequence[_Run]) -> list[str]:
    """The features that have several values among the runs, in the order in which they came."""
    values: dict[str, set[Any]] = {}
    for run in runs:
        for name, value in run.context.items():
            values.setdefault(name, set()).add((type(value) is bool, value))
    return [name for name, found in values.items() if len(found) > 1]


def _splits(runs: Sequence[_Run]) -> list[str]:
    found = dict.fromkeys(run.split for run in runs)
    return sorted(found, key=lambda split: (split != TRAIN, split == WITHOUT, split))


class _Table:
    """Means of many selections of the same runs, by task."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.runs = runs
        self._counting = [(run, run.reward) for run in runs if run.reward is not None]
        tasks = dict.fromkeys(run.task for run, _ in self._counting)
        self._place = {task: i for i, task in enumerate(tasks)}
        # Where one reward lies outside, nothing bounds those of the others either.
        self._in_range = all(is_in_range(reward) for _, reward in self._counting)

    def column(self, wanted: Callable[[_Run], bool]) -> Column:
        """The mean over some runs, by task."""
        sums, weights = [0.0] * len(self._place), [0] * len(self._place)
        for run, reward in self._counting:
            if wanted(run):
                place = self._place[run.task]
                sums[place] += reward
                weights[place] += 1
        return Column(sums, weights, self._in_range)

    def estimate(self, wanted: Callable[[_Run], bool]) -> Estimate | None:
        """That mean, and how sure it is; None where no run is in it."""
        column = self.column(wanted)
        return estimate_of(column, int(sum(column.weights)))


def _split(table: _Table, split: str) -> SplitRewards:
    here = [run for run in table.runs if run.split == split]
    return SplitRewards(
        split=split,
        mean=table.estimate(lambda run: run.split == split),
        given_up=sum(run.is_given_up and run.reward is not None for run in here),
        ungraded=sum(run.reward is None for run in here),
    )


def _gaps(table: _Table, splits: Sequence[str]) -> Iterable[Gap]:
    if TRAIN not in splits:
        return
    train = table.column(lambda run: run.split == TRAIN)
    for split in splits:
        if split in (TRAIN, WITHOUT):
            continue
        other = table.column(lambda run, split=split: run.split == split)
        if train.mean is None or other.mean is None:
            continue
        tasks = sum(a + b > 0 for a, b in zip(train.weights, other.weights, strict=True))
        given_up = sum(
            run.is_given_up and run.reward is None and run.split in (TRAIN, split)
            for run in table.runs
        )
        value: float | None = train.mean - other.mean
        found = difference_interval(train, other)
        if given_up:
            were = "1 run was" if given_up == 1 else f"{given_up} runs were"
            value = None
            found = Interval(None, None, f"{were} given up, and no reward is known as the least")
        yield Gap(
            split=split,
            value=value,
            low=found.low,
            high=found.high,
            reason=found.reason,
            tasks=tasks,
        )


def _feature(table: _Table, shape: Shape, splits: Sequence[str]) -> FeatureRewards:
    low, high = shape.train_range or (None, None)
    return FeatureRewards(
        feature=shape.feature,
        numeric=shape.numeric,
        train_low=low,
        train_high=high,
        left_out=shape.left_out,
        bins=tuple(_bin(table, shape, cell, splits) for cell in shape.cells),
    )


def _bin(table: _Table, shape: Shape, cell: Cell, splits: Sequence[str]) -> Bin:
    found = {
        split: table.estimate(
            lambda run, s=split: run.split == s and shape.holds(cell, run.context)
        )
        for split in splits
    }
    return Bin(
        label=cell.label,
        low=cell.low,
        high=cell.high,
        at=cell.at,
        outside=cell.outside,
        rewards={split: estimate for split, estimate in found.items() if estimate is not None},
    )


def _shape(name: str, runs: Sequence[_Run]) -> Shape:
    having = [run for run in runs if name in run.context]
    trained = [run.context[name] for run in having if run.split == TRAIN]
    is_split = bool(trained) and any(run.split not in (TRAIN, WITHOUT) for run in having)
    return shape_of(name, [run.context[name] for run in having], trained if is_split else None)


def _text(found: Generalisation) -> Iterable[str]:
    only = len(found.splits) == 1
    for split in found.splits:
        name = split.split or ("all runs" if only else "no split")
        rest = f"; {split.ungraded} without a reward" if split.ungraded else ""
        yield f"{name:<20}  {_told(split, found.confidence)}{rest}"
    for gap in found.gaps:
        yield f"{'gap to ' + gap.split:<20}  {_gap_text(gap, found.confidence)}"
    if found.unused_count:
        shown = found.unused[:_NAMED]
        more = found.unused_count - len(shown)
        others = f" and {more} more" if more else ""
        yield f"contexts that no run used: {', '.join(shown)}{others}"
    for feature in found.features:
        yield ""
        yield from _feature_lines(feature, [split.split for split in found.splits])


def _gap_text(gap: Gap, confidence: float) -> str:
    if gap.value is None:
        return f"none: {gap.reason}"
    if gap.low is None or gap.high is None:
        return f"{gap.value:+.3f} (no interval: {gap.reason})"
    return f"{gap.value:+.3f} ({confidence:.0%}: {interval_text(gap.low, gap.high, sign='+')})"


def _told(split: SplitRewards, confidence: float) -> str:
    estimate = split.mean
    if estimate is None:
        return "none graded"
    sure = f"no interval: {estimate.reason}"
    if estimate.low is not None and estimate.high is not None:
        sure = f"{confidence:.0%}: {interval_text(estimate.low, estimate.high)}"
    given_up = f" and {split.given_up} given up, as 0" if split.given_up else ""
    return f"{estimate.value:.3f} ({sure}) over {estimate.runs - split.given_up} graded{given_up}"


def _feature_lines(feature: FeatureRewards, splits: Sequence[str]) -> Iterable[str]:
    head = feature.feature
    if feature.train_low is not None and feature.train_high is not None:
        head += f", trained on {range_text(feature.train_low, feature.train_high)}"
    yield head
    width = max(len(b.label) for b in feature.bins)
    names = {split: f"{split or 'no split'} " if len(splits) > 1 else "" for split in splits}
    for one in feature.bins:
        note = "  outside" if one.outside else ""
        cells = [f"  {names[split]}{_short(one.rewards.get(split)):<30}" for split in splits]
        yield f"  {one.label:>{width}}{''.join(cells)}{note}".rstrip()
    if feature.left_out:
        yield f"  {feature.left_out} more values"


def _short(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = " [no interval]"
    if estimate.low is not None and estimate.high is not None:
        interval = f" [{interval_text(estimate.low, estimate.high, digits=2)}]"
    return f"{estimate.value:.3f}{interval} n={estimate.runs}"

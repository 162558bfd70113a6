"""Reward by context: how well an agent does where it was trained, and where it was not.

A feature's values are put into bins; each has a mean for each split, and no two splits share one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from hud_mcp.analysis.context_table import (
    TRAIN,
    WITHOUT,
    BinRange,
    ContextTable,
    CountedRun,
    Shape,
    counted_runs,
    range_text,
    shape_of,
)
from hud_mcp.analysis.intervals import (
    CONFIDENCE,
    Estimate,
    Interval,
    difference_interval,
    figure_text,
    interval_text,
)
from hud_mcp.analysis.tries import Try
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import MOST_UNUSED, UnusedContexts, context_name
from hud_mcp.values.action import Value

__all__ = ["Bin", "FeatureRewards", "Gap", "Generalisation", "SplitRewards", "generalisation"]


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

    def lines(self, splits: Sequence[str]) -> Iterable[str]:
        """Return its table, a line for each bin; `splits` have a column each."""
        head = self.feature
        if self.train_low is not None and self.train_high is not None:
            head += f", trained on {range_text(self.train_low, self.train_high)}"
        yield head
        width = max(len(b.label) for b in self.bins)
        names = {split: f"{split or 'no split'} " if len(splits) > 1 else "" for split in splits}
        for one in self.bins:
            note = "  outside" if one.outside else ""
            cells = [f"  {names[split]}{_short(one.rewards.get(split)):<30}" for split in splits]
            yield f"  {one.label:>{width}}{''.join(cells)}{note}".rstrip()
        if self.left_out:
            yield f"  {self.left_out} more values"


class SplitRewards(Value):
    """The runs of one split."""

    split: str = Field(description="`train`, another name, or empty where rows name none.")
    mean: Estimate | None = Field(description="None if no run counts.")
    given_up: int = Field(description="Runs that the agent gave up, which count as 0 in the mean.")
    ungraded: int = Field(description="Runs without a reward, which are in no mean.")

    def words(self, confidence: float) -> str:
        """Say its mean and its denominators in a line."""
        estimate = self.mean
        if estimate is None:
            return "none graded"
        figure = figure_text(estimate.value, estimate.ends, confidence=confidence)
        given_up = f" and {self.given_up} given up, as 0" if self.given_up else ""
        return f"{figure} over {estimate.runs - self.given_up} graded{given_up}"


class Gap(Value):
    """The mean reward of training less that of a split that was held out."""

    split: str = Field(description="Which.")
    value: float | None = Field(description="None if it has no value; `reason` says why.")
    low: float | None = Field(default=None, description="The interval's lower end, where known.")
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(default=None, description="Why there is no interval, or no gap.")
    tasks: int = Field(description="How many tasks have a part in it.")

    def words(self, confidence: float) -> str:
        """Say it in a line, with its interval or the reason for none."""
        if self.value is None:
            return f"none: {self.reason}"
        ends = Interval(self.low, self.high, self.reason)
        return figure_text(self.value, ends, confidence=confidence, sign="+")


def _short(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = " [no interval]"
    if estimate.low is not None and estimate.high is not None:
        interval = f" [{interval_text(estimate.low, estimate.high, digits=2)}]"
    return f"{estimate.value:.3f}{interval} n={estimate.runs}"


_NAMED = 12
"""The most contexts without a run that the text names; it counts the others."""


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
        """Return the splits, the gaps, and a table for each feature, as lines of text."""
        return "\n".join(_text(self))


def generalisation(
    runs: Iterable[Try],
    *,
    group: int = 1,
    tasks: Iterable[Task] = (),
    unused: UnusedContexts | None = None,
) -> Generalisation | None:
    """Compute reward by context.

    Args:
        runs: The runs of a job so far, in any order.
        group: The number of runs of each task that count, as in `job_statistics`.
        tasks: The job's rows; a context that only such of them have as never began is unused.
        unused: The contexts that were given and that no row got.

    Returns:
        None if no feature of the context varies between the runs, all are of one split, and
        every context was used.
    """
    rows = list(tasks)
    counted = counted_runs(runs, group, rows)
    features, splits = _varying(counted), _splits(counted)
    names, count = _unused(counted, rows, unused)
    if not features and len(splits) < 2 and not count:  # noqa: PLR2004  # two can be compared
        return None
    table = ContextTable(counted)
    return Generalisation(
        confidence=CONFIDENCE,
        splits=tuple(_split(table, split) for split in splits),
        gaps=tuple(_gaps(table, splits)),
        features=tuple(_feature(table, _shape(name, counted), splits) for name in features),
        unused=names,
        unused_count=count,
    )


def _unused(
    runs: Sequence[CountedRun], tasks: Iterable[Task], given: UnusedContexts | None
) -> tuple[tuple[str, ...], int]:
    used = {run.named for run in runs}
    waiting = dict.fromkeys(name for task in tasks if (name := context_name(task)) is not None)
    names = [name for name in waiting if name not in used]
    count = len(names) + (given.count if given else 0)
    return (*names, *(given.names if given else ()))[:MOST_UNUSED], count


def _varying(runs: Sequence[CountedRun]) -> list[str]:
    values: dict[str, set[Any]] = {}
    for run in runs:
        for name, value in run.context.items():
            values.setdefault(name, set()).add((type(value) is bool, value))
    return [name for name, found in values.items() if len(found) > 1]


def _splits(runs: Sequence[CountedRun]) -> list[str]:
    found = dict.fromkeys(run.split for run in runs)
    return sorted(found, key=lambda split: (split != TRAIN, split == WITHOUT, split))


def _split(table: ContextTable, split: str) -> SplitRewards:
    here = [run for run in table.runs if run.split == split]
    return SplitRewards(
        split=split,
        mean=table.estimate(lambda run: run.split == split),
        given_up=sum(run.is_given_up and run.reward is not None for run in here),
        ungraded=sum(run.reward is None for run in here),
    )


def _gaps(table: ContextTable, splits: Sequence[str]) -> Iterable[Gap]:
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


def _feature(table: ContextTable, shape: Shape, splits: Sequence[str]) -> FeatureRewards:
    low, high = shape.train_range or (None, None)
    return FeatureRewards(
        feature=shape.feature,
        numeric=shape.numeric,
        train_low=low,
        train_high=high,
        left_out=shape.left_out,
        bins=tuple(_bin(table, shape, bin_range, splits) for bin_range in shape.ranges),
    )


def _bin(table: ContextTable, shape: Shape, bin_range: BinRange, splits: Sequence[str]) -> Bin:
    found = {
        split: table.estimate(
            lambda run, s=split: run.split == s and shape.holds(bin_range, run.context)
        )
        for split in splits
    }
    return Bin(
        label=bin_range.label,
        low=bin_range.low,
        high=bin_range.high,
        at=bin_range.at,
        outside=bin_range.outside,
        rewards={split: estimate for split, estimate in found.items() if estimate is not None},
    )


def _shape(name: str, runs: Sequence[CountedRun]) -> Shape:
    having = [run for run in runs if name in run.context]
    trained = [run.context[name] for run in having if run.split == TRAIN]
    is_split = bool(trained) and any(run.split not in (TRAIN, WITHOUT) for run in having)
    return shape_of(name, [run.context[name] for run in having], trained if is_split else None)


def _text(found: Generalisation) -> Iterable[str]:
    only = len(found.splits) == 1
    for split in found.splits:
        name = split.split or ("all runs" if only else "no split")
        rest = f"; {split.ungraded} without a reward" if split.ungraded else ""
        yield f"{name:<20}  {split.words(found.confidence)}{rest}"
    for gap in found.gaps:
        yield f"{'gap to ' + gap.split:<20}  {gap.words(found.confidence)}"
    if found.unused_count:
        shown = found.unused[:_NAMED]
        more = found.unused_count - len(shown)
        others = f" and {more} more" if more else ""
        yield f"contexts that no run used: {', '.join(shown)}{others}"
    for feature in found.features:
        yield ""
        yield from feature.lines([split.split for split in found.splits])

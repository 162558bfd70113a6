"""Reward by context: how well an agent does where it was trained, and where it was not.

A feature's values are put into bins; each has its mean over the training runs and over those
that were held out. This module reads runs in short and does no I/O.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from hud_mcp.action import Value
from hud_mcp.bootstrap import Column, Interval, bootstrap, bootstrap_differences
from hud_mcp.cells import Shape, range_text, shape_of
from hud_mcp.context import Scalar
from hud_mcp.contexts import base_task, split_of
from hud_mcp.grade import Outcome
from hud_mcp.statistics import CONFIDENCE, Estimate, Run, choose_runs, counting, outcome_class
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

_SHARE = 0.5
"""Of the time that a job's figures may take: a page computes these beside them."""


class Bin(Value):
    """The runs under a value of a feature, or under values of a range."""

    label: str
    low: float | None = Field(default=None, description="The smallest value in it; a number's.")
    high: float | None = Field(default=None, description="The largest value in it.")
    at: float | None = Field(default=None, description="The mean value in it.")
    outside: bool = Field(description="Whether no training run has such a value.")
    train: Estimate | None = Field(description="Runs that are not held out; None without any.")
    held_out: Estimate | None


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
    mean: Estimate | None = Field(description="None where nothing is graded.")
    ungraded: int = Field(description="Runs that have ended, or go on, without a reward.")


class Gap(Value):
    """The mean reward of training less that of what was held out."""

    split: str = Field(description="A split, or `held out` for all but training.")
    value: float
    low: float | None = Field(default=None, description="The interval's lower end, where known.")
    high: float | None = Field(default=None, description="Its upper end.")
    tasks: int = Field(description="How many tasks have a part in it.")


class Generalisation(Value):
    """Reward by context of one job.

    Means are over graded runs, as everywhere. Intervals are percentiles of bootstrap means over
    tasks: a row's `base_task` where its metadata has one, so that one task under several
    contexts is drawn as one. Where all rows are of one task, each row is drawn: then what is
    asked is how far another choice of contexts would have led.
    """

    confidence: float
    splits: tuple[SplitRewards, ...] = Field(description="Training first; one where none is named.")
    gaps: tuple[Gap, ...] = Field(description="One for each split that is held out, then for all.")
    features: tuple[FeatureRewards, ...] = Field(description="Those that vary between runs.")

    @property
    def is_split(self) -> bool:
        """Whether there are training runs and others."""
        return bool(self.gaps)

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
    runs: Iterable[ContextualRun], *, group: int = 1, seed: int = 0
) -> Generalisation | None:
    """Compute reward by context.

    Args:
        runs: What has begun of a job, in any order.
        group: How many runs of each task count, as in `job_statistics`.
        seed: Of the bootstrap; the same seed and runs give the same intervals.

    Returns:
        None where no feature of the context varies between the runs and no split is named.
    """
    counted = _counted(runs, group)
    features = _varying(counted)
    splits = _splits(counted)
    if not features and set(splits) <= {WITHOUT}:
        return None
    table = _Table(counted, seed)
    shaped = [_shape(name, counted) for name in features]
    for split in splits:
        table.ask(lambda run, split=split: run.split == split)
    for feature in shaped:
        for cell in feature.cells:
            table.ask(
                lambda run, f=feature, c=cell: f.holds(c, run.context) and not run.is_held_out
            )
            table.ask(lambda run, f=feature, c=cell: f.holds(c, run.context) and run.is_held_out)
    answers = iter(table.answers())
    return Generalisation(
        confidence=CONFIDENCE,
        splits=tuple(
            SplitRewards(
                split=split,
                mean=next(answers),
                ungraded=sum(run.split == split and run.reward is None for run in counted),
            )
            for split in splits
        ),
        gaps=tuple(_gaps(table, splits)),
        features=tuple(_with_rewards(feature, answers) for feature in shaped),
    )


@dataclass(frozen=True)
class _Run:
    task: str
    split: str
    is_held_out: bool
    context: Mapping[str, Any]
    reward: float | None


def _counted(runs: Iterable[ContextualRun], group: int) -> list[_Run]:
    of_task: dict[str, list[ContextualRun]] = {}
    for run in counting(runs):
        of_task.setdefault(run.task_id, []).append(run)
    chosen = [run for tries in of_task.values() for run in choose_runs(tries, group)[0]]
    has_train = any(split_of(run.task) == TRAIN for run in chosen)
    one_task = len({base_task(run.task) for run in chosen}) == 1
    return [
        _Run(
            task=run.task_id if one_task else base_task(run.task),
            split=(split := split_of(run.task) or WITHOUT),
            is_held_out=has_train and split not in (TRAIN, WITHOUT),
            context={
                name: value
                for name, value in (run.context or run.task.context).items()
                if isinstance(value, Scalar)
            },
            reward=run.reward if outcome_class(run) == Outcome.GRADED.value else None,
        )
        for run in chosen
    ]


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
    """Means of many selections of the same runs, whose intervals are computed at once."""

    def __init__(self, runs: Sequence[_Run], seed: int) -> None:
        self._runs = [run for run in runs if run.reward is not None]
        tasks = dict.fromkeys(run.task for run in self._runs)
        self._place = {task: i for i, task in enumerate(tasks)}
        self._seed = seed
        self._columns: list[Column] = []

    def column(self, wanted: Callable[[_Run], bool]) -> Column:
        """The mean over some runs, by task."""
        sums, weights = [0.0] * len(self._place), [0] * len(self._place)
        for run in self._runs:
            if wanted(run):
                sums[self._place[run.task]] += run.reward or 0.0
                weights[self._place[run.task]] += 1
        return Column(sums, weights)

    def ask(self, wanted: Callable[[_Run], bool]) -> None:
        self._columns.append(self.column(wanted))

    def answers(self) -> list[Estimate | None]:
        """An estimate for each column that was asked for; None where no run is in it."""
        # Most tasks are in few of the columns; each column is drawn from its own.
        columns = [_without_gaps(column) for column in self._columns]
        values = sum(len(column.sums) for column in columns) or 1
        return [self._answer(c, _SHARE * len(c.sums) / values) for c in columns]

    def _answer(self, column: Column, share: float) -> Estimate | None:
        _, (interval,) = bootstrap([column], confidence=CONFIDENCE, seed=self._seed, share=share)
        mean, (low, high) = column.mean, interval or (None, None)
        if mean is None:
            return None
        runs, tasks = int(sum(column.weights)), len(column.weights)
        return Estimate(value=mean, low=low, high=high, runs=runs, tasks=tasks)

    def differences(self, pairs: Sequence[tuple[Column, Column]]) -> list[Interval | None]:
        return bootstrap_differences(pairs, confidence=CONFIDENCE, seed=self._seed)


def _without_gaps(column: Column) -> Column:
    kept = [i for i, weight in enumerate(column.weights) if weight]
    return Column([column.sums[i] for i in kept], [column.weights[i] for i in kept])


def _gaps(table: _Table, splits: Sequence[str]) -> Iterable[Gap]:
    held_out = [split for split in splits if split not in (TRAIN, WITHOUT)]
    if TRAIN not in splits or not held_out:
        return
    wanted: dict[str, Callable[[_Run], bool]] = {
        split: (lambda run, split=split: run.split == split) for split in held_out
    }
    if len(held_out) > 1:
        wanted["held out"] = lambda run: run.is_held_out
    train = table.column(lambda run: run.split == TRAIN)
    pairs = [(train, table.column(take)) for take in wanted.values()]
    for split, pair, interval in zip(wanted, pairs, table.differences(pairs), strict=True):
        first, second = pair[0].mean, pair[1].mean
        if first is None or second is None:
            continue
        tasks = sum(a + b > 0 for a, b in zip(pair[0].weights, pair[1].weights, strict=True))
        low, high = interval or (None, None)
        yield Gap(split=split, value=first - second, low=low, high=high, tasks=tasks)


def _with_rewards(shape: Shape, answers: Iterable[Estimate | None]) -> FeatureRewards:
    """A feature with the means that were asked for, two a cell."""
    source = iter(answers)
    low, high = shape.train_range or (None, None)
    return FeatureRewards(
        feature=shape.feature,
        numeric=shape.numeric,
        train_low=low,
        train_high=high,
        left_out=shape.left_out,
        bins=tuple(
            Bin(
                label=cell.label,
                low=cell.low,
                high=cell.high,
                at=cell.at,
                outside=cell.outside,
                train=next(source),
                held_out=next(source),
            )
            for cell in shape.cells
        ),
    )


def _shape(name: str, runs: Sequence[_Run]) -> Shape:
    having = [run for run in runs if name in run.context]
    trained = [run.context[name] for run in having if run.split == TRAIN]
    is_split = bool(trained) and any(run.is_held_out for run in having)
    return shape_of(name, [run.context[name] for run in having], trained if is_split else None)


def _text(found: Generalisation) -> Iterable[str]:
    for split in found.splits:
        name = split.split or ("no split" if len(found.splits) > 1 else "all runs")
        rest = f"; {split.ungraded} without a reward" if split.ungraded else ""
        yield f"{name:<20}  {_told(split.mean, found.confidence)}{rest}"
    for gap in found.gaps:
        if gap.low is None or gap.high is None:
            told = "no interval: nothing varies"
        else:
            told = f"{found.confidence:.0%}: {gap.low:+.3f} to {gap.high:+.3f}"
        yield f"{'gap to ' + gap.split:<20}  {gap.value:+.3f} ({told})"
    for feature in found.features:
        yield ""
        yield from _feature_lines(feature, is_split=found.is_split)


def _told(estimate: Estimate | None, confidence: float) -> str:
    if estimate is None:
        return "none graded"
    sure = ""
    if estimate.low is not None and estimate.high is not None:
        sure = f" ({confidence:.0%}: {estimate.low:.3f} to {estimate.high:.3f})"
    return f"{estimate.value:.3f}{sure} over {estimate.runs} graded"


def _feature_lines(feature: FeatureRewards, *, is_split: bool) -> Iterable[str]:
    head = feature.feature
    if feature.train_low is not None and feature.train_high is not None:
        head += f", trained on {range_text(feature.train_low, feature.train_high)}"
    yield head
    width = max(len(b.label) for b in feature.bins)
    for one in feature.bins:
        note = "  outside" if one.outside else ""
        if not is_split:
            yield f"  {one.label:>{width}}  {_short(one.train)}"
            continue
        train, held_out = _short(one.train), _short(one.held_out)
        yield f"  {one.label:>{width}}  train {train:<30}  held out {held_out:<30}{note}".rstrip()
    if feature.left_out:
        yield f"  {feature.left_out} more values"


def _short(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.3f}{interval} n={estimate.runs}"

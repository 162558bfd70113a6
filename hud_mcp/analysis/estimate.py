"""A figure over tasks, how sure it is, and what it is made of."""

from collections.abc import Iterable

from pydantic import Field

from hud_mcp.analysis.intervals import Column, mean_interval
from hud_mcp.values.action import Value

__all__ = ["Estimate", "estimate_of", "mean_over_tasks"]


class Estimate(Value):
    """A figure, how sure it is, and what it is made of."""

    value: float
    low: float | None = Field(
        default=None,
        description="The interval's lower end, over tasks; None where there is none.",
    )
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(
        default=None, description="Why there is no interval; None where none was asked for."
    )
    runs: int = Field(description="How many runs it is made of.")
    tasks: int = Field(description="Of how many tasks they are.")
    clusters: int = Field(
        description="How many of these are independent of each other, as the interval takes it: "
        "tasks that are one task under several contexts are one; in a set of one task, those of "
        "one context."
    )


def estimate_of(
    column: Column, runs: int, *, tasks: int | None = None, intervals: bool = True
) -> Estimate | None:
    """A mean and how sure it is; None where nothing has a weight.

    Args:
        column: The values, by cluster.
        runs: How many runs it is made of.
        tasks: Of how many tasks; None where each cluster is one.
        intervals: Whether to compute one.
    """
    if (value := column.mean) is None:
        return None
    low, high, reason = mean_interval(column) if intervals else (None, None, None)
    clusters = column.clusters
    return Estimate(
        value=value,
        low=low,
        high=high,
        reason=reason,
        runs=runs,
        tasks=clusters if tasks is None else tasks,
        clusters=clusters,
    )


def mean_over_tasks(
    parts: Iterable[tuple[str, float, int]],
    runs: int,
    *,
    in_range: bool = True,
    intervals: bool,
) -> Estimate | None:
    """A mean over tasks, and how sure it is; None where nothing has a weight.

    Args:
        parts: Of each task, its cluster's name, its sum and its weight.
        runs: How many runs they are made of.
        in_range: Whether each reward lies between 0 and 1.
        intervals: Whether to compute an interval.
    """
    sums: dict[str, float] = {}
    weights: dict[str, int] = {}
    tasks = 0
    for name, total, weight in parts:
        sums[name] = sums.get(name, 0.0) + total
        weights[name] = weights.get(name, 0) + weight
        tasks += weight > 0
    column = Column([*sums.values()], [*weights.values()], in_range)
    return estimate_of(column, runs, tasks=tasks, intervals=intervals)

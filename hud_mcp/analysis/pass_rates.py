"""Pass rates of k tries over tasks."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field

from hud_mcp.analysis.intervals import Estimate, mean_over_tasks
from hud_mcp.values.action import Value

__all__ = [
    "PASS_REWARD",
    "PassRate",
    "Scored",
    "group_sizes",
    "pass_at_k",
    "pass_hat_k",
    "pass_rate",
]

PASS_REWARD = 1 - 1e-6
"""A reward from here on is a pass; below 1, as rewards are sums of weighted floats."""
_EVERY_K = 8
"""Up to this group size each k has a row; above, the powers of two and the size itself."""


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

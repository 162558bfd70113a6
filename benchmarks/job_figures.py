"""How long the figures of a job with 10,000 tasks take, with intervals and without.

Prints processor seconds, each beside the bare figures of the same rewards in the same run: a mean,
its standard error and a pass rate in a plain loop. How busy the machine is changes both alike.

    python benchmarks/job_figures.py
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from processor import TIMES, least

from hud_mcp.analysis.statistics import job_statistics
from hud_mcp.values.grade import Cause, Outcome

TASKS = 10_000
MOST_RATIO = 100.0
"""A few times what is measured: what grows with the square of the tasks is far beyond it."""


@dataclass(frozen=True)
class Ended:
    """One graded run, in short."""

    id: str
    task_id: str
    reward: float
    started_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    outcome: Outcome | None = Outcome.GRADED
    cause: Cause | None = None


def main() -> int:
    """Measure, print, and fail where it took too long."""
    ones = runs([[(i * 0.6180339887) % 1] for i in range(TASKS)])
    groups = runs([[float(i * k % 7 < 3) for k in range(8)] for i in range(TASKS // 8)])
    print(f"the least of {TIMES} times; beside it, so many times the bare figures")
    worst = 0.0
    for label, ended, group in (
        (f"{TASKS} tasks, a run each", ones, 1),
        (f"{TASKS // 8} tasks, 8 runs each", groups, 8),
    ):
        peer = least(lambda ended=ended: bare([run.reward for run in ended]))
        show(f"bare figures of {label}", peer, peer)
        for intervals in (False, True):
            took = least(
                lambda ended=ended, group=group, intervals=intervals: job_statistics(
                    [], ended, group=group, intervals=intervals
                )
            )
            show(f"{label}, {'with' if intervals else 'without'} intervals", took, peer)
            worst = max(worst, took / peer)
    print(f"the figures take at most {worst:.0f} times the bare ones (≤ {MOST_RATIO:g})")
    return int(worst > MOST_RATIO)


def runs(rewards: Sequence[Sequence[float]]) -> list[Ended]:
    """The runs of some tasks, by the rewards of each."""
    return [
        Ended(f"run-{task}-{number}", f"task-{task}", reward)
        for task, of_task in enumerate(rewards)
        for number, reward in enumerate(of_task)
    ]


def bare(rewards: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard error and pass rate, as anybody would compute them."""
    mean = math.fsum(rewards) / len(rewards)
    spread = statistics.pstdev(rewards, mean) / math.sqrt(len(rewards))
    passed = 0
    for reward in rewards:
        passed += reward >= 1
    return mean, spread, passed / len(rewards)


def show(what: str, seconds: float, peer: float) -> None:
    """Print a line."""
    print(f"{what:45} {seconds * 1000:8.1f} ms {seconds / peer:7.1f}")


if __name__ == "__main__":
    raise SystemExit(main())

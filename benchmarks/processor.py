"""Processor seconds, of which the least of some runs is what a busy machine changes least."""

import time
from collections.abc import Callable

TIMES = 5


def least(work: Callable[[], object]) -> float:
    """The least processor seconds of some runs of it in this process."""
    return least_of_runs(work, time.process_time)


def least_of_runs(work: Callable[[], object], used: Callable[[], float]) -> float:
    """The least of what some runs add to a count of processor seconds."""
    found: list[float] = []
    for _ in range(TIMES):
        before = used()
        work()
        found.append(used() - before)
    return min(found)

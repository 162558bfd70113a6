"""The spending of a job's runs: time, steps, tokens and cost, in all and a run.

Every ended run of the plan counts, earlier tries too. A figure is over the runs that report it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median, quantiles
from typing import Any

from hud_mcp.analysis.groups import TimedRun
from hud_mcp.analysis.tries import PASS_REWARD, counting

__all__ = ["SLOWEST", "SlowTask", "Spending", "Spread", "spending_of"]

SLOWEST = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over the runs that have it: sum, extremes and quartiles."""

    name: str  # seconds, steps, turns, input, output, cached, cost_usd, model_s, environment_s
    runs: int
    total: float
    least: float
    low: float
    median: float
    high: float
    most: float
    most_run: str  # the id of the run that has it


@dataclass(frozen=True, slots=True)
class SlowTask:
    """A task whose runs took long."""

    task: str
    title: str
    runs: int  # that have ended
    median_s: float
    most_s: float
    most_run: str  # the id of the longest


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of a job's runs."""

    runs: int  # that have ended
    open: int  # that go on
    elapsed_s: float  # from the first start to the last end
    at_once: float | None  # the average number of runs at once
    unpriced: int  # runs with turns whose cost is not recorded
    cost_per_pass: float | None  # of all runs; None if the cost is unknown, or none passed
    figures: tuple[Spread, ...]
    slowest: tuple[SlowTask, ...]  # the longest first; none if all took as long


def spending_of(runs: Iterable[TimedRun], *, threshold: float = PASS_REWARD) -> Spending | None:
    """Sum up the spending of runs; None if none has ended."""
    every = counting(runs)
    ended = [(run, run.ended_at) for run in every if run.ended_at is not None]
    if not ended:
        return None
    done = [run for run, _ in ended]
    seconds = {run.id: _seconds(run.started_at, at) for run, at in ended}
    elapsed = _seconds(min(run.started_at for run in done), max(at for _, at in ended))
    having_use = any(getattr(run, "use", None) is not None for run in done)
    told = [
        _spread(name, done, figure) for name, figure in _figures(seconds, having_use=having_use)
    ]
    figures = tuple(spread for spread in told if spread is not None)
    cost = next((each.total for each in figures if each.name == "cost_usd"), None)
    passed = sum(run.reward is not None and run.reward >= threshold for run in done)
    return Spending(
        runs=len(done),
        open=len(every) - len(done),
        elapsed_s=elapsed,
        at_once=sum(seconds.values()) / elapsed if elapsed else None,
        unpriced=sum(_is_unpriced(run) for run in done),
        cost_per_pass=cost / passed if cost is not None and passed else None,
        figures=figures,
        slowest=_slowest(done, seconds),
    )


def _seconds(start: datetime, end: datetime) -> float:
    """Return the seconds between two times; 0 if the clock was set back."""
    return max(0.0, (end - start).total_seconds())


_Figure = Callable[[TimedRun], float | None]


_OF_USE = ("turns", "input", "output", "cached", "cost_usd", "model_s", "environment_s")


def _figures(seconds: dict[str, float], *, having_use: bool) -> list[tuple[str, _Figure]]:
    def of_use(name: str) -> _Figure:
        return lambda run: getattr(getattr(run, "use", None), name, None)

    return [
        ("seconds", lambda run: seconds[run.id]),
        ("steps", lambda run: getattr(run, "step_count", None)),
        *((name, of_use(name)) for name in _OF_USE if having_use),
    ]


def _spread(name: str, runs: Sequence[TimedRun], figure: _Figure) -> Spread | None:
    told = [(value, run.id) for run in runs if (value := figure(run)) is not None]
    if not told:
        return None
    values = sorted(value for value, _ in told)
    low, middle, high = _quartiles(values)
    most, most_run = max(told, key=lambda each: each[0])
    return Spread(
        name=name,
        runs=len(values),
        total=sum(values),
        least=values[0],
        low=low,
        median=middle,
        high=high,
        most=most,
        most_run=most_run,
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _is_unpriced(run: TimedRun) -> bool:
    use: Any = getattr(run, "use", None)
    return use is not None and use.priced < use.turns


def _slowest(runs: Sequence[TimedRun], seconds: dict[str, float]) -> tuple[SlowTask, ...]:
    of_task: dict[str, list[TimedRun]] = {}
    for run in runs:
        of_task.setdefault(run.task_id, []).append(run)
    found = [
        SlowTask(
            task=task_id,
            title=mine[0].task.title,
            runs=len(mine),
            median_s=median(seconds[run.id] for run in mine),
            most_s=max(seconds[run.id] for run in mine),
            most_run=max(mine, key=lambda run: seconds[run.id]).id,
        )
        for task_id, mine in of_task.items()
    ]
    if len({each.median_s for each in found}) == 1:
        return ()
    return tuple(sorted(found, key=lambda each: -each.median_s)[:SLOWEST])

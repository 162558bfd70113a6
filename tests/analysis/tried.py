"""Runs of tasks as figures are computed from them, in a few words each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.environment.conversation import UserUse
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import Cause, Outcome, cause_of

AT = datetime(2026, 1, 2, tzinfo=UTC)
BROKEN = (Outcome.ENVIRONMENT_FAILED, Outcome.GRADING_FAILED, Outcome.LOST, None)
"""Every way not to say anything of the agent."""


@dataclass(frozen=True)
class Try:
    """A run in short."""

    id: str
    task_id: str
    outcome: Outcome | None
    reward: float | None
    started_at: datetime
    named: Cause | None = None
    foreign: bool = False
    erased: bool = False
    overloaded: int = 0
    use: ModelUse | None = None
    user: UserUse | None = None

    @property
    def cause(self) -> Cause | None:
        """Whose doing its end was."""
        return cause_of(self.outcome, self.named) if self.outcome else None


End = float | Outcome | None
"""A reward, or an outcome without one; None for no end."""


def tries(task: str, *ends: End, first: int = 0) -> list[Try]:
    """Runs of one task, one after the other."""
    return [
        Try(
            id=f"{task}-{i}",
            task_id=task,
            outcome=Outcome.GRADED if isinstance(end, int | float) else end,
            reward=end if isinstance(end, int | float) else None,
            started_at=AT + timedelta(seconds=i),
        )
        for i, end in enumerate(ends, first)
    ]


def ids(runs: Sequence[Try]) -> list[str]:
    """What they are called."""
    return [run.id for run in runs]


def statistics(*tasks: Sequence[End], **options: Any) -> JobStatistics:
    """The figures of tasks `a`, `b` and so on, from the ends of their runs."""
    runs = [
        run for name, ends in zip("abcdefgh", tasks, strict=False) for run in tries(name, *ends)
    ]
    return job_statistics("abcdefgh"[: len(tasks)], runs, **options)


def rate(found: JobStatistics, k: int) -> tuple[float | None, float | None]:
    """pass@k and pass^k."""
    (one,) = (r for r in found.passes if r.k == k)
    return tuple(e.value if e else None for e in (one.pass_at_k, one.pass_hat_k))  # pyright: ignore[reportReturnType]  # two

"""What a job's requests have cost, and what they may."""

from hud_mcp.agents.agent import BoundReached, JobHalted

__all__ = ["RunSpending", "Spending"]


class Spending:
    """The cost of a job, which all its runs add to.

    Args:
        limit_usd: What it may cost; None for any sum.
        per_run_usd: What one run may cost; None for any sum.
        spent_usd: What it had cost before, where it is resumed.

    Attributes:
        spent_usd: What it has cost so far.
    """

    def __init__(
        self,
        *,
        limit_usd: float | None = None,
        per_run_usd: float | None = None,
        spent_usd: float = 0.0,
    ) -> None:
        self.spent_usd = spent_usd
        self._limit_usd = limit_usd
        self._per_run_usd = per_run_usd

    def of_run(self) -> "RunSpending":
        """What one run adds to it."""
        return RunSpending(self, self._per_run_usd)

    def check(self) -> None:
        """Refuse another request once the limit is reached.

        Requests that are under way meanwhile may go beyond it.

        Raises:
            JobHalted: It is reached.
        """
        if self._limit_usd is not None and self.spent_usd >= self._limit_usd:
            raise JobHalted(
                f"The job has cost ${self.spent_usd:.4g} and may cost ${self._limit_usd:g} "
                "(--max-cost). Resume it with a higher --max-cost."
            )

    def need_count(self, cost_usd: float | None) -> None:
        """Refuse to go on where a limit is to be kept and a reply's cost is not known.

        Raises:
            JobHalted: The provider told of no tokens.
        """
        limited = self._limit_usd is not None or self._per_run_usd is not None
        if cost_usd is None and limited:
            raise JobHalted(
                "The provider does not report the tokens of a reply, so the cost cannot be "
                "limited. Leave out --max-cost and --max-cost-per-run."
            )


class RunSpending:
    """The cost of one run.

    Args:
        job: The cost of its job.
        limit_usd: What it may cost; None for any sum.

    Attributes:
        spent_usd: What it has cost so far.
    """

    def __init__(self, job: Spending, limit_usd: float | None) -> None:
        self.spent_usd = 0.0
        self._job = job
        self._limit_usd = limit_usd

    def check(self) -> None:
        """Refuse another request once a limit is reached.

        Raises:
            JobHalted: The job's.
            BoundReached: The run's own, which is the agent's result.
        """
        if self._limit_usd is not None and self.spent_usd >= self._limit_usd:
            raise BoundReached(f"at ${self.spent_usd:.4g} (--max-cost-per-run)")
        self._job.check()

    def add(self, cost_usd: float | None) -> None:
        """Add what a reply cost.

        Raises:
            JobHalted: That is not known, and a limit is to be kept.
        """
        self._job.need_count(cost_usd)
        self.spent_usd += cost_usd or 0.0
        self._job.spent_usd += cost_usd or 0.0

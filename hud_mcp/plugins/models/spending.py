"""The cost, the budget and the rates of a job's requests."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from hud_mcp.agents.agent import BoundReached, JobHalted
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins import models
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.values.model_turn import TokenUsage

if TYPE_CHECKING:
    from genai_prices import Usage

_MILLION = 1_000_000


class Prices:
    """The price of one model, as its options or the list of prices say."""

    def __init__(self, options: ModelOptions) -> None:
        self._options = options

    def need(self) -> None:
        """Raise a `HudMcpError` if cost is limited and the model's price is not known."""
        options = self._options
        limited = options.max_cost_usd is not None or options.max_cost_per_run_usd is not None
        if limited and self.cost(TokenUsage(input=_MILLION, output=_MILLION)) is None:
            raise HudMcpError(
                f"The price of {options.name} is not known, so its cost cannot be limited. Give "
                "it by --price IN,OUT, in US dollars for a million tokens, or leave out "
                "--max-cost and --max-cost-per-run. No request was sent."
            )

    def cost(self, usage: TokenUsage) -> float | None:
        """Return a reply's cost in US dollars, or None; cached tokens cost a given price too."""
        if usage.input is None or usage.output is None:
            return None
        if (price := self._options.price) is not None:
            return (usage.input * price[0] + usage.output * price[1]) / _MILLION
        counted = models.genai_prices.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cached or 0,
            cache_write_tokens=usage.cache_write or 0,
        )
        return self._listed(counted)

    def _listed(self, usage: "Usage") -> float | None:
        options = self._options
        calculate = models.genai_prices.calc_price
        try:
            if options.provider != "openai-compatible":
                found = calculate(usage, options.model, provider_id=options.provider)
            else:
                found = calculate(usage, options.model, provider_api_url=options.base_url)
        except (LookupError, ValueError):
            return None
        return float(found.total_price)


_MINUTE_S = 60.0


@dataclass
class Ticket:
    """One request that was let through; its tokens are a guess until its reply says them."""

    at_s: float
    tokens: int


class Rates:
    """The limits of requests and tokens a minute. Requests pass in the order in which they came."""

    def __init__(
        self,
        rpm: int | None = None,
        tpm: int | None = None,
        *,
        now: Callable[[], float] = anyio.current_time,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._now = now
        self._pause = pause
        self._recent: deque[Ticket] = deque()
        self._turn = anyio.Lock()

    async def admit(self, tokens: int, check: Callable[[], None] = lambda: None) -> Ticket:
        """Wait until a request may be made, call `check`, and return the request's ticket.

        A request of more tokens than a minute allows is let through alone. If `check` raises or
        this call is cancelled, no request is counted.
        """
        async with self._turn:  # first come, first served
            while (wait_s := self._wait_s(tokens)) > 0:
                await self._pause(wait_s)
            check()
            ticket = Ticket(self._now(), tokens)
            self._recent.append(ticket)
            return ticket

    def _wait_s(self, tokens: int) -> float:
        now = self._now()
        while self._recent and now - self._recent[0].at_s >= _MINUTE_S:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        full = self._rpm is not None and len(self._recent) >= self._rpm
        if self._tpm is not None:
            full |= sum(ticket.tokens for ticket in self._recent) + tokens > self._tpm
        return max(0.001, self._recent[0].at_s + _MINUTE_S - now) if full else 0.0


class Spending:
    """The cost of a job in US dollars. All its runs add to it."""

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
        """Return the spending of one run."""
        return RunSpending(self, self._per_run_usd)

    def check(self) -> None:
        """Raise `JobHalted` at the limit; requests that are under way may go beyond it."""
        if self._limit_usd is not None and self.spent_usd >= self._limit_usd:
            raise JobHalted(
                f"The job has cost ${self.spent_usd:.4g} and may cost ${self._limit_usd:g} "
                "(--max-cost). Resume it with a higher --max-cost."
            )

    def need_count(self, cost_usd: float | None) -> None:
        """Raise `JobHalted` if a limit is to be kept and a reply's cost is not known."""
        limited = self._limit_usd is not None or self._per_run_usd is not None
        if cost_usd is None and limited:
            raise JobHalted(
                "The provider does not report the tokens of a reply, so the cost cannot be "
                "limited. Leave out --max-cost and --max-cost-per-run."
            )


class RunSpending:
    """The cost of one run in US dollars."""

    def __init__(self, job: Spending, limit_usd: float | None) -> None:
        self.spent_usd = 0.0
        self._job = job
        self._limit_usd = limit_usd

    def check(self) -> None:
        """Raise `JobHalted` at the job's limit, `BoundReached` (a result) at the run's."""
        if self._limit_usd is not None and self.spent_usd >= self._limit_usd:
            raise BoundReached(f"at ${self.spent_usd:.4g} (--max-cost-per-run)")
        self._job.check()

    def add(self, cost_usd: float | None) -> None:
        """Add a reply's cost; raise `JobHalted` if it is unknown and a limit is to be kept."""
        self._job.need_count(cost_usd)
        self.spent_usd += cost_usd or 0.0
        self._job.spent_usd += cost_usd or 0.0

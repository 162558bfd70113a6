"""The cost, the budget and the rates of a job's requests."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

import anyio

from hud_mcp.agents.agent import BoundReached, JobHalted
from hud_mcp.base.contention import Pauses
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins import models
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.values.model_turn import TokenUsage

_MILLION = 1_000_000
_ROUNDING = 1e-9


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
        return self._listed(usage)

    def most(self, given: int, made: int) -> float:
        """Return the most that so many tokens may cost: those given may be written to a cache."""
        plain = TokenUsage(input=given, output=made)
        both = (plain, plain.model_copy(update={"cache_write": given}))
        return max(self.cost(usage) or 0.0 for usage in both)

    def output_within(self, usd: float, given: int) -> int:
        """Return the tokens of output that an amount pays beside those given."""
        of_input = self.most(given, 0)
        of_output = (self.most(given, _MILLION) - of_input) / _MILLION
        return int((usd - of_input) / of_output * (1 + _ROUNDING)) if of_output > 0 else _MILLION

    def _listed(self, usage: TokenUsage) -> float | None:
        options = self._options
        try:
            calculate = models.genai_prices.calc_price
            counted = models.genai_prices.Usage(
                input_tokens=usage.input,
                output_tokens=usage.output,
                cache_read_tokens=usage.cached or 0,
                cache_write_tokens=usage.cache_write or 0,
            )
            if options.provider != "openai-compatible":
                found = calculate(counted, options.model, provider_id=options.provider)
            else:
                found = calculate(counted, options.model, provider_api_url=options.base_url)
        except (ImportError, LookupError, ValueError):
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
    """The cost of a job in US dollars. All its runs add to it.

    A request reserves the most that it may cost before it is sent, so that requests that are under
    way together never pass a limit.
    """

    def __init__(
        self,
        *,
        limit_usd: float | None = None,
        per_run_usd: float | None = None,
        spent_usd: float = 0.0,
    ) -> None:
        self.spent_usd = spent_usd
        self.reserved: list[float] = []
        self.limit_usd = limit_usd
        self._per_run_usd = per_run_usd
        self._settled = anyio.Event()

    @property
    def is_limited(self) -> bool:
        """Whether the cost of the job or of its runs has a limit."""
        return self.limit_usd is not None or self._per_run_usd is not None

    def of_run(self) -> "RunSpending":
        """Return the spending of one run."""
        return RunSpending(self, self._per_run_usd)

    def check(self) -> None:
        """Raise `JobHalted` at the limit."""
        if self.limit_usd is not None and self.spent_usd >= self.limit_usd:
            raise JobHalted(
                f"The job has cost ${self.spent_usd:.4g} and may cost ${self.limit_usd:g} "
                "(--max-cost). Resume it with a higher --max-cost."
            )

    def need_count(self, cost_usd: float | None) -> None:
        """Raise `JobHalted` if a limit is to be kept and a reply's cost is not known."""
        if cost_usd is None and self.is_limited:
            raise self.uncounted()

    def uncounted(self) -> JobHalted:
        """Return the error of a reply whose cost is not known."""
        return JobHalted(
            "The provider does not report the tokens of a reply, so the cost cannot be limited. "
            "Leave out --max-cost and --max-cost-per-run."
        )

    async def reserve(
        self, run: "RunSpending", most_usd: float, least_usd: float, pauses: Pauses
    ) -> "Reservation":
        """Reserve the most that a request may cost, or all that is left if that is enough.

        While requests under way may cost what is missing, it waits for their ends; `pauses` counts
        that.

        Raises:
            BoundReached: The run has not `least_usd` left.
            JobHalted: The job has not.
        """
        while True:
            run.check()
            usd, is_alone = most_usd, True
            for each in (self, run):
                if each.limit_usd is None:
                    continue
                left_usd = each.limit_usd - each.spent_usd
                if left_usd - sum(each.reserved) < most_usd:
                    usd, is_alone = min(usd, left_usd), is_alone and not each.reserved
            if is_alone and usd >= min(least_usd, most_usd):
                return Reservation(self, run, usd)
            if is_alone:
                raise self._too_dear(run, least_usd)
            with pauses.pause():
                await self._settled.wait()

    def _too_dear(self, run: "RunSpending", least_usd: float) -> HudMcpError:
        dear = f"the next request may cost ${least_usd:.4g}"
        if run.limit_usd is not None and run.spent_usd + least_usd > run.limit_usd:
            return BoundReached(f"at ${run.spent_usd:.4g}, as {dear} (--max-cost-per-run)")
        return JobHalted(
            f"The job has cost ${self.spent_usd:.4g} and may cost ${self.limit_usd:g} "
            f"(--max-cost), and {dear}. Resume it with a higher --max-cost."
        )

    def add(self, run: "RunSpending", cost_usd: float) -> None:
        """Add a cost to the job and to one of its runs, and let those that wait look again."""
        self.spent_usd += cost_usd
        run.spent_usd += cost_usd
        settled, self._settled = self._settled, anyio.Event()
        settled.set()


class RunSpending:
    """The cost of one run in US dollars."""

    def __init__(self, job: Spending, limit_usd: float | None) -> None:
        self.spent_usd = 0.0
        self.reserved: list[float] = []
        self.limit_usd = limit_usd
        self._job = job

    def check(self) -> None:
        """Raise `JobHalted` at the job's limit, `BoundReached` (a result) at the run's."""
        if self.limit_usd is not None and self.spent_usd >= self.limit_usd:
            raise BoundReached(f"at ${self.spent_usd:.4g} (--max-cost-per-run)")
        self._job.check()

    def add(self, cost_usd: float | None) -> None:
        """Add a reply's cost; raise `JobHalted` if it is unknown and a limit is to be kept."""
        self._job.need_count(cost_usd)
        self._job.add(self, cost_usd or 0.0)


class Reservation:
    """The most that a request under way may cost, until its cost is known.

    Attributes:
        usd: The amount.
        is_sent: Whether the request was sent. Until then it costs nothing.
    """

    def __init__(self, job: Spending, run: RunSpending, usd: float) -> None:
        self.usd = usd
        self.is_sent = False
        self._job = job
        self._run = run
        self._is_settled = False
        for each in (job, run):
            each.reserved.append(usd)

    def settle(self, cost_usd: float | None) -> None:
        """Add the request's cost, once; an unknown one may have been all that was reserved."""
        if not self._is_settled:
            self._is_settled = True
            for each in (self._job, self._run):
                each.reserved.remove(self.usd)
            self._job.add(self._run, self.usd if cost_usd is None else cost_usd)

    def __enter__(self) -> Self:
        """Return it; the end of the block settles it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Settle a request whose cost nobody has told."""
        self.settle(None if self.is_sent else 0.0)

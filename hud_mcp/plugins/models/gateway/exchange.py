"""One request of an agent to its model: admitted, sent, tried again, passed on and recorded."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import anyio

from hud_mcp.agents.agent import BoundReached, JobHalted, OperatorFailed
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.budget import Budget
from hud_mcp.plugins.models.gateway.choice import Route
from hud_mcp.plugins.models.gateway.dialects import ReadTurn
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.failures import failure_of_reply
from hud_mcp.plugins.models.gateway.http1 import Connection, Request
from hud_mcp.plugins.models.gateway.refusals import (
    BAD_GATEWAY,
    DOWN,
    NOT_FOUND,
    PATHS,
    Refused,
    sentence_of,
)
from hud_mcp.plugins.models.gateway.relay import Relay
from hud_mcp.plugins.models.gateway.retrying import Tries
from hud_mcp.plugins.models.gateway.run import Run
from hud_mcp.plugins.models.gateway.translation import Sent
from hud_mcp.plugins.models.gateway.upstream import Answer, Failed, Lost, Redirected
from hud_mcp.plugins.models.replies import Failure
from hud_mcp.plugins.models.spending import Reservation, Ticket
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import ModelTurn

__all__ = ["Exchange", "route_of"]

_RECORD_S = 60.0
_BYTES_A_TOKEN, _REPLY_TOKENS = 4, 1_000
_OK = range(200, 300)
_ENDING = (Failure.PASSING, Failure.UNREADABLE)
_DEARER = {"service_tier": ("priority",), "speed": ("fast",)}
"""Settings that cost more than the lists of prices say."""
_OF_A_MODEL = (400, 403, 404)
"""Statuses of a model that does not exist, or that a key does not open."""


@dataclass
class _Try:
    connection: Connection
    budget: Budget
    reserved: Reservation
    ticket: Ticket
    relay: Relay
    is_recorded: bool = False


class _Unrecorded(Exception):
    """A turn could not be recorded, so its reply does not go on."""


class Exchange:
    """A request for a reply, and what comes of it.

    Args:
        run: The run that asks.
        dialect: The dialect that it asks in.
        request: The head of its request.
        body: Its body.

    Raises:
        Unreadable: The request is none of the dialect.
        Refused: There is no provider for it, or it asks for a model that it may not have.
    """

    def __init__(self, run: Run, dialect: Dialect, request: Request, body: bytes) -> None:
        self._run, self._job = run, run.job
        self._dialect = dialect
        self._request = request
        self._path, self._body = request.path, body
        self._asked = dialect.request(f"{request.path}?{request.query}", body, request.headers)
        self._route, self._model = route_of(run, dialect, self._asked.model)
        self._name = f"{self._route.options.provider}:{self._model}"
        self._prices = self._route.prices_of(self._model)
        self._place = run.conversation.place(self._asked)
        self._began = utc_now()
        self._tries, self._tried = Tries(), list[dict[str, Any]]()
        self._cap: int | None = None
        self._lowered: int | None = None
        if self._model != self._asked.model:
            self._path, self._body = dialect.with_model(self._path, body, self._model)

    async def pass_on(self, connection: Connection) -> None:
        """Ask the provider, as often as it takes, and pass its reply on.

        The turn is recorded before the last bytes of the reply go on. If this call is cancelled, as
        the agent hangs up, what came is recorded as broken off.

        Raises:
            Refused: The request is refused; nothing of a reply has gone.
        """
        run = self._run
        if run.is_over and run.refused is not None:
            run.refuses_again()
            raise Refused(sentence_of(run.refused))
        self._need_price()
        try:
            with run.turn(is_side=self._place.is_side):
                while (wait_s := await self._once(connection)) is not None:
                    with run.pauses.pause():
                        await anyio.sleep(wait_s)
        except _Unrecorded:
            connection.close()
        except (BoundReached, OperatorFailed) as exc:
            run.refuse(exc)
            run.refuses_again()
            status = BAD_GATEWAY if isinstance(exc.__cause__, Redirected) else DOWN
            raise Refused(sentence_of(exc), status if exc.__cause__ else 400) from None

    def _need_price(self) -> None:
        """Refuse what no list of prices has, if cost is limited."""
        if not self._job.spending.is_limited:
            return
        try:
            self._prices.need()
        except HudMcpError as exc:
            raise Refused(str(exc)) from None
        if self._asked.hosted:
            raise Refused(
                f"The provider runs {', '.join(self._asked.hosted)} at a price that is not known, "
                "and the cost of this run is limited. Leave it out."
            )
        for name, dear in _DEARER.items():
            if self._asked.settings.get(name) in dear:
                raise Refused(
                    f'"{name}": "{self._asked.settings[name]}" has a price that is not known, and '
                    "the cost of this run is limited. Leave it out."
                )

    async def _once(self, connection: Connection) -> float | None:
        """Ask once; return the seconds before another try, or None once it is over."""
        run, job, limited = self._run, self._job, self._job.spending.is_limited
        most_tokens = self._place.most_input_tokens
        cap = self._lowered or job.cap.most
        budget = Budget(self._asked, self._prices, most_tokens, cap)
        most_usd, least_usd = (budget.most_usd, budget.least_usd) if limited else (0.0, 0.0)
        with await job.spending.reserve(run.spending, most_usd, least_usd, run.pauses) as reserved:
            guess = self._asked.text_bytes // _BYTES_A_TOKEN + _REPLY_TOKENS
            with run.pauses.pause():
                ticket = await job.rates.admit(guess, run.spending.check)
            self._cap = budget.cap_within(reserved.usd) if limited else None
            tried = _Try(connection, budget, reserved, ticket, Relay(connection, job.bounds))
            try:
                return await self._send(tried)
            except Lost as exc:
                if not connection.has_begun:
                    return await self._lost(tried, exc)
                await self._record(tried, f"The reply broke off: {exc}.")
                connection.close()
            except anyio.get_cancelled_exc_class():
                await self._record(tried, "The agent hung up before the whole reply had come.")
                raise
        return None

    async def _send(self, tried: _Try) -> float | None:
        job, body = self._job, self._body
        if self._cap is not None:
            body = self._dialect.with_cap(body, self._cap)
        tried.reserved.is_sent = True
        self._run.agent.asks()
        try:
            async with self._answered(body) as answer:
                self._run.agent.heard()
                if answer.status not in _OK:
                    return await self._refused(tried, answer)
                job.ways.learns(self._route, self._dialect.name, answer.status)
                reader = self._dialect.reader(self._asked, answer.status, answer.content_type)
                await tried.relay.pass_on(answer, reader, lambda error: self._record(tried, error))
        except Refused:  # what its provider cannot do; nothing was sent
            tried.reserved.settle(0.0)
            raise
        except Redirected as exc:
            tried.reserved.settle(0.0)
            said = f"{self._name} failed: {exc}."
            await self._record(tried, said)
            raise JobHalted(said) from exc
        return None

    def _answered(self, body: bytes) -> AbstractAsyncContextManager[Answer]:
        """Send the request as it came, or translated for a provider of another dialect."""
        job, route, request = self._job, self._route, self._request
        if not job.ways.is_translated(route, self._dialect.name):
            return job.upstream.asked(route, self._dialect.name, request, self._path, body)
        sent = Sent(
            self._run, route, self._dialect, self._asked, request.query, body, self._model,
            self._most_tokens,
        )  # fmt: skip
        return job.translator.answered(sent)

    @property
    def _most_tokens(self) -> int | None:
        cap = self._asked.cap if self._cap is None else self._cap
        return self._job.ways.cap(self._model, cap)

    async def _lost(self, tried: _Try, exc: Lost) -> float:
        """Return the seconds before another try after a lost connection, or raise at the last."""
        relay = tried.relay
        so_far_usd = tried.budget.broken_usd(relay.read, relay.size) if relay.size else 0.0
        tried.reserved.settle(so_far_usd)
        tried.ticket.tokens = 0
        said = f"{self._name} failed: {exc}."
        wait_s = self._tries.wait_after(Failure.PASSING, None)
        self._tried.append({"status": None, "error": str(exc), "waited_s": wait_s or 0.0})
        if wait_s is None:
            said = self._tries.told(said)
            await self._record(tried, said)
            raise OperatorFailed(said) from exc
        return wait_s

    async def _refused(self, tried: _Try, answer: Answer) -> float | None:
        """Return the seconds before another try, or pass the provider's refusal on as it came."""
        body = await answer.whole()
        tried.reserved.settle(0.0)
        tried.ticket.tokens = 0
        learns, name = self._job.ways.learns, self._dialect.name
        if answer.failed is None and learns(self._route, name, answer.status, body):
            return 0.0
        failed = answer.failed or Failed(*failure_of_reply(answer.status, body, answer.headers))
        failure, said, asked_s, ends = failed
        if answer.failed and self._job.ways.lowers(self._model, self._most_tokens, said):
            return 0.0
        if self._cap is not None and self._asked.cap is None:
            self._lowered = self._job.cap.lower(self._cap, failure)
            if self._lowered is not None:
                return 0.0
        wait_s = self._tries.wait_after(failure, asked_s)
        self._tried.append({"status": answer.status, "error": said, "waited_s": wait_s or 0.0})
        if wait_s is not None:
            return wait_s
        key = self._route.secret
        said = f"{self._name} failed with status {answer.status}: {key.masked(said).rstrip('.')}."
        said = self._tries.told(said)
        # Another model than the job's is the agent's choice, and no other run may make it.
        is_chosen = self._model != self._route.options.model and answer.status in _OF_A_MODEL
        if ends is not None:
            self._run.refuse(ends)
        elif failure in _ENDING or (failure is Failure.EVERY_RUN and not is_chosen):
            self._run.refuse(self._job.refusals.end(failure, said))
        await self._record(tried, said)
        await tried.connection.reply(answer.status, answer.passing, body)
        return None

    async def _record(self, tried: _Try, error: str | None = None) -> None:
        """Settle the cost of a reply, and record its turn; once, however often it is called."""
        if tried.is_recorded:
            return
        tried.is_recorded = True
        read, relay, spending = tried.relay.read, tried.relay, self._job.spending
        cost_usd = self._prices.cost(read.usage)
        is_broken = error is not None or read.error is not None
        so_far_usd = tried.budget.broken_usd(read, relay.size) if is_broken else cost_usd
        tried.reserved.settle(so_far_usd)
        tried.ticket.tokens = (read.usage.input or 0) + (read.usage.output or 0)
        error = error or read.error
        turn = self._turn(read, relay, cost_usd, error)
        try:
            # An agent that hangs up now must not lose the turn.
            with anyio.fail_after(_RECORD_S, shield=True):
                number = await self._run.keep(turn)
        except (HudMcpError, TimeoutError) as exc:
            self._run.refuse(JobHalted(f"A turn could not be recorded: {exc}"))
            raise _Unrecorded from exc
        self._run.conversation.recorded(self._asked, self._place, number, read)
        if not is_broken:
            self._job.refusals.heard()
            self._job.cap.worked(self._lowered)
            if cost_usd is None and spending.is_limited:
                self._run.refuse(spending.uncounted())

    def _turn(
        self, read: ReadTurn, relay: Relay, cost_usd: float | None, error: str | None
    ) -> ModelTurn:
        asked, place = self._asked, self._place
        settings = {**asked.settings}
        if self._cap is not None:
            settings["cap"] = self._cap
        beside: dict[str, Any] = {
            "dialect": asked.dialect,
            "asked_model": asked.model,
            "provider_id": read.provider_id,
            "messages": place.messages,
            "after": place.after,
            "repeats": place.repeats,
            "is_side": place.is_side,
            "tools": asked.tools_digest,
            "first_token_s": _seconds(self._began, relay.first_at),
            "last_token_s": _seconds(self._began, relay.last_at),
            "tries": tuple(self._tried),
            "is_broken": error is not None and relay.size > 0,
            "tokens": self._run.conversation.new_tokens(place, read),
        }
        if place.system is not None:
            settings["system"] = place.system
        if place.tools:
            settings["tools"] = place.tools
        return ModelTurn(
            model=self._name,
            settings=settings,
            text=read.text,
            reasoning=read.reasoning,
            calls=read.calls,
            usage=read.usage,
            cost_usd=cost_usd,
            stop_reason=read.stop_reason,
            error=error,
            started_at=self._began,
            ended_at=utc_now(),
            **beside,
        )


def _seconds(began: datetime, at: datetime | None) -> float | None:
    return None if at is None else (at - began).total_seconds()


def route_of(run: Run, dialect: Dialect, asked: str) -> tuple[Route, str]:
    """Return the provider of a dialect, and the model of a request that names one.

    Raises:
        Refused: There is none, or the run may not have that model.
    """
    routes = run.job.routes
    route = routes.get(dialect.name)
    if route is None:
        raise Refused(
            f"The model of this run is asked by {' or '.join(PATHS[name] for name in routes)}, "
            f"and not by {PATHS[dialect.name]}."
        )
    model = route.model_for(asked)
    if model is None:
        own = route.options.model
        raise Refused(f"This run may not ask {asked}; its model is {own}.", NOT_FOUND)
    return route, model

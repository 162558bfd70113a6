"""Requests to one model, of all runs of a job: no faster and no dearer than they may be.

What the provider could not do now is tried again. What it refuses is its operator's to mend, and
what the model has brought about itself is its result.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.agents.ends import BoundReached, JobHalted, OperatorFailed
from hud_mcp.agents.model import libraries
from hud_mcp.agents.model.computers import find_computer
from hud_mcp.agents.model.options import ModelOptions
from hud_mcp.agents.model.prices import Prices
from hud_mcp.agents.model.providers import find_key, make_model, need_libraries
from hud_mcp.agents.model.rates import Rates
from hud_mcp.agents.model.spending import Spending
from hud_mcp.contention import Pauses
from hud_mcp.errors import HudMcpError
from hud_mcp.record.model_turn import ModelCall, ModelTurn, TokenUsage
from hud_mcp.record.values import utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition

__all__ = ["Reply", "Requests"]

_TRIES = 8
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_LONGEST_ASKED_S = 300.0
"""A provider that asks to be left alone for longer than this has refused."""
_SAID_CHARS = 600
"""Of what a provider says of a refusal."""
_REFUSALS = 3
"""So many in a row, with no reply before, are no accident: every run would meet them."""
_TOO_LARGE = 413
_TRY_AGAIN = (408, 409)
"""Besides those that have a class of their own."""


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        response: As the library has it, to be given back with the next request.
        turn: The same for the record.
        is_cut: Whether it was cut off at the most tokens that it may have.
    """

    response: "ModelResponse"
    turn: ModelTurn
    is_cut: bool


class Requests:
    """Asks one model.

    Args:
        options: Which, and how.
        spent_usd: What its job has cost before.

    Attributes:
        computer: The provider's own computer tool, where the model works with it.
        spending: What it has cost.

    Raises:
        NotInstalled: The models' libraries are missing.
        HudMcpError: The key is missing, or a limit of cost cannot be kept. No request was sent.
    """

    def __init__(self, options: ModelOptions, *, spent_usd: float = 0.0) -> None:
        need_libraries()
        self._options = options
        self._key = find_key(options.provider)
        self._prices = Prices(options)
        self._prices.need()
        self.computer = None
        self._client = None
        if options.tools != "generic":
            self.computer = find_computer(options.provider, options.tools)
            self._client = libraries.WireClient(
                self.computer.send, self.computer.receive, self.computer.headers
            )
        self._model = make_model(options, self._key, self._client)
        self._rates = Rates(options.rpm, options.tpm)
        self._refusals = 0
        self.spending = Spending(
            limit_usd=options.max_cost_usd,
            per_run_usd=options.max_cost_per_run_usd,
            spent_usd=spent_usd,
        )

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        async with self._model:
            pass
        if self._client is not None:
            await self._client.aclose()

    async def reply(
        self,
        messages: "Sequence[ModelMessage]",
        tools: "Sequence[ToolDefinition]",
        *,
        pauses: Pauses,
        guess: int,
        check: Callable[[], None] = lambda: None,
    ) -> Reply:
        """Ask for the next reply, as often as it takes.

        Args:
            messages: The conversation.
            tools: What the model may call.
            pauses: Counts the time in which the provider let the run wait.
            guess: How many tokens it will take, about.
            check: Called before each try; what it raises is raised, and nothing is asked.

        Raises:
            BoundReached: The conversation does not fit the model's context.
            OperatorFailed: The provider refused, or could not do it for long.
            JobHalted: It would refuse every other request too.
        """
        for tried in range(_TRIES):
            with pauses.pause():
                ticket = await self._rates.admit(guess, check)
            began = utc_now()
            try:
                response = await self._request(messages, tools)
            except (
                libraries.exceptions.AgentRunError,
                libraries.exceptions.UserError,
            ) as exc:
                ticket.take(0)
                wait_s = self._wait_after(exc, tried)
                with pauses.pause():
                    await anyio.sleep(wait_s)
                continue
            self._refusals = -1
            turn = self._turn(response, began)
            ticket.take((turn.usage.input or 0) + (turn.usage.output or 0))
            return Reply(response, turn, response.finish_reason == "length")
        raise OperatorFailed(f"{self._options.name} did not reply to {_TRIES} requests.")

    async def _request(
        self, messages: "Sequence[ModelMessage]", tools: "Sequence[ToolDefinition]"
    ) -> "ModelResponse":
        settings: dict[str, Any] = {"max_retries": 0}
        if self._options.max_tokens is not None:
            settings["max_tokens"] = self._options.max_tokens
        if self._options.provider == "anthropic" and self._options.look == "text":
            settings["cache"] = True  # what is left out of a history would make it useless
        return await libraries.model_request(
            self._model,
            messages,
            model_settings=settings,  # pyright: ignore[reportArgumentType]  # a TypedDict of the library's
            model_request_parameters=libraries.ModelRequestParameters(function_tools=list(tools)),
        )

    def _wait_after(self, exc: Exception, tried: int) -> float:
        """How long to wait before another try.

        Raises:
            BoundReached, OperatorFailed, JobHalted: There is none.
        """
        said = self._said(exc)
        kinds = libraries.exceptions
        status = getattr(exc, "status_code", None)
        if isinstance(exc, kinds.ModelContextWindowExceededError) or status == _TOO_LARGE:
            raise BoundReached(f"as its context was full: {said}") from None
        halting = (
            kinds.ModelAuthenticationError,
            kinds.ModelNotFoundError,
            kinds.ModelQuotaExceededError,
            kinds.UserError,
        )
        if isinstance(exc, halting):
            raise JobHalted(f"{said} Correct that, then resume the job.") from None
        passing = (
            kinds.ModelRateLimitError,
            kinds.ModelUnavailableError,
            kinds.ModelServerError,
            kinds.ModelConnectionError,
            kinds.ModelRequestTimeout,
            kinds.UnexpectedModelBehavior,
        )
        if not isinstance(exc, passing) and status not in _TRY_AGAIN:
            raise self._refused(said) from None
        asked_s: float | None = getattr(exc, "retry_after", None)
        if tried == _TRIES - 1 or (asked_s or 0.0) > _LONGEST_ASKED_S:
            raise OperatorFailed(f"{said} It was tried {tried + 1} times.") from None
        if asked_s is not None:
            return asked_s
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**tried)
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311  # so that runs do not come back at once

    def _refused(self, said: str) -> OperatorFailed:
        if self._refusals >= 0:
            self._refusals += 1
        if self._refusals >= _REFUSALS:
            return JobHalted(
                f"{said} So ended each of the first {self._refusals} requests. Correct that, "
                "then resume the job."
            )
        return OperatorFailed(said)

    def _said(self, exc: Exception) -> str:
        """What a provider says of a failure, without its key."""
        text = " ".join(self._key.masked(_message(exc)).split())
        status = getattr(exc, "status_code", None)
        coded = f" with status {status}" if status is not None else ""
        return f"{self._options.name} failed{coded}: {text[:_SAID_CHARS].rstrip('.')}."

    def _turn(self, response: "ModelResponse", began: "datetime") -> ModelTurn:
        usage = _usage(response)
        details = response.provider_details or {}
        stop: Any = details.get("finish_reason") or response.finish_reason
        return ModelTurn(
            model=self._options.name,
            settings=self._options.settings,
            text=response.text,
            reasoning=response.thinking,
            calls=tuple(
                ModelCall(
                    name=call.tool_name,
                    arguments=_arguments(call.args),
                    id=call.tool_call_id,
                )
                for call in response.tool_calls
            ),
            usage=usage,
            cost_usd=self._prices.cost(usage),
            stop_reason=None if stop is None else str(stop),
            started_at=began,
            ended_at=utc_now(),
        )

    def failed_turn(self, error: HudMcpError, began: "datetime") -> ModelTurn:
        """What is recorded of a request that failed for good."""
        return ModelTurn(
            model=self._options.name,
            settings=self._options.settings,
            error=str(error),
            started_at=began,
            ended_at=utc_now(),
        )


def _usage(response: "ModelResponse") -> TokenUsage:
    usage = response.usage
    if usage.unmeasured_requests or not (usage.input_tokens or usage.output_tokens):
        return TokenUsage()
    return TokenUsage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.output_reasoning_tokens or None,
    )


def _arguments(args: str | dict[str, Any] | None) -> dict[str, Any] | str:
    """A call's arguments as the model wrote them; text where that is not a JSON object."""
    if args is None:
        return {}
    if isinstance(args, dict):
        return args
    call = libraries.messages.ToolCallPart("", args)
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return args


def _message(exc: Exception) -> str:
    """The sentence in a provider's error, or the error as it is."""
    body: Any = getattr(exc, "body", None)
    inner: Any = body.get("error", body) if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # JSON
    message: Any = inner.get("message") if isinstance(inner, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # the same
    return message if isinstance(message, str) else str(exc) or type(exc).__name__

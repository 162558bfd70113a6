"""Requests to one model, of all runs of a job: no faster and no dearer than they may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base.contention import Pauses
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins import models
from hud_mcp.plugins.models.computer_use.anthropic import anthropic_computer
from hud_mcp.plugins.models.computer_use.frame import Computer
from hud_mcp.plugins.models.computer_use.gemini import GEMINI
from hud_mcp.plugins.models.computer_use.openai import OPENAI
from hud_mcp.plugins.models.conversation import read_arguments
from hud_mcp.plugins.models.gateway.keys import NEEDS_NONE, Secret, find_key
from hud_mcp.plugins.models.gateway.retrying import (
    LEAST_TOKENS,
    FirstRefusals,
    OutputCap,
    Tries,
)
from hud_mcp.plugins.models.options import ComputerVersion, ModelOptions
from hud_mcp.plugins.models.replies import (
    Failure,
    failed_here,
    failure_of,
    message_of,
    read_completion,
)
from hud_mcp.plugins.models.spending import (
    Prices,
    Rates,
    Reservation,
    RunSpending,
    Spending,
)
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import ModelCall, ModelTurn, TokenUsage

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models import Model
    from pydantic_ai.tools import ToolDefinition

    from hud_mcp.plugins.models.wire import WireClient


def need_libraries() -> None:
    """Raise `NotInstalled`, with the command to install them, if the libraries are missing."""
    try:
        _ = (models.model_request, models.genai_prices)
    except ImportError:
        raise _not_installed() from None


def make_model(options: ModelOptions, key: Secret, client: "WireClient | None" = None) -> "Model":
    """Make a model that can be asked, or raise `NotInstalled` without its library."""
    try:
        return _MAKERS[options.provider](options, key.value, client)
    except ImportError:
        raise _not_installed() from None


def _anthropic(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = models.AnthropicProvider(api_key=key, http_client=client, **_where(options))
    return models.AnthropicModel(options.model, provider=provider)


def _openai(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = models.OpenAIProvider(api_key=key, http_client=client, **_where(options))
    return models.OpenAIResponsesModel(options.model, provider=provider)


def _google(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = models.GoogleProvider(api_key=key, http_client=client, **_where(options))
    return models.GoogleModel(options.model, provider=provider)


def _compatible(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = models.OpenAICompatibleProvider(
        NEEDS_NONE, base_url=options.base_url or "", api_key=key or None, http_client=client
    )
    return models.OpenAIChatModel(options.model, provider=provider)


def _where(options: ModelOptions) -> dict[str, Any]:
    return {} if options.base_url is None else {"base_url": options.base_url}


def _not_installed() -> NotInstalled:
    return NotInstalled(
        "A model as the agent needs more libraries: pip install 'hud-mcp[agents]'. Nothing was "
        "done."
    )


_MAKERS = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
    "openai-compatible": _compatible,
}


_SAID_CHARS = 600
"""The length of a provider's text about a refusal."""


@dataclass(frozen=True)
class Reply:
    """A model's reply, for the library and for the record; `is_cut` at its most tokens."""

    response: "ModelResponse"
    turn: ModelTurn
    is_cut: bool


class Requests:
    """The requests to one model, by all runs of a job that has cost `spent_usd` before.

    Raises:
        NotInstalled: The models' libraries are missing.
        HudMcpError: The key is missing, or a limit of cost cannot be kept. No request was sent.
    """

    def __init__(self, options: ModelOptions, *, spent_usd: float = 0.0) -> None:
        need_libraries()
        self._options, self.settings = options, dict[str, Any]()  # more of each request
        self._key = find_key(options.provider)
        self._prices = Prices(options)
        self._prices.need()
        self.computer = None
        if options.tools != "generic":
            self.computer = find_computer(options.provider, options.tools)
        self._client = _client_for(options.provider, self.computer)
        self._model = make_model(options, self._key, self._client)
        self._rates = Rates(options.rpm, options.tpm)
        self._refusals, self._cap = FirstRefusals(), OutputCap()
        self.spending = Spending(
            limit_usd=options.max_cost_usd,
            per_run_usd=options.max_cost_per_run_usd,
            spent_usd=spent_usd,
        )

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        async with self._model:
            pass
        await self._client.aclose()

    async def reply(
        self,
        messages: "Sequence[ModelMessage]",
        tools: "Sequence[ToolDefinition]",
        *,
        pauses: Pauses,
        guess: int,
        given: int = 0,
        run: RunSpending | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> Reply:
        """Ask for the next reply, as often as it takes, and add its cost to the run's.

        `guess` is about the number of its tokens, and `given` the most tokens of its input;
        `pauses` counts the provider's waits. `check` is called before each try: its error is
        raised, and no request made.

        Raises:
            BoundReached: The conversation does not fit the model's context, or the run's budget.
            OperatorFailed: The provider refused, or could not do it for long.
            JobHalted: The provider would refuse every other request too, or the budget does.
            MachineFailed: A library raised an unexpected error.
        """
        run = run or self.spending.of_run()
        tries, lowered = Tries(), None
        while True:
            cap = self._options.max_tokens or lowered or self._cap.most
            with await self._reserved(run, given, cap, pauses) as reserved:
                with pauses.pause():
                    ticket = await self._rates.admit(guess, check)
                began, reserved.is_sent = utc_now(), True
                cap = self._paid(reserved, given, cap)
                try:
                    response = await self._request(messages, tools, cap)
                except Exception as exc:  # noqa: BLE001  # of four libraries; the table tells them apart
                    ticket.tokens = 0
                    reserved.settle(0.0)
                    lower, wait_s = self._after(exc, tries, cap)
                    lowered = lower or lowered
                else:
                    turn = self._turn(response, began)
                    reserved.settle(turn.cost_usd)
                    self._refusals.heard()
                    self._cap.worked(lowered)
                    ticket.tokens = (turn.usage.input or 0) + (turn.usage.output or 0)
                    return Reply(response, turn, response.finish_reason == "length")
            with pauses.pause():
                await anyio.sleep(wait_s)

    async def _reserved(
        self, run: RunSpending, given: int, cap: int, pauses: Pauses
    ) -> Reservation:
        """Reserve the most that a request may cost; without a limit, nothing."""
        if not self.spending.is_limited:
            return Reservation(self.spending, run, 0.0)
        least_usd = self._prices.most(given, min(cap, LEAST_TOKENS))
        return await self.spending.reserve(run, self._prices.most(given, cap), least_usd, pauses)

    def _paid(self, reserved: Reservation, given: int, cap: int) -> int:
        """Return the tokens of output that the reserved amount pays, as many as wanted at most."""
        limited = self.spending.is_limited
        return min(cap, self._prices.output_within(reserved.usd, given)) if limited else cap

    async def _request(
        self, messages: "Sequence[ModelMessage]", tools: "Sequence[ToolDefinition]", cap: int
    ) -> "ModelResponse":
        settings: dict[str, Any] = {**self.settings, "max_retries": 0}
        if self._options.max_tokens is not None or self.spending.is_limited:
            settings["max_tokens"] = cap
        if self._options.provider == "anthropic" and self._options.look == "text":
            settings["cache"] = True  # what is left out of a history would make it useless
        return await models.model_request(
            self._model,
            messages,
            model_settings=settings,  # pyright: ignore[reportArgumentType]  # a TypedDict of the library's
            model_request_parameters=models.ModelRequestParameters(function_tools=list(tools)),
        )

    def _after(self, exc: Exception, tries: Tries, cap: int) -> tuple[int | None, float]:
        """Return a lower cap and the seconds before another try, or raise the run's error."""
        failure = failure_of(exc)
        if self.spending.is_limited and self._options.max_tokens is None:
            lower = self._cap.lower(cap, failure)
            if lower is not None:
                return lower, 0.0
        wait_s = tries.wait_after(failure, getattr(exc, "retry_after", None))
        if wait_s is not None:
            return None, wait_s
        if failure is Failure.UNEXPECTED:
            raise failed_here(exc) from exc
        raise self._refusals.end(failure, tries.told(self._said(exc))) from exc

    def _said(self, exc: Exception) -> str:
        """Return a provider's text about a failure, without its key."""
        text = " ".join(self._key.masked(message_of(exc)).split())
        status = getattr(exc, "status_code", None)
        coded = f" with status {status}" if status is not None else ""
        return f"{self._options.name} failed{coded}: {text[:_SAID_CHARS].rstrip('.')}."

    def _turn(self, response: "ModelResponse", began: "datetime") -> ModelTurn:
        usage = usage_of(response)
        details = response.provider_details or {}
        stop: Any = details.get("finish_reason") or response.finish_reason
        return ModelTurn(
            model=self._options.name,
            settings={**self._options.settings, **self.settings},
            text=response.text,
            reasoning=response.thinking,
            calls=tuple(
                ModelCall(
                    name=call.tool_name,
                    arguments=_recorded(call),
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
        """Return the recorded turn of a request that failed for good."""
        return ModelTurn(
            model=self._options.name,
            settings=self._options.settings,
            error=str(error),
            started_at=began,
            ended_at=utc_now(),
        )


def usage_of(response: "ModelResponse") -> TokenUsage:
    """Return the tokens of a reply; none if its provider did not say them."""
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


def find_computer(provider: str, version: ComputerVersion) -> Computer:
    """Return a provider's computer tool; `computer` is its only one, or Anthropic's best known."""
    if provider == "openai":
        return OPENAI
    if provider == "google":
        return GEMINI
    return anthropic_computer("computer_20251124" if version == "computer" else version)


def _client_for(provider: str, computer: Computer | None) -> "WireClient":
    # The libraries' own client loads with this module, so it waits for the first model.
    from hud_mcp.plugins.models.wire import WireClient  # noqa: PLC0415

    if computer is not None:
        return WireClient(computer.send, computer.receive, computer.headers)
    chat = provider == "openai-compatible"
    return WireClient(receive=read_completion if chat else None)


def _recorded(call: "ToolCallPart") -> dict[str, Any] | str:
    given = read_arguments(call)
    return str(call.args) if given is None else given

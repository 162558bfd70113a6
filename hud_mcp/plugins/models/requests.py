"""Requests to one model, of all runs of a job: no faster and no dearer than they may be."""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.agents.agent import BoundReached, JobHalted, OperatorFailed
from hud_mcp.base.contention import Pauses
from hud_mcp.base.text import mask
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins import models
from hud_mcp.plugins.models.computer_use.anthropic import anthropic_computer
from hud_mcp.plugins.models.computer_use.frame import Computer
from hud_mcp.plugins.models.computer_use.gemini import GEMINI
from hud_mcp.plugins.models.computer_use.openai import OPENAI
from hud_mcp.plugins.models.conversation import read_arguments
from hud_mcp.plugins.models.options import ComputerVersion, ModelOptions
from hud_mcp.plugins.models.replies import (
    Failure,
    failed_here,
    failure_of,
    message_of,
    read_completion,
)
from hud_mcp.plugins.models.spending import Prices, Rates, Spending
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import ModelCall, ModelTurn, TokenUsage

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models import Model
    from pydantic_ai.tools import ToolDefinition

    from hud_mcp.plugins.models.wire import WireClient

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
}
"""Environment variables that hold a provider's key; the first that is set counts."""

_NEEDS_NONE = "openai-compatible"
"""A server of one's own often takes no key."""


@dataclass(frozen=True)
class Secret:
    """A provider's key; empty if none is needed."""

    value: str = field(repr=False)

    def masked(self, text: str) -> str:
        """Return a text without the key, which a provider may have written into it."""
        return mask(text, self.value, "[the key]")


def need_libraries() -> None:
    """Raise `NotInstalled`, with the command to install them, if the libraries are missing."""
    try:
        _ = (models.model_request, models.genai_prices)
    except ImportError:
        raise _not_installed() from None


def find_key(provider: str) -> Secret:
    """Return a provider's key, or raise a `HudMcpError` that names the variable to set."""
    names = KEYS[provider]
    found = next((value for name in names if (value := os.environ.get(name, "").strip())), "")
    if not found and provider != _NEEDS_NONE:
        raise HudMcpError(
            f"{provider} needs a key, and {' or '.join(names)} is not set. Set it in the "
            "environment of this command. The record does not keep it."
        )
    return Secret(found)


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
        _NEEDS_NONE, base_url=options.base_url or "", api_key=key or None, http_client=client
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


_TRIES = 8
"""The greatest number of tries of one request, over all ways to fail."""
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_LONGEST_ASKED_S = 300.0
"""A provider that asks to be left alone for longer than this has refused."""
_SAID_CHARS = 600
"""The length of a provider's text about a refusal."""
_REFUSALS = 3
"""The number of refusals in a row, before any reply, that every run would meet."""


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
        self._options = options
        self._key = find_key(options.provider)
        self._prices = Prices(options)
        self._prices.need()
        self.computer = None
        if options.tools != "generic":
            self.computer = find_computer(options.provider, options.tools)
        self._client = _client_for(options.provider, self.computer)
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

        `guess` is about the number of its tokens; `pauses` counts the provider's waits. `check` is
        called before each try: its error is raised, and no request made.

        Raises:
            BoundReached: The conversation does not fit the model's context.
            OperatorFailed: The provider refused, or could not do it for long.
            JobHalted: The provider would refuse every other request too.
            MachineFailed: A library raised an unexpected error.
        """
        failed: Counter[Failure] = Counter()
        while True:
            with pauses.pause():
                ticket = await self._rates.admit(guess, check)
            began = utc_now()
            try:
                response = await self._request(messages, tools)
            except Exception as exc:  # noqa: BLE001  # of four libraries; the table tells them apart
                ticket.tokens = 0
                failed[failure_of(exc)] += 1
                wait_s = self._wait_after(exc, failed)
                with pauses.pause():
                    await anyio.sleep(wait_s)
                continue
            self._refusals = -1
            turn = self._turn(response, began)
            ticket.tokens = (turn.usage.input or 0) + (turn.usage.output or 0)
            return Reply(response, turn, response.finish_reason == "length")

    async def _request(
        self, messages: "Sequence[ModelMessage]", tools: "Sequence[ToolDefinition]"
    ) -> "ModelResponse":
        settings: dict[str, Any] = {"max_retries": 0}
        if self._options.max_tokens is not None:
            settings["max_tokens"] = self._options.max_tokens
        if self._options.provider == "anthropic" and self._options.look == "text":
            settings["cache"] = True  # what is left out of a history would make it useless
        return await models.model_request(
            self._model,
            messages,
            model_settings=settings,  # pyright: ignore[reportArgumentType]  # a TypedDict of the library's
            model_request_parameters=models.ModelRequestParameters(function_tools=list(tools)),
        )

    def _wait_after(self, exc: Exception, failed: "Counter[Failure]") -> float:
        """Return the seconds before another try, or raise the error that ends the run."""
        failure, tried = failure_of(exc), failed.total()
        asked_s: float | None = getattr(exc, "retry_after", None)
        is_last = failed[failure] >= failure.tries or tried >= _TRIES
        if is_last or (asked_s or 0.0) > _LONGEST_ASKED_S:
            raise self._end(exc, failure, tried) from exc
        if asked_s is not None:
            return asked_s
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (tried - 1))
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311  # so that runs do not come back at once

    def _end(self, exc: Exception, failure: Failure, tried: int) -> HudMcpError:
        if failure is Failure.UNEXPECTED:
            return failed_here(exc)
        said = self._said(exc)
        if tried > 1:
            said = f"{said} It was tried {tried} times."
        if failure is Failure.FULL:
            return BoundReached(f"as its context was full: {said.rstrip('.')}")
        if failure is Failure.MALFORMED:
            return BoundReached(f"as its server cannot read what it writes: {said.rstrip('.')}")
        if failure is Failure.EVERY_RUN:
            return JobHalted(f"{said} Correct that, then resume the job.")
        return OperatorFailed(said) if failure is Failure.PASSING else self._refused(said)

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
        """Return a provider's text about a failure, without its key."""
        text = " ".join(self._key.masked(message_of(exc)).split())
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

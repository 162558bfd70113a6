"""The failures of a request to a model, and whose doing each is.

A code or a type decides first, then a sentence that only one failure has, then the category that
the models' library finds, then the status: servers of one protocol differ in all of these.
"""

import re
import traceback
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

from pydantic import ValidationError

from hud_mcp.agents.agent import MachineFailed
from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.replies import REDIRECTED, UNREADABLE

__all__ = ["Failure", "failed_here", "failure_of", "message_of"]


class Failure(Enum):
    """A failure of a request; its value is how often such a request is made at the most."""

    FULL = "full", 1
    """The conversation does not fit the model's context: the agent's result."""
    MALFORMED = "malformed", 4
    """The server cannot read what the model itself wrote: the agent's result, if it repeats."""
    EVERY_RUN = "every run", 1
    """Every other request would fail in the same way: a key, a credit, a name, an address."""
    REFUSED = "refused", 1
    """The server refuses this request, and would refuse it again."""
    UNREADABLE = "unreadable", 4
    """A body came that is not a reply."""
    PASSING = "passing", 8
    """A rate, an overload, a server that restarts, a connection that breaks."""
    UNEXPECTED = "unexpected", 2
    """A library raised what none of its users expects."""

    @property
    def tries(self) -> int:
        """The greatest number of tries of such a request."""
        return self.value[1]


_CODES: Mapping[str, Failure] = {
    "context_length_exceeded": Failure.FULL,  # OpenAI, Groq, Cerebras, DeepSeek, xAI
    "exceed_context_size_error": Failure.FULL,  # llama.cpp
    "string_above_max_length": Failure.FULL,  # OpenAI, one text alone
    "model_max_prompt_tokens_exceeded": Failure.FULL,  # GitHub Copilot
    "tokens_limit_reached": Failure.FULL,  # GitHub Models
    "model_context_window_exceeded": Failure.FULL,  # Z.ai
    "request_too_large": Failure.FULL,  # Anthropic, more than 32 MB
    "tool_use_failed": Failure.MALFORMED,  # Groq, which checks a call before it sends it
    "insufficient_quota": Failure.EVERY_RUN,  # OpenAI, with the status of a rate
    "insufficient_balance": Failure.EVERY_RUN,
    "insufficient_credits": Failure.EVERY_RUN,
    "billing_hard_limit_reached": Failure.EVERY_RUN,
    "billing_not_active": Failure.EVERY_RUN,
    "billing_error": Failure.EVERY_RUN,  # Anthropic
    "exceeded_current_quota_error": Failure.EVERY_RUN,  # Moonshot
    "invalid_api_key": Failure.EVERY_RUN,
    "model_not_found": Failure.EVERY_RUN,
    REDIRECTED: Failure.EVERY_RUN,
    UNREADABLE: Failure.UNREADABLE,
    "overloaded_error": Failure.PASSING,  # Anthropic
    "server_is_overloaded": Failure.PASSING,  # OpenAI
    "engine_overloaded_error": Failure.PASSING,  # Moonshot
}

_SENTENCES: tuple[tuple[Failure, re.Pattern[str]], ...] = tuple(
    (failure, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for failure, pattern in (
        # These repeat what the model wrote, so they come before all others.
        (Failure.MALFORMED, r"error parsing tool call"),  # Ollama, with status 500
        (Failure.MALFORMED, r"failed to parse (?:input at pos|tool call arguments)"),  # llama.cpp
        # More than a minute's tokens in one request (OpenAI, Groq) fits no later minute either.
        (Failure.REFUSED, r"request too large for .* tokens per min"),
        (Failure.REFUSED, r"max_(?:completion_)?tokens\W.{0,40}too large.{0,80}completion tokens"),
        # OpenAI, OpenRouter, DeepSeek, vLLM, SGLang, Mistral, Fireworks
        (Failure.FULL, r"maximum context length"),
        (Failure.FULL, r"reduce the length of (?:the messages|your prompt)"),  # Groq
        (Failure.FULL, r"exceeds? the context window"),  # OpenAI's Responses
        (Failure.FULL, r"maximum model length of \d"),  # vLLM
        (Failure.FULL, r"prompt .{0,40}too long to fit into the model"),  # vLLM before 0.8
        (Failure.FULL, r"longer than the model'?s context length"),  # SGLang, Together
        (Failure.FULL, r"(?:exceeds? the available|configured) context size"),  # llama.cpp
        (Failure.FULL, r"context size has been exceeded"),  # llama.cpp, with status 500
        (Failure.FULL, r"tokens`? ?\+ ?`?max_new_tokens`? must be <="),  # Together, DeepInfra, TGI
        (Failure.FULL, r"`inputs` must have less than \d+ tokens"),  # TGI
        (Failure.FULL, r"maximum prompt length is \d"),  # xAI
        (Failure.FULL, r"(?:prompt|input) is too long"),  # Anthropic, Bedrock, Fireworks
        (Failure.FULL, r"exceed context limit"),  # Anthropic, with the tokens of the reply
        (Failure.FULL, r"input token count.{0,40}exceeds the maximum"),  # Google
        (Failure.FULL, r"maximum allowed input length"),  # OpenRouter
        (Failure.FULL, r"input length.{0,40}exceeds.{0,20}context length"),  # Ollama, vLLM
        (Failure.FULL, r"prompt too long; exceeded (?:max )?context length"),  # Ollama
        (Failure.FULL, r"(?:greater than|exceeds) the context length"),  # LM Studio
        (Failure.FULL, r"context length of only \d"),  # LM Studio
        (Failure.FULL, r"context window exceeds limit"),  # MiniMax
        (Failure.FULL, r"exceeded model token limit"),  # Moonshot
        (Failure.FULL, r"range of input length should be"),  # Qwen at Alibaba
        (Failure.FULL, r"prompt (?:exceeds max|token count of \d+ exceeds)"),  # Z.ai, Copilot
        (Failure.FULL, r"total number of tokens in the prompt exceeds"),  # Cohere
        (Failure.EVERY_RUN, r"credit balance is too low|doesn't have any credits"),
        (Failure.EVERY_RUN, r"exceeded your current quota, please check your plan"),
        (Failure.EVERY_RUN, r"insufficient (?:balance|credits|quota)"),  # DeepSeek, OpenRouter
        (Failure.PASSING, r"(?:model is|server is|is currently) overloaded|over capacity"),
    )
)
"""The patterns in order. The first match decides."""

_TOO_LARGE = 413
_STATUSES: Mapping[int, Failure] = {
    402: Failure.EVERY_RUN,
    408: Failure.PASSING,
    409: Failure.PASSING,
    _TOO_LARGE: Failure.FULL,
    425: Failure.PASSING,
    498: Failure.PASSING,  # Groq, where its flexible tier is full
}
"""Besides those that the library has a category for."""


def failed_here(exc: Exception) -> MachineFailed:
    """Return the error that tells of an exception which nobody expected in a model's run."""
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    return MachineFailed(
        f"This program failed while a model worked: {type(exc).__name__}: {exc} "
        f"({frame.filename}:{frame.lineno}). It is no result of the model's."
    )


def failure_of(exc: Exception) -> Failure:
    """Return the failure that an exception of the models' library is."""
    kinds = libraries.exceptions
    if not isinstance(exc, (kinds.AgentRunError, kinds.UserError)):
        return Failure.UNEXPECTED
    text = message_of(exc)
    for named in _names(exc):
        if named in _CODES:
            return _CODES[named]
    for failure, pattern in _SENTENCES:
        if pattern.search(text):
            return failure
    status: int | None = getattr(exc, "status_code", None)
    return _STATUSES.get(status or 0) or _category(exc)


def _category(exc: Exception) -> Failure:
    kinds = libraries.exceptions
    categories = (
        (Failure.FULL, (kinds.ModelContextWindowExceededError,)),
        (
            Failure.EVERY_RUN,
            (
                kinds.ModelAuthenticationError, kinds.ModelNotFoundError,
                kinds.ModelQuotaExceededError, kinds.UserError,
            ),
        ),
        (
            Failure.PASSING,
            (
                kinds.ModelRateLimitError, kinds.ModelUnavailableError, kinds.ModelServerError,
                kinds.ModelConnectionError, kinds.ModelRequestTimeout,
            ),
        ),
        (Failure.UNREADABLE, (kinds.UnexpectedModelBehavior,)),
    )  # fmt: skip
    found = next((failure for failure, of in categories if isinstance(exc, of)), None)
    if found is not None:
        return found
    # Without a status there was no refusal: the body of a reply was no JSON.
    return Failure.UNREADABLE if getattr(exc, "status_code", None) is None else Failure.REFUSED


def _names(exc: Exception) -> list[str]:
    error = _error(exc)
    found: list[Any] = [
        getattr(exc, "provider_error_code", None), getattr(exc, "provider_error_type", None),
        *(error.get(name) for name in ("code", "type", "status")),
    ]  # fmt: skip
    return [name.lower() for name in found if isinstance(name, str)]


def message_of(exc: Exception) -> str:
    """Return the sentence in a provider's error, or the exception's own."""
    if isinstance(exc.__cause__, ValidationError):
        first = exc.__cause__.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"Its reply has another form than the protocol's, at {where}: {first['msg']}"
    body: Any = getattr(exc, "body", None)
    error = _error(exc)
    for said in (error.get("message"), error.get("detail"), body):
        if isinstance(said, str) and said:
            return said
    return str(exc) or type(exc).__name__


def _error(exc: Exception) -> Mapping[str, Any]:
    """Return the error in the body of a refusal, whichever of the forms it has."""
    body: Any = getattr(exc, "body", None)
    if not isinstance(body, dict):
        return {}
    inner: Any = cast("dict[str, Any]", body).get("error", cast("Any", body))
    if isinstance(inner, str):  # xAI, Ollama
        return {**cast("dict[str, Any]", body), "message": inner}
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}

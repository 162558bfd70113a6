"""Replies of models in the forms that servers send them, before a library reads them."""

import re
import traceback
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast

import orjson
from pydantic import ValidationError

from hud_mcp.agents.agent import MachineFailed
from hud_mcp.base.text import clip_repr
from hud_mcp.plugins import models
from hud_mcp.plugins.models.computer_use.frame import objects_in

Json = dict[str, Any]

REDIRECTED = "redirected"
"""The code of the error that stands for a redirect."""
UNREADABLE = "unreadable_reply"
"""The code of the error for a body that is not a reply."""

_ERRORS = range(400, 600)
_NEEDED = {"id": "", "object": "chat.completion", "created": 0, "model": ""}
_OPENS, _CLOSES = "<think>", "</think>"
_HALVES = re.compile("[\\ud800-\\udfff]")
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, which is a character
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)


class NotAReply(Exception):  # what is in its place may be an error or anything
    """A body of status 200 that is no reply; `status` and `code` are those it should have had."""

    def __init__(self, message: str, *, status: int = 502, code: str = UNREADABLE) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def mend_surrogates(json: str) -> str:
    """Return JSON text with U+FFFD for each escape of half a character."""
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], json)


def mend_text(text: str) -> str:
    """Return a text with U+FFFD for each half of a character, which no JSON can have."""
    return _HALVES.sub("\ufffd", text)


def read_json(body: bytes) -> Json:
    """Return a body's object; raise `NotAReply` for anything else, such as a proxy's page."""
    text = body.decode("utf-8", "replace")
    try:
        read: Any = orjson.loads(mend_surrogates(text))
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise NotAReply(f"Its reply is no JSON object: {clip_repr(text)}")
    return cast("Json", read)


def read_completion(reply: Json) -> Json:
    """Return a chat completion with the parts that its server left out or wrote differently.

    - The arguments of a call are an object (llama.cpp, Ollama) or null: they become text.
    - A call has no type or no id, and the reply no id, date or model.
    - The reasoning stands in the text, and one of its two tags is missing, because the server's
      template wrote the first one into the prompt.

    Raises:
        NotAReply: It has an error in the place of a reply (OpenRouter), or no message.
    """
    message = _message(reply)
    for name, default in _NEEDED.items():
        if reply.get(name) is None:
            reply[name] = default
    for call in objects_in(message.get("tool_calls")):
        call.setdefault("type", "function")
        call["id"] = call.get("id") or ""
        function = call.get("function")
        if isinstance(function, dict):
            _mend_call(cast("Json", function))
    if isinstance(text := message.get("content"), str):
        message["content"] = _with_both_tags(text)
    return reply


def _message(reply: Json) -> Json:
    choices = objects_in(reply.get("choices"))[:1]
    message: Any = choices[0].get("message") if choices else None
    if isinstance(message, dict):
        choices[0].setdefault("index", 0)
        return cast("Json", message)
    error: Any = reply.get("error") or (reply if reply.get("object") == "error" else None)
    if isinstance(error, dict):
        raise _error_in(cast("Json", error))
    if isinstance(error, str):
        raise NotAReply(error)
    raise NotAReply("Its reply has no choices" if not choices else "Its reply has no message")


def _error_in(error: Mapping[str, Any]) -> NotAReply:
    code: Any = error.get("code")
    status = int(code) if str(code).isdigit() and int(code) in _ERRORS else 502
    named = next((n for n in (code, error.get("type")) if isinstance(n, str)), f"status_{status}")
    return NotAReply(
        str(error.get("message") or "Its reply is an error"), status=status, code=named
    )


def _mend_call(function: Json) -> None:
    given: Any = function.get("arguments")
    function["name"] = function.get("name") or ""
    if given is None:
        function["arguments"] = "{}"
    elif not isinstance(given, str):
        try:
            function["arguments"] = orjson.dumps(given).decode()
        except TypeError:  # too deep to be written: the model is told that it is no JSON
            function["arguments"] = "too deeply nested"


def _with_both_tags(text: str) -> str:
    """Complete the tags of a text's reasoning; the library tells it apart by these."""
    first = text.find(_OPENS)
    reasoning, closed, said = text.rpartition(_CLOSES)
    if closed and not 0 <= first < text.find(_CLOSES):
        return f"{_OPENS}{reasoning.replace(_CLOSES, '')}{_CLOSES}{said}"
    if text.lstrip().startswith(_OPENS) and text.rfind(_OPENS) > text.rfind(_CLOSES):
        return f"{text}{_CLOSES}"
    return text


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
STATUSES: Mapping[int, Failure] = {
    401: Failure.EVERY_RUN,
    402: Failure.EVERY_RUN,
    403: Failure.EVERY_RUN,
    404: Failure.EVERY_RUN,
    408: Failure.PASSING,
    409: Failure.PASSING,
    _TOO_LARGE: Failure.FULL,
    425: Failure.PASSING,
    498: Failure.PASSING,  # Groq, where its flexible tier is full
}
"""Besides those of a server, which pass, and those that refuse this request alone."""


def failed_here(exc: Exception) -> MachineFailed:
    """Return the error that tells of an exception which nobody expected in a model's run."""
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    return MachineFailed(
        f"This program failed while a model worked: {type(exc).__name__}: {exc} "
        f"({frame.filename}:{frame.lineno}). It is no result of the model's."
    )


def failure_of(exc: Exception) -> Failure:
    """Return the failure that an exception of the models' library is."""
    kinds = models.exceptions
    if not isinstance(exc, (kinds.AgentRunError, kinds.UserError)):
        return Failure.UNEXPECTED
    beside = [getattr(exc, f"provider_error_{name}", None) for name in ("code", "type")]
    status: int | None = getattr(exc, "status_code", None)
    return (
        failure_said(_error(exc), message_of(exc), beside)
        or STATUSES.get(status or 0)
        or _category(exc)
    )


def failure_said(error: Mapping[str, Any], text: str, beside: Sequence[Any] = ()) -> Failure | None:
    """Return the failure that a provider's names or sentence tell of, if they do."""
    for named in (*beside, *(error.get(name) for name in ("code", "type", "status"))):
        if isinstance(named, str) and named.lower() in _CODES:
            return _CODES[named.lower()]
    return next((failure for failure, pattern in _SENTENCES if pattern.search(text)), None)


def _category(exc: Exception) -> Failure:
    kinds = models.exceptions
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


def message_of(exc: Exception) -> str:
    """Return the sentence in a provider's error, or the exception's own."""
    if isinstance(exc.__cause__, ValidationError):
        first = exc.__cause__.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"Its reply has another form than the protocol's, at {where}: {first['msg']}"
    body: Any = getattr(exc, "body", None)
    text = body if isinstance(body, str) else ""
    return sentence_in(_error(exc)) or text or str(exc) or type(exc).__name__


def sentence_in(error: Mapping[str, Any]) -> str:
    """Return the sentence of an error, or nothing."""
    found = (error.get("message"), error.get("detail"))
    return next((text for text in found if isinstance(text, str) and text), "")


def _error(exc: Exception) -> Mapping[str, Any]:
    body: Any = getattr(exc, "body", None)
    return error_in(cast("dict[str, Any]", body)) if isinstance(body, dict) else {}


def error_in(body: dict[str, Any]) -> Mapping[str, Any]:
    """Return the error in the body of a refusal, whichever of the forms it has."""
    inner: Any = body.get("error", body)
    if isinstance(inner, str):  # xAI, Ollama
        return {**body, "message": inner}
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}

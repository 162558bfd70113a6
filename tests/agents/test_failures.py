"""Failures of requests to models, in the words of the servers that people run."""

from typing import Any

import pytest
from provider_server import Sends, provider_server
from test_model_requests import MODELS, ask, keys, requests_of, said

from hud_mcp.agents.agent import BoundReached, JobHalted, MachineFailed, OperatorFailed
from hud_mcp.agents.model.options import ModelOptions
from hud_mcp.plugins.models.replies import Failure, failure_of
from hud_mcp.plugins.models.requests import Requests

__all__ = ["keys"]

pytestmark = pytest.mark.anyio

AT_ONCE = {"retry-after": "0"}
LATER = {"retry-after": "3600"}
"""A wait that nobody waits for, so that each failure ends its request at once."""


def error(message: str, **beside: Any) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, **beside}}


def plain(message: str, **beside: Any) -> dict[str, Any]:
    """An error without an object around it, as vLLM, SGLang and Mistral write it."""
    return {"object": "error", "message": message, **beside}


FULL = {
    "OpenAI": (400, error(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens.", type="invalid_request_error", code="context_length_exceeded",
    )),
    "llama.cpp": (400, error(
        "the request exceeds the available context size. try increasing the context size",
        code=400, type="exceed_context_size_error", n_prompt_tokens=9000, n_ctx=4096,
    )),
    "llama.cpp, by its type alone": (400, error("", code=400, type="exceed_context_size_error")),
    "llama.cpp, as it writes": (500, error(
        "Context size has been exceeded.", code=500, type="server_error"
    )),
    "vLLM": (400, plain(
        "This model's maximum context length is 16384 tokens. However, you requested 19591 "
        "tokens.", type="BadRequestError", code=400,
    )),
    "vLLM, the decoder's": (400, error(
        "The decoder prompt (length 10127) is longer than the maximum model length of 8192.",
        type="BadRequestError", code=400,
    )),
    "vLLM, the length": (400, error(
        "Input length (265330) exceeds model's maximum context length (262144)."
    )),
    "SGLang": (400, plain(
        "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
        code=400,
    )),
    "SGLang, the sum": (400, plain(
        "Requested token count exceeds the model's maximum context length of 32768 tokens."
    )),
    "xAI": (400, {
        "code": "Client specified an invalid argument",
        "error": "This model's maximum prompt length is 131072 but the request contains 150000.",
    }),
    "Mistral": (400, plain(
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length", type="invalid_request_error", code="3051",
    )),
    "Together": (422, error(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 "
        "`inputs` tokens", type="invalid_request_error",
    )),
    "DeepInfra": (400, error("inputs tokens + max_new_tokens must be <= 32768", type="invalid")),
    "Groq": (400, error(
        "Please reduce the length of the messages or completion.", type="invalid_request_error"
    )),
    "OpenRouter": (400, error(
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "200000 tokens", code=400,
    )),
    "OpenRouter, within a reply": (200, error(
        "This endpoint's maximum context length is 131072 tokens.", code=400
    )),
    "Ollama": (400, {"error": "prompt too long; exceeded max context length by 12 tokens"}),
    "LM Studio": (400, error(
        "The number of tokens to keep from the initial prompt is greater than the context length."
    )),
    "Moonshot": (400, error("Your request exceeded model token limit: 131072")),
    "MiniMax": (400, error("invalid params, context window exceeds limit (2013)")),
    "Fireworks": (400, error("The prompt is too long: 40000, model maximum is 32767")),
    "a proxy": (413, error("Request entity too large")),
}  # fmt: skip
EVERY_RUN = {
    "OpenAI": (429, error(
        "You exceeded your current quota, please check your plan.", code="insufficient_quota"
    )),
    "DeepSeek": (402, error("Insufficient Balance", type="unknown_error")),
    "Moonshot": (429, error("not enough", type="exceeded_current_quota_error")),
    "xAI": (403, {"code": "denied", "error": "Your newly created team doesn't have any credits"}),
    "OpenRouter": (402, error("This request requires more credits", code=402)),
    "vLLM": (404, plain("The model `x` does not exist.", type="NotFoundError", code=404)),
    "a wrong key": (401, error("no", code="invalid_api_key")),
}  # fmt: skip
PASSING = {
    "OpenAI": (429, error("Rate limit reached for requests", code="rate_limit_exceeded")),
    "OpenRouter, within a reply": (
        200,
        {
            "choices": None,
            **error("Provider returned error", code=429, metadata={"raw": "Too many"}),
        },
    ),
    "Groq": (498, error("Flex tier capacity exceeded", code="capacity_exceeded")),
    "Ollama": (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}),
    "llama.cpp": (503, error("Loading model", type="unavailable_error", code=503)),
    "SGLang": (503, plain("The request queue is full.", code=503)),
    "a proxy": (502, "<html>Bad gateway</html>"),
    "Cloudflare": (524, "<html>A timeout occurred</html>"),
}
REFUSED = {
    "Groq": (413, error(
        "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, "
        "please reduce your message size", type="tokens", code="rate_limit_exceeded",
    )),
    "OpenAI": (429, error(
        "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000",
        type="tokens", code="rate_limit_exceeded",
    )),
    "the tokens of a reply": (400, error(
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"
    )),
    "vLLM": (400, plain("tools are not supported without --enable-auto-tool-choice", code=400)),
}  # fmt: skip
MALFORMED = {
    "Groq": (400, error("Failed to call a function.", code="tool_use_failed")),
    "Ollama": (500, {"error": "error parsing tool call: raw='insufficient credits', err=eof"}),
    "llama.cpp": (500, error("Failed to parse input at pos 12: ok", type="server_error")),
}
UNREADABLE = {
    "no choices": (200, {"id": "r", "object": "chat.completion", "choices": []}),
    "null": (200, {"id": "r", "choices": None}),
    "no message": (200, {"choices": [{"index": 0}]}),
    "another protocol": (200, {"response": "yes"}),
    "a list": (200, []),
    "a page": (200, "<html>Gateway</html>"),
    "nothing": (200, ""),
}
CASES = {
    Failure.FULL: FULL,
    Failure.EVERY_RUN: EVERY_RUN,
    Failure.PASSING: PASSING,
    Failure.REFUSED: REFUSED,
    Failure.MALFORMED: MALFORMED,
    Failure.UNREADABLE: UNREADABLE,
}
ENDS: dict[Failure, type[Exception]] = {
    Failure.FULL: BoundReached,
    Failure.EVERY_RUN: JobHalted,
    Failure.PASSING: OperatorFailed,
    Failure.REFUSED: OperatorFailed,
    Failure.MALFORMED: BoundReached,
    Failure.UNREADABLE: OperatorFailed,
}


async def end_of(requests: Requests) -> Exception:
    """What a request ends with."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # the caller looks at it
        await ask(requests, said())
    return raised.value


@pytest.mark.long
async def test_what_servers_say_of_a_failure_tells_whose_doing_it_is() -> None:
    """By code, type, sentence and status; a failure that cannot pass is not asked for again."""
    wrong: list[str] = []
    rows = [(failure, name, *row) for failure in CASES for name, row in CASES[failure].items()]
    with provider_server(lambda _asked: Sends({})) as server:
        url = server.base_url("openai-compatible")
        async with requests_of(ModelOptions(name="openai-compatible:m", base_url=url)) as requests:
            for failure, name, status, body in rows:
                server.asked.clear()
                sent = Sends(body, status, LATER)
                server.script = lambda _asked, sent=sent: sent
                end = await end_of(requests)
                cause = end.__cause__
                found = failure_of(cause) if isinstance(cause, Exception) else None
                if found is not failure or not isinstance(end, ENDS[failure]):
                    wrong.append(f"{failure.name}, {name}: {found}: {end!r}")
                if len(server.asked) != 1:
                    wrong.append(f"{failure.name}, {name}: asked {len(server.asked)} times")
    assert not wrong, "\n".join(wrong)


async def test_a_reply_that_cannot_be_read_is_asked_for_again_and_then_the_operators() -> None:
    """No choices, a list, a page: four times in all, and never the agent's."""
    replies = [{"choices": []}, [], "<html>Gateway</html>", {"choices": []}]
    with provider_server(lambda asked: Sends(replies[asked.number], headers=AT_ONCE)) as server:
        url = server.base_url("openai-compatible")
        async with requests_of(ModelOptions(name="openai-compatible:m", base_url=url)) as requests:
            end = await end_of(requests)
    assert isinstance(end, OperatorFailed)
    assert "has no choices" in str(end)
    assert "4 times" in str(end)


async def test_what_a_library_raises_and_nobody_expects_is_the_machines() -> None:
    """With the place where it was raised; it is asked again first."""
    broken = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [None],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    with provider_server(lambda _asked: Sends(broken)) as server:
        options = ModelOptions(name="anthropic:m", base_url=server.base_url("anthropic"))
        async with requests_of(options) as requests:
            end = await end_of(requests)
    assert isinstance(end, MachineFailed), end
    assert len(server.asked) == 2
    assert "no result of the model's" in str(end)
    assert ".py:" in str(end)


async def test_no_redirect_is_followed() -> None:
    """A key that stands in a header of its own would go along to the other host."""
    wrong: list[str] = []
    kinds = [(provider, tools) for provider in MODELS for tools in ("generic", "computer")]
    with provider_server(lambda _asked: Sends({})) as other:
        to = {"location": f"{other.url}/v1/messages?key=secret"}
        for provider, tools in kinds:
            if (provider, tools) == ("openai-compatible", "computer"):
                continue
            with provider_server(lambda a: Sends("", (301, 302, 307, 308)[a.number], to)) as server:
                options = ModelOptions(
                    name=f"{provider}:{MODELS[provider]}",
                    base_url=server.base_url(provider),
                    tools=tools,
                )
                async with requests_of(options) as requests:
                    ends = [await end_of(requests) for _ in range(4)]
            for end in ends:
                tells = "redirects to http://127.0.0.1" in str(end) and "secret" not in str(end)
                if not (isinstance(end, JobHalted) and tells):
                    wrong.append(f"{provider}, {tools}: {end!r}")
    assert not other.asked
    assert not wrong, "\n".join(wrong)

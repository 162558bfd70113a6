"""The providers' own clients, at a gateway whose model is of another provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from gateway_world import RunHere, gateway_to
from provider_formats import Call, Says
from provider_server import Asked, Sends, provider_server
from translated_requests import SAID, SCHEMA, THOUGHT, WAYS

pytestmark = pytest.mark.anyio

SAYS = Says(SAID, (Call("add", {"a": 1}), Call("add", {"a": 2})), reasoning=THOUGHT, cached=40)


@asynccontextmanager
async def ran_by(kind: str) -> AsyncIterator[RunHere]:
    """A run whose model is a provider's; an engine speaks Chat Completions alone."""

    def script(asked: Asked) -> Says | Sends:
        is_other = kind == "openai-compatible" and asked.provider != "openai-chat"
        return Sends({"detail": "Not Found"}, 404) if is_other else SAYS

    with provider_server(script) as server:
        async with gateway_to(server.url, kind) as gateway, gateway.run() as run:
            yield run


async def test_anthropics_client_reads_a_stream_and_a_reply_of_an_engine() -> None:
    """Its final message is the same as the whole one."""
    import anthropic  # noqa: PLC0415  # long to load, and each worker collects this file

    async with (
        ran_by("openai-compatible") as run,
        anthropic.AsyncAnthropic(base_url=run.url, api_key=run.key) as client,
    ):
        asked = WAYS["messages"].start
        whole: Any = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            streamed: Any = await stream.get_final_message()
    for message in (whole, streamed):
        thought, text, *calls = message.content
        assert (thought.thinking, text.text) == (THOUGHT, SAID)
        assert [call.input for call in calls] == [{"a": 1}, {"a": 2}]
        assert message.stop_reason == "tool_use"
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (60, 40)


async def test_openais_client_reads_chat_completions_of_anthropics_model() -> None:
    """Its final completion is the same as the whole one."""
    import openai  # noqa: PLC0415  # as above

    async with (
        ran_by("anthropic") as run,
        openai.AsyncOpenAI(base_url=f"{run.url}/v1", api_key=run.key) as client,
    ):
        asked = {**WAYS["chat"].start}
        options = {"stream_options": asked.pop("stream_options")}
        whole: Any = await client.chat.completions.create(**asked)
        async with client.chat.completions.stream(**asked, **options) as stream:
            streamed: Any = await stream.get_final_completion()
    for completion in (whole, streamed):
        (choice,) = completion.choices
        assert (choice.message.content, choice.finish_reason) == (SAID, "tool_calls")
        calls = [call.function.arguments for call in choice.message.tool_calls]
        assert calls == ['{"a": 1}', '{"a": 2}']
        assert completion.usage.prompt_tokens_details.cached_tokens == 40


async def test_openais_client_reads_responses_of_anthropics_model() -> None:
    """Its final response is the same as the whole one."""
    import openai  # noqa: PLC0415  # as above

    tool = {"type": "function", "name": "add", "parameters": SCHEMA, "strict": False}
    asked: dict[str, Any] = {**WAYS["responses"].start, "tools": [tool]}
    async with (
        ran_by("anthropic") as run,
        openai.AsyncOpenAI(base_url=f"{run.url}/v1", api_key=run.key) as client,
    ):
        whole: Any = await client.responses.create(**asked)
        async with client.responses.stream(**asked) as stream:
            events = [event.type async for event in stream]
            streamed: Any = await stream.get_final_response()
    assert events[0] == "response.created"
    assert events[-1] == "response.completed"
    for response in (whole, streamed):
        reasoning, _, *calls = response.output
        assert (reasoning.summary[0].text, response.output_text) == (THOUGHT, SAID)
        assert [call.arguments for call in calls] == ['{"a": 1}', '{"a": 2}']
        assert response.usage.input_tokens_details.cached_tokens == 40


@pytest.mark.filterwarnings("ignore:Inheritance class")  # of its session, in its other client
async def test_googles_client_reads_a_stream_and_a_reply_of_an_engine() -> None:
    """Its chunks have what the whole reply has."""
    from google import genai  # noqa: PLC0415  # as above

    config: Any = {
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [{"name": "add", "parameters_json_schema": SCHEMA}]}],
        "automatic_function_calling": {"disable": True},
    }
    asked: dict[str, Any] = {"model": "gemini-x", "contents": "Add twice.", "config": config}
    async with ran_by("openai-compatible") as run:
        client = genai.Client(api_key=run.key, http_options={"base_url": run.url})
        whole = await client.aio.models.generate_content(**asked)
        chunks: list[Any] = [
            chunk async for chunk in await client.aio.models.generate_content_stream(**asked)
        ]
        await client.aio.aclose()
    parts: Any = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    assert "".join(part.text for part in parts if part.text and not part.thought) == SAID
    calls = [part.function_call for part in parts if part.function_call]
    for found in (calls, whole.function_calls or []):
        assert [(call.name, call.args) for call in found] == [("add", {"a": 1}), ("add", {"a": 2})]
        assert all(call.id for call in found)
    for usage in (whole.usage_metadata, chunks[-1].usage_metadata):
        assert (usage.prompt_token_count, usage.cached_content_token_count) == (100, 40)

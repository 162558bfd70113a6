"""Models of one provider for programs that ask in the dialect of another one, over real sockets."""

import json
from typing import Any

import httpx2
import pytest
from gateway_world import SECRET, Got, RunHere, Writer, gateway_to, provider, sse
from provider_formats import Call, Says
from provider_server import Asked, Refuses, Sends, provider_server
from tables import each_of
from translated_requests import PICTURE, RESULTS, SAID, SCHEMA, SYSTEM, THOUGHT, WAYS, read_reply

from hud_mcp.agents.agent import BoundReached, JobHalted, MachineFailed, OperatorFailed

pytestmark = pytest.mark.anyio

CHAT_ONLY = Sends({"detail": "Not Found"}, 404)
OTHERS = {
    "openai-compatible": ("messages", "responses", "gemini"),
    "anthropic": ("chat", "responses", "gemini"),
    "openai": ("messages", "gemini"),
    "google": ("messages", "chat", "responses"),
}
"""The dialects that each provider does not speak."""
PAIRS = [(kind, name) for kind, names in OTHERS.items() for name in names]
FORMATS = {"openai-compatible": "openai-chat"}


def chat_only(says: Says | Refuses | Sends) -> Any:
    """An engine that speaks Chat Completions alone."""
    return lambda asked: says if asked.provider == "openai-chat" else CHAT_ONLY


def adds(asked: Asked) -> Any:
    """A model that thinks, speaks, and calls its tool twice; then it says so."""
    if asked.provider != "openai-chat" and asked.model == "some-model":
        return CHAT_ONLY
    if asked.heard.results:
        return Says("Done.", tokens=(200, 5))
    name = next(iter(asked.heard.tools))
    calls = (Call(name, {"a": 1}), Call(name, {"a": 2}))
    return Says(SAID, calls, reasoning=THOUGHT, tokens=(100, 10), cached=40)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("kind", "dialect"), PAIRS)
async def test_a_conversation_in_each_dialect_reaches_each_provider(
    kind: str, dialect: str, *, stream: bool
) -> None:
    """Text, reasoning, two calls with their ids, results with a picture, and every token."""
    way = WAYS[dialect]
    path = way.path(stream=stream)
    with provider_server(adds) as server:
        async with gateway_to(server.url, kind) as gateway, gateway.run() as run:
            body = way.first(stream=stream)
            got = await run.ask(path, body)
            assert got.status_code == 200, got.text
            first = read_reply(dialect, body, path, got.content, got.headers["content-type"])
            ids = [call.id or "" for call in first.calls]
            then = way.second([(ids[0], {"a": 1}), (ids[1], {"a": 2})], stream=stream)
            got = await run.ask(path, then)
            second = read_reply(dialect, then, path, got.content, got.headers["content-type"])
    name = "mcp__hud__add" if dialect == "responses" else "add"
    assert (first.text, first.reasoning) == (SAID, THOUGHT)
    assert [(call.name, call.arguments) for call in first.calls] == [
        (name, {"a": 1}),
        (name, {"a": 2}),
    ]
    assert all(ids)
    assert len({*ids}) == 2
    assert (first.usage.input, first.usage.output, first.usage.cached) == (100, 10, 40)
    assert (second.text, second.calls) == ("Done.", ())
    asked = [each for each in server.asked if each.provider == FORMATS.get(kind, kind)]
    assert len(asked) == 2
    heard = asked[1].heard
    assert (heard.system, heard.prompt, heard.turns) == (SYSTEM, "Add twice.", 1)
    assert [result.split("\n")[0] for result in heard.results] == [*RESULTS]
    assert heard.pictures == 1
    assert heard.tools == {name: SCHEMA}
    sent = json.dumps(asked[1].body)
    assert kind == "google" or PICTURE in sent
    assert kind == "google" or all(each in sent for each in ids)
    assert [(turn.text, turn.dialect, turn.after) for turn in run.turns] == [
        (SAID, dialect, None),
        ("Done.", dialect, 0),
    ]
    assert run.turns[0].calls == first.calls
    assert run.turns[0].usage.cached == 40
    assert run.opened.refused is None


@each_of("dialect", OTHERS["anthropic"])
async def test_reasoning_goes_back_to_its_provider_signed(dialect: str) -> None:
    """The dialects of others have no place for a signature, and the provider needs it."""
    way = WAYS[dialect]
    with provider_server(adds) as server:
        async with gateway_to(server.url, "anthropic") as gateway, gateway.run() as run:
            await run.ask(way.path(), way.first())
            calls = [(call.id or "", dict(call.arguments)) for call in run.turns[0].calls]  # pyright: ignore[reportArgumentType]
            await run.ask(way.path(), way.second(calls))
            await run.ask(way.path(), way.second([("other", {"a": 1}), ("ids", {"a": 2})]))
    replies = [
        [m for m in asked.body["messages"] if m["role"] == "assistant"] for asked in server.asked
    ]
    assert replies[1][0]["content"][0] == {
        "type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk",
    }  # fmt: skip
    assert [block["type"] for block in replies[2][0]["content"]] == ["text", "tool_use", "tool_use"]


async def test_another_run_does_not_get_remembered_reasoning() -> None:
    """Its agent could name the ids of calls that it has seen."""
    way = WAYS["chat"]
    with provider_server(adds) as server:
        async with gateway_to(server.url, "anthropic") as gateway:
            async with gateway.run() as run:
                await run.ask(way.path(), way.first())
                calls = [(call.id or "", {"a": n + 1}) for n, call in enumerate(run.turns[0].calls)]
            async with gateway.run() as other:
                await other.ask(way.path(), way.second(calls))
    assert THOUGHT not in json.dumps(server.asked[1].body)


WISHES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "messages": (
        "messages", "openai-compatible",
        {"temperature": 0.5, "top_p": 0.9, "stop_sequences": ["X"], "max_tokens": 77,
         "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {"temperature": 0.5, "top_p": 0.9, "stop": ["X"], "max_completion_tokens": 77,
         "tool_choice": "required", "parallel_tool_calls": False},
    ),
    "one tool": (
        "messages", "openai-compatible", {"tool_choice": {"type": "tool", "name": "add"}},
        {"tool_choice": "required"},
    ),
    "no tool": (
        "messages", "openai-compatible", {"tool_choice": {"type": "none"}},
        {"tool_choice": "none"},
    ),
    "chat": (
        "chat", "anthropic",
        {"stop": "X", "max_completion_tokens": 77, "tool_choice": "required"},
        {"stop_sequences": ["X"], "max_tokens": 77,
         "tool_choice": {"type": "any"}},
    ),
    "responses": (
        "responses", "anthropic",
        {"max_output_tokens": 77,
         "tool_choice": {"type": "function", "name": "add"}},
        {"max_tokens": 77,
         "tool_choice": {"type": "any"}},
    ),
    "gemini": (
        "gemini", "openai-compatible",
        {"generationConfig": {"temperature": 0.5, "topP": 0.9, "stopSequences": ["X"],
                              "maxOutputTokens": 77, "seed": 3},
         "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"temperature": 0.5, "top_p": 0.9, "stop": ["X"], "max_completion_tokens": 77, "seed": 3,
         "tool_choice": "required"},
    ),
    "effort": (
        "chat", "google", {"reasoning_effort": "low"},
        {"generationConfig": {"thinkingConfig"}},
    ),
}  # fmt: skip


@each_of("about", WISHES)
async def test_what_a_request_wishes_is_asked_of_the_provider(about: str) -> None:
    """Sampling, stops, caps, and the choice of tools."""
    dialect, kind, more, sent = WISHES[about]
    way = WAYS[dialect]
    with provider_server(adds) as server:
        async with gateway_to(server.url, kind) as gateway, gateway.run() as run:
            got = await run.ask(way.path(), way.first(**more))
            assert got.status_code == 200, got.text
    body = server.asked[-1].body
    for name, value in sent.items():
        if isinstance(value, set):
            assert value <= {*body[name]}
        elif name == "tool_choice" and isinstance(value, dict):
            assert value.items() <= body[name].items()
        else:
            assert body[name] == value


FORMS: dict[str, dict[str, Any]] = {
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    },
    "responses": {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
    "gemini": {
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}},
        }
    },
}


@each_of("dialect", FORMS)
async def test_the_schema_of_a_reply_is_asked_of_the_provider(dialect: str) -> None:
    """Each dialect has its own place for it."""
    way = WAYS[dialect]
    kind = "anthropic" if dialect == "chat" else "openai-compatible"
    with provider_server(chat_only(Says('{"a": 1}'))) as server:
        if kind == "anthropic":
            server.script = lambda _asked: Says('{"a": 1}')
        async with gateway_to(server.url, kind) as gateway, gateway.run() as run:
            got = await run.ask(way.path(), way.first(**FORMS[dialect], tools=[]))
            assert got.status_code == 200, got.text
    assert '"integer"' in json.dumps(server.asked[-1].body)
    assert run.turns[0].text == '{"a": 1}'


async def test_a_text_in_the_place_of_arguments_comes_back_as_a_text() -> None:
    """Codex has such tools; other providers know objects alone."""
    body = {
        "model": "m", "input": "Patch it.",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "Patches.",
                   "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}],
    }  # fmt: skip
    says = Says(calls=(Call("apply_patch", {"input": "*** Begin"}),))
    with provider_server(lambda _asked: says) as server:
        async with gateway_to(server.url, "anthropic") as gateway, gateway.run() as run:
            for stream in (False, True):
                got = await run.ask("/v1/responses", body | {"stream": stream})
                assert '"custom_tool_call"' in got.text
            call_id = run.turns[0].calls[0].id
            items = [
                {"role": "user", "content": "Patch it."},
                {"type": "custom_tool_call", "call_id": call_id, "name": "apply_patch",
                 "input": "*** Begin"},
                {"type": "custom_tool_call_output", "call_id": call_id, "output": "Done."},
            ]  # fmt: skip
            await run.ask("/v1/responses", body | {"input": items})
    assert [turn.calls[0].arguments for turn in run.turns[:2]] == ["*** Begin"] * 2
    used = server.asked[-1].body["messages"][1]["content"][-1]
    assert used["input"] == {"input": "*** Begin"}
    assert server.asked[-1].heard.results == ["Done."]


async def test_calls_without_ids_meet_their_results_in_order() -> None:
    """Gemini's calls need none."""
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 1}}},
                                    {"functionCall": {"name": "add", "args": {"a": 2}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "add", "response": {"output": "One."}}},
            {"functionResponse": {"name": "add", "response": {"output": "Two."}}}]},
    ]  # fmt: skip
    way = WAYS["gemini"]
    with provider_server(lambda _asked: Says("4")) as server:
        async with gateway_to(server.url, "anthropic") as gateway, gateway.run() as run:
            await run.ask(way.path(), way.first(contents=contents))
    messages = server.asked[0].body["messages"]
    used = [block["id"] for block in messages[1]["content"]]
    results = [block["tool_use_id"] for block in messages[2]["content"]]
    assert used == results
    assert len({*used}) == 2


def _delta(**delta: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}  # fmt: skip


def _piece(index: int, text: str, **head: Any) -> dict[str, Any]:
    function = {"arguments": text} | ({"name": "add"} if head else {})
    return _delta(tool_calls=[{"index": index, "function": function, **head}])


LAST = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}  # fmt: skip
MIXED = [
    _delta(role="assistant", content="Two "),
    _delta(content="sums."),
    _piece(0, "", id="call_a", type="function"),
    _piece(1, "", id="call_b", type="function"),
    _piece(0, '{"a":'),
    _piece(1, '{"a": 2'),
    _piece(0, " 1}"),
    _piece(1, "}"),
    _piece(2, "", id="call_c", type="function"),
    LAST,
]


@each_of("dialect", OTHERS["openai-compatible"])
async def test_calls_whose_arguments_come_mixed_are_written_in_order(dialect: str) -> None:
    """A block of Messages that was closed cannot go on; empty arguments are an object."""
    way = WAYS[dialect]
    path, body = way.path(stream=True), way.first(stream=True)

    async def reply(got: Got, writer: Writer) -> None:
        if "chat" not in got.target:
            await writer.whole({"detail": "Not Found"}, 404)
        else:
            await writer.stream([*sse(*MIXED), b"data: [DONE]\n\n"])

    async with (
        provider(reply) as there,
        gateway_to(there.url, "openai-compatible") as gateway,
        gateway.run() as run,
    ):
        got = await run.ask(path, body)
    turn = read_reply(dialect, body, path, got.content, got.headers["content-type"])
    assert turn.text == "Two sums."
    assert [(call.id, call.arguments) for call in turn.calls] == [
        ("call_a", {"a": 1}),
        ("call_b", {"a": 2}),
        ("call_c", {}),
    ]
    assert (turn.usage.input, turn.usage.output) == (7, 3)
    assert run.turns[0].calls == turn.calls


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@each_of("dialect", OTHERS["openai-compatible"])
async def test_a_refusal_has_the_form_of_the_agents_dialect(dialect: str, *, stream: bool) -> None:
    """Its sentence is the provider's, and the turn has it."""
    way = WAYS[dialect]
    with provider_server(chat_only(Refuses(400, "This is too odd."))) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway, gateway.run() as run:
            got = await run.ask(way.path(stream=stream), way.first(stream=stream))
    assert got.status_code == 400
    error = got.json()["error"]
    assert "This is too odd." in error["message"]
    assert ("type" in got.json()) == (dialect == "messages")
    assert ("status" in error) == (dialect == "gemini")
    assert "This is too odd." in (run.turns[0].error or "")
    assert run.opened.refused is None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_what_passes_is_tried_again(*, stream: bool) -> None:
    """As the table of failures says, with the provider's hint."""
    refusals = [Refuses(503, "busy", {"retry-after": "0"}), Refuses(429, "r", {"retry-after": "0"})]
    left = iter([*refusals, Says("4")])
    way = WAYS["chat"]
    with provider_server(lambda _asked: next(left)) as server:
        async with gateway_to(server.url, "anthropic") as gateway, gateway.run() as run:
            got = await run.ask(way.path(), way.first(stream=stream))
    assert got.status_code == 200
    assert [each["status"] for each in run.turns[0].tries] == [503, 429]
    assert len(server.asked) == 3


FATAL: dict[str, tuple[Refuses, type[Exception] | None]] = {
    "a key": (Refuses(401, "invalid x-api-key"), JobHalted),
    "an overload": (Refuses(529, "Overloaded", {"retry-after": "0"}), OperatorFailed),
    "a full context": (Refuses(400, "prompt is too long: 212345 tokens > 200000 maximum"), None),
}


@each_of("about", FATAL)
async def test_what_a_provider_refuses_for_good_ends_what_it_should(about: str) -> None:
    """The job, the run, or only the request."""
    refusal, ends = FATAL[about]
    way = WAYS["responses"]
    with provider_server(lambda _asked: refusal) as server:
        async with gateway_to(server.url, "anthropic") as gateway, gateway.run() as run:
            got = await run.ask(way.path(), way.first(stream=True))
    assert got.status_code >= 400
    assert refusal.message in got.json()["error"]["message"]
    assert run.opened.refused is None if ends is None else isinstance(run.opened.refused, ends)


@each_of("dialect", OTHERS["openai-compatible"])
async def test_a_stream_that_breaks_off_is_recorded_as_far_as_it_came(dialect: str) -> None:
    """The agent sees that it broke off, and the turn says so."""

    async def reply(got: Got, writer: Writer) -> None:
        if "chat" not in got.target:
            await writer.whole({"detail": "Not Found"}, 404)
            return
        await writer.begin()
        for chunk in sse(*MIXED[:2]):
            await writer.chunk(chunk)
        writer.cut()

    way = WAYS[dialect]
    async with (
        provider(reply) as there,
        gateway_to(there.url, "openai-compatible") as gateway,
        gateway.run() as run,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask(way.path(stream=True), way.first(stream=True))
    (turn,) = run.turns
    assert turn.is_broken
    assert "broke off" in (turn.error or "")
    assert (turn.text or "").startswith("Two ")


async def test_an_error_within_a_stream_reaches_the_agent_in_its_form() -> None:
    """The provider has begun to answer, so its status was good."""
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
         "model": "c", "content": [], "stop_reason": None, "stop_sequence": None,
         "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ]  # fmt: skip

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.stream(sse(*events))

    way = WAYS["chat"]
    async with (
        provider(reply) as there,
        gateway_to(there.url, "anthropic") as gateway,
        gateway.run() as run,
    ):
        got = await run.ask(way.path(), way.first(stream=True))
    assert "Overloaded" in got.text
    assert run.turns[0].text == "Yes"
    assert "Overloaded" in (run.turns[0].error or "")


async def test_an_engine_is_asked_in_the_dialect_that_it_speaks() -> None:
    """Nothing is translated then, and every byte passes."""
    way = WAYS["messages"]
    with provider_server(lambda _asked: Says("4")) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway, gateway.run() as run:
            for _ in range(2):
                await run.ask(way.path(), way.first(odd=[1]))
    assert [asked.provider for asked in server.asked] == ["anthropic"] * 2
    assert [asked.body["odd"] for asked in server.asked] == [[1], [1]]


async def test_an_engine_is_tried_once_in_a_dialect_that_it_does_not_speak() -> None:
    """All runs of the job know it then."""
    way = WAYS["messages"]
    with provider_server(adds) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway:
            for _ in range(2):
                async with gateway.run() as run:
                    assert (await run.ask(way.path(), way.first())).status_code == 200
                    assert len(run.turns) == 1
    assert [asked.provider for asked in server.asked] == ["anthropic", *["openai-chat"] * 2]


async def test_a_model_that_is_not_there_is_no_unknown_path() -> None:
    """Its 404 is the answer, in whichever dialect."""
    way = WAYS["messages"]
    with provider_server(
        lambda _asked: Refuses(404, "The model `some-model` does not exist.")
    ) as s:
        async with gateway_to(s.url, "openai-compatible") as gateway, gateway.run() as run:
            got = await run.ask(way.path(), way.first())
    assert got.status_code == 404
    assert isinstance(run.opened.refused, JobHalted)


async def test_the_tokens_of_a_translated_request_are_estimated() -> None:
    """A header says that nobody counted them."""
    way = WAYS["messages"]
    with provider_server(adds) as server:
        async with gateway_to(server.url, "openai") as gateway, gateway.run() as run:
            got = await run.ask("/v1/messages/count_tokens", way.first())
            google = await run.ask("/v1beta/models/g:countTokens", WAYS["gemini"].first())
    assert got.json()["input_tokens"] > 10
    assert google.json()["totalTokens"] > 10
    assert "hud-mcp-estimate" in got.headers
    assert server.asked == []


async def test_a_cap_that_an_engine_has_no_room_for_is_lowered_for_all_requests() -> None:
    """Programs ask for as much as their own models can write."""

    def script(asked: Asked) -> Any:
        if asked.provider != "openai-chat":
            return CHAT_ONLY
        too_large = asked.body["max_completion_tokens"] > 8_000
        told = "'max_completion_tokens' is too large: the maximum context length is 8192 tokens."
        return Refuses(400, told) if too_large else Says("4")

    way = WAYS["messages"]
    with provider_server(script) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway, gateway.run() as run:
            for _ in range(2):
                got = await run.ask(way.path(), way.first(max_tokens=32_000))
                assert got.status_code == 200, got.text
    caps = [each.body.get("max_completion_tokens") for each in server.asked[1:]]
    assert caps == [32_000, 8_000, 8_000]


async def test_a_budget_binds_translated_requests() -> None:
    """The cap that the money pays is asked for, and the next request is refused."""
    way = WAYS["chat"]
    with provider_server(lambda _asked: Says("4", tokens=(1_000, 1_000))) as server:
        async with (
            gateway_to(server.url, "anthropic", price=(1, 10), max_cost_usd=0.02) as gateway,
            gateway.run() as run,
        ):
            body = way.first(max_completion_tokens=30_000)
            first = await run.ask(way.path(), body)
            second = await run.ask(way.path(), body)
    assert first.status_code == 200
    assert 1_024 <= server.asked[0].body["max_tokens"] < 2_000
    assert run.turns[0].cost_usd == pytest.approx(0.011)
    assert second.status_code == 400
    assert isinstance(run.opened.refused, BoundReached | JobHalted)


async def test_a_request_that_a_library_cannot_read_is_the_agents_doing() -> None:
    """A schema without its definitions cannot be translated: the run is not the machine's loss."""
    way = WAYS["gemini"]
    odd = {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}
    deep: Any = {"type": "object"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}
    with provider_server(lambda _asked: Says("4")) as server:
        async with gateway_to(server.url, "openai") as gateway, gateway.run() as run:
            for schema in (odd, deep, {"type": 7}, {"properties": 7}):
                declared = [{"name": "add", "parametersJsonSchema": schema}]
                tools = [{"functionDeclarations": declared}]
                got = await run.ask(way.path(), way.first(tools=tools))
                assert got.status_code in (200, 400)
    assert not isinstance(run.opened.refused, MachineFailed | OperatorFailed)


async def test_the_key_in_a_reply_is_masked() -> None:
    """An engine that tells it, in whole, in a stream and in a refusal."""
    way = WAYS["gemini"]
    with provider_server(chat_only(Says(f"It is {SECRET}."))) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway, gateway.run() as run:
            texts = [
                (await run.ask(way.path(stream=stream), way.first())).text
                for stream in (False, True)
            ]
            server.script = chat_only(Refuses(400, f"Not with {SECRET}!"))
            texts.append((await run.ask(way.path(), way.first())).text)
    assert all(SECRET not in text and "[the key]" in text for text in texts)
    assert SECRET not in repr(run.turns)


async def test_a_redirect_is_not_followed() -> None:
    """Another host would get the key."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole({}, 307, {"location": f"{other.url}/v1/messages"})

    async def never(_got: Got, writer: Writer) -> None:
        await writer.whole({})

    way = WAYS["chat"]
    async with (
        provider(never) as other,
        provider(reply) as there,
        gateway_to(there.url, "anthropic") as gateway,
        gateway.run() as run,
    ):
        got = await run.ask(way.path(), way.first())
    assert got.status_code == 502
    assert other.got == []
    assert isinstance(run.opened.refused, JobHalted)


async def said_of(run: RunHere, dialect: str, more: dict[str, Any]) -> str:
    """The sentence of a refusal with status 400."""
    got = await run.ask(WAYS[dialect].path(), WAYS[dialect].first(**more))
    assert got.status_code == 400, got.text
    return got.json()["error"]["message"]


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a search of Anthropic's": (
        "messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        "web_search"),
    "servers of MCP": ("messages", {"mcp_servers": [{"url": "http://x"}]}, "mcp_servers"),
    "a file of the provider": (
        "messages", {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}]}, "named"),
    "a document": (
        "messages", {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
                                            "data": PICTURE}}]}]}, "application/pdf"),
    "a reply before": ("responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
    "a search of OpenAI's": ("responses", {"tools": [{"type": "web_search"}]}, "web_search"),
    "an item that is only named": (
        "responses", {"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
    "Google's search": ("gemini", {"tools": [{"googleSearch": {}}]}, "googleSearch"),
    "several replies": ("gemini", {"generationConfig": {"candidateCount": 2}}, "several"),
    "sound": ("gemini", {"contents": [{"role": "user", "parts": [
        {"inlineData": {"mimeType": "audio/wav", "data": PICTURE}}]}]}, "audio/wav"),
    "a tool that is not there": (
        "messages", {"tool_choice": {"type": "tool", "name": "gone"}}, "tool_choice"),
}  # fmt: skip


@each_of("about", REFUSED)
async def test_what_cannot_be_translated_is_refused_before_it_is_sent(about: str) -> None:
    """With a sentence that names it, in the form of the dialect."""
    dialect, more, named = REFUSED[about]
    with provider_server(chat_only(Says("4"))) as server:
        async with gateway_to(server.url, "openai-compatible") as gateway, gateway.run() as run:
            assert named in await said_of(run, dialect, more)
    assert [asked for asked in server.asked if asked.provider == "openai-chat"] == []
    assert run.turns == []
    assert run.opened.refused is None

"""Replies that pass through a gateway, over real sockets."""

import gzip
import json
from typing import Any

import anyio
import httpx2
import pytest
from gateway_world import (
    MESSAGE,
    STREAMED,
    Got,
    RunHere,
    Writer,
    gateway_to,
    provider,
    said,
    spoken,
)
from provider_formats import Call, Says
from provider_server import provider_server
from waiting import until

from hud_mcp.agents.agent import JobHalted
from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.models.gateway.http1 import Bounds
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio

CHAT = {"model": "some-model", "messages": [{"role": "user", "content": "Hi"}]}
ASKS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "messages": ("anthropic", "/v1/messages", MESSAGE, "/v1/messages"),
    "chat": (
        "openai-compatible",
        "/v1/chat/completions",
        CHAT | {"stream_options": {"include_usage": True}},
        "/v1/chat/completions",
    ),
    "responses": ("openai", "/v1/responses", {"model": "gpt-5", "input": "Hi"}, "/v1/responses"),
    "gemini": (
        "google",
        "/v1beta/models/gemini-2.5-pro:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    ),
}
"""A request in each dialect: its provider, its path, its body, and the path of a stream."""


@pytest.mark.parametrize("dialect", ASKS)
async def test_a_reply_in_each_dialect_passes_and_is_recorded(dialect: str) -> None:
    """Streamed and not: text, calls, tokens and price."""
    kind, path, body, stream_path = ASKS[dialect]
    says = Says("I look.", (Call("step", {"actions": []}),), tokens=(1_000, 100))
    with provider_server(lambda _asked: says) as server:
        async with gateway_to(server.url, kind, price=(1, 10)) as gateway, gateway.run() as run:
            whole = await run.ask(path, body)
            stream = await run.ask(stream_path, body | {"stream": True})
    assert (whole.status_code, stream.status_code) == (200, 200)
    assert stream.headers["content-type"] == "text/event-stream"
    assert len(run.turns) == 2
    for turn in run.turns:
        assert (turn.text, turn.error) == ("I look.", None)
        assert [(call.name, call.arguments) for call in turn.calls] == [("step", {"actions": []})]
        assert (turn.usage.input, turn.usage.output) == (1_000, 100)
        assert turn.cost_usd == pytest.approx(0.002)


async def test_the_tokens_of_an_engine_are_kept_without_those_of_the_turn_before() -> None:
    """The second prompt begins with the first one and its reply; another one begins anew."""

    async def reply(got: Got, writer: Writer) -> None:
        prompt = [*range(5), 9, 11] if len(got.json["messages"]) > 1 else [0, 1, 2]
        message = {"role": "assistant", "content": "4"}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "token_ids": [3, 4]}
        body = {"id": "r", "model": "m", "choices": [choice], "prompt_token_ids": prompt}
        await writer.whole(body | {"usage": {"prompt_tokens": 3, "completion_tokens": 2}})

    said = [{"role": "user", "content": "2 + 2?"}]
    more = [*said, {"role": "assistant", "content": "4"}, {"role": "user", "content": "+ 1?"}]
    async with (
        provider(reply) as there,
        gateway_to(there.url, "openai-compatible") as gateway,
        gateway.run() as run,
    ):
        for messages in (said, more):
            body = {"model": "some-model", "return_token_ids": True, "messages": messages}
            await run.ask("/v1/chat/completions", body)
    first, second = (turn.tokens for turn in run.turns)
    assert first is not None
    assert second is not None
    assert (first.shared, first.prompt_ids, first.ids) == (0, (0, 1, 2), (3, 4))
    assert (second.shared, second.prompt_ids) == (5, (9, 11))


@pytest.mark.long
async def test_64_streams_at_once_pass_byte_for_byte() -> None:
    """Each its own, in the chunks of any boundaries, of four runs."""

    def bytes_of(number: int) -> bytes:
        return b"".join(spoken(f"The answer of {number}, with \N{SNOWMAN}."))

    async def reply(got: Got, writer: Writer) -> None:
        number = int(got.json["messages"][0]["content"])
        data, size = bytes_of(number), 1 + number % 50
        await writer.stream([data[at : at + size] for at in range(0, len(data), size)])

    came: dict[int, bytes] = {}

    async def ask(run: RunHere, number: int) -> None:
        content = [{"role": "user", "content": str(number)}]
        reply = await run.ask("/v1/messages", STREAMED | {"messages": content})
        came[number] = reply.content

    async with (
        provider(reply) as there,
        gateway_to(there.url) as gateway,
        gateway.run() as a,
        gateway.run() as b,
        gateway.run() as c,
        gateway.run() as d,
        anyio.create_task_group() as group,
    ):
        for number in range(64):
            group.start_soon(ask, (a, b, c, d)[number % 4], number)
    assert came == {number: bytes_of(number) for number in range(64)}
    assert [len(run.turns) for run in (a, b, c, d)] == [16] * 4


async def test_a_request_passes_byte_for_byte_with_its_query() -> None:
    """Blanks, doubles and the order of names stay; of the headers, some pass."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said())

    body = b'{ "messages":[{"role":"user","content":"H\\u0069"}],\n"model" : "claude-opus-5"  }'
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        headers = {
            "x-api-key": run.key, "anthropic-beta": "a,b", "cookie": "c=d", "x-own": "e",
            "accept-encoding": "gzip",
        }  # fmt: skip
        await run.ask("/v1/messages?beta=true", body, headers)
    (got,) = there.got
    assert (got.target, got.body) == ("/v1/messages?beta=true", body)
    assert got.headers["anthropic-beta"] == "a,b"
    assert got.headers["accept-encoding"] == "identity"
    assert not {"cookie", "x-own"} & set(got.headers)


async def test_a_chunk_goes_on_when_it_comes_and_the_last_event_when_its_turn_is_recorded() -> None:
    """The provider waits for the agent to have read; the agent for the record."""
    read, recorded, order = anyio.Event(), anyio.Event(), list[str]()
    *first, last = spoken("ab")

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        await writer.chunk(first[0])
        await read.wait()  # it came there alone
        for event in (*first[1:], last):
            await writer.chunk(event)
        await recorded.wait()  # though the stream has not ended
        await writer.end()

    async def record(turn: ModelTurn) -> None:
        assert turn.text == "ab"
        order.append("recorded")
        recorded.set()

    async with (
        provider(reply) as there,
        gateway_to(there.url) as gateway,
        gateway.run(record) as run,
        run.asking("/v1/messages", STREAMED) as stream,
    ):
        came = b""
        async for chunk in stream.aiter_raw():
            came += chunk
            if came == first[0]:
                read.set()
            if last in came:
                order.append("read")
    assert came == b"".join([*first, last])
    assert order[0] == "recorded"


async def test_a_reply_whose_turn_cannot_be_recorded_does_not_end() -> None:
    """The job halts: a record with holes is worse."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.stream(spoken())

    async def record(_turn: ModelTurn) -> None:
        raise StoreFailed("the disk is full")

    async with (
        provider(reply) as there,
        gateway_to(there.url) as gateway,
        gateway.run(record) as run,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask("/v1/messages", STREAMED)
        assert isinstance(run.opened.refused, JobHalted)
        assert "the disk is full" in str(run.opened.refused)


@pytest.mark.parametrize("events", [0, 4])
async def test_a_stream_that_breaks_off_is_tried_again_until_some_of_it_has_gone(
    events: int,
) -> None:
    """Then the agent sees that it breaks, and the record has what came."""

    async def reply(got: Got, writer: Writer) -> None:
        if len(there.got) > 1:
            await writer.stream(spoken())
            return
        await writer.begin()
        for event in spoken()[:events]:
            await writer.chunk(event)
        writer.cut()

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        if events:
            with pytest.raises(httpx2.RemoteProtocolError):
                await run.ask("/v1/messages", STREAMED)
        else:
            assert (await run.ask("/v1/messages", STREAMED)).content == b"".join(spoken())
    assert len(there.got) == (1 if events else 2)
    (turn,) = run.turns
    assert turn.text == "4"
    assert ("broke off" in (turn.error or "")) is bool(events)
    assert run.opened.refused is None


async def test_a_whole_reply_that_breaks_off_is_tried_again() -> None:
    """Nothing of it has gone."""

    async def reply(_got: Got, writer: Writer) -> None:
        if len(there.got) == 1:
            await writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"id": ')
            writer.cut()
        else:
            await writer.whole(said())

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        assert (await run.ask("/v1/messages", MESSAGE)).json() == said()
        assert run.agent.pauses.seconds > 0
    assert len(there.got) == 2


async def test_an_answer_without_end_is_cut() -> None:
    """By its bytes; the run has its turn."""
    bounds = Bounds(reply_bytes=100_000)

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        for event in spoken("x" * 10_000):
            await writer.chunk(event)

    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask("/v1/messages", STREAMED)
    (turn,) = run.turns
    assert "100,000 bytes" in (turn.error or "")


async def test_an_answer_that_takes_too_long_is_cut() -> None:
    """By its seconds."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        await writer.chunk(spoken()[0])
        await anyio.sleep_forever()

    bounds = Bounds(reply_s=0.5)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=bounds) as gateway,
        gateway.run() as run,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask("/v1/messages", STREAMED)
    assert "more than 0.5 s" in (run.turns[0].error or "")


async def test_an_agent_that_hangs_up_ends_the_request_and_its_turn_is_recorded() -> None:
    """With what had come."""
    cut, recorded = anyio.Event(), anyio.Event()

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        for event in spoken("abc")[:4]:
            await writer.chunk(event)
        try:
            while True:
                await writer.chunk(b": wait\n\n")
                await anyio.sleep(0.01)
        finally:
            cut.set()

    async def record(turn: ModelTurn) -> None:
        assert "hung up" in (turn.error or "")
        assert turn.text == "ab"
        recorded.set()

    async with (
        provider(reply) as there,
        gateway_to(there.url) as gateway,
        gateway.run(record) as run,
    ):
        async with run.asking("/v1/messages", STREAMED) as stream:
            async for _ in stream.aiter_raw():
                break
        await recorded.wait()
        await cut.wait()


async def test_a_turn_is_recorded_though_the_agent_hangs_up_meanwhile() -> None:
    """It has had all but the last event by then, and could leave no trace of it else."""
    recording, gone, recorded = anyio.Event(), anyio.Event(), anyio.Event()

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.stream(spoken())

    async def record(turn: ModelTurn) -> None:
        recording.set()
        await gone.wait()
        assert (turn.text, turn.error) == ("4", None)
        recorded.set()

    async with (
        provider(reply) as there,
        gateway_to(there.url) as gateway,
        gateway.run(record) as run,
    ):
        async with run.asking("/v1/messages", STREAMED):
            await recording.wait()
        gone.set()
        await recorded.wait()
        await until(lambda: run.turns)


async def test_a_stream_that_ends_without_its_last_event_is_recorded_as_broken() -> None:
    """The agent gets what came, as from the provider."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.stream(spoken()[:-2])

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", STREAMED)
    assert came.content == b"".join(spoken()[:-2])
    assert "before its last event" in (run.turns[0].error or "")


async def test_a_connection_that_breaks_after_the_last_event_is_nobodys_loss() -> None:
    """The reply is whole, and ends as such."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        for event in spoken():
            await writer.chunk(event)
        writer.cut()

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", STREAMED)
    assert came.content == b"".join(spoken())
    assert run.turns[0].error is None


async def test_a_run_that_ends_takes_its_streams_along() -> None:
    """And its key opens nothing more."""
    begun = anyio.Event()

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        await writer.chunk(spoken()[0])
        begun.set()
        await anyio.sleep_forever()

    async def ask(run: RunHere) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask("/v1/messages", STREAMED)

    async with provider(reply) as there, gateway_to(there.url) as gateway:
        async with anyio.create_task_group() as group, gateway.run() as run:
            group.start_soon(ask, run)
            await begun.wait()
        over = await run.ask("/v1/messages", MESSAGE)
    assert over.status_code == 401
    assert "is over" in over.json()["error"]["message"]


async def test_what_a_provider_cannot_do_now_is_tried_again_by_its_own_hint() -> None:
    """The agent sees the reply alone; the wait is a pause of its run."""

    async def reply(_got: Got, writer: Writer) -> None:
        if len(there.got) <= 2:
            refusal = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
            await writer.whole(refusal, 429, {"retry-after": "0"})
        else:
            await writer.stream(spoken())

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", STREAMED)
        assert run.agent.pauses.seconds > 0
    assert (came.status_code, came.content) == (200, b"".join(spoken()))
    assert len(there.got) == 3
    assert len({got.body for got in there.got}) == 1


async def test_a_models_list_and_a_count_of_tokens_are_no_turns() -> None:
    """Nor is a sign of life, which needs no key."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole({"input_tokens": 12})

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        counted = await run.ask("/v1/messages/count_tokens", MESSAGE)
        headers = {"x-api-key": run.key, "anthropic-version": "2023-06-01"}
        listed = await run.ask("/v1/models", b"", headers, "GET")
        alive = await run.ask("/", b"", {}, "HEAD")
    assert counted.json() == {"input_tokens": 12}
    assert [each["id"] for each in listed.json()["data"]] == ["claude-opus-5"]
    assert alive.status_code == 200
    assert run.turns == []
    assert json.loads(there.got[0].body) == MESSAGE


async def test_a_reply_that_is_packed_all_the_same_is_unpacked() -> None:
    """Nobody asks for that; a form that cannot be read is no reply."""

    async def reply(_got: Got, writer: Writer) -> None:
        packed = gzip.compress(json.dumps(said()).encode())
        await writer.whole(packed, headers={"content-encoding": "gzip"})

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", MESSAGE)
    assert came.json() == said()
    assert "content-encoding" not in came.headers
    assert run.turns[0].text == "4"


async def test_a_connection_to_the_provider_serves_one_request_after_the_other() -> None:
    """One that the provider has closed meanwhile is not used again."""
    begun: list[int] = []

    async def reply(_got: Got, writer: Writer) -> None:
        begun.append(writer.connection)
        is_last = len(begun) == 2
        await writer.whole(said(), headers={"connection": "close"} if is_last else {})
        if is_last:
            writer.cut()

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = [await run.ask("/v1/messages", MESSAGE) for _ in range(3)]
    assert [each.status_code for each in came] == [200] * 3
    first, second, third = begun
    assert first == second != third

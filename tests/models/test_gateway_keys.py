"""Keys: a run's opens its own turns, and the provider's stays with us."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from gateway_world import (
    MESSAGE,
    SECRET,
    STREAMED,
    Got,
    Opened,
    Writer,
    gateway_to,
    provider,
    said,
    spoken,
)
from tables import each_of

from hud_mcp.agents.agent import JobHalted
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.choice import choose
from hud_mcp.plugins.models.gateway.credential import without_key
from hud_mcp.plugins.models.gateway.gateway import gateway_of
from hud_mcp.plugins.models.gateway.http1 import Bounds
from hud_mcp.plugins.models.gateway.keys import KEYS
from hud_mcp.plugins.models.options import ModelOptions

pytestmark = pytest.mark.anyio


async def reply(_got: Got, writer: Writer) -> None:
    """The provider's reply to everything."""
    await writer.whole(said())


PLACES: dict[str, tuple[str, Mapping[str, str]]] = {
    "x-api-key": ("", {"x-api-key": "KEY"}),
    "a bearer": ("", {"authorization": "Bearer KEY"}),
    "x-goog-api-key": ("", {"x-goog-api-key": "KEY"}),
    "the query": ("?key=KEY", {}),
    "the query, among others": ("?beta=true&key=KEY&a=b", {}),
    "beside a key of the program's own": ("", {"authorization": "Bearer x", "x-api-key": "KEY"}),
}


@each_of("place", PLACES)
async def test_a_key_in_each_providers_place_opens_a_run_and_goes_no_further(place: str) -> None:
    """The provider gets its own alone, in its own place."""
    query, headers = PLACES[place]
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        given = {name: value.replace("KEY", run.key) for name, value in headers.items()}
        came = await run.ask(f"/v1/messages{query.replace('KEY', run.key)}", MESSAGE, given)
    assert came.status_code == 200
    (got,) = there.got
    assert got.headers["x-api-key"] == SECRET
    assert run.key not in f"{got.target}{got.headers}"


@pytest.mark.parametrize("given", ["", "hmk-" + "0" * 64, SECRET, "hmk-"])
async def test_no_other_key_opens_anything(given: str) -> None:
    """Not the provider's, either; the refusal has the dialect's form."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        headers = {"x-api-key": given} if given else {}
        for path in ("/v1/messages", "/v1/models", "/v1/messages/count_tokens", "/elsewhere"):
            came = await run.ask(path, MESSAGE, headers | {"anthropic-version": "1"})
            assert came.status_code == 401
            assert came.json()["type"] == "error"
    assert there.got == []


async def test_a_run_with_another_ones_key_takes_its_turns_and_no_other() -> None:
    """The key alone says whose turn it is, so each run needs its own."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as one:
        async with gateway.run() as other:
            assert one.key != other.key
            await one.ask("/v1/messages", MESSAGE)
        refused = await one.ask("/v1/messages", MESSAGE, {"x-api-key": other.key})
        assert (len(one.turns), len(other.turns)) == (1, 0)
    assert refused.status_code == 401


def test_a_query_loses_its_keys_and_nothing_else() -> None:
    """As it was written."""
    assert without_key("alt=sse&%6Bey=x&a=%20&b") == "alt=sse&a=%20&b"
    assert without_key("x=hmk-1&alt=sse") == "alt=sse"


@pytest.mark.parametrize("cut_at", [0, 1, 5, len(SECRET) - 1])
async def test_a_provider_that_repeats_its_key_does_not_tell_the_agent(cut_at: int) -> None:
    """In no place of a chunk, and across two; in headers and refusals, too."""

    async def tell(got: Got, writer: Writer) -> None:
        if len(there.got) == 1:
            refusal = {"error": {"message": f"not {SECRET}", "type": "invalid_request_error"}}
            await writer.whole(refusal, 400, {"request-id": SECRET})
            return
        data = b"".join(spoken(SECRET[:4])).replace(b'"text_delta"', f'"{SECRET}"'.encode())
        at = data.index(SECRET.encode()) + cut_at
        await writer.stream([data[:at], data[at:]])

    async with provider(tell) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        refused = await run.ask("/v1/messages", MESSAGE)
        came = await run.ask("/v1/messages", STREAMED)
        turns = list(run.turns)
    assert (refused.status_code, came.status_code) == (400, 200)
    assert b"[the key]" in refused.content
    assert b"[the key]" in came.content
    assert came.content.endswith(spoken()[-1])
    for shown in (refused.content.decode(), str(refused.headers), came.text, str(turns)):
        assert SECRET not in shown


async def test_no_log_line_has_a_key(caplog: pytest.LogCaptureFixture) -> None:
    """However much is logged, and whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    async with (
        provider(reply) as there,
        gateway_to(there.url, bounds=Bounds(head_s=0.2)) as gateway,
        gateway.run() as run,
    ):
        await run.ask(f"/v1/messages?key={run.key}", MESSAGE, {})
        await run.ask("/v1/messages", b"{", {"x-api-key": run.key})
        await run.raw(f"POST /?key={run.key} HTTP/1.1\r\nx-api-key: {run.key}".encode())
    ours = [each for each in caplog.records if each.name.startswith(("hud_mcp", "httpcore2"))]
    assert "/v1/messages" in str([each.getMessage() for each in ours])
    for line in caplog.records:
        # The client of this test logs what it asks for.
        assert SECRET not in line.getMessage()
        if line.name.startswith("hud_mcp"):
            assert run.key not in line.getMessage()
    assert run.key not in repr(run.opened)
    assert SECRET not in repr(choose(ModelOptions(name="openai:x"), None))


async def test_a_redirect_is_not_followed() -> None:
    """The key goes to no other host; the job halts, as each request would meet it."""
    lured: list[Got] = []

    async def lure(got: Got, writer: Writer) -> None:
        lured.append(got)
        await writer.whole(said())

    async with provider(lure) as elsewhere:

        async def send_away(_got: Got, writer: Writer) -> None:
            await writer.whole({}, 307, {"location": f"{elsewhere.url}/v1/messages?x=secret"})

        async with (
            provider(send_away) as there,
            gateway_to(there.url) as gateway,
            gateway.run() as run,
        ):
            came = await run.ask("/v1/messages", MESSAGE)
            again = await run.ask("/v1/messages", MESSAGE)
            refused = run.opened.refused
    assert lured == []
    assert came.status_code == 502
    assert "No redirect is followed" in came.json()["error"]["message"]
    assert "secret" not in came.text
    assert isinstance(refused, JobHalted)
    assert again.status_code == 400
    assert len(there.got) == 1
    assert ["redirect" in (turn.error or "") for turn in run.turns] == [True]
    assert any("1 of 1 requests" in line for line in run.agent.lines)


FORMS: dict[str, tuple[str, str, Any]] = {
    "messages": ("anthropic", "/v1/messages", MESSAGE),
    "chat": ("openai-compatible", "/v1/chat/completions", {"model": "m", "messages": []}),
    "responses": ("openai", "/v1/responses", {"model": "gpt-5", "input": "Hi"}),
    "gemini": ("google", "/v1beta/models/m:generateContent", {"contents": []}),
}


def message_of(dialect: str, body: Any) -> str:
    """The sentence of an error in the form of a dialect, all of whose names are there."""
    match dialect:
        case "messages":
            assert body["type"] == "error"
            assert body["error"]["type"]
        case "gemini":
            assert body["error"]["status"]
            assert body["error"]["code"]
        case _:
            assert {"type", "param", "code"} <= set(body["error"])
    return body["error"]["message"]


@each_of("dialect", FORMS)
async def test_each_refusal_has_the_form_of_its_dialect(dialect: str) -> None:
    """A key, a body, a bound; programs show the sentence."""
    kind, path, body = FORMS[dialect]
    async with (
        provider(reply) as there,
        gateway_to(there.url, kind, bounds=Bounds(body_bytes=999)) as gateway,
        gateway.run() as run,
    ):
        no_key = await run.ask(path, body, {})
        no_json = await run.ask(path, b"{")
        too_large = await run.ask(path, b"x" * 1_000)
    assert [each.status_code for each in (no_key, no_json, too_large)] == [401, 400, 413]
    assert "No key" in message_of(dialect, no_key.json())
    assert message_of(dialect, no_json.json())
    assert "999 bytes" in message_of(dialect, too_large.json())
    assert there.got == []


async def test_a_path_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    """Batches and files among them: they would cost what nobody counts."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        for path in ("/v1/messages/batches", "/v1/files", "/v1/responses/compact", "/v1/embeddings",
                     "/v1beta/models/x:batchGenerateContent"):  # fmt: skip
            came = await run.ask(path, MESSAGE)
            assert came.status_code == 404
            assert "/v1/chat/completions" in came.json()["error"]["message"]
    assert there.got == []


async def test_a_program_at_its_own_provider_is_refused_in_another_dialect() -> None:
    """A model that the job names is asked in each; here the program names its own."""
    async with provider(reply) as there:
        choice = choose(
            None, "claude-code", {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_BASE_URL": there.url}
        )
        async with gateway_of(choice) as gateway, Opened(gateway).run() as run:
            came = await run.ask("/v1/responses", {"model": "gpt-5", "input": "Hi"})
    assert came.status_code == 400
    assert "/v1/messages" in came.json()["error"]["message"]
    assert there.got == []


async def test_each_request_is_for_the_jobs_model_whichever_it_names() -> None:
    """The record has both names."""
    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        await run.ask("/v1/messages", MESSAGE | {"model": "claude-haiku-4-5"})
        (turn,) = run.turns
    assert json.loads(there.got[0].body) == MESSAGE
    assert turn.model == "anthropic:claude-opus-5"


def test_the_providers_of_a_job_are_those_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has its own; a command has each; an address of the environment counts."""
    environ = {"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "b", "ANTHROPIC_BASE_URL": "http://x/v1"}
    for names in KEYS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    claude = choose(None, "claude-code:claude-opus-5")
    assert set(claude.routes) == {"messages"}
    assert claude.routes["messages"].address == "http://x/v1"
    assert claude.models == ("claude-opus-5",)
    assert set(choose(None, None).routes) == {"messages", "gemini"}
    codex = choose(None, "codex")
    assert codex.routes == {}
    assert "OPENAI_API_KEY" in codex.why_not
    with pytest.raises(HudMcpError, match="OPENAI_API_KEY"):
        choose(ModelOptions(name="openai:gpt-5"), "claude-code")


@pytest.mark.parametrize(
    ("model", "is_allowed"),
    [("claude-opus-5", True), ("claude-haiku-4-5", True), ("claude-fable-9", False)],
)
def test_a_program_asks_its_model_and_small_ones_beside_it(model: str, *, is_allowed: bool) -> None:
    """And no other, which may cost more."""
    route = choose(None, "claude-code:claude-opus-5").routes["messages"]
    assert (route.model_for(model) is not None) is is_allowed

"""Requests to a model, over real HTTP to servers that speak each provider's protocol."""

import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest
from PIL import Image
from provider_formats import FORMATS
from provider_server import (
    Asked,
    Call,
    ProviderServer,
    Refuses,
    Says,
    Script,
    overflows,
    provider_server,
)
from waiting import PATIENCE_S

from hud_mcp.agents.agent import BoundReached, JobHalted, OperatorFailed
from hud_mcp.agents.model.options import ModelOptions
from hud_mcp.base.contention import Pauses
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins import models
from hud_mcp.plugins.models.conversation import History
from hud_mcp.plugins.models.gateway.keys import KEYS
from hud_mcp.plugins.models.requests import Reply, Requests

SECRET = "sk-a-secret-of-the-test"
MODELS = {
    "anthropic": "claude-opus-5",
    "openai": "gpt-5",
    "google": "gemini-2.5-pro",
    "openai-compatible": "some-model",
}
SPOKEN = {provider: provider for provider in MODELS} | {"openai-compatible": "openai-chat"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider has a key."""
    for names in KEYS.values():
        monkeypatch.setenv(names[0], SECRET)


@contextmanager
def asked_of(provider: str, script: Script) -> Iterator[tuple[ProviderServer, ModelOptions]]:
    """A provider's server, and the options that name it."""
    with provider_server(script) as server:
        name = f"{provider}:{MODELS[provider]}"
        yield server, ModelOptions(name=name, base_url=server.base_url(provider))


@asynccontextmanager
async def requests_of(options: ModelOptions) -> AsyncIterator[Requests]:
    """Requests whose connections are closed at the end."""
    requests = Requests(options)
    try:
        with anyio.fail_after(PATIENCE_S):
            yield requests
    finally:
        await requests.aclose()


def step_tool() -> Any:
    """A tool with one argument."""
    schema = {"type": "object", "properties": {"actions": {"type": "string"}}}
    return models.ToolDefinition(name="step", parameters_json_schema=schema)


async def ask(requests: Requests, history: History, pauses: Pauses | None = None) -> Reply:
    """Ask for the next reply."""
    return await requests.reply(
        history.messages(), [step_tool()], pauses=pauses or Pauses(), guess=100
    )


def said(text: str = "Do it.") -> History:
    """A conversation that has begun."""
    history = History("You are careful.", keep_images=1)
    history.say(text)
    return history


def picture() -> bytes:
    """A small PNG."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.anyio
@pytest.mark.parametrize("provider", MODELS)
async def test_a_conversation_goes_round_in_each_protocol(provider: str) -> None:
    """Tools, system prompt, calls, results with pictures, tokens and reasoning arrive."""

    def script(asked: Asked) -> Says:
        if asked.heard.turns:
            return Says("all done", tokens=(200, 7), cached=50)
        return Says("I look", (Call("step", {"actions": "[]"}),), reasoning="hm")

    with asked_of(provider, script) as (server, options):
        async with requests_of(options) as requests:
            history = said()
            first = await ask(requests, history)
            history.reply(first.response)
            (call,) = first.response.tool_calls
            shown = models.messages.BinaryContent(picture(), media_type="image/png")
            result = models.messages.ToolReturnPart(
                call.tool_name, ["a page", shown], call.tool_call_id
            )
            history.results([result])
            second = await ask(requests, history)
    assert (first.turn.text, first.turn.reasoning) == ("I look", "hm")
    assert [(c.name, c.arguments) for c in first.turn.calls] == [("step", {"actions": "[]"})]
    assert (first.turn.usage.input, first.turn.usage.output) == (100, 10)
    assert (second.turn.text, second.turn.usage.cached) == ("all done", 50)
    assert first.turn.stop_reason
    before, after = (asked.heard for asked in server.asked)
    assert (before.system, before.prompt) == ("You are careful.", "Do it.")
    assert list(before.tools) == ["step"]
    assert (after.results, after.pictures, after.turns) == (["a page"], 1, 1)
    assert {asked.provider for asked in server.asked} == {SPOKEN[provider]}


@pytest.mark.anyio
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_what_the_provider_cannot_do_now_is_tried_again(status: int) -> None:
    """After as long as it asks for; that time is a pause of the run's."""
    refusals = [Refuses(status, "later", {"retry-after": "0"})] * 2
    pauses = Pauses()
    with asked_of("anthropic", lambda asked: [*refusals, Says("yes")][asked.number]) as (
        server,
        options,
    ):
        async with requests_of(options) as requests:
            reply = await ask(requests, said(), pauses)
    assert reply.turn.text == "yes"
    assert len(server.asked) == 3
    assert pauses.seconds > 0


@pytest.mark.anyio
async def test_a_wait_is_chosen_where_the_provider_names_none() -> None:
    """Half a second at least, after the first failure."""
    pauses = Pauses()
    with asked_of("openai", lambda asked: Says("yes") if asked.number else Refuses(500)) as (
        _,
        options,
    ):
        async with requests_of(options) as requests:
            await ask(requests, said(), pauses)
    assert pauses.seconds >= 0.5


@pytest.mark.anyio
async def test_a_provider_that_asks_for_an_hour_has_refused() -> None:
    """Nobody waits for it; the run is its operator's to try again."""
    script = lambda _asked: Refuses(429, "slow down", {"retry-after": "3600"})  # noqa: E731
    with asked_of("anthropic", script) as (server, options):
        async with requests_of(options) as requests:
            with pytest.raises(OperatorFailed, match="slow down"):
                await ask(requests, said())
    assert len(server.asked) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("status", [401, 403, 404])
async def test_what_every_request_would_meet_halts_the_job(provider: str, status: int) -> None:
    """A wrong key, a forbidden model, one that is not there; the key is not told."""
    with asked_of(provider, lambda _asked: Refuses(status, f"no {SECRET} here")) as (
        server,
        options,
    ):
        async with requests_of(options) as requests:
            with pytest.raises(JobHalted) as raised:
                await ask(requests, said())
    assert f"status {status}" in str(raised.value)
    assert "[the key]" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("provider", MODELS)
async def test_a_refused_request_is_the_operators_and_the_third_halts_the_job(
    provider: str,
) -> None:
    """One may be an accident; three in a row with no reply before would meet every run."""
    with asked_of(provider, lambda _asked: Refuses(400, "bad tools")) as (_, options):
        async with requests_of(options) as requests:
            for _ in range(2):
                with pytest.raises(OperatorFailed, match="bad tools") as raised:
                    await ask(requests, said())
                assert not isinstance(raised.value, JobHalted)
            with pytest.raises(JobHalted, match="first 3 requests"):
                await ask(requests, said())


@pytest.mark.anyio
@pytest.mark.parametrize("provider", MODELS)
async def test_a_full_context_is_the_agents_result(provider: str) -> None:
    """Its own words brought it there, so the run ends as a bound's."""
    with asked_of(provider, overflows) as (server, options):
        async with requests_of(options) as requests:
            with pytest.raises(BoundReached, match="its context was full"):
                await ask(requests, said())
    assert len(server.asked) == 1


@pytest.mark.anyio
async def test_no_credit_halts_the_job() -> None:
    """As Anthropic says it, with a 400."""
    refusal = Refuses(400, "Your credit balance is too low to access the Anthropic API.")
    with asked_of("anthropic", lambda _asked: refusal) as (_, options):
        async with requests_of(options) as requests:
            with pytest.raises(JobHalted, match="credit balance"):
                await ask(requests, said())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("provider", "stop"),
    [
        ("anthropic", "max_tokens"),
        ("openai", "max_output_tokens"),
        ("google", "MAX_TOKENS"),
        ("openai-compatible", "length"),
    ],
)
async def test_a_reply_that_is_cut_off_says_so(provider: str, stop: str) -> None:
    """In each provider's word; its limit was asked for."""
    with asked_of(provider, lambda _asked: Says("half a", stop=stop)) as (server, options):
        limited = options.model_copy(update={"max_tokens": 17})
        async with requests_of(limited) as requests:
            reply = await ask(requests, said())
    assert reply.is_cut
    assert reply.turn.stop_reason == stop
    assert "17" in str(server.asked[0].body)


@pytest.mark.anyio
async def test_only_the_newest_pictures_stay_in_view() -> None:
    """The others leave a line in their place."""
    with asked_of("anthropic", lambda _asked: Says("x", (Call("step"),))) as (server, options):
        async with requests_of(options) as requests:
            history = said()
            for _ in range(3):
                reply = await ask(requests, history)
                history.reply(reply.response)
                (call,) = reply.response.tool_calls
                shown = models.messages.BinaryContent(picture(), media_type="image/png")
                part = models.messages.ToolReturnPart("step", ["p", shown], call.tool_call_id)
                history.results([part])
            await ask(requests, history)
    assert [asked.heard.pictures for asked in server.asked] == [0, 1, 1, 1]
    assert server.asked[-1].heard.results[0] == "p\n(An earlier picture, which is left out.)"


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_a_missing_key_names_its_variable(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    for name in KEYS[provider]:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(HudMcpError, match=KEYS[provider][0]):
        Requests(ModelOptions(name=f"{provider}:{MODELS[provider]}"))


@pytest.mark.anyio
async def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked without one, and OpenAI's is not sent to it."""
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    with asked_of("openai-compatible", lambda _asked: Says("ok")) as (server, options):
        async with requests_of(options) as requests:
            await ask(requests, said())
    assert SECRET not in str(server.asked[0].headers)


def test_every_format_is_spoken_by_one_provider() -> None:
    """The servers of these tests have no other."""
    assert set(FORMATS) == set(SPOKEN.values())

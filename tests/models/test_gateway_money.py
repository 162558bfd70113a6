"""Budgets, rates and failures of the models of black boxes: they bind before anything is spent."""

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
from tables import each_of
from test_gateway_keys import FORMS, message_of
from waiting import until

from hud_mcp.agents.agent import BoundReached, JobHalted, OperatorFailed
from hud_mcp.base.contention import Pauses
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.failures import failure_of_reply
from hud_mcp.plugins.models.gateway.gateway import checked_choice
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.plugins.models.replies import Failure
from hud_mcp.plugins.models.requests import Requests
from hud_mcp.plugins.models.spending import Prices, Spending

pytestmark = pytest.mark.anyio

PRICE = (10, 1_000)
"""A dollar for a thousand tokens of output, so that a cap of 100 tokens costs ten cents."""
LATER = {"retry-after": "3600"}


@pytest.mark.parametrize("limit", ["max_cost_usd", "max_cost_per_run_usd"])
async def test_ten_requests_at_once_never_pass_a_dollar(limit: str) -> None:
    """What each may cost at most is reserved; those that are too many are refused in form."""
    many, go_on = anyio.Event(), anyio.Event()

    async def reply(_got: Got, writer: Writer) -> None:
        if len(there.got) >= 3:
            many.set()
        await go_on.wait()
        await writer.whole(said(given=50, made=100))  # 10.05 cents

    statuses: list[int] = []

    async def ask(run: RunHere) -> None:
        statuses.append((await run.ask("/v1/messages", MESSAGE)).status_code)

    async with (
        provider(reply) as there,
        gateway_to(there.url, price=PRICE, **{limit: 1.0}) as gateway,
        gateway.run() as run,
    ):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ask, run)
            await many.wait()
            go_on.set()
        refused = run.opened.refused
    cost = sum(turn.cost_usd or 0 for turn in run.turns)
    assert 0.75 <= cost <= 1.0
    assert sorted(statuses) == [200] * len(run.turns) + [400] * (10 - len(run.turns))
    kind = JobHalted if limit == "max_cost_usd" else BoundReached
    assert isinstance(refused, kind)
    assert "--max-cost" in str(refused)


async def test_a_job_waits_for_what_is_under_way_before_it_refuses() -> None:
    """What is left over of a reserve is there for others; that wait is a pause of the run."""
    spending, pauses = Spending(limit_usd=1.0), Pauses()
    one, other = spending.of_run(), spending.of_run()
    first = await spending.reserve(one, 0.9, 0.1, pauses)
    granted: list[float] = []

    async def reserve() -> None:
        granted.append((await spending.reserve(other, 0.9, 0.1, pauses)).usd)

    async with anyio.create_task_group() as group:
        group.start_soon(reserve)
        await until(lambda: pauses.seconds > 0)
        assert granted == []
        first.settle(0.3)
    assert granted == [pytest.approx(0.7)]
    assert spending.spent_usd == 0.3


async def test_a_reserve_is_settled_once_and_whole_where_nothing_tells_its_cost() -> None:
    """A request that was not sent costs nothing."""
    spending, pauses = Spending(limit_usd=10.0), Pauses()
    run = spending.of_run()
    with await spending.reserve(run, 2.0, 2.0, pauses):
        pass
    assert spending.spent_usd == 0
    with await spending.reserve(run, 2.0, 2.0, pauses) as sent:
        sent.is_sent = True
    assert (spending.spent_usd, run.spent_usd) == (2.0, 2.0)
    with await spending.reserve(run, 2.0, 2.0, pauses) as told:
        told.is_sent = True
        told.settle(0.5)
    assert spending.spent_usd == 2.5
    with pytest.raises(JobHalted, match=r"cost \$2.5 and may cost \$10.*may cost \$8"):
        await spending.reserve(run, 9.0, 8.0, pauses)


async def test_a_reply_that_breaks_off_costs_what_came_of_it() -> None:
    """As the provider said, and by its bytes; not the whole reserve."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.begin()
        for event in spoken("abc", given=50)[:4]:
            await writer.chunk(event)
        writer.cut()

    async with (
        provider(reply) as there,
        gateway_to(there.url, price=PRICE, max_cost_usd=100) as gateway,
        gateway.run() as run,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            await run.ask("/v1/messages", STREAMED | {"max_tokens": 30_000})
        spending = gateway.gateway.spending
    (turn,) = run.turns
    assert turn.cost_usd == pytest.approx(0.0015)  # one token of output, as its begin says
    assert 0.0015 < spending.spent_usd < 2


async def test_a_cap_is_written_where_the_body_has_none_or_money_does_not_pay_it() -> None:
    """All other bytes are the same; without a limit, all are."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said(given=10, made=10))

    bodies: list[bytes] = []
    for limits in ({}, {"max_cost_usd": 50.0}, {"max_cost_usd": 5.0}):
        async with (
            provider(reply) as there,
            gateway_to(there.url, price=PRICE, **limits) as gateway,
            gateway.run() as run,
        ):
            await run.ask("/v1/messages", MESSAGE | {"max_tokens": 40_000})
            bodies.append(there.got[0].body)
    sent = json.dumps(MESSAGE | {"max_tokens": 40_000}).encode()
    assert bodies[0] == sent
    caps = [json.loads(body)["max_tokens"] for body in bodies]
    assert 49_000 > caps[0] >= 40_000
    assert 4_000 < caps[2] < 5_000
    assert bodies[2] == sent.replace(b"40000", str(caps[2]).encode())


async def test_a_request_whose_shortest_reply_is_too_dear_is_refused() -> None:
    """Nothing is sent, and the sentence says what is left to do."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said())

    async with (
        provider(reply) as there,
        gateway_to(there.url, price=PRICE, max_cost_per_run_usd=1.0) as gateway,
        gateway.run() as run,
    ):
        came = await run.ask("/v1/messages", MESSAGE | {"max_tokens": 2_000})
        refused = run.opened.refused
        small = await run.ask("/v1/messages", MESSAGE)
    assert came.status_code == 400
    assert "budget" in came.json()["error"]["message"]
    assert "--max-cost-per-run" in came.json()["error"]["message"]
    assert isinstance(refused, BoundReached)
    assert small.status_code == 200
    assert len(there.got) == 1


async def test_a_cap_of_ours_that_the_model_refuses_is_lowered() -> None:
    """No option names the greatest reply of a model."""

    async def reply(got: Got, writer: Writer) -> None:
        if got.json["max_completion_tokens"] > 16_000:
            refusal = {"message": "max_tokens is too large: 32000", "type": "invalid_request_error"}
            await writer.whole({"error": refusal}, 400)
            return
        message = {"role": "assistant", "content": "4"}
        await writer.whole({
            "id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        })  # fmt: skip

    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}
    async with (
        provider(reply) as there,
        gateway_to(there.url, "openai", price=PRICE, max_cost_usd=99) as gateway,
        gateway.run() as run,
    ):
        first = await run.ask("/v1/chat/completions", body)
        second = await run.ask("/v1/chat/completions", body)
    assert (first.status_code, second.status_code) == (200, 200)
    caps = [got.json["max_completion_tokens"] for got in there.got]
    assert caps == [32_000, 8_000, 8_000]


@each_of("dialect", FORMS)
async def test_a_bound_is_refused_in_the_form_of_each_dialect(dialect: str) -> None:
    """With status 400, after which no program tries again."""
    kind, path, body = FORMS[dialect]

    async def reply(_got: Got, writer: Writer) -> None:
        raise AssertionError

    async with (
        provider(reply) as there,
        gateway_to(there.url, kind, price=PRICE, max_cost_usd=1.0, spent_usd=1.02) as gateway,
        gateway.run() as run,
    ):
        came = await run.ask(path, body)
        assert isinstance(run.opened.refused, JobHalted)
    assert came.status_code == 400
    assert "$1.02" in message_of(dialect, came.json())


async def test_a_run_has_so_many_turns() -> None:
    """Also those beside its dialogue, as the agent says itself that they are such."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said())

    async with (
        provider(reply) as there,
        gateway_to(there.url, max_turns=2) as gateway,
        gateway.run() as run,
        gateway.run() as other,
    ):
        came = [await run.ask("/v1/messages", MESSAGE) for _ in range(3)]
        headers = {"x-api-key": run.key, "x-openai-subagent": "guardian"}
        title = MESSAGE | {"system": "Write a title."}
        beside = [await run.ask("/v1/messages", title, headers) for _ in range(3)]
        still = await other.ask("/v1/messages", MESSAGE)
        refused = run.opened.refused
    assert [each.status_code for each in came] == [200, 200, 400]
    assert [each.status_code for each in beside] == [200, 200, 400]
    assert still.status_code == 200
    assert "at 2 turns (--max-turns)" in str(refused)


async def test_an_agent_that_goes_on_after_a_refusal_is_ended() -> None:
    """After a bounded number of refusals in a row, which are as many as parallel requests."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said())

    statuses: list[int] = []
    async with (
        provider(reply) as there,
        gateway_to(there.url, max_turns=1) as gateway,
        gateway.run() as run,
    ):
        refused = run.opened
        while True:  # the gateway cancels it
            statuses.append((await run.ask("/v1/messages", MESSAGE)).status_code)
    assert statuses == [200] + [400] * 20
    assert "at 1 turns (--max-turns)" in str(refused.refused)


def test_a_price_that_is_not_known_is_refused_before_anything_is_sent() -> None:
    """`--price` gives it."""
    options = ModelOptions(name="openai-compatible:x", base_url="http://x/v1", max_cost_usd=1.0)
    with pytest.raises(HudMcpError, match="--price"):
        checked_choice(options, None)


async def test_a_setting_that_costs_more_than_the_price_is_refused_where_cost_is_limited() -> None:
    """An agent could spend a multiple of what is counted."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(said())

    for limits, statuses in (({}, [200] * 3), ({"max_cost_usd": 50.0}, [400] * 3)):
        async with (
            provider(reply) as there,
            gateway_to(there.url, price=PRICE, **limits) as gateway,
            gateway.run() as run,
        ):
            searches = {"tools": [{"type": "web_search_20260101", "name": "web_search"}]}
            dear = ({"service_tier": "priority"}, {"speed": "fast"}, searches)
            came = [await run.ask("/v1/messages", MESSAGE | each) for each in dear]
        assert [each.status_code for each in came] == statuses


async def test_a_reply_without_tokens_ends_a_job_whose_cost_is_limited() -> None:
    """It costs its reserve, as all of it may have been used."""

    async def reply(_got: Got, writer: Writer) -> None:
        reply = said()
        del reply["usage"]
        await writer.whole(reply)

    async with (
        provider(reply) as there,
        gateway_to(there.url, price=PRICE, max_cost_usd=50.0) as gateway,
        gateway.run() as run,
    ):
        came = await run.ask("/v1/messages", MESSAGE)
        refused = run.opened.refused
        again = await run.ask("/v1/messages", MESSAGE)
        spent_usd = gateway.gateway.spending.spent_usd
    assert (came.status_code, again.status_code) == (200, 400)
    assert isinstance(refused, JobHalted)
    assert "does not report the tokens" in str(refused)
    assert spent_usd > 0.1


async def test_a_provider_that_would_refuse_every_run_halts_the_job() -> None:
    """Its refusal passes as it came; the next request is not sent."""
    refusal = {"type": "error", "error": {"type": "authentication_error", "message": "no such key"}}

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole(refusal, 401)

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", MESSAGE)
        again = await run.ask("/v1/messages", MESSAGE)
        refused = run.opened.refused
    assert (came.status_code, came.json()) == (401, refusal)
    assert isinstance(refused, JobHalted)
    assert again.status_code == 400
    assert "no such key" in again.json()["error"]["message"]
    assert len(there.got) == 1
    assert "no such key" in (run.turns[0].error or "")


@pytest.mark.parametrize("status", [400, 413])
async def test_a_request_that_is_refused_for_its_own_sake_is_the_agents_to_mend(
    status: int,
) -> None:
    """However often it is: an agent cannot halt its job by bad requests."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole({"error": {"message": "bad tools"}}, status)

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = [await run.ask("/v1/messages", MESSAGE) for _ in range(5)]
        assert run.opened.refused is None
    assert [each.status_code for each in came] == [status] * 5
    assert len(there.got) == 5


async def test_a_provider_that_fails_for_long_ends_the_run_as_its_operators() -> None:
    """Its last refusal passes, and nothing more is sent."""

    async def reply(_got: Got, writer: Writer) -> None:
        await writer.whole({"error": {"message": "overloaded"}}, 529, LATER)

    async with provider(reply) as there, gateway_to(there.url) as gateway, gateway.run() as run:
        came = await run.ask("/v1/messages", MESSAGE)
        again = await run.ask("/v1/messages", MESSAGE)
        refused = run.opened.refused
    assert (came.status_code, again.status_code) == (529, 400)
    assert isinstance(refused, OperatorFailed)
    assert not isinstance(refused, JobHalted)
    assert len(there.got) == 1


async def test_a_models_agent_reserves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests of different runs at once do not pass what is left for one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-x")
    begun, go_on = anyio.Event(), anyio.Event()

    async def reply(got: Got, writer: Writer) -> None:
        assert got.json["max_tokens"] <= 1_200
        begun.set()
        await go_on.wait()
        await writer.whole(said(given=10, made=1_100))

    async def ask(requests: Requests) -> None:
        from test_model_requests import said as history  # noqa: PLC0415  # tests of that file

        try:
            await requests.reply(
                history().messages(), [], pauses=Pauses(), guess=10, given=20,
                run=requests.spending.of_run(),
            )  # fmt: skip
        except JobHalted as exc:
            halted.append(str(exc))

    halted: list[str] = []
    async with provider(reply) as there:
        requests = Requests(ModelOptions(
            name="anthropic:claude-opus-5", base_url=there.url, price=PRICE, max_cost_usd=1.2,
        ))  # fmt: skip
        async with anyio.create_task_group() as group:
            group.start_soon(ask, requests)
            group.start_soon(ask, requests)
            await begun.wait()
            go_on.set()
        await requests.aclose()
    assert len(there.got) == 1
    assert len(halted) == 1
    assert requests.spending.spent_usd == pytest.approx(1.1001)


def test_the_most_that_tokens_cost_has_those_written_to_a_cache() -> None:
    """And an amount pays the tokens that it pays."""
    prices = Prices(ModelOptions(name="anthropic:claude-opus-5"))
    most = prices.most(1_000_000, 1_000)
    assert most == pytest.approx(6.25 + 0.025)
    assert prices.output_within(most, 1_000_000) in (999, 1_000)
    free = Prices(ModelOptions(name="openai-compatible:x", base_url="http://x", price=(0, 0)))
    assert free.output_within(0.0, 10) >= 100_000


@each_of(
    ("status", "headers", "body", "failure", "wait_s"),
    [
        (429, {"retry-after": "7"}, {}, Failure.PASSING, 7.0),
        (429, {"retry-after-ms": "1500", "retry-after": "7"}, {}, Failure.PASSING, 1.5),
        (429, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0.5s"}, {},
         Failure.PASSING, 360.5),
        (429, {"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, {},
         Failure.PASSING, None),
        (429, {}, {"error": {"details": [{"retryDelay": "34.5s"}]}}, Failure.PASSING, 34.5),
        (429, {}, {"error": {"details": [{"quotaId": "RequestsPerDay"}]}}, Failure.EVERY_RUN, None),
        (400, {}, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}, Failure.EVERY_RUN, None),
        (429, {}, {"error": {"code": "insufficient_quota"}}, Failure.EVERY_RUN, None),
        (400, {}, {"error": {"message": "prompt is too long: 9 > 8"}}, Failure.FULL, None),
        (500, {}, {}, Failure.PASSING, None),
        (418, {}, {}, Failure.REFUSED, None),
        (503, {"retry-after": "soon"}, {}, Failure.PASSING, None),
    ],
)  # fmt: skip
def test_a_refusal_by_http_is_told_apart_with_its_wait(
    status: int, headers: dict[str, str], body: Any, failure: Failure, wait_s: float | None
) -> None:
    """In whichever of the ways providers write it."""
    found = failure_of_reply(status, json.dumps(body).encode(), headers)
    assert (found[0], found[2]) == (failure, wait_s)
    assert failure_of_reply(status, b"<html>", headers)[1] == "<html>"

"""Agents that misuse a conversation: late, doubled or empty talk earns and changes nothing."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import Reply
from tables import each_of
from test_talks import SHOPS, Opens, Talker
from test_talks import talker as talker  # a fixture  # noqa: PLC0414
from waiting import until

from hud_mcp import Environment, Say, User, When

pytestmark = pytest.mark.anyio

env = Environment("attacked")


@env.template(user=True)
async def who_ended(turns: int = 30, chars: int = 4_000):  # noqa: ANN201  # as authors write
    """The grade's content says who ended the conversation."""
    script = (When("bye", say="Bye.", ends=True), When(say="Go on."))
    user = User(goal="GOAL-7", script=script, turns=turns, chars=chars)
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield {"reward": 1.0, "content": f"{reply.by}"}


SHOPS["attacked"] = env


async def end_by(shop: Talker, way: str) -> None:
    """Bring a conversation to its end."""
    if way == "limit":
        await shop.start("bounded", steps=1)
        await shop.ok("step")
        await shop.over()
    elif way == "message":
        await shop.start("echo")
        await shop.say("first")
    else:
        await shop.start("return_order")
        given = {"answer": "done"} if way == "response" else {}
        await shop.ok(way, **given)


@each_of("way", ["message", "response", "limit", "cancel_task"])
async def test_a_message_after_the_end_is_refused_and_changes_nothing(
    talker: Opens, way: str
) -> None:
    """Also in the next server, and also as a message that is repeated: its grade stands."""
    async with talker() as shop:
        await end_by(shop, way)
        before = await shop.record()
        for more in ({}, {"after_step": 0}, {"after_step": len(before.steps)}):
            refused = await shop.call("message_user", text="One more thing.", **more)
            assert refused.is_error
            assert "reply" not in (refused.structured or {})
        assert await shop.record() == before
    async with talker(session=shop.session) as shop:
        refused = await shop.call("message_user", text="One more thing.")
        assert refused.is_error
        assert await shop.sessions.store.load_trajectory(before.id) == before


async def both(first: Any, second: Any) -> list[Reply]:
    """Make two calls at once; return their replies in the order of the calls."""
    replies: dict[int, Reply] = {}

    async def call(number: int, made: Any) -> None:
        replies[number] = await made

    async with anyio.create_task_group() as group:
        group.start_soon(call, 0, first)
        group.start_soon(call, 1, second)
    return [replies[0], replies[1]]


async def test_of_two_messages_at_once_one_ends_the_conversation(talker: Opens) -> None:
    """The other one is refused, and was said to nobody."""
    async with talker() as shop:
        await shop.start("echo")
        said = [shop.call("message_user", text=text) for text in ("a", "b")]
        replies = await both(*said)
        (ended,) = [each for each in replies if not each.is_error]
        (message,) = [s for s in (await shop.record()).steps if s.kind == "message"]
        assert ended.structured["content"] == message.actions[0]["text"]


@pytest.mark.long
async def test_a_message_and_a_response_at_once_have_one_grade(talker: Opens) -> None:
    """The answer ends the conversation, before the message or after it."""
    async with talker() as shop:
        await shop.start("return_order")
        said = shop.call("message_user", text="Which order is it?")
        told, ended = await both(said, shop.call("response", answer="bye"))
        assert ended.structured["reward"] == 0.0
        record = await shop.record()
        assert [s.kind for s in record.steps if s.kind == "response"] == ["response"]
        messages = [s for s in record.steps if s.kind == "message" and s.error is None]
        assert len(messages) == (0 if told.is_error else 1)


@pytest.mark.long
async def test_a_kill_before_the_last_reply_grades_once(talker: Opens, tmp_path: Path) -> None:
    """The last words are on record: the same message brings them and the grade, paid once."""
    log = tmp_path / "asked"
    async with talker() as shop:
        await shop.start("costly", log=str(log), holds=True)
        async with anyio.create_task_group() as group:
            given = {"session": shop.session, "text": "bye"}
            group.start_soon(shop.client.call_tool, "message_user", given)
            await until(Path(f"{log}.asked").exists)
            group.cancel_scope.cancel()
    Path(f"{log}.go").touch()  # noqa: ASYNC240  # a test's
    async with talker(session=shop.session) as shop:
        last = await shop.say("bye")
        assert (last.structured["reply"], last.structured["reward"]) == ("You said bye.", 1.0)
        again = await shop.ok("response", answer="anything")
        assert again.structured["trajectory"] == last.structured["trajectory"]
        record = await shop.record()
    assert log.read_text() == "bye\n"
    assert record.user is not None
    assert (record.user.turns, record.user.tokens, record.user.cost_usd) == (1, 5, 0.5)


@pytest.mark.long
@each_of(
    "given, messages, content",
    [
        ({"turns": 2}, ["a", "b", "c"], "limit"),
        ({"chars": 5}, ["a", "x" * 6], "limit"),
        ({}, ["bye"], "user"),
    ],
)
async def test_a_bound_of_a_user_ends_the_conversation_and_the_task_is_graded(
    talker: Opens, given: dict[str, Any], messages: list[str], content: str
) -> None:
    """By its turns or its characters; an end by the user is told apart from it."""
    async with talker("attacked") as shop:
        await shop.start("who_ended", **given)
        said = [await shop.say(text) for text in messages]
        assert {each.structured["state"] for each in said[:-1]} <= {"open"}
        assert said[-1].structured["content"] == content


@each_of("messages", [[], ["Which order is it?", "Your refund is on its way."]])
async def test_an_end_without_the_work_earns_nothing(talker: Opens, messages: list[str]) -> None:
    """Neither the agent's end nor the user's makes a claim true."""
    async with talker() as shop:
        await shop.start("return_order")
        for text in messages:
            await shop.say(text)
        ended = await shop.ok("response", answer="It is all done.")
        assert ended.structured["reward"] == 0.0

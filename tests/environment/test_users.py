"""Users by a script, and the values of a conversation, without a session."""

import re
from typing import Any

import pytest
from tables import each_of

from hud_mcp import Ask, Grade, Say, User, When
from hud_mcp.environment.conversation import Conversation, KeptTurn, Reply, UserTurn, begin
from hud_mcp.errors import ActionFailed, GradingFailed, InvalidTemplate

pytestmark = pytest.mark.anyio

SCRIPT = (
    When(r"order number|which order", say="It is #W4711.", slot="order"),
    When(r"your name", say="Ana Ruiz.", slot="name"),
    When(r"refund(ed)?\b", say="Thank you, goodbye.", after="order", ends=True),
    When(r"my name is (?P<agent>\w+)", say="Nice to meet you, {agent}.", once=True),
    When(say="I want to return a lamp."),
)


def shopper(**options: Any) -> User:
    """A user with a script, in a conversation of its own."""
    begin(Conversation())
    return User(goal="The lamp's price back.", script=SCRIPT, **options)


async def test_a_script_tells_each_slot_that_is_asked_for() -> None:
    """Two questions in one message have both answers, in the order of the rules."""
    user = shopper()
    said = await user.answer(Reply("What is your name, and which order is it?"))
    assert said == Say("It is #W4711. Ana Ruiz.")


async def test_a_rule_waits_for_the_slots_before_it() -> None:
    """The user does not end before it has said its order; the last rule speaks meanwhile."""
    user = shopper()
    assert (await user.answer(Reply("It is refunded."))).text == "I want to return a lamp."
    await user.answer(Reply("Which order?"))
    said = await user.answer(Reply("It is refunded."))
    assert (said.text, said.ends, said.by) == ("Thank you, goodbye.", True, "user")


async def test_a_rule_once_is_said_once_and_may_name_what_it_found() -> None:
    """A named group of a pattern stands for itself in the words."""
    user = shopper()
    assert (await user.answer(Reply("My name is Tom."))).text == "Nice to meet you, Tom."
    assert (await user.answer(Reply("My name is Tom."))).text == "I want to return a lamp."


@each_of("options", [{"turns": 1}, {"chars": 9}])
async def test_a_bound_ends_the_conversation(options: dict[str, int]) -> None:
    """Neither endless talk nor an endless message has another answer."""
    user = shopper(**options)
    await user.answer(Reply("Hello."))
    said = await user.answer(Reply("And another message."))
    assert (said.text, said.ends, said.by) == ("", True, "limit")


async def test_a_user_knows_what_it_heard_and_said() -> None:
    """In any case and spacing, or by a pattern; the words that end the conversation count."""
    begin(conversation := Conversation())
    user = User(goal="A date.", script=(When(say="When?"),))
    reply = Reply("The refund takes\n5 days.")
    conversation.hear(reply)
    await user.answer(reply)
    last = Reply("It arrives on 3 May.", ended=True, by="agent")
    conversation.hear(last)
    assert user.heard("the refund takes 5 days")
    assert user.heard(re.compile(r"\d May"))
    assert not user.heard("refused")
    assert user.said == ("When?",)


async def test_a_turn_on_record_is_used_and_nobody_is_asked() -> None:
    """The record of one conversation gives the same words in another, and is not paid twice."""
    kept: list[KeptTurn] = []

    async def keep(turn: KeptTurn) -> None:
        kept.append(turn)

    async def costly() -> UserTurn:
        asked.append(1)
        return UserTurn(text="Yes.", tokens=7, cost=0.1)

    async def other() -> UserTurn:
        asked.append(2)
        return UserTurn(text="No.")

    asked: list[int] = []
    first = Conversation(keep=keep)
    first.hear(Reply("Is it red?"))
    assert (await first.turn(costly)).text == "Yes."
    again = Conversation(kept)
    again.hear(Reply("Is it red?"))
    asked.clear()
    assert (await again.turn(other)).text == "Yes."
    assert asked == []
    differs = Conversation(kept)
    differs.hear(Reply("Is it blue?"))
    assert (await differs.turn(other)).text == "No."


async def test_a_recorded_turn_leaves_a_scripted_user_as_it_was() -> None:
    """Rules that wait for a slot fit after a repetition too."""
    kept: list[KeptTurn] = []

    async def keep(turn: KeptTurn) -> None:
        kept.append(turn)

    async def talk(conversation: Conversation, *messages: str) -> Say:
        begin(conversation)
        user, said = User(goal="g", script=SCRIPT), Say("")
        for each in messages:
            conversation.hear(reply := Reply(each))
            said = await user.answer(reply)
        return said

    await talk(Conversation(keep=keep), "Which order?")
    assert (await talk(Conversation(kept), "Which order?", "It is refunded.")).ends


async def test_a_script_uses_its_users_tools_and_a_repetition_does_so_again() -> None:
    """The results follow the words; a refused call is told, and is not on record."""
    kept: list[KeptTurn] = []
    done: list[str] = []

    async def keep(turn: KeptTurn) -> None:
        kept.append(turn)

    def turn(switch: str) -> str:
        """Turn a switch."""
        if switch == "none":
            raise ActionFailed("There is no such switch.")
        done.append(switch)
        return f"{switch} is on."

    rule = When(
        "data", "Done.", "data", calls=tuple(("turn", {"switch": n}) for n in ("a", "none"))
    )
    script = (rule, When("bye", "Goodbye.", after="data", ends=True), When(say="What now?"))

    async def talk(conversation: Conversation, *messages: str) -> Say:
        begin(conversation)
        user, said = User(goal="g", script=script, tools=[turn]), Say("")
        for each in messages:
            conversation.hear(reply := Reply(each))
            said = await user.answer(reply)
        return said

    said = await talk(Conversation(keep=keep), "Turn your data on.")
    assert said.text == "Done.\na is on.\nThere is no such switch."
    assert [call["arguments"] for call in kept[0].turn.calls] == [{"switch": "a"}]
    assert (await talk(Conversation(kept), "Turn your data on.", "Bye.")).ends
    assert done == ["a", "a"]


def test_parts_are_graded_with_their_weights() -> None:
    """Without a grade of the whole, it is their weighted mean; else they stand beside it."""
    begin(conversation := Conversation())
    Reply("Ana", said=Say("Who?", part="identify", weight=3.0)).grade(1.0)
    Ask("Which one?", part="choose").grade(Grade(reward=0.0))
    whole = conversation.grade_of(None, where="file:1")
    assert whole.reward == 0.75
    assert [(each.name, each.value, each.weight) for each in whole.subscores] == [
        ("identify", 1.0, 3.0),
        ("choose", 0.0, 1.0),
    ]
    assert conversation.grade_of(0.5, where="file:1").reward == 0.5


def test_a_part_needs_a_name_and_a_reward_of_a_part() -> None:
    """The author learns what is missing."""
    begin(conversation := Conversation())
    with pytest.raises(InvalidTemplate, match="part="):
        Say("Who?").grade(1.0)
    with pytest.raises(GradingFailed, match="'p'"):
        Say("Who?", part="p").grade(2.0)
    with pytest.raises(GradingFailed):
        conversation.grade_of(None, where="file:1")


def test_a_prompt_has_its_instructions_apart() -> None:
    """They are a message of the system; the user's words are the user's alone."""
    roles = [(m.role, m.text) for m in Say("Hello.", instructions="Be brief.").prompt.messages]
    assert roles == [("system", "Be brief."), ("user", "Hello.")]


def test_a_question_may_have_a_typed_answer() -> None:
    """As a template's own `returns`."""
    assert Ask("How many?", returns=int).read("3").content == 3
    assert Ask("Who?").read("Ana") == "Ana"


@each_of(
    "options",
    [
        {},
        {"script": (When(r"(", say="x"),)},
        {"script": (When("x", say="y", after="z"),)},
        {"script": (When("x", say="y", calls=(("z", {}),)),)},
    ],
)
def test_a_user_that_cannot_speak_is_refused(options: dict[str, Any]) -> None:
    """No script and no model; no pattern; a slot that no rule fills; a tool that it has not."""
    with pytest.raises(InvalidTemplate):
        User(goal="g", **options)

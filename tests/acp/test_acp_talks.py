"""An agent of the Agent Client Protocol talks to a user with the words that end its turn."""

from typing import Any

import pytest
from peers import ENVIRONMENTS
from test_acp_agents import Place
from test_acp_agents import place as place  # a fixture  # noqa: PLC0414

from hud_mcp.agents.agent import Agent
from hud_mcp.plugins.acp.updates import Updates

pytestmark = pytest.mark.anyio


async def talk(place: Place, shape: str, template: str, **more: Any) -> Any:
    """Let an agent work on a task with a user."""
    (place.folder / "one.jsonl").write_text(
        f'{{"id": "one", "env": "shop", "template": "{template}"}}'
    )
    return await place.run(shape, env=(f"{ENVIRONMENTS / 'talking.py'}:shop",), **more)


@pytest.mark.long
async def test_the_users_reply_is_the_next_prompt(place: Place) -> None:
    """Until the conversation has its grade; then nothing more is prompted."""
    run = await talk(place, "talks", "return_order")
    assert [step.kind for step in run.steps] == ["user", "message", "user", "message"]
    said = [step.actions[0]["text"] for step in run.steps if step.kind == "message"]
    assert said == ["Gladly. Which order is it?", "The refund takes 5 days."]
    told = place.told("prompt")
    assert "return something" in told[0]
    assert "said to the user" in told[0]
    assert "Nobody reads" not in told[0]
    assert told[1:] == ["It is #W4711."]
    assert run.receipt is not None
    assert run.receipt.user.messages == 2


@pytest.mark.long
async def test_an_agent_that_may_not_say_more_is_asked_for_its_answer(place: Place) -> None:
    """A question that only `response` answers is not said to the user."""
    run = await talk(place, "talks", "asks_twice")
    assert [step.kind for step in run.steps if step.kind == "message"] == []
    assert "Submit the final answer" in place.told("prompt")[1]


async def test_the_words_of_a_turn_are_those_after_its_last_call() -> None:
    """Words before a call were for nobody."""

    async def call(name: str, arguments: dict[str, Any], *, meta: Any = None) -> Any:
        raise AssertionError(name, arguments, meta)

    updates = Updates(Agent(call, session="s", prompt="p"), reports=False)

    def say(text: str) -> None:
        content = {"type": "text", "text": text}
        updates.take({"sessionUpdate": "agent_message_chunk", "content": content})

    def use_tool(number: str) -> None:
        updates.take(
            {
                "sessionUpdate": "tool_call",
                "toolCallId": number,
                "title": "step",
                "status": "in_progress",
            }
        )

    say("I look.")
    use_tool("c-1")
    say("Which ")
    say("order?")
    updates.close("end_turn")
    assert updates.words == "Which order?"
    say("I go on.")
    use_tool("c-2")
    updates.close("end_turn")
    assert updates.words == ""

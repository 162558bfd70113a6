"""Measures of a user by a script, after its conversation."""

import anyio
import pytest
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import User, UserGrader, When
from hud_mcp.environment.conversation import Conversation, Reply, begin
from hud_mcp.plugins.users.quality import quoted, unasked

pytestmark = pytest.mark.anyio

GOAL = "You want the lamp's price back from the shop."
FACTS = ("The order is #W4711.", "You live in Austin.")


async def talked(*messages: str, **options: object) -> User:
    """A user that has answered an agent's messages, the first one being nobody's."""
    begin(Conversation())
    given = {"goal": GOAL, "persona": "A hasty person who has no time at all.", "knows": FACTS}
    user = User(**(given | options))  # pyright: ignore[reportArgumentType]
    with anyio.fail_after(PATIENCE_S):
        for text in messages:
            await user.answer(Reply(text) if text else "")
    return user


@each_of(
    "words, found",
    [
        ("I want my money back.", ()),
        ("My rules say: you want  the lamp's price back from the SHOP.", ("goal",)),
        ("I am a hasty person who has no time at all.", ("persona",)),
        (r"I wait for order\s+number.", ("script",)),
    ],
)
async def test_a_user_that_quotes_its_role_is_seen(words: str, found: tuple[str, ...]) -> None:
    """In any case and spacing; a few common words are no quotation."""
    script = (When(r"order\s+number", say="#W4711"), When(say=words))
    user = await talked("Hello.", script=script)
    assert quoted(user) == found
    part = await UserGrader.grade(weight=0.0, user=user)
    assert (part.value, part.weight) == (float(not found), 0.0)


@each_of(
    "messages, early",
    [
        (("",), True),
        (("Hello.",), True),
        (("Which order is it?",), False),
        (("Please tell me the number.",), False),
    ],
)
async def test_a_fact_that_nobody_asked_for_is_seen(
    messages: tuple[str, ...], early: object
) -> None:
    """A fact without a number or an address is none that can be found."""
    user = await talked(*messages, script=(When(say="It is #w4711, and I live in Austin."),))
    assert unasked(user) == (FACTS[:1] if early else ())


async def test_what_a_user_hides_is_in_no_child_that_an_agent_is_shown() -> None:
    """The part names the facts, and its children are private."""
    user = await talked("", script=(When(say="It is #W4711."),))
    part = await UserGrader.grade(user=user)
    assert part.value == 0.0
    assert part.info["children_private"] is True

"""Conversations in figures: a job adds them up, apart from the agent's own use."""

from dataclasses import replace

from tried import tries

from hud_mcp.analysis.statistics import job_statistics
from hud_mcp.environment.conversation import UserTurn, UserUse

TURN = UserTurn(text="Yes.", tokens=75, cost=0.5)


def test_a_conversation_has_its_messages_questions_turns_tokens_and_cost() -> None:
    """A question is a message with a question mark."""
    use = UserUse.of(["Which order?", "Done."], [TURN, TURN.model_copy(update={"is_person": True})])
    assert (use.messages, use.questions, use.turns, use.by_person) == (2, 1, 2, 1)
    assert (use.tokens, use.cost_usd) == (150, 1.0)


def test_a_job_adds_its_conversations_up_and_counts_persons() -> None:
    """Runs without a conversation add nothing; a job without any has no figures of users."""
    person = UserUse.of(["Why?"], [UserTurn(text="So.", is_person=True)])
    uses = [UserUse.of(["Hm?"], [TURN]), person, None]
    runs = [
        replace(run, user=use) for run, use in zip(tries("a", 1.0, 0.0, 1.0), uses, strict=True)
    ]
    found = job_statistics(["a"], runs, group=3)
    assert found.user is not None
    assert (found.user.turns, found.user.tokens, found.user.cost_usd) == (2, 75, 0.5)
    assert found.person == 1
    assert "75 tokens" in str(found)
    assert "person as user" in str(found)
    assert job_statistics(["a"], tries("a", 1.0)).user is None

"""Conversations in exports: messages with their roles, and nothing private of a user."""

from pathlib import Path
from typing import Any

import pytest
from recording import Recorded
from test_atif import export
from test_parquet import rows

from hud_mcp.environment.conversation import UserUse
from hud_mcp.plugins.view.export import export_parquet
from hud_mcp.record.values import USER_TURN

pytestmark = pytest.mark.anyio

PRIVATE = {"goal": "GOAL-9", "persona": "PERSONA-9", "turns": [{"text": "THOUGHT-9"}]}


def user(text: str, after: int) -> dict[str, Any]:
    """A turn of a user by a model."""
    turn = {"text": text, "tokens": 75, "cost": 0.5, **PRIVATE}
    kept = {"after": after, "digest": "d", "number": 0, "turn": turn}
    return {"kind": "user", "observation_text": text, "info": {USER_TURN: kept}}


def message(text: str, reply: str | None, **more: Any) -> dict[str, Any]:
    """A message of the agent, with the words that came back."""
    action = {"type": "message_user", "text": text}
    return {"kind": "message", "actions": [action], "observation_text": reply, **more}


TALK = [
    user("Hello.", 0),
    user("It is #W1.", 1),
    message("Which order?", "It is #W1.", notes=("A mail has arrived.",)),
    message("And now?", None, error="Its world died.", performed=0),
    user("Bye.", 2),
    message("It is refunded.", "Bye."),
]


async def test_a_document_has_the_messages_with_their_roles(
    record: Recorded, tmp_path: Path
) -> None:
    """The first words are the prompt's; the user's tokens and cost are apart from the agent's."""
    await record.add("talk", TALK, prompt="Hello.")
    document = await export(record, tmp_path / "out")
    said = [(step["source"], step["message"]) for step in document["steps"]]
    assert said == [
        ("user", "Hello."),
        ("agent", "Which order?"),
        ("system", "A mail has arrived."),
        ("user", "It is #W1."),
        ("agent", "And now?"),
        ("system", "Its world died."),
        ("agent", "It is refunded."),
        ("user", "Bye."),
    ]
    extra = document["final_metrics"]["extra"]
    assert (extra["user_tokens"], extra["user_cost_usd"]) == (225, 1.5)
    assert "total_cost_usd" not in document["final_metrics"]
    assert document["steps"][-1]["extra"]["user_tokens"] == 75
    written = (tmp_path / "out" / "traj-0.json").read_text()
    assert not any(secret in written for secret in ("GOAL-9", "PERSONA-9", "THOUGHT-9"))


async def test_spans_have_the_messages_with_their_roles(record: Recorded) -> None:
    """Their words are sent only with content, and nothing private of the user ever."""
    otel = pytest.importorskip("opentelemetry.sdk")
    assert otel
    from hud_mcp.plugins.view.export.otel import trajectory_spans  # noqa: PLC0415  # needs the SDK

    name = await record.add("talk", TALK, prompt="Hello.")
    trajectory = await record.store.load_trajectory(name, turns=True)
    spans = trajectory_spans(trajectory, None, content=True)
    assert [span.name for span in spans[:3]] == ["message user"] * 2 + ["message assistant"]
    told = str([dict(span.attributes) for span in spans])
    assert '"role":"assistant"' in told
    assert "Which order?" in told
    assert not any(secret in told for secret in ("GOAL-9", "PERSONA-9", "THOUGHT-9"))
    plain = str([dict(span.attributes) for span in trajectory_spans(trajectory, None)])
    assert "Which order?" not in plain
    assert spans[0].attributes["hud_mcp.user.tokens"] == 75


async def test_tables_have_the_users_turns_tokens_and_cost_apart_from_the_agents(
    record: Recorded, tmp_path: Path
) -> None:
    """A run without a conversation has none of them, and no agent's column counts them."""
    use = UserUse(messages=3, questions=2, turns=3, by_person=1, tokens=225, cost_usd=1.5)
    await record.add("talk", TALK, prompt="Hello.", user=use)
    await record.add("alone", [{"kind": "response", "actions": [{"type": "response"}]}])
    await export_parquet(record.store, "job-1", tmp_path / "out")
    talk, alone = rows(tmp_path / "out" / "trajectories.parquet")
    counts = ("message_count", "question_count", "user_turn_count", "person_turn_count")
    figures = (*counts, "user_tokens", "user_cost_usd")
    assert [talk[name] for name in figures] == [3, 2, 3, 1, 225, 1.5]
    assert [alone[name] for name in figures] == [None] * 6
    agents = ("turn_count", "input_tokens", "output_tokens", "cost_usd")
    assert [talk[name] for name in agents] == [0, None, None, None]
    steps = rows(tmp_path / "out" / "steps.parquet")
    spent = [(step["kind"], step["user_tokens"], step["user_cost_usd"]) for step in steps]
    assert spent == [
        ("user", 75, 0.5),
        ("user", 75, 0.5),
        ("message", None, None),
        ("message", None, None),
        ("user", 75, 0.5),
        ("message", None, None),
        ("response", None, None),
    ]
    assert "info_json" in (tmp_path / "out" / "README.md").read_text().split("hold reference")[0]

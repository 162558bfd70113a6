"""A model in a conversation: its own words go to the user, whose words are turns of its user."""

import json
from pathlib import Path
from typing import Any

import pytest
from provider_server import Asked, Says, provider_server
from test_model_requests import MODELS, keys

from hud_mcp import evaluate
from hud_mcp.agents.model.options import ModelOptions

__all__ = ["keys"]

pytestmark = pytest.mark.anyio

ENV = """
from hud_mcp import Environment, Say, User, When

env = Environment("desk")
SCRIPT = (
    When("which order", say="It is #W4711.", slot="order"),
    When("refund", say="Goodbye.", after="order", ends=True),
    When(say="My lamp is broken."),
)


@env.template(user=True)
async def serve():
    user = User(goal="A refund.", script=SCRIPT)
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield {"score": float(user.heard("refunded")), "content": f"{reply.by}"}
"""


def roles(asked: Asked) -> list[tuple[str, Any]]:
    """The messages of a request in the chat format, without its system prompt."""
    said = [(m["role"], m.get("content")) for m in asked.body["messages"]]
    return [each for each in said if each[0] != "system"]


async def test_a_models_own_words_are_its_talk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user answers as its user; the tool for it is not among the model's."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    (tmp_path / "env.py").write_text(ENV)
    row: dict[str, Any] = {"id": "words", "env": "desk", "template": "serve", "args": {}}

    def script(asked: Asked) -> Says:
        said = [text for role, text in roles(asked) if role == "assistant"]
        if not said:
            return Says("Which order is it?")
        return Says("It is refunded.")

    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with provider_server(script) as server:
        name = "openai-compatible"
        model = ModelOptions(name=f"{name}:{MODELS[name]}", base_url=server.base_url(name))
        job = await evaluate(str(path), model, in_process=True, max_steps=9, timeout_s=60)
    (run,) = await job.load_trajectories()
    assert run.receipt is not None
    assert (run.receipt.reward, run.receipt.content) == (1.0, "user")
    assert [step.kind for step in run.steps] == ["user", "message", "user", "message"]
    last = server.asked[-1]
    assert [role for role, _ in roles(last)] == ["user", "assistant", "user"]
    assert "It is #W4711." in str(roles(last)[-1])
    assert "message_user" not in last.heard.tools
    assert "response" in last.heard.tools

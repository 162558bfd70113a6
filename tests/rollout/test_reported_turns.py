"""An agent's handle takes what its model said: with the next call, or at the end of its work."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hud_mcp import Agent, ModelTurn, TokenUsage, evaluate, load_job
from hud_mcp.errors import HudMcpError

pytestmark = pytest.mark.anyio

ENV = '''\
from hud_mcp import Environment

env = Environment("reversed")


@env.template()
async def backwards(word: str = "lamp"):
    """Spell a word backwards."""
    answer = yield f"Spell {word!r} backwards."
    yield 1.0 if answer == word[::-1] else 0.0
'''


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A row beside the file of its environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "env.py").write_text(ENV)
    row = {"id": "lamp", "env": "reversed", "template": "backwards", "args": {"word": "lamp"}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def turn(text: str) -> ModelTurn:
    """A reply that took half a second, and cost a cent."""
    begun = datetime.now(UTC)
    return ModelTurn(
        model="test:model",
        text=text,
        usage=TokenUsage(input=100, output=10),
        cost_usd=0.01,
        started_at=begun,
        ended_at=begun + timedelta(seconds=0.5),
    )


async def reports(agent: Agent) -> str:
    """Reports before each call, several before one, and after the last one."""
    agent.report(turn("look"))
    await agent.step()
    agent.report(turn("think"))
    agent.report(turn("look again"))
    await agent.step()
    agent.report(turn("answer"))
    await agent.respond("pmal")
    agent.report(turn("done"))
    return ""


async def fails(agent: Agent) -> str:
    """Reports, and fails before any call takes it."""
    agent.report(turn("what now?"))
    raise HudMcpError("The model gave up.")


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("row")
@pytest.mark.parametrize(
    ("agent", "led", "reward"),
    [
        (
            reports,
            [("look", [0]), ("think", []), ("look again", [1]), ("answer", [2]), ("done", [])],
            1.0,
        ),
        (fails, [("what now?", [])], None),
    ],
)
async def test_every_turn_is_recorded_once_in_its_place(
    agent: Callable[[Agent], object], led: list[tuple[str, list[int]]], reward: float | None
) -> None:
    """Those of an agent that fails too; the job's figures say what they cost."""
    job = await evaluate("rows.jsonl", agent)
    found = await load_job(job.id)
    (trajectory,) = await found.load_trajectories()
    assert trajectory.reward == reward
    assert [(t.text, list(t.steps)) for t in trajectory.turns] == led
    figures = await found.statistics()
    assert figures.use is not None
    assert figures.use.turns == len(led)
    assert figures.use.cost_usd == pytest.approx(0.01 * len(led))
    assert figures.use.model_s == pytest.approx(0.5 * len(led))
    assert f"{len(led)} turn" in str(figures)

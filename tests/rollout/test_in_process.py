"""A job whose environments are in the process that runs it records what any other one records."""

import json
import sys
from pathlib import Path

import pytest

from hud_mcp import LocalRuntime, Store, Taskset, connect, evaluate
from hud_mcp.agents.agent import Agent
from hud_mcp.errors import HudMcpError

pytestmark = pytest.mark.anyio

ENV = """
import logging

from hud_mcp import Environment

env = Environment("reversed")


@env.template()
async def backwards(word: str = "lamp"):
    print(f"asked for {word}")
    answer = yield f"Write {word!r} backwards."
    logging.getLogger("author").warning("took %s", answer)
    print("graded", end="")
    yield 1.0 if answer == word[::-1] else 0.0
"""
PRINTED = ["asked for lamp1", "warning author: took", "graded"]
"""What a run of the second row has in its log."""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve rows beside the file of their environment, and a store of their own."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "env.py").write_text(ENV)
    lines = [
        {"id": f"w{i}", "env": "reversed", "template": "backwards", "args": {"word": f"lamp{i}"}}
        for i in range(12)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def reads(agent: Agent) -> str | None:
    """Answers what the prompt says backwards; one word it leaves without an answer."""
    word = agent.prompt.split("'")[1]
    return None if word == "lamp7" else word[::-1]


@pytest.mark.sampled(1)
async def test_both_ways_to_run_record_the_same(rows: Path) -> None:
    """Rewards, outcomes, seeds and counts are those of a server in a process of its own."""
    here = await evaluate(str(rows), reads, seed=3, in_process=True)
    there = await evaluate(str(rows), reads, seed=3)

    assert [run.reward for run in here.runs] == [float(i != 7) for i in range(12)]
    figures = [await job.statistics() for job in (here, there)]
    assert str(figures[0]) == str(figures[1])
    seen = [
        {(t.task.id, t.seed, t.reward, t.receipt.outcome) for t in await job.load_trajectories()}
        for job in (here, there)
    ]
    assert seen[0] == seen[1]


@pytest.mark.long
async def test_an_agent_in_another_process_needs_a_server(rows: Path) -> None:
    """It is refused before anything is recorded, and the text says what to do."""
    with pytest.raises(HudMcpError, match="Leave out in_process"):
        await evaluate(str(rows), reads, isolated=True, in_process=True)


@pytest.mark.long
async def test_the_log_of_a_run_in_this_process_has_what_it_printed(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As through a server; the program's own output has nothing of it, and is given back."""
    before, source = sys.stdout, rows.parent / "env.py"
    only = Taskset.from_file(rows).filter(["w1"])
    jobs = [
        await evaluate(only, reads, env=source),
        await evaluate(only, reads, env=source, in_process=True),
        await only.run(reads, runtime=LocalRuntime(source)),
    ]
    records = [(await job.load_trajectories())[0] for job in jobs]
    async with connect(source, task=only[0]) as live:
        print("the program's own")
        await live.answer("1pmal")
    records.append(await Store().load_trajectory(live.trajectory))
    logs = [record.logs or "" for record in records]
    assert [[line for line in PRINTED if line not in log] for log in logs] == [[]] * len(logs)
    printed = capsys.readouterr().out
    assert not [line for line in PRINTED if line in printed], printed
    assert "the program's own\n" in printed
    assert sys.stdout is before

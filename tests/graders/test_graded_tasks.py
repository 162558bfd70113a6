"""Graders in held sessions: what they measure is kept, and what they look for is told to nobody."""

import asyncio
import json
import re
from pathlib import Path

import anyio
import pytest
from judge_server import Asked, judge_server, says, status
from peers import stdio_peer
from waiting import PATIENCE_S

from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

GRADED = str(Path(__file__).resolve().parent / "graded.py")


@pytest.mark.long
async def test_a_judge_s_verdicts_are_recorded_and_its_criteria_stay_hidden(tmp_path: Path) -> None:
    """The agent is told the score; the record has each criterion with its reason."""

    def reply(asked: Asked) -> str:
        return says("MET" if "Says that" in asked.text else "UNMET", "It says so.")

    async with judge_server(reply) as server:
        env = {"HUD_MCP_JUDGE_URL": server.url, "HUD_MCP_JUDGE_MODEL": "m"}
        async with stdio_peer(tmp_path, (f"{GRADED}:desk",), env=env) as peer:
            task = await peer.start("essay")
            graded = await peer.ok("response", session=task.session, answer="Paris")
            record = await peer.record(task)
            shown = graded.text + json.dumps([graded.structured, graded.meta])
            shown += json.dumps(await peer.status(task.session))
    assert graded.structured["reward"] == 1.0
    assert graded.structured["subscores"] == [
        {"name": "LLMJudgeGrader", "value": 1.0, "weight": 0.75},
        {"name": "short", "value": 1.0, "weight": 0.25},
    ]
    assert "Says that" not in shown
    assert "It says so" not in shown
    assert record.receipt is not None
    judged = record.receipt.subscores[0]
    assert [(c.name, c.value) for c in judged.children] == [
        ("Says that it is Paris", 1.0),
        ("Insults", 0.0),
    ]
    assert judged.children[0].info == {"reason": "It says so."}


@pytest.mark.long
async def test_a_judge_that_fails_is_a_failed_grading_with_the_template_s_line(
    tmp_path: Path,
) -> None:
    """The record has the reason, the agent nothing of it."""
    async with judge_server(lambda _: status(401, "no such key")) as server:
        env = {"HUD_MCP_JUDGE_URL": server.url, "HUD_MCP_JUDGE_MODEL": "m"}
        async with stdio_peer(tmp_path, (f"{GRADED}:desk",), env=env) as peer:
            task = await peer.start("essay")
            told = await peer.call("response", session=task.session, answer="Paris")
            record = await peer.record(task)
    assert (record.outcome, record.reward) == (Outcome.GRADING_FAILED, None)
    assert re.search(
        r"graded\.py:\d+: GraderFailed: .*status 401: .*no such key", record.error or ""
    )
    assert "key" not in told.text


@pytest.mark.long
async def test_a_grader_that_cannot_run_ends_the_grading_at_once(tmp_path: Path) -> None:
    """Its sibling is killed, and no reward is made of it."""
    async with stdio_peer(tmp_path, (f"{GRADED}:desk",)) as peer:
        task = await peer.start("stranded")
        with anyio.fail_after(PATIENCE_S):
            await peer.call("response", session=task.session, answer="x")
        record = await peer.record(task)
    assert (record.outcome, record.reward) == (Outcome.GRADING_FAILED, None)
    assert "'/not/here' is not a folder here" in (record.error or "")


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_commands_grade_what_each_agent_left_in_its_own_folder(tmp_path: Path) -> None:
    """Six sessions side by side, of which every other one repairs it."""
    async with stdio_peer(tmp_path, (f"{GRADED}:shop",)) as peer:

        async def one(number: int) -> float:
            task = await peer.start("repair")
            if number % 2:
                content = "print(2)\n"
                await peer.ok("write_file", session=task.session, path="total.py", content=content)
            graded = await peer.ok("response", session=task.session, answer="done")
            record = await peer.record(task)
            assert record.receipt is not None
            prints, there = record.receipt.subscores
            assert (prints.name, there.name, there.value) == ("prints", "is there", 1.0)
            assert prints.info["ran_in"] == "verifier"
            return graded.structured["reward"]

        with anyio.fail_after(PATIENCE_S):
            rewards = await asyncio.gather(*(one(i) for i in range(6)))
    assert rewards == [0.5, 1.0] * 3

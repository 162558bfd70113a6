"""Gymnasium's environments over MCP: whole conversations with a real client."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from waiting import PATIENCE_S

from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def serving(folder: Path, source: str, *options: str) -> AsyncIterator[Callable[..., Any]]:
    """A server in a process of its own; calls return the result, and its text."""
    arguments = ["-m", "hud_mcp", "serve", source, "--store", f"{folder}/s.sqlite3", *options]
    server = StdioServerParameters(
        command=sys.executable, args=arguments, env={"PYTHONPATH": str(ROOT)}, cwd=folder
    )
    with anyio.fail_after(PATIENCE_S), (folder / "log").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:

            async def call(name: str, **given: Any) -> tuple[Any, str]:
                result = await client.call_tool(name, given)
                return result, "\n".join(c.text for c in result.content if c.type == "text")

            call.client = client  # type: ignore[attr-defined]
            yield call


def step(**args: Any) -> dict[str, Any]:
    """One action of the environment's own."""
    return {"type": "custom", "action": "step", "args": args}


@pytest.mark.long
async def test_several_actions_of_one_call_report_and_record_every_reward(tmp_path: Path) -> None:
    """In words, beside the text, and in the record; the end is told apart from the limit."""
    async with serving(tmp_path, "gym:CliffWalking-v1?steps=6&screen=0") as call:
        started, prompt = await call("start_task", template="reach_goal", seed=1)
        assert "within them, and 0 otherwise" in prompt
        actions = [step(action=0), {"type": "screenshot"}, step(actions=[1, 2]), step(action=9)]
        result, text = await call("step", actions=actions)
        assert result.is_error
        assert "actions[3]: custom failed: action: 9 is above its upper bound 3" in text
        assert "reward=-102 (-1 x 2, -100)" in text
        assert "truncated" not in text
        beside = result.meta["hud-mcp/step"]
        assert beside["info"]["rewards"] == [-1.0, -1.0, -100.0]
        assert (beside["info"]["first_step"], beside["performed"]) == (1, 3)
        result, text = await call("step", actions=[step(action=0), step(action=0, repeat=9)])
        assert "7 more actions of the list were not performed" in text
        assert "reward=-3 (-1 x 3) truncated=true" in text
        assert result.meta["hud-mcp/step"]["info"]["first_step"] == 4
        _, text = await call("response", answer="done")
        assert "Graded: reward 0." in text
        trajectory = started.meta["hud-mcp/start"]["trajectory"]
    store = Store(f"{tmp_path}/s.sqlite3")
    try:
        recorded = await store.load_trajectory(trajectory)
    finally:
        await store.close()
    rewards = [r for s in recorded.steps[:2] for r in s.info["rewards"]]
    assert rewards == [-1.0, -1.0, -100.0, -1.0, -1.0, -1.0]
    assert [s.reward for s in recorded.steps[:2]] == [-102.0, -3.0]


@pytest.mark.long
@pytest.mark.parametrize("policy", ["hidden", "on_submit"])
async def test_no_reward_is_told_where_the_server_hides_it(tmp_path: Path, policy: str) -> None:
    """The server's policy wins over the environment's: neither words nor what is beside them."""
    async with serving(tmp_path, "gym:CartPole-v1?screen=0", "--reward", policy) as call:
        await call("start_task", template="balance", seed=1)
        result, text = await call("step", actions=[step(actions=[0, 1])])
        assert "reward" not in text
        assert "reward" not in json.dumps(result.meta)


@pytest.mark.long
async def test_tools_and_tasks_of_a_contextual_environment(tmp_path: Path) -> None:
    """The schema is of its actions; each task has another context, and the agent is told it."""
    async with serving(tmp_path, "gym:CARLCartPole?context=train&screen=asked") as call:
        tools = {tool.name: tool for tool in (await call.client.list_tools()).tools}
        fields = tools["act"].input_schema["properties"]
        assert fields["type"]["enum"] == ["screenshot", "response", "custom"]
        assert fields["args"]["properties"]["action"]["maximum"] == 1
        seen: set[str] = set()
        for _ in range(2):
            started, begun = await call("start_task", template="balance")
            session = started.structured_content["session"]
            result, text = await call("step", session=session, actions=[step(action=1)])
            assert [c.type for c in result.content] == ["text"]
            assert "Context: " not in text, "the start has told it"
            seen.add(next(line for line in begun.splitlines() if line.startswith("Context: ")))
            picture, _ = await call("screenshot", session=session)
            assert [c.type for c in picture.content] == ["text", "image"]
        assert len(seen) == 2

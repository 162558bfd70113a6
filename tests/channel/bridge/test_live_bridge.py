"""A live environment on a real HUD server, whose grade consumes its task."""

from pathlib import Path

import anyio
import pytest
from bridging import PATIENCE_S, HudServer

from hud_mcp import Outcome, ResponseAction, Store, Task
from hud_mcp.errors import GymMakeException, SessionEnded
from hud_mcp.plugins.hud import gym
from hud_mcp.session.caller import OPERATOR_TOKEN

pytestmark = pytest.mark.anyio


async def test_an_evaluation_on_a_hud_server_works_once_and_repeats_its_result(
    questions: HudServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a reset, which starts the task there anew; all of it is recorded here."""
    store = tmp_path / "store.sqlite3"
    monkeypatch.setenv("HUD_MCP_STORE", str(store))
    monkeypatch.setenv(OPERATOR_TOKEN, "of-no-use-on-a-hud-server")
    task = Task(env="questions", template="add", args={"a": 3, "tag": "live"})
    with anyio.fail_after(PATIENCE_S):
        async with await gym.make(task, url=questions.url) as env:
            first = env.trajectory
            assert env.prompt == "What is 3 + 2? Be plain."
            observation, _ = await env.reset()
            assert observation.text == env.prompt
            await env.step(ResponseAction(text="6"))
            assert [await env.evaluate(), await env.evaluate()] == [0.25, 0.25]
            with pytest.raises(SessionEnded, match="call `reset` to start the task again"):
                await env.step(ResponseAction(text="5"))

            await env.reset()
            await env.step(ResponseAction(text="5"))
            assert await env.evaluate() == 1.0
        assert (env.reward, env.outcome) == (1.0, "graded")
        assert (questions.notes / "gradedlive").read_text() == "xx"
        assert (questions.notes / "startedlive").read_text() == "xx"

        with pytest.raises(GymMakeException, match=r"is a HUD server, and starts tasks of its own"):
            await gym.make(Task(prompt="a", gym="questions"), url=questions.url)
        with pytest.raises(GymMakeException, match=r"no template 'ad'. Did you mean 'add'"):
            await gym.make(Task(env="questions", template="ad"), url=questions.url)
        read = Store(store)
        try:
            outcomes = [(await read.load_trajectory(t)).outcome for t in (first, env.trajectory)]
        finally:
            await read.close()
        assert outcomes == [Outcome.GRADED, Outcome.GRADED]

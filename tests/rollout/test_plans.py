"""What runs in Python add to a job's plan, and that their agents add nothing."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp import Environment, Job, LocalRuntime, Run, SubprocessRuntime, Taskset, run_job
from hud_mcp.channel.client import ChannelClient
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.hud.wire.streams import ChannelRefused, Place
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

BOUND_S = 120
ENV = """
from hud_mcp import Environment

env = Environment("words")


@env.template()
async def backwards(word: str = "lamp"):
    answer = yield f"Write {word!r} backwards."
    yield float(answer == word[::-1])
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An environment's file; the default store is a fresh one."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    path = tmp_path / "env.py"
    path.write_text(ENV)
    return str(path)


@pytest.fixture
def words(source: str) -> Environment:
    """The environment."""
    return load_environments([source])[0]


class Greedy:
    """Answers wrongly, and tries whatever its connection could be good for."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.sessions: list[str] = []

    async def __call__(self, run: Run) -> None:
        """Try, on the connection that it was given and on new ones with what that one knows."""
        assert run.client is not None
        run.trace.content = "wrong"
        self.sessions.append(run.client.session_id)
        await self._attack(run.client)
        place = run.client.place
        async with ChannelClient.connect(place) as own:
            assert own.session_id == run.client.session_id
            await self._attack(own)
        others = [s for s in self.sessions if s != run.client.session_id]
        for session in [*others, "sess-" + "0" * 32]:
            with pytest.raises(ChannelRefused, match="has ended, or to another one"):
                async with ChannelClient.connect(place, session_id=session, take_over=True):
                    pass
        forged = f"{(place.token or '')[:-4]}0000"
        for token in (None, forged, run.client.session_id):
            with pytest.raises(ChannelRefused, match="asks for a token"):
                async with ChannelClient.connect(Place(place.host, place.port, token)):
                    pass

    async def _attack(self, client: ChannelClient) -> None:
        for method, params in (
            ("tasks.list", {}),
            ("tasks.start", {"id": "backwards", "args": {"word": "aa"}}),
            ("tasks.grade", {"answer": "pmal"}),
            ("tasks.cancel", {}),
            ("hud-mcp/start", {"task": "backwards"}),
            ("hud-mcp/evaluate", {"session": client.session_id}),
        ):
            with pytest.raises(ChannelRefused, match="method not found"):
                await client.call(method, params)
            self.refused.append(method)


@pytest.mark.long
@pytest.mark.parametrize("place", ["here", "process"])
async def test_an_agent_on_the_channel_begins_and_grades_nothing(
    source: str, words: Environment, place: str
) -> None:
    """Whatever it tries: each run has its one wrong answer's reward, and no row is added."""
    agent = Greedy()
    tasks = Taskset("words", [words.templates["backwards"](word=word) for word in ("ab", "cd")])
    runtime: Any = LocalRuntime(words) if place == "here" else SubprocessRuntime(source)
    with anyio.fail_after(BOUND_S):
        job = await tasks.run(agent, runtime=runtime, max_concurrent=1)
    assert len(agent.refused) == 2 * 2 * 6
    errors = [run.trace.error for run in job.runs]
    assert [(run.reward, run.grade.is_error) for run in job.runs] == [(0.0, False)] * 2, errors
    figures = await job.statistics()
    assert (figures.wanted, figures.outcomes["graded"], figures.foreign) == (2, 2, 0)
    assert figures.planned is True
    assert len(await job.load_trajectories()) == 2


async def test_what_gym_make_and_run_job_begin_is_in_the_plan(words: Environment) -> None:
    """Each run counts; a session that anybody else begins in the job does not."""

    class Right:
        async def predict(self, observation: Any) -> tuple[list[dict[str, Any]], bool]:
            word = observation.text.split("'")[1]
            return [{"type": "response", "text": word[::-1]}], True

    tasks = Taskset("words", [words.templates["backwards"](word=word) for word in ("ab", "cd")])
    store = Store()
    with anyio.fail_after(BOUND_S):
        done = await run_job(Right, tasks, "classic", store=store)
        job = await Job.create("by hand", store=store)
        assert (await job.statistics()).planned is False
        async with await gym.make(tasks[tasks.ids[0]], job=job) as env:
            await env.step({"type": "response", "text": "ba"})
            await env.evaluate()
    figures = await done.statistics()
    assert done.errors == []
    assert (figures.planned, figures.foreign, figures.mean and figures.mean.value) == (True, 0, 1.0)
    figures = await job.statistics()
    assert (figures.planned, figures.foreign, figures.mean and figures.mean.value) == (True, 0, 1.0)
    await store.close()

"""Tasks of real servers as Gymnasium environments."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv
from waiting import PATIENCE_S, until

import hud_mcp.task_env  # noqa: F401  # registers
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidTask, SessionEnded
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.gymnasium.task_env.connection import Pipe
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.task_env import ENV_ID, TaskEnv

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _this_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers serve this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@contextmanager
def made(*args: Any, **options: Any) -> Iterator[Any]:
    """An environment, closed afterwards."""
    env = gymnasium.make(ENV_ID, *args, **options)
    try:
        yield env
    finally:
        env.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*A Box observation space m")  # CartPole's own is infinite
def test_an_environment_of_a_server_is_one_of_gymnasium_s() -> None:
    """Gymnasium's own checker finds nothing; the steps are those of the bare environment."""
    with made(source="gym:CartPole-v1", render_mode="rgb_array") as env:
        check_env(env.unwrapped, skip_close_check=True)
        bare = gymnasium.make("CartPole-v1", render_mode="rgb_array")
        assert env.observation_space == bare.observation_space
        assert env.action_space == bare.action_space
        seen, info = env.reset(seed=4)
        np.testing.assert_array_equal(seen, bare.reset(seed=4)[0])
        assert "Keep the pole upright" in info["prompt"]
        ended = False
        while not ended:
            mine, its = env.step(0), bare.step(0)
            np.testing.assert_array_equal(mine[0], its[0])
            assert mine[1:4] == its[1:4]
            ended = mine[2]
            np.testing.assert_array_equal(env.render(), bare.render())
        assert 0 < mine[4]["grade"] < 0.1
        with pytest.raises(ActionFailed, match="no episode; call reset"):
            env.unwrapped.step(0)
        bare.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*A Box observation space m")  # without bounds under contexts
def test_a_seed_brings_back_the_context_too() -> None:
    """Gymnasium's checker finds nothing where each task has another context either."""
    with made(source="gym:CARLCartPole?context=train") as env:
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
        gravities = [env.reset(seed=seed)[0]["context"]["gravity"].item() for seed in (1, 2, 1)]
        assert gravities[0] == gravities[2] != gravities[1]


@pytest.mark.long
def test_a_refused_action_leaves_the_episode_as_it_was() -> None:
    """What differs for one episode is said at its reset; what is wrong is told with the right."""
    with made(source="gym:CARLMountainCarContinuous?steps=3", disable_env_checker=True) as env:
        first, _ = env.reset(seed=1, options={"context": {"power": 0.003}})
        assert first["context"]["power"] == np.float32(0.003)
        assert first in env.observation_space
        with pytest.raises(ActionFailed, match="2 is above its upper bound 1"):
            env.step(np.array([2.0], np.float32))
        for i in range(3):
            _, reward, terminated, truncated, info = env.step(np.array([1.0], np.float32))
            assert (terminated, truncated) == (False, i == 2)
            assert reward == pytest.approx(-0.1)
        assert info["grade"] == 0.0
        second, _ = env.reset(seed=1)
        assert second["context"]["power"] == np.float32(0.0015)
        for options, said in (
            ({"contxt": {}}, "there is no 'contxt'. Did you mean 'context'?"),
            ({"context": {"powr": 1}}, "no feature 'powr'. Did you mean 'power'?"),
            ({"template": "reach_gaol"}, "'reach_goal'"),
        ):
            with pytest.raises(InvalidTask) as caught:
                env.reset(options=options)
            assert said in str(caught.value)


@pytest.mark.long
def test_several_work_side_by_side_in_processes_of_their_own() -> None:
    """Each with its server; an episode that ends is followed by the next."""
    kwargs = {"source": "gym:CARLCartPole?context=train&steps=5", "disable_env_checker": True}
    envs = AsyncVectorEnv([partial(gymnasium.make, ENV_ID, **kwargs) for _ in range(2)])
    try:
        seen, _ = envs.reset(seed=3)
        assert seen["state"].shape == (2, 4)
        assert not np.array_equal(seen["state"][0], seen["state"][1])
        ended = np.zeros(2, int)
        for _ in range(8):
            seen, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
            ended += terminated | truncated
            assert seen in envs.observation_space
            assert set(rewards) <= {0.0, 1.0}
        assert ended.tolist() == [1, 1]
    finally:
        envs.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*A Box observation space m")
def test_an_episode_that_a_limit_outside_cuts_off_has_its_grade(tmp_path: Path) -> None:
    """The next reset or the end grades it, and the reset's info tells the grade.

    The record has each episode as a task of its own, graded once, with every action.
    """
    store = tmp_path / "store.sqlite3"
    options = {"source": "gym:CartPole-v1", "store": str(store), "disable_env_checker": True}
    with made(max_episode_steps=3, **options) as env:
        env.reset(seed=1)
        for i in range(3):
            _, _, terminated, truncated, _ = env.step(i % 2)
        assert (terminated, truncated) == (False, True)
        assert env.reset(seed=2)[1]["left"]["grade"] == 3 / 200
        assert "left" not in env.reset(seed=2)[1]
    with made(**options) as inner:
        env = gymnasium.wrappers.TimeLimit(inner, 2)
        trajectory = env.reset(seed=3)[1]["trajectory"]
        assert not env.step(0)[3]
        assert env.step(1)[3]
        left = env.reset(seed=4)[1]["left"]
        assert left == {"trajectory": trajectory, "grade": 2 / 200}
        env.step(0)
    kept = anyio.run(_recorded, store)
    outcomes = [each.receipt.outcome.value for each in kept if each.receipt is not None]
    assert sorted(outcomes) == ["cancelled", "cancelled", "graded", "graded", "graded"]
    taken = [
        [act["args"]["action"] for step in each.steps for act in step.actions if "args" in act]
        for each in sorted(kept, key=lambda each: each.seed or 0)
    ]
    assert taken == [[0, 1, 0], [], [], [0, 1], [0]]


@pytest.mark.long
def test_a_program_that_pauses_has_its_actions_in_the_record(tmp_path: Path) -> None:
    """They are one step, and there without another call."""
    store = tmp_path / "store.sqlite3"
    with made(source="gym:CartPole-v1", store=str(store), disable_env_checker=True) as env:
        env.reset(seed=1)
        for i in range(4):
            env.step(i % 2)

        async def is_all_there() -> bool:
            (kept,) = await _recorded(store)
            return sum(step.performed for step in kept.steps) == 4

        anyio.run(until, is_all_there)
        (kept,) = anyio.run(_recorded, store)
        assert len(kept.steps) < 1 + 4


@pytest.mark.long
def test_an_episode_whose_server_dies_is_lost(tmp_path: Path) -> None:
    """It is not graded without the actions that its record lacks."""
    store = tmp_path / "store.sqlite3"
    source = "gym:CartPole-v1?screen=0"
    others = set(psutil.Process().children())
    env = TaskEnv(source, store=str(store))
    info = env.reset(seed=1)[1]
    env.step(0)
    for server in set(psutil.Process().children()) - others:
        server.kill()
    with pytest.raises(EnvironmentFailed, match="server"):
        env.step(1)
    env.close()

    async def find() -> None:
        sessions = Sessions(load_environments([source]), store=Store(store))
        try:
            await sessions.find(info["session"], Caller(principal=None))
        finally:
            await sessions.close()

    with pytest.raises(SessionEnded, match="the last steps may be missing"):
        anyio.run(find)


async def _recorded(place: Path) -> list[Trajectory]:
    store = Store(place)
    try:
        return [await store.load_trajectory(row.id) for row in await store.list_trajectories()]
    finally:
        await store.close()


@pytest.mark.long
def test_a_copy_by_pickle_is_reopened_on_the_other_side() -> None:
    """Before and after it was used: with a server of its own, and the same seeds' episodes."""
    options = {"source": "gym:CartPole-v1", "disable_env_checker": True}
    with made(**options) as env:
        early = pickle.dumps(env)
        seen, _ = env.reset(seed=5)
        after, *_ = env.step(1)
        for text in (early, pickle.dumps(env)):
            copy = pickle.loads(text)  # our own
            try:
                np.testing.assert_array_equal(copy.reset(seed=5)[0], seen)
                np.testing.assert_array_equal(copy.step(1)[0], after)
            finally:
                copy.close()
        env.step(0)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with several environments, which requires a token."""
    folder = tmp_path_factory.mktemp("remote")
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "hud_mcp", "serve", "letter_count", "gym:FrozenLake-v1",
             "--http", "127.0.0.1:0", "--token", "ann=secret-secret", "--store", "s.sqlite3"],
            cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip().removeprefix("HUD_MCP_URL=")
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)


@pytest.mark.long
def test_a_remote_server_s_task_is_driven_with_its_token(remote: str) -> None:
    """By one of its environments; one that it does not have is named with those that it has."""
    options = {"url": remote, "token": "secret-secret", "environment": "FrozenLake-v1"}
    with made(**options, template="reach_goal", arguments={"steps": 50}) as env:
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
        seen, _ = env.reset(seed=2)
        assert seen == 0
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert (reward, terminated, truncated) == (0.0, False, False)
    with pytest.raises(
        InvalidTask, match=r"no environment 'FrozenLake'\. Did you mean 'FrozenLake-"
    ):
        TaskEnv(url=remote, token="secret-secret", environment="FrozenLake")
    with pytest.raises(EnvironmentFailed, match=r"No server answers at .* and the token right"):
        TaskEnv(url=remote, token="another-secret")


@pytest.mark.long
def test_a_task_without_numbers_is_one_of_texts(remote: str) -> None:
    """Its answer is an action like any other text, and its grade is the reward."""
    options: dict[str, Any] = {"url": remote, "token": "secret-secret"}
    with made(**options, environment="letter_count", arguments={"word": "tree"}) as env:
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
        seen, info = env.reset(seed=1)
        assert seen.startswith(info["prompt"])
        assert "letter 'r' occur in 'tree'" in seen
        seen, reward, terminated, _, _ = env.step('[{"type": "click", "x": 1, "y": 1}]')
        assert (reward, terminated) == (0.0, False)
        assert "'click' is not an action of environment 'letter_count'" in seen
        seen, reward, terminated, truncated, info = env.step("1")
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert info["grade"] == 1.0
        assert "Graded: reward 1." in seen
        env.reset()
        sent = '[{"type": "wait", "time": 1}, {"type": "response", "text": "2"}]'
        assert env.step(sent)[1:4] == (0.0, True, False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Give `source`, what a server of its own serves, or `url`."),
        ({"source": "gym:CartPole-v1", "url": "http://x"}, "Give `source`"),
        ({"source": "gym:CartPol-v1"}, "Did you mean 'CartPole-v1'?"),
        ({"url": "http://127.0.0.1:9/mcp"}, "No server answers at http://127.0.0.1:9/mcp"),
    ],
)
def test_what_cannot_be_reached_is_told_when_it_is_made(options: dict[str, Any], said: str) -> None:
    """With the end of the server's own log, where one was started."""
    with pytest.raises((InvalidTask, EnvironmentFailed)) as caught:
        TaskEnv(**options)
    assert said in str(caught.value)


@pytest.mark.long
def test_closing_ends_the_server_and_so_does_the_process() -> None:
    """Nothing is left over, and a process that forgets to close ends all the same."""
    children = set(psutil.Process().children(recursive=True))
    with made(source="letter_count") as env:
        env.reset()
        assert set(psutil.Process().children(recursive=True)) - children
    assert set(psutil.Process().children(recursive=True)) == children
    with pytest.raises(EnvironmentFailed, match="connection to the server is closed"):
        env.reset()
    program = (
        "import gymnasium, psutil\n"
        "env = gymnasium.make('hud_mcp.task_env:hud_mcp/Task-v0', source='letter_count')\n"
        "env.reset()\n"
        "print(*(p.pid for p in psutil.Process().children(recursive=True)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    started = [int(pid) for pid in done.stdout.split()]
    assert started
    gone, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in started if psutil.pid_exists(pid)], timeout=PATIENCE_S
    )
    del gone
    assert alive == []


def test_a_reply_that_comes_too_late_is_not_read_as_the_next_one() -> None:
    """A call that was given up leaves its reply in the pipe, which the next call passes by."""
    pipe = Pipe("letter_count", None)
    try:
        bound_s, pipe.call_s = pipe.call_s, 0.0
        with pytest.raises(EnvironmentFailed, match="No reply of the server within 0 s"):
            pipe.manifest("letter_count")
        pipe.call_s = bound_s
        listed = pipe.call("list_tasks", {})
        assert listed.structured["templates"]
        assert pipe.manifest("letter_count")["name"] == "letter_count"
    finally:
        pipe.close()

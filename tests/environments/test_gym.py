"""Gymnasium's environments by `gym:ID`: found, asked for, solved, and the contextual sets.

Tasks are played on real worlds, without a server; one test goes through a whole one.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import gymnasium
import numpy as np
import pytest
from direct import Tools
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Agent, Environment, Grade, Opening, Task, Taskset
from hud_mcp.environment.prompt import read_prompt
from hud_mcp.errors import InvalidEnvironment, SourceNotFound
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import lasting_source, load_environments
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.grade import read_grade

ROOT = Path(__file__).resolve().parents[2]
SETS = {
    "contextual_acrobot": "CARLAcrobot",
    "contextual_cartpole": "CARLCartPole",
    "contextual_mountain_car": "CARLMountainCar",
    "contextual_mountain_car_continuous": "CARLMountainCarContinuous",
    "contextual_pendulum": "CARLPendulum",
}
FOLDERS = (ROOT / "tests", ROOT / "tests" / "interaction")
"""Where modules of the tests are."""
ROWS = [row for name in SETS for row in Taskset.load(find_taskset(name))]


def load(source: str) -> Environment:
    """One environment by its source."""
    (environment,) = load_environments([source])
    return environment


async def play(
    environment: Environment, task: Task, solve: Callable[..., Any]
) -> tuple[str, Grade]:
    """Play a task to its grade; return its prompt too."""
    template = environment.find_template(task.template)
    with anyio.fail_after(PATIENCE_S):
        context = environment.split_context(task.context)
        world: Any = await environment.world.open(Opening(context=context, seed=task.seed))
        try:
            tools = Tools(world)
            run = template.run(task.args, world)
            prompt = read_prompt(await anext(run), where=template.where).text
            await solve(Agent(tools, session="here", prompt=prompt))
            grade = read_grade(await run.asend(tools.answer or ""), where=template.where)
            await run.aclose()
            return prompt, grade
        finally:
            await world.close()


async def by_oracle(environment: Environment, task: Task) -> Grade:
    """The grade of the template's own solution."""
    template = environment.find_template(task.template)
    function = template.oracle_function
    assert function is not None
    arguments = template.arguments.parse(task.args)
    wanted = list(inspect.signature(function).parameters)[1:]

    async def solve(agent: Agent) -> None:
        await agent.respond(await function(agent, **{name: arguments[name] for name in wanted}))

    return (await play(environment, task, solve))[1]


def acting(*actions: Any) -> Callable[[Agent], Any]:
    """An agent that does this and no more."""

    async def solve(agent: Agent) -> None:
        for each in actions:
            await agent.act({"type": "custom", "action": "step", "args": each})
        await agent.respond("done")

    return solve


# The contextual sets.


@pytest.mark.anyio
@each_of("row", ROWS, ids=lambda row: row.id)
async def test_a_row_is_solved_by_its_controller_and_by_nothing_less(row: Task) -> None:
    """Its solution gets exactly 1; an answer alone gets exactly 0."""
    environment = load(f"gym:{row.env}")
    assert row.validation is not None
    grade = await by_oracle(environment, row)
    assert grade.reward == row.validation.oracle == 1.0, grade
    _, grade = await play(environment, row, acting())
    assert grade.reward == row.validation.nop == 0.0, grade


@each_of("name", SETS)
def test_a_set_trains_inside_its_ranges_and_tests_on_both_sides(name: str) -> None:
    """Features of training span a range; a part of the test lies within, another all outside."""
    rows = list(Taskset.load(find_taskset(name)))
    assert {row.env for row in rows} == {SETS[name]}
    splits = {split: [r.context for r in rows if r.metadata["split"] == split] for split in
              ("train", "test", "test-outside")}  # fmt: skip
    assert {k: len(v) for k, v in splits.items()} == {"train": 8, "test": 4, "test-outside": 4}
    load(f"gym:{SETS[name]}")
    ranges = sys.modules["gym_contexts"].RANGES[SETS[name]]
    for split, contexts in splits.items():
        for context in contexts:
            assert set(context) == set(ranges)
            for feature, value in context.items():
                low, high = ranges[feature][split == "test-outside"]
                assert low <= value <= high, (split, feature)
    for inside, outside in ranges.values():
        assert outside[1] < inside[0] or inside[1] < outside[0]


def test_the_page_of_the_sets_says_their_ranges() -> None:
    """As they are in the code that drew the contexts."""
    text = (find_taskset("contextual_cartpole").parent / "README.md").read_text(encoding="utf-8")
    load("gym:CARLCartPole?screen=0")
    for name, env in SETS.items():
        (line,) = (each for each in text.splitlines() if each.startswith(f"| `{name}` |"))
        ranges = sys.modules["gym_contexts"].RANGES[env]
        for outside in (0, 1):
            sides = [each[outside] for each in ranges.values()]
            assert ", ".join(f"{low:g}–{high:g}" for low, high in sides) in line  # noqa: RUF001  # a range
        assert ", ".join(f"`{feature}`" for feature in ranges) in line


def test_the_rows_of_a_set_find_their_environment_by_its_name(tmp_path: Path) -> None:
    """`eval` needs no `--env` for them, also where another env.py lies about."""
    (tmp_path / "env.py").write_text("")
    for name, env in SETS.items():
        tasks = Taskset.load(find_taskset(name))
        assert find_sources((), tasks, find_taskset(name).parent) == [f"gym:{env}"]


# Sources.


@each_of(
    ("source", "name", "templates"),
    [
        ("gym:CartPole-v1", "CartPole-v1", "balance reach_return highest_return"),
        ("gym:CARLPendulum?screen=0", "CARLPendulum", "swing_up reach_return highest_return"),
        ("gym:MountainCar-v0", "MountainCar-v0", "reach_goal reach_return highest_return"),
        (
            "gym:MiniGrid-DoorKey-5x5-v0",
            "MiniGrid-DoorKey-5x5-v0",
            "reach_goal reach_return highest_return",
        ),
        ("gym:LunarLander-v3?continuous=true", "LunarLander-v3", "reach_return highest_return"),
    ],
)
def test_any_id_is_an_environment_with_templates_that_fit(
    source: str, name: str, templates: str
) -> None:
    """It is named by its id, and agents see the reward of each step."""
    environment = load(source)
    assert environment.name == name
    assert list(environment.templates) == templates.split()
    assert environment.reward == "per_step"
    assert load(source) is environment


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("gym:CartPol-v1", "no environment 'CartPol-v1'. Did you mean 'CartPole-v1'?"),
        ("gym:CARLCartPol", "'CARLCartPol'. Did you mean 'CARLCartPole'?"),
        ("gym:CartPole-v1?scren=0", "there is no option 'scren'. Did you mean 'screen'? There are"),
        ("gym:FrozenLake-v1?is_slipery=0", "Did you mean 'is_slippery'?"),
        ("gym:CartPole-v1?screen=2", "screen=2: expected one of 0, 1, asked."),
        ("gym:CartPole-v1?steps=0", "steps=0: expected a whole number from 1."),
        ("gym:CartPole-v1?seed=x", "seed=x: expected a whole number from 0."),
        ("gym:CartPole-v1?context=train", "CartPole-v1 has no features; the environments that"),
        ("gym:CARLCartPole?context=tran", "expected one of default, train, test, test-outside"),
        ("gym:CARLCartPole?context=wrong.json", "wrong.json: this is not JSON"),
        ("gym:CARLCartPole?context=empty.json", "empty.json: expected objects from features"),
        ("gym:CARLCartPole?context=bad.json", "there is no feature 'gravty'. Did you mean 'grav"),
        ("gym:", "names no environment"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is served."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.json").write_text("{")
    (tmp_path / "empty.json").write_text("[1]")
    (tmp_path / "bad.json").write_text('{"a": {"gravty": 1}}')
    with pytest.raises((InvalidEnvironment, SourceNotFound)) as caught:
        load(source)
    assert said in str(caught.value)


def test_two_ways_to_make_one_environment_are_not_served_together() -> None:
    """Neither hides the other; and the record can tell them apart."""
    with pytest.raises(InvalidEnvironment, match="Two environments are named 'CartPole-v1'"):
        load_environments(["gym:CartPole-v1", "gym:CartPole-v1?steps=50"])
    assert load("gym:CartPole-v1").digest != load("gym:CartPole-v1?steps=50").digest


def test_a_source_means_the_same_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a file of contexts becomes absolute; a folder named gym is not meant."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gym").mkdir()
    (tmp_path / "moons.json").write_text('{"moon": {"gravity": 1.62}}')
    assert lasting_source("gym:CartPole-v1") == "gym:CartPole-v1"
    source = lasting_source("gym:CARLCartPole?context=moons.json&screen=0")
    assert source == f"gym:CARLCartPole?context={tmp_path}/moons.json&screen=0"
    monkeypatch.chdir("/")
    assert load(source).context_selector is not None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("split", ["train", "test", "test-outside"])
def test_tasks_that_bind_no_context_get_one_in_turn(split: str, tmp_path: Path) -> None:
    """It stands in the task, so that it is recorded and can be played again; so does the seed."""
    environment = load(f"gym:CARLCartPole?context={split}&seed=7&screen=0")
    sessions = Sessions([environment], store=Store(str(tmp_path / "store.sqlite3")))
    first, second = (sessions.catalogue.mint("balance", {}) for _ in range(2))
    assert set(first.context) == {"gravity", "length", "masscart"}
    assert first.context != second.context
    assert first.seed == 7
    seeded = [sessions.catalogue.mint("balance", {}, seed=seed).context for seed in (4, 5, 4, 24)]
    assert seeded[0] == seeded[2] == seeded[3] != seeded[1]
    bound = sessions.catalogue.mint("balance", {}, context={"gravity": 3.0}, seed=1)
    assert (bound.context, bound.seed) == ({"gravity": 3.0}, 1)
    assert sessions.catalogue.mint("balance", {}, context={}).context == {}
    assert ContextSpace(environment.context_space.features).problems(first.context) == []


# What is asked, and how it is rewarded.

LEFT = {"action": 0, "repeat": 200}


@pytest.mark.anyio
@each_of(
    ("source", "template", "args", "actions", "said", "reward"),
    [
        ("CartPole-v1", "balance", {"steps": 20}, [LEFT], "for 20 steps", 8 / 20),
        ("CartPole-v1", "balance", {"steps": 5}, [{"actions": [0, 1] * 4}], "these 5 steps", 1.0),
        ("CartPole-v1", "reach_return", {"at_least": 9}, [LEFT], "at least 9", 1.0),
        ("CartPole-v1", "reach_return", {"at_least": 10}, [LEFT], "at least 10", 0.0),
        ("CartPole-v1", "reach_return", {"at_least": -1}, [], "at least -1", 0.0),
        ("CartPole-v1", "highest_return", {"high": 18}, [LEFT], "1 for 18 or more", 0.5),
        ("CartPole-v1", "highest_return", {"steps": 4}, [LEFT], "of 4 steps", 4 / 500),
        ("Pendulum-v1", "highest_return", {}, [], "0 for a return of -1200 or less", 0.0),
        ("Pendulum-v1", "swing_up", {"steps": 9, "hold": 3}, [], "the last 3 of 9", 0.0),
        ("MountainCar-v0", "reach_goal", {}, [LEFT], "You have 200 steps", 0.0),
        (
            "FrozenLake-v1?is_slippery=false",
            "reach_goal",
            {},
            [{"actions": [1, 1, 2, 1, 2, 2]}],
            "0 left; 1 down; 2 right; 3 up",
            1.0,
        ),
        (
            "FrozenLake-v1?is_slippery=false",
            "reach_goal",
            {"steps": 5},
            [{"actions": [1, 1, 2, 1, 2, 2]}],
            "You have 5 steps",
            0.0,
        ),
        ("FrozenLake-v1?is_slippery=false", "reach_goal", {}, [{"actions": [1, 2]}], "(G)", 0.0),
        (
            "MiniGrid-Empty-5x5-v0",
            "reach_goal",
            {},
            [{"actions": [2, 2, 1, 2, 2]}],
            "You have 100 steps",
            1.0,
        ),
        ("BabyAI-GoToRedBall-v0", "reach_goal", {}, [], "You have 64 steps", 0.0),
        ("BabyAI-GoToRedBall-v0", "reach_return", {}, [], "of 64 steps at most", 0.0),
    ],
)
async def test_the_reward_is_what_the_prompt_says(  # noqa: PLR0917  # a table
    source: str, template: str, args: dict[str, Any], actions: Any, said: str, reward: float
) -> None:
    """The return and its scale stand in the prompt; an episode that is cut short gets nothing."""
    environment = load(f"gym:{source}")
    task = environment.templates[template](**args).model_copy(update={"seed": 3})
    prompt, grade = await play(environment, task, acting(*actions))
    assert grade.reward == pytest.approx(reward), grade
    assert said in prompt
    assert '{"type": "custom", "action": "step", "args": {"action": ' in prompt


@pytest.mark.anyio
@each_of(
    ("source", "template", "reward"),
    [
        ("CartPole-v1", "highest_return", 1.0),
        ("MountainCar-v0", "reach_goal", 1.0),
        ("Acrobot-v1", "reach_goal", 1.0),
        ("Pendulum-v1", "swing_up", 1.0),
        ("MountainCarContinuous-v0", "reach_goal", 1.0),
    ],
)
async def test_classic_control_is_solved_without_contexts_too(
    source: str, template: str, reward: float
) -> None:
    """By the same controllers."""
    environment = load(f"gym:{source}")
    task = environment.templates[template]().model_copy(update={"seed": 5})
    assert (await by_oracle(environment, task)).reward == reward


class Bare(gymnasium.Env[int, int]):
    """An environment of somebody's that says nothing of its returns."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        """Draw nothing."""
        self.render_mode = render_mode


def test_a_task_needs_no_scale_where_nobody_knows_one() -> None:
    """The first template takes no argument; those that compare with a return require it."""
    gymnasium.register("test/Bare-v0", entry_point=Bare)
    try:
        environment = load("gym:test/Bare-v0")
    finally:
        del gymnasium.registry["test/Bare-v0"]
    assert environment.name == "test-Bare-v0"
    required = {t.id: sorted(t.arguments.required) for t in environment.templates.values()}
    assert required == {
        "episode_return": [],
        "reach_return": ["at_least"],
        "highest_return": ["high", "low"],
    }
    assert next(iter(required)) == "episode_return"


class Pixels(gymnasium.Env[np.ndarray, int]):
    """Of the shape of an Atari game: pictures, named actions, and no threshold."""

    observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  # as Gymnasium has it

    def __init__(self, render_mode: str | None = None) -> None:
        """Begin dark."""
        self.render_mode = render_mode
        self.steps = 0

    def get_action_meanings(self) -> list[str]:
        """As Atari's games say it."""
        return ["NOOP", "FIRE", "RIGHT", "LEFT"]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin."""
        super().reset(seed=seed)
        self.steps = 0
        return self.render(), {"lives": 1}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Reward the way to the right; five steps are all."""
        self.steps += 1
        reward = {2: 1.0, 3: -1.0}.get(action, 0.0)
        return self.render(), reward, self.steps >= 5, False, {"lives": 1}

    def render(self) -> np.ndarray:
        """Brighter with each step."""
        return np.full((84, 84, 3), 50 * self.steps, np.uint8)


@pytest.mark.anyio
@each_of(
    ("actions", "reward"),
    [
        ([{"actions": ["right"] * 5}], (1 + 5 / 6) / 2),
        ([{"action": 0, "repeat": 5}], 0.5),
        ([{"action": "left", "repeat": 5}], (1 - 5 / 6) / 2),
        ([{"action": "right", "repeat": 4}], 0.0),
        ([], 0.0),
    ],
)
async def test_an_environment_of_pictures_starts_without_arguments(
    actions: list[Any], reward: float
) -> None:
    """The reward grows with the return; no answer before the end is worth as much as the worst."""
    gymnasium.register("test/Pixels-v5", entry_point=Pixels)
    try:
        environment = load("gym:test/Pixels-v5")
        template = next(iter(environment.templates.values()))
        prompt, grade = await play(environment, template(), acting(*actions))
    finally:
        del gymnasium.registry["test/Pixels-v5"]
    assert grade.reward == pytest.approx(reward)
    assert "0 noop; 1 fire; 2 right; 3 left" in prompt
    assert "(1 + R / (1 + |R|)) / 2" in prompt


CHILD = """
import sys, anyio
from pathlib import Path
from mcp import Client
from slate import registry
from hud_mcp.loading.source import load_environments
from hud_mcp.server.app import build_server

async def main():
    (environment,) = load_environments([sys.argv[1]])
    async with registry(Path("s.sqlite3"), environment) as sessions:
        async with Client(build_server(sessions)) as client:
            begun = await client.call_tool("start_task", {"template": "reach_return"})
            action = {"type": "custom", "action": "step", "args": {"action": 0}}
            stepped = await client.call_tool("step", {"actions": [action]})
            print(begun.is_error, stepped.is_error)

anyio.run(main)
print("ConfigSpace" in sys.modules, "mujoco" in sys.modules)
"""


@pytest.mark.long
@pytest.mark.parametrize("source", ["gym:CartPole-v1", "gym:CARLCartPole"])
def test_what_no_task_needs_is_not_loaded(tmp_path: Path, source: str) -> None:
    """Without `context=`, a task starts and takes a step without ConfigSpace and MuJoCo."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, source],
        cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *FOLDERS)))},
    )  # fmt: skip
    assert done.stdout == "False False\nFalse False\n", done.stdout + done.stderr


@pytest.mark.long
def test_an_evaluation_needs_nothing_but_the_set(tmp_path: Path) -> None:
    """`hud-mcp eval contextual_cartpole` starts a server of its own and is graded 1."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "eval", "contextual_cartpole", "--agent", "oracle",
         "--filter", "cartpole@test-0[01]", "--store", "store.sqlite3", "--report", "r.html"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 2 graded of 2 runs" in done.stdout

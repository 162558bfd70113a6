"""The world: how it is declared, opened, acted on, looked at and closed."""

import io
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mcp import Client
from PIL import Image
from slate import registry
from waiting import PATIENCE_S

from hud_mcp import Environment, Gymnasium, GymnasiumWorld
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidEnvironment
from hud_mcp.plugins.gymnasium import world as world_module
from hud_mcp.plugins.gymnasium.carl.gym_setup import load_box2d
from hud_mcp.server.app import build_server
from hud_mcp.values.action import ActionEffect, CustomAction, ScreenshotFetch, WaitAction
from hud_mcp.values.context import ContextFeature
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio


class Fickle(gymnasium.Env[np.ndarray, int]):
    """An environment whose steps do what a test says."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float32)
    action_space = spaces.Discrete(4)
    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it
    fail_reset = False

    def __init__(self, render_mode: str | None = None) -> None:
        """Count from 0."""
        self.render_mode = render_mode
        self.count = 0
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.closed_on: str | None = None
        self.speed = 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin, or fail."""
        super().reset(seed=seed)
        if self.fail_reset:
            raise RuntimeError("no start today")
        self.count = 0
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        """The count."""
        return np.array([self.count], dtype=np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Count, wait at the gate, fail, or truncate."""
        if action == 1:
            self.entered.set()
            self.gate.wait(PATIENCE_S)
        if action == 2:
            raise ValueError("the engine fell off")
        self.count += self.speed
        array = np.arange(3)
        return self.seen(), 0.5, False, action == 3, {"array": array, "odd": object}

    def close(self) -> None:
        """Say where."""
        self.closed_on = threading.current_thread().name


@pytest.fixture(autouse=True)
def _registered() -> Any:
    gymnasium.register("test/Fickle-v0", entry_point=Fickle, max_episode_steps=1_000_000)
    yield
    del gymnasium.registry["test/Fickle-v0"]


def step(**args: Any) -> CustomAction:
    """The action that an agent sends."""
    return CustomAction(action="step", args=args)


@asynccontextmanager
async def opened(spec: Gymnasium, **opening: Any) -> AsyncIterator[GymnasiumWorld]:
    """A world, closed afterwards."""
    context = spec.context_space.fill(opening.pop("context", {}))
    with anyio.fail_after(PATIENCE_S):
        world = await spec.open(Opening(context=context, **{"seed": 3, **opening}))
        try:
            yield world
        finally:
            await world.close()


async def words(world: GymnasiumWorld, **look: Any) -> str:
    """What it looks like."""
    return (await world.observe(Look(**look))).text or ""


async def all_at_once(
    world: GymnasiumWorld, *actions: Any
) -> tuple[list[ActionEffect], ActionFailed | None]:
    """What several actions did, and why the next one was refused."""
    done: list[ActionEffect] = []
    return done, await world.act_all(actions, done.append)


# Acting.


async def test_a_list_is_performed_as_one_and_reports_each_reward() -> None:
    """The sum is the effect's reward; each one, the flags and the info stand apart."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        effect = await world.act(step(actions=[0, 0, 0]))
        assert effect == ActionEffect(
            reward=1.5,
            info={
                "first_step": 1,
                "rewards": [0.5, 0.5, 0.5],
                "info": {"array": [0, 1, 2], "odd": str(object)},
            },
        )
        effect = await world.act(step(action=0, repeat=2))
        assert (effect.reward, effect.info["first_step"]) == (1.0, 4)
        assert (world.episode.steps, world.episode.total) == (5, 2.5)


async def test_a_list_stops_at_the_end_of_the_episode() -> None:
    """How it ended is told apart, and nothing can be done afterwards."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        effect = await world.act(step(actions=[0, 3, 0, 0]))
        assert (effect.terminated, effect.truncated) == (False, True)
        assert effect.text == "2 more actions of the list were not performed."
        assert len(effect.info["rewards"]) == 2
        assert "ended after 2 steps, by a limit." in await words(world)
        with pytest.raises(ActionFailed, match=r"episode ended after 2 steps.*send your answer"):
            await world.act(step(action=0))
    async with opened(Gymnasium("CartPole-v1")) as world:
        effect = await world.act(step(action=0, repeat=100))
        assert (effect.terminated, effect.truncated) == (True, False)
        assert re.search(r"The episode ended after \d+ steps\.", await words(world))


async def test_the_steps_are_those_of_the_bare_environment() -> None:
    """Same seed, same actions: same observations, rewards and flags."""
    load_box2d("lunar_lander")
    bare = gymnasium.make("LunarLander-v3", disable_env_checker=True)
    bare.reset(seed=3)
    actions = [2, 0, 1, 2, 3] * 30
    rewards: list[float] = []
    for action in actions:
        seen, reward, terminated, _, _ = bare.step(action)
        rewards.append(float(reward))
        if terminated:
            break
    async with opened(Gymnasium("LunarLander-v3")) as world:
        effect = await world.act(step(actions=actions))
        assert effect.info["rewards"] == rewards
        assert effect.terminated == terminated
        np.testing.assert_array_equal(world.episode.seen, seen)


async def test_several_actions_take_one_hop() -> None:
    """What each did, in order, on the environment's thread."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        threads: list[str] = []
        bare: Any = await world.call(lambda env: env.unwrapped)
        inner = bare.step

        def noted(action: int) -> Any:
            threads.append(threading.current_thread().name)
            return inner(action)

        bare.step = noted
        effects, refusal = await all_at_once(
            world, step(action=0), ScreenshotFetch(), step(action=0)
        )
        assert [effect.reward for effect in effects] == [0.5, None, 0.5]
        assert refusal is None
        assert set(threads) == {"gymnasium test/Fickle-v0"}
        effects, refusal = await all_at_once(world, step(action=0), step(action=9), step(action=0))
        assert len(effects) == 1
        assert "9 is above its upper bound 3" in str(refusal)
        effects, refusal = await all_at_once(world, step(action=3), step(action=0), step(action=9))
        assert ([effect.truncated for effect in effects], refusal) == ([True], None)
        effects, refusal = await all_at_once(world, step(action=0))
        assert effects == []
        assert "episode ended" in str(refusal)


async def test_what_was_done_before_a_list_broke_or_was_cancelled_is_kept() -> None:
    """Each effect is told as soon as it is there."""
    done: list[ActionEffect] = []
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        with pytest.raises(EnvironmentFailed, match="the engine fell off"):
            await world.act_all([step(action=0), step(action=2), step(action=0)], done.append)
    assert [effect.reward for effect in done] == [0.5]
    done.clear()
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        bare: Any = await world.call(lambda env: env.unwrapped)
        async with anyio.create_task_group() as group:
            group.start_soon(
                world.act_all, [step(action=0), step(action=1), step(action=0)], done.append
            )
            await anyio.to_thread.run_sync(bare.entered.wait, PATIENCE_S)
            assert [effect.reward for effect in done] == [0.5]
            group.cancel_scope.cancel()
        bare.gate.set()
        assert "Step 2" in await words(world)


REFUSED: list[tuple[Any, str]] = [
    (step(action=4), "action: 4 is above its upper bound 3"),
    (step(), "give one of `action` and `actions`"),
    (step(action=1, actions=[1]), "give one of `action` and `actions`"),
    (step(actions=[]), "0 actions were given; give at least one, and at most 100000"),
    (step(action=0, repeat=100_001), "100001 actions were given"),
    (step(action=0, repeat=0), "repeat: expected a whole number from 1, got 0"),
    (step(acton=0), "there is no 'acton'. Did you mean 'action'?"),
    (CustomAction(action="stepp"), "no action 'stepp'. Did you mean 'step'?"),
    (WaitAction(time=1), "nothing to 'wait' here"),
]


@pytest.mark.parametrize(("action", "said"), REFUSED)
async def test_a_refusal_says_what_to_send(action: Any, said: str) -> None:
    """And nothing has happened."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        with pytest.raises(ActionFailed) as caught:
            await world.act(action)
        assert said in str(caught.value)
        assert world.episode.steps == 0


async def test_an_environment_that_raises_is_broken_and_not_graded() -> None:
    """The error says what it raised; only closing is left."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        with pytest.raises(EnvironmentFailed, match="raised ValueError: the engine fell off"):
            await world.act(step(actions=[0, 2]))
        for call in (lambda: world.act(step(action=0)), lambda: world.observe(Look())):
            with pytest.raises(EnvironmentFailed, match="the engine fell off"):
                await call()


async def test_a_cancelled_list_ends_with_the_step_under_way() -> None:
    """The next call waits for that step, and goes on from there."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        bare: Any = await world.call(lambda env: env.unwrapped)
        async with anyio.create_task_group() as group:
            group.start_soon(world.act, step(actions=[1, *[0] * 50_000]))
            await anyio.to_thread.run_sync(bare.entered.wait, PATIENCE_S)
            group.cancel_scope.cancel()
        bare.gate.set()
        assert "observation: [1]" in await words(world)
        await world.act(step(action=0))
        assert world.episode.steps == 2


async def test_a_world_that_blocks_stops_nobody_else() -> None:
    """Its thread is its own."""
    spec = Gymnasium("test/Fickle-v0")
    async with opened(spec) as stuck, opened(spec) as free:
        bare: Any = await stuck.call(lambda env: env.unwrapped)
        async with anyio.create_task_group() as group:
            group.start_soon(stuck.act, step(action=1))
            await anyio.to_thread.run_sync(bare.entered.wait, PATIENCE_S)
            await free.act(step(action=0))
            assert free.episode.steps == 1
            assert stuck.episode.steps == 0
            bare.gate.set()
        assert stuck.episode.steps == 1


async def test_closing_ends_the_environment_on_its_thread_and_the_thread() -> None:
    """And closing is done when both have."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        bare: Any = await world.call(lambda env: env.unwrapped)
        thread = await world.call(lambda _env: threading.current_thread())
    assert bare.closed_on == thread.name == "gymnasium test/Fickle-v0"
    await anyio.to_thread.run_sync(thread.join, PATIENCE_S)
    assert not thread.is_alive()


async def test_closing_does_not_wait_for_a_step_that_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The world is left to itself, on a thread that does not keep the process alive."""
    monkeypatch.setattr(world_module, "_CLOSE_BOUND_S", 0.05)
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        bare: Any = await world.call(lambda env: env.unwrapped)
        thread = await world.call(lambda _env: threading.current_thread())
        async with anyio.create_task_group() as group:
            group.start_soon(world.act, step(action=1))
            await anyio.to_thread.run_sync(bare.entered.wait, PATIENCE_S)
            group.cancel_scope.cancel()
        await world.close()
        assert thread.is_alive()
        assert thread.daemon
        bare.gate.set()
    await anyio.to_thread.run_sync(thread.join, PATIENCE_S)
    assert bare.closed_on == thread.name


async def test_a_template_may_begin_a_new_episode() -> None:
    """With a seed of its own; it reads the episode."""
    async with opened(Gymnasium("CartPole-v1")) as world:
        first = world.episode.seen.tolist()
        await world.act(step(action=0, repeat=100))
        assert world.episode.over
        await world.reset(seed=3)
        assert world.episode.seen.tolist() == first
        assert (world.episode.steps, world.episode.over) == (0, False)
        assert await world.call(lambda env: env.unwrapped.spec.id) == "CartPole-v1"  # type: ignore[union-attr]


# Declaring and opening.


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (
            lambda: Gymnasium("CartPol-v1"),
            "no environment 'CartPol-v1'. Did you mean 'CartPole-v1'",
        ),
        (lambda: Gymnasium("CARLCartPol"), "'CARLCartPol'. Did you mean 'CARLCartPole'?"),
        (lambda: Gymnasium("nowhere:X-v1"), "nowhere is not installed; install nowhere."),
        (lambda: Gymnasium("CartPole-v1", options={"colour": 1}), "cannot be made: TypeError"),
        (
            lambda: Gymnasium("CartPole-v1", attributes={"g": "gravty"}),
            "has no attribute 'gravty'. Did you mean 'gravity'?",
        ),
        (
            lambda: Gymnasium("CARLCartPole", obs_context_features=["gravty"]),
            "no context feature 'gravty'. Did you mean 'gravity'?",
        ),
    ],
)
async def test_what_cannot_be_made_is_refused_before_anything_is_opened(
    declare: Callable[[], Gymnasium], said: str
) -> None:
    """By `check`, which a server calls, and by the opening itself."""
    with pytest.raises(InvalidEnvironment) as caught:
        declare().check(Path())
    assert said in str(caught.value)
    with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed) as failed:
        await declare().open(Opening())
    assert said in str(failed.value)


async def test_options_that_contradict_each_other_are_refused_at_once() -> None:
    """Where they are written."""
    with pytest.raises(InvalidEnvironment, match="has its own features"):
        Gymnasium("CARLCartPole", attributes={"g": "gravity"})
    with pytest.raises(InvalidEnvironment, match="`features` describe `attributes`"):
        Gymnasium("CartPole-v1", features=[ContextFeature(name="g", default=1.0)])


async def test_an_opening_that_fails_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment was made, and is closed; its thread ends."""
    closed = threading.Event()
    spec = Gymnasium("test/Fickle-v0")
    spec.check(Path())
    monkeypatch.setattr(Fickle, "fail_reset", True)
    monkeypatch.setattr(Fickle, "close", lambda _self: closed.set())
    with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed, match="no start today"):
        await spec.open(Opening())
    assert await anyio.to_thread.run_sync(closed.wait, PATIENCE_S)


async def test_a_spec_says_what_an_environment_can_do() -> None:
    """Its picture, its actions, and whether it repeats."""
    pole = Gymnasium("CartPole-v1")
    assert (pole.has_screen, pole.replayable) == (True, True)
    assert pole.action_schema["maximum"] == 1
    assert pole.custom_actions["step"]["properties"]["actions"]["items"]["type"] == "integer"
    assert not Gymnasium("CartPole-v1", screen=False).has_screen
    assert not Gymnasium("test/Fickle-v0").has_screen
    named = Gymnasium("test/Fickle-v0", actions=["go", "wait", "break", "stop"])
    assert named.action_schema["description"] == "a whole number: 0 go; 1 wait; 2 break; 3 stop."
    async with opened(named) as world:
        assert (await world.act(CustomAction(action="go"))).reward == 0.5


async def test_a_seed_and_a_context_are_the_opening_s() -> None:
    """Equal seeds give equal worlds, others do not; a negative one is one too."""
    spec = Gymnasium("CARLCartPole")
    texts: list[str] = []
    for seed, context in ((1, {}), (1, {}), (2, {}), (-5, {}), (1, {"gravity": 20.0})):
        async with opened(spec, seed=seed, context=context) as world:
            await world.act(step(actions=[0, 1]))
            texts.append(await words(world))
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4
    assert "Context: gravity 20, masscart 1," in texts[4]


async def test_a_context_that_contradicts_itself_opens_nothing() -> None:
    """What no single feature's bounds can say."""
    spec = Gymnasium("CARLCartPole")
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(EnvironmentFailed, match="is above initial_stat"),
    ):
        await spec.open(Opening(context={"initial_state_lower": 0.3}))


async def test_any_environment_can_have_features() -> None:
    """By a declaration; the environment's context space is the world's."""
    spec = Gymnasium(
        "CartPole-v1",
        attributes={"gravity": "gravity", "mass": "masscart"},
        features=[ContextFeature(name="gravity", default=9.8, lower=1, upper=30)],
        derived={"total_mass": lambda env: env.masscart + env.masspole},
        obs_context_features=["gravity"],
    )
    env = Environment("pole", world=spec)
    assert env.context_space.default == {"gravity": 9.8, "mass": 1.0}
    async with opened(spec, context={"gravity": 3, "mass": 4}) as world:
        assert "Context: gravity 3." in await words(world)
        bare: Any = await world.call(lambda env: env.unwrapped)
        assert (bare.gravity, bare.total_mass) == (3.0, 4.1)


async def test_the_agent_may_not_be_told_the_context() -> None:
    """Then nothing of it is in the text."""
    async with opened(Gymnasium("CARLCartPole", obs_context_features=()), context={}) as world:
        assert "gravity" not in await words(world)


# Looking.


async def test_the_picture_is_what_gymnasium_draws() -> None:
    """Pixel for pixel as PNG; smaller as JPEG."""
    async with opened(Gymnasium("CartPole-v1")) as world:
        seen = await world.observe(Look(text=False, image="png"))
        assert seen.image is not None
        frame = await world.call(lambda env: env.render())
        with Image.open(io.BytesIO(seen.image.data)) as image:
            np.testing.assert_array_equal(np.asarray(image), frame)


@pytest.mark.parametrize(
    ("screen", "size"), [(True, (600, 400)), ("asked", None), (False, None)], ids=str
)
async def test_a_start_tells_how_large_the_pictures_will_be(
    tmp_path: Path, screen: Any, size: tuple[int, int] | None
) -> None:
    """One is drawn for that, but where they are drawn only when they are asked for."""
    env = Environment("pole", world=Gymnasium("CartPole-v1", screen=screen))

    @env.template()
    async def balance(_world: GymnasiumWorld) -> Any:
        yield "Balance it."
        yield 1.0

    async with registry(tmp_path / "s.sqlite3", env) as sessions:
        with anyio.fail_after(PATIENCE_S):
            async with Client(build_server(sessions)) as client:
                begun = await client.call_tool("start_task", {"template": "balance"})
    told = begun.structured_content or {}
    assert told.get("screen") == (size and {"width": size[0], "height": size[1]})


async def test_a_world_that_cannot_draw_can_be_played() -> None:
    """Where drawing fails nothing is broken: there is no picture, and the text says why."""
    async with opened(Gymnasium("CartPole-v1")) as world:

        def fail() -> None:
            raise RuntimeError("no display")

        def break_drawing(env: Any) -> None:
            env.unwrapped.render = fail

        await world.call(break_drawing)
        await world.measure_screen()
        assert world.screen_size() is None
        seen = await world.observe(Look(image="png"))
        assert seen.image is None
        assert "There are no pictures: Drawing raised RuntimeError: no display" in str(seen.text)
        assert (await world.act(step(action=0))).reward == 1.0


@pytest.mark.long
async def test_many_worlds_draw_step_and_close_at_once() -> None:
    """Gymnasium's drawing has one state for the process, which ends with any of them."""
    specs = [Gymnasium(i) for i in ("CartPole-v1", "CarRacing-v3", "LunarLander-v3", "Taxi-v4")]
    actions: dict[str, Any] = {"CarRacing-v3": [0, 0.1, 0]}
    for spec in specs:
        spec.check(Path())

    async def live(spec: Gymnasium) -> None:
        for _ in range(3):
            async with opened(spec) as world:
                for _ in range(3):
                    await world.act(step(action=actions.get(spec.id, 1)))
                    assert (await world.observe(Look(image="jpeg"))).image is not None

    with anyio.fail_after(2 * PATIENCE_S):
        async with anyio.create_task_group() as group:
            for spec in specs * 2:
                group.start_soon(live, spec)


async def test_changes_are_what_is_new_since_the_last_look() -> None:
    """And that nothing is, where nothing is."""
    async with opened(Gymnasium("MiniGrid-Empty-5x5-v0")) as world:
        whole = await words(world)
        assert "Mission: get to the green goal square." in whole
        await world.act(CustomAction(action="right"))
        changed = await words(world, changes=True)
        assert "You face down." in changed
        assert "Mission" not in changed
        assert "Nothing changed." in await words(world, changes=True)


async def test_a_thousand_steps_are_one_call() -> None:
    """Within the time that a call may take, and by one hop."""
    async with opened(Gymnasium("test/Fickle-v0")) as world:
        with anyio.fail_after(PATIENCE_S):
            effect = await world.act(step(action=0, repeat=10_000))
        assert len(effect.info["rewards"]) == 10_000

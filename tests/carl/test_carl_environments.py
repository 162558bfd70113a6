"""Every environment with its features: each one matters, and two do not meet."""

import math
import threading
from typing import Any

import numpy as np
import pytest
from context_changes import ROBOTS, change_of, features_of, make
from gymnasium.utils.env_checker import check_env
from tables import each_of

from hud_mcp import carl
from hud_mcp.carl import ENVIRONMENTS, CARLEnv
from hud_mcp.errors import InvalidContext

BOX2D = ("CARLLunarLander", "CARLBipedalWalker", "CARLCarRacing")
OWN = [name for name in ENVIRONMENTS if name not in ROBOTS]
NAMES = [(name, feature.name) for name in OWN for feature in features_of(name)]


@pytest.mark.sampled(12)
@pytest.mark.filterwarnings("ignore:.*already returned terminated")
@pytest.mark.parametrize(("name", "feature"), NAMES, ids=lambda value: value)
def test_a_feature_changes_the_trajectory(name: str, feature: str) -> None:
    """Under the same actions and seed, by far more than rounding would."""
    (declared,) = (f for f in features_of(name) if f.name == feature)
    change = change_of(name, declared)
    assert change.first_step is not None, "nothing differs"
    assert change.state > 1e-3 or change.lengths[0] != change.lengths[1]


# What the checker warns of is so in Gymnasium's own environments.
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
@pytest.mark.filterwarnings("ignore:.*value is (-)?infinity. This is probably too")
@each_of("as_dict", [True, False])
@each_of("name", ENVIRONMENTS)
def test_gymnasium_s_checker_passes(name: str, *, as_dict: bool) -> None:
    """With the observation in either form."""
    slow = ("CARLCarRacing", *ROBOTS)
    check_env(make(name, obs_context_as_dict=as_dict), skip_render_check=name in slow)


@each_of("name", OWN)
def test_the_default_context_has_gymnasium_s_dynamics(name: str) -> None:
    """From the same state, the same steps; CARL's own starts and goals aside."""
    env, bare = make(name), getattr(carl, name).env_class(render_mode=None)
    env.reset(seed=8)
    bare.reset(seed=8)
    if name not in BOX2D:
        bare.state = env.unwrapped.state  # type: ignore[attr-defined]
    env.action_space.seed(1)
    for _ in range(8):
        action = env.action_space.sample()
        ours, theirs = env.step(action), bare.step(action)
        np.testing.assert_array_equal(ours[0]["state"], theirs[0])
        assert ours[1] == theirs[1]


def test_cartpole_s_masses_follow_their_features() -> None:
    """What Gymnasium computes once, when it makes the environment, is computed anew."""
    env = make("CARLCartPole", contexts={0: {"masscart": 3, "masspole": 0.5, "length": 2}, 1: {}})
    bare: Any = env.unwrapped
    env.reset(seed=1)
    assert (bare.total_mass, bare.polemass_length) == (3.5, 1.0)
    env.reset(seed=1)
    assert (bare.total_mass, bare.polemass_length) == (1.1, pytest.approx(0.05))


@each_of(
    ("name", "options"),
    [
        ("CARLCartPole", {"low": 0.01, "high": 0.01}),
        ("CARLAcrobot", {"low": 0.01, "high": 0.01}),
        ("CARLMountainCar", {"low": -0.51, "high": -0.51}),
        ("CARLMountainCarContinuous", {"low": -0.51, "high": -0.51}),
        ("CARLPendulum", {"x_init": 0, "y_init": 0}),
    ],
)
def test_a_start_in_the_options_of_a_reset_wins(name: str, options: dict[str, float]) -> None:
    """Gymnasium's own way to say where an episode begins still works."""
    env = make(name)
    env.reset(seed=1, options=options)
    state = np.asarray(env.unwrapped.state)  # type: ignore[attr-defined]
    assert state[0] == pytest.approx(next(iter(options.values())))
    env.reset(seed=1)
    assert np.asarray(env.unwrapped.state)[0] != state[0]  # type: ignore[attr-defined]


def test_starts_are_drawn_within_their_features() -> None:
    """Every classic environment, for many seeds."""
    pendulum = make("CARLPendulum", contexts={0: {"initial_angle_max": 0.5}})
    acrobot = make(
        "CARLAcrobot", contexts={0: {"INITIAL_ANGLE_LOWER": 1.0, "INITIAL_ANGLE_UPPER": 1.2}}
    )
    car = make("CARLMountainCar", contexts={0: {"max_velocity_start": 0.05}})
    for seed in range(20):
        cosine, sine, _ = pendulum.reset(seed=seed)[0]["state"]
        assert 0 <= math.atan2(sine, cosine) <= 0.5
        cosine, sine, *_ = acrobot.reset(seed=seed)[0]["state"]
        assert 1.0 - 1e-6 <= math.atan2(sine, cosine) <= 1.2 + 1e-6
        position, velocity = car.reset(seed=seed)[0]["state"]
        assert -0.6 <= position <= -0.4
        assert 0 <= velocity <= 0.05


def test_features_without_an_effect_are_not_offered() -> None:
    """CARL has them; here they are refused like any unknown name."""
    for name, gone in (
        ("CARLPendulum", "gravity"),
        ("CARLAcrobot", "LINK_LENGTH_2"),
        ("CARLBipedalWalker", "TERRAIN_HEIGHT"),
    ):
        with pytest.raises(InvalidContext, match=f"there is no feature '{gone}'"):
            make(name, contexts={0: {gone: 5}})


def test_a_link_that_spins_beyond_measure_is_still_a_step() -> None:
    """Where one step of the integration comes to more turns than can be taken off one by one."""
    spinning = {
        "MAX_VEL_1": 40 * math.pi,
        "MAX_VEL_2": 90 * math.pi,
        "LINK_LENGTH_1": 10.0,
        "LINK_MASS_2": 10.0,
        "LINK_MOI": 0.1,
        "INITIAL_VELOCITY_LOWER": 280.0,
        "INITIAL_VELOCITY_UPPER": 280.0,
    }
    env = make("CARLAcrobot", contexts={0: spinning})
    env.reset(seed=1)
    for _ in range(50):
        assert env.step(2)[0] in env.observation_space


OTHER: dict[str, dict[str, Any]] = {
    "CARLLunarLander": {"GRAVITY_Y": -3.0, "LEG_H": 15, "SCALE": 40.0, "MAIN_ENGINE_POWER": 40},
    "CARLBipedalWalker": {"LEG_H": 0.6, "FRICTION": 0.1, "SCALE": 20.0, "GRAVITY_X": 5},
    "CARLCarRacing": {"ENGINE_POWER": 150_000, "WHEEL_R": 50, "TRACK_WIDTH": 12, "DRIVE": "all"},
    "CARLCartPole": {"gravity": 25.0, "masscart": 4.0},
}


def run(env: CARLEnv, steps: int, between: Any = None) -> list[Any]:
    """A trajectory, with something done between its steps."""
    env.action_space.seed(2)
    seen = [env.reset(seed=2)[0]["state"]]
    for _ in range(steps):
        if between is not None:
            between()
        seen.append(env.step(env.action_space.sample())[0]["state"])
    return seen


@each_of("name", sorted(OTHER))
def test_two_environments_of_one_process_do_not_disturb_each_other(name: str) -> None:
    """Between any two steps of one, another in another context is reset, steps and ends."""
    steps = 6
    alone = run(make(name), steps)
    other = make(name, contexts={0: OTHER[name]})
    other_alone = run(make(name, contexts={0: OTHER[name]}), 1)
    met: list[Any] = []

    def disturb() -> None:
        other.action_space.seed(2)
        met[:] = [other.reset(seed=2)[0]["state"]]
        met.append(other.step(other.action_space.sample())[0]["state"])

    np.testing.assert_array_equal(run(make(name), steps, disturb), alone)
    np.testing.assert_array_equal(met, other_alone)
    assert not np.array_equal(alone[1], other_alone[1])


@pytest.mark.parametrize("name", ["CARLLunarLander", "CARLBipedalWalker"])
def test_environments_on_threads_do_not_disturb_each_other(name: str) -> None:
    """Eight at once, in two contexts, come to what each comes to alone."""
    contexts: list[dict[str, Any]] = [{}, OTHER[name]]
    alone = [run(make(name, contexts={0: context}), 20) for context in contexts]
    ends: dict[int, list[Any]] = {}

    def live(i: int) -> None:
        ends[i] = run(make(name, contexts={0: contexts[i % 2]}), 20)

    threads = [threading.Thread(target=live, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for i in range(8):
        np.testing.assert_array_equal(ends[i], alone[i % 2])


def test_gymnasium_s_own_environments_are_untouched() -> None:
    """The constants of its modules stay what they are."""
    from gymnasium.envs.box2d import (  # noqa: PLC0415  # loaded by what is tested
        bipedal_walker,
        car_dynamics,
        lunar_lander,
    )

    for name in BOX2D:
        run(make(name, contexts={0: OTHER[name]}), 2)
    assert (lunar_lander.SCALE, lunar_lander.LEG_H) == (30.0, 8)
    assert (bipedal_walker.LEG_H, bipedal_walker.FRICTION) == (34 / 30, 2.5)
    assert (car_dynamics.WHEEL_R, car_dynamics.ENGINE_POWER) == (27, 40_000)


def test_the_lander_falls_sideways_from_its_first_step() -> None:
    """The gravity of the context also holds in the step that a reset takes."""
    still = {"INITIAL_RANDOM": 0.0, "GRAVITY_X": 10.0}
    env = make("CARLLunarLander", contexts={0: still})
    seen, _ = env.reset(seed=1)
    assert seen["state"][2] > 0
    assert isinstance(env.unwrapped, type(env).env_class or type(None))


def test_the_driven_wheels_are_those_of_the_context() -> None:
    """Rear, front, or all four."""
    for drive, driven in (("rear", {2, 3}), ("front", {0, 1}), ("all", {0, 1, 2, 3})):
        env = make("CARLCarRacing", contexts={0: {"DRIVE": drive}})
        env.reset(seed=1)
        env.step(np.array([0, 1, 0], dtype=np.float32))
        wheels = env.unwrapped.car.wheels  # type: ignore[attr-defined]
        assert {i for i, wheel in enumerate(wheels) if wheel.gas > 0} == driven

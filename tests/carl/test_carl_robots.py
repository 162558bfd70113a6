"""MuJoCo's robots: every feature matters, and the default context is Gymnasium's environment."""

from typing import Any

import anyio
import gymnasium
import mujoco
import numpy as np
import pytest
from context_changes import ROBOTS, change_of, features_of, make
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import CustomAction, Gymnasium, Opening
from hud_mcp.carl import CARLAttributesEnv, CARLEnv, CARLHopper
from hud_mcp.errors import InvalidContext, InvalidEnvironment

NAMES = [(name, feature.name) for name in ROBOTS for feature in features_of(name)]


@pytest.mark.long
@each_of(("name", "feature"), NAMES, ids=lambda value: value)
def test_a_feature_of_a_robot_changes_the_trajectory(name: str, feature: str) -> None:
    """Under the same actions and seed, by far more than rounding would."""
    (declared,) = (f for f in features_of(name) if f.name == feature)
    change = change_of(name, declared)
    assert change.first_step is not None, "nothing differs"
    assert change.state > 1e-3 or change.lengths[0] != change.lengths[1]


def steps_of(env: Any, seed: int) -> list[Any]:
    """A reset and twenty steps, with everything that they return but the context."""
    env.action_space.seed(5)
    seen, info = env.reset(seed=seed)
    found: list[Any] = [plain(seen), info.get("x_position")]
    for _ in range(20):
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        info.pop("context_id", None)
        found += [
            plain(seen),
            float(reward),
            terminated,
            truncated,
            sorted((k, np.asarray(v).tolist()) for k, v in info.items()),
        ]
        if terminated:
            break
    return found


def plain(seen: Any) -> list[float]:
    """The state alone, as numbers."""
    return (seen["state"] if isinstance(seen, dict) else seen).tolist()


@each_of("name", ROBOTS)
def test_the_default_context_is_gymnasium_s_own_trajectory(name: str) -> None:
    """Bit by bit, at first and after another context; so is what an author declares by paths."""
    env = make(name, contexts={"default": {}, "other": {"gravity": -3.0, "mass_torso": 1.0}})
    bare = gymnasium.make(env.env_name or "")
    own = CARLAttributesEnv(
        env.env_name or "",
        render_mode=None,
        attributes={"pull": "model.opt.gravity[2]", "torso": "model.body_mass[1]"},
        contexts={0: {}, 1: {"pull": -3.0, "torso": 1.0}},
    )
    for seed in (1, 2):
        plainly = steps_of(bare, seed)
        assert steps_of(env, seed) == plainly
        assert steps_of(own, seed) == plainly
        other = steps_of(env, seed)
        assert other != plainly
        assert steps_of(own, seed) != plainly


def test_a_context_stays_over_resets_and_is_the_same_again() -> None:
    """The same context and seed give the same trajectory, in this environment and a new one."""
    contexts = {0: {"gravity": -5.0, "friction": 0.3, "mass_foot": 9.0}}
    env = make("CARLHopper", contexts=contexts)
    first = steps_of(env, 4)
    assert steps_of(env, 5) != first
    assert steps_of(env, 4) == first == steps_of(make("CARLHopper", contexts=contexts), 4)
    assert env.unwrapped.model.opt.gravity[2] == -5.0  # type: ignore[attr-defined]


def test_what_mujoco_computes_from_a_mass_follows_it() -> None:
    """Inertia in proportion, the mass of the whole, and what a contact gives way by."""
    env = make("CARLHopper", contexts={0: {"mass_torso": 20.0}, 1: {}})
    model: Any = env.unwrapped.model  # type: ignore[attr-defined]
    first = {n: getattr(model, n).copy() for n in ("body_inertia", "body_invweight0", "body_mass")}
    env.reset(seed=1)
    share = 20.0 / first["body_mass"][1]
    np.testing.assert_allclose(model.body_inertia[1], first["body_inertia"][1] * share)
    assert model.body_subtreemass[1] == pytest.approx(model.body_mass.sum())
    assert model.body_invweight0[1][0] < first["body_invweight0"][1][0]
    env.reset(seed=1)
    for name, value in first.items():
        np.testing.assert_array_equal(getattr(model, name), value)


@each_of("name", ROBOTS)
def test_a_robot_is_stable_at_the_ends_of_each_feature(name: str) -> None:
    """MuJoCo warns of nothing, and no number is without a value."""
    ends = [{f.name: end} for f in features_of(name) for end in (f.lower, f.upper)]
    env = make(name, contexts=dict(enumerate(ends)))
    env.action_space.seed(1)
    bad = [getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}") for what in ("QPOS", "QVEL", "QACC")]
    for end in ends:
        seen, _ = env.reset(seed=3)
        for _ in range(15):
            assert np.isfinite(seen["state"]).all(), end
            seen, _, terminated, *_ = env.step(env.action_space.sample())
            if terminated:
                break
        warned = env.unwrapped.data.warning  # type: ignore[attr-defined]
        assert not any(warned[int(each)].number for each in bad), end


def test_a_robot_with_a_model_of_its_own_is_refused() -> None:
    """Its defaults would be of another model; what takes it is named."""
    changed: Any = gymnasium.make("Hopper-v5")
    changed.unwrapped.model.opt.gravity[2] = -1.0
    with pytest.raises(
        InvalidEnvironment, match=r"gravity is -9.81; here it is -1. CARLAttributes"
    ):
        CARLHopper(changed)
    with pytest.raises(InvalidContext, match=r"mass_torso: 99 is not within \[0.3665, 36.65\]"):
        CARLHopper(contexts={0: {"mass_torso": 99}}, render_mode=None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "world",
    [
        Gymnasium("CARLHopper", screen=False),
        Gymnasium("Hopper-v5", attributes={"gravity": "model.opt.gravity[2]"}, screen=False),
    ],
    ids=["contextual", "by a path"],
)
async def test_a_served_robot_is_in_the_context_of_its_session(world: Gymnasium) -> None:
    """The same context, seed and actions are the same session again; the default is another."""
    default = world.context_space.default
    assert default["gravity"] == -9.81
    ends: list[Any] = []
    with anyio.fail_after(PATIENCE_S):
        for gravity in (-4.0, -4.0, -9.81):
            opened = await world.open(Opening(context={**default, "gravity": gravity}, seed=3))
            actions = [[0.5, -0.5, 0.2]] * 8
            await opened.act(CustomAction(action="step", args={"actions": actions}))
            ends.append((plain(opened.episode.seen), list(opened.episode.rewards)))
            await opened.close()
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


def test_every_robot_is_a_contextual_environment() -> None:
    """With the names that CARL gives the features of its own."""
    for name in ROBOTS:
        env = make(name)
        assert isinstance(env, CARLEnv)
        assert {"gravity", "friction", "viscosity", "mass_torso"} <= set(env.get_context_features())

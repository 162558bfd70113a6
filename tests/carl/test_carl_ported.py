"""What a program that was written for CARL calls: its names, its ids, and its habits."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from waiting import PATIENCE_S

import hud_mcp.carl
from hud_mcp.carl import (
    ENVIRONMENTS,
    CARLCartPole,
    CARLEnv,
    ContextFeature,
    ContextSampler,
    ContextSpace,
    UniformFloatContextFeature,
)
from hud_mcp.errors import InvalidContext, InvalidEnvironment, ObservationKeyNotFound

ROOT = Path(hud_mcp.__file__).parents[1]


def run(program: str, *paths: Path) -> str:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *paths)))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_feature_has_its_default_under_carl_s_name() -> None:
    """It is given and read as `default_value`, and never twice."""
    feature = ContextFeature(name="gravity", default_value=9.8, lower=1, upper=20)  # type: ignore[call-arg]
    assert feature == ContextFeature(name="gravity", default=9.8, lower=1, upper=20)
    assert feature.default_value == 9.8
    assert CARLCartPole.get_context_features()["gravity"].default_value == 9.8
    with pytest.raises(ValueError, match="`default` and `default_value` are the same"):
        ContextFeature(name="gravity", default=1.0, default_value=9.8)  # type: ignore[call-arg]


def test_a_space_takes_and_gives_its_features_as_context_space() -> None:
    """CARL's argument and attribute are a mapping from names."""
    features = CARLCartPole.get_context_features()
    space = ContextSpace(context_space=features)
    assert space.context_space == features
    assert ContextSpace(features).context_space == features
    assert ContextSpace().context_space == {}
    with pytest.raises(InvalidContext, match="are the same argument"):
        ContextSpace(features, context_space=features)


def test_a_sampler_says_what_it_draws_from() -> None:
    """What was given, and each distribution; more can be added, once each."""
    gravity = UniformFloatContextFeature("gravity", lower=1.0, upper=20.0, default_value=9.8)
    given = [gravity]
    sampler = ContextSampler(
        context_distributions=given, context_space=CARLCartPole.get_context_space(), seed=1
    )
    assert sampler.context_distributions is given
    assert [each.name for each in sampler.get_context_features()] == ["gravity"]
    sampler.add_context_features([UniformFloatContextFeature("length", lower=0.3, upper=1.0)])
    assert sorted(sampler.context_feature_names) == ["gravity", "length"]
    drawn = sampler.sample_contexts(4)
    assert len({context["length"] for context in drawn.values()}) == 4
    with pytest.raises(InvalidContext, match="gravity has a distribution already"):
        sampler.add_context_features([gravity])
    with pytest.raises(InvalidContext, match="gravity has a distribution already"):
        ContextSampler([gravity, gravity], CARLCartPole.get_context_space(), seed=1)


def test_the_render_mode_can_be_set() -> None:
    """From the next drawing on; a mode that is not there is refused and changes nothing."""
    env = CARLCartPole(render_mode=None)
    env.reset(seed=1)
    env.render_mode = "rgb_array"
    frame: Any = env.render()
    assert frame.shape[2] == 3
    assert env.render_mode == env.unwrapped.render_mode == "rgb_array"
    with pytest.raises(InvalidEnvironment, match=r"drawn as 'rgb_aray'. Did you mean 'rgb_array'"):
        env.render_mode = "rgb_aray"
    assert env.render_mode == "rgb_array"
    env.render_mode = None
    assert env.render_mode is None
    env.close()


def test_a_subclass_may_declare_its_render_mode() -> None:
    """As CARL's own do, in the body of the class."""

    class Undrawn(CARLCartPole):
        render_mode = None  # type: ignore[assignment]

    assert Undrawn().unwrapped.render_mode is None
    assert CARLCartPole().unwrapped.render_mode == "rgb_array"


def test_the_key_of_carl_s_code_is_an_error_that_names_state_key() -> None:
    """After a reset and after a step; with the key given, it is there."""
    env = CARLCartPole(render_mode=None)
    for seen in (env.reset(seed=1)[0], env.step(0)[0]):
        with pytest.raises(ObservationKeyNotFound, match="has no 'obs'; its keys are 'state' and"):
            seen["obs"]
        with pytest.raises(KeyError, match="state_key='obs' calls the state so"):
            seen["obs"]
        assert seen.get("obs") is None
    ported = CARLCartPole(render_mode=None, state_key="obs").reset(seed=1)[0]
    assert ported["obs"].shape == (4,)
    with pytest.raises(KeyError, match="state_key='state'"):
        ported["state"]


def test_an_observation_is_a_dict_to_everybody_else() -> None:
    """It is copied, pickled, flattened and stacked as any other."""
    seen = CARLCartPole(render_mode=None).reset(seed=1)[0]
    for again in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen)), seen.copy(), {**seen}):
        assert again["context"] == seen["context"]
        assert again["state"].tolist() == seen["state"].tolist()
    flat = gymnasium.wrappers.FlattenObservation(CARLCartPole(render_mode=None))
    assert flat.reset(seed=1)[0].shape == (12,)
    many = gymnasium.vector.SyncVectorEnv([lambda: CARLCartPole(render_mode=None)] * 2)
    assert many.reset(seed=1)[0]["state"].shape == (2, 4)
    many.close()


STAR = """
import sys
sys.modules.update(dict.fromkeys({absent!r}))
from hud_mcp.carl import *
from hud_mcp.carl.envs import *
import hud_mcp.carl
print(*sorted(name for name in globals() if name.startswith("CARL")))
try:
    hud_mcp.carl.CARLLunarLander
except Exception as exc:
    print(type(exc).__name__, exc)
"""


@pytest.mark.long
def test_everything_is_imported_that_is_installed() -> None:
    """Without Box2D and MuJoCo, what needs neither; the rest names its extra."""
    names, missing = run(STAR.format(absent=["Box2D", "mujoco"])).splitlines()
    classic = {"CARLAcrobot", "CARLCartPole", "CARLPendulum", "CARLMountainCar"}
    assert classic | {"CARLEnv", "CARLAttributesEnv"} <= set(names.split())
    assert not {"CARLLunarLander", "CARLCarRacing", "CARLHopper"} & set(names.split())
    assert missing == ("NotInstalled CARLLunarLander needs more: pip install 'hud-mcp[box2d]'.")
    (everything,) = run(STAR.format(absent=[])).splitlines()
    assert set(ENVIRONMENTS) <= set(everything.split())


IDS = """
{imports}
print(*sorted(env_id for env_id in gymnasium.registry if env_id.startswith("carl/")))
"""
BOTH_ORDERS = ["import gymnasium\nimport hud_mcp.carl", "import hud_mcp.carl\nimport gymnasium"]


@pytest.mark.parametrize("imports", BOTH_ORDERS, ids=["after", "before"])
def test_carl_s_ids_are_registered_in_either_order(imports: str, tmp_path: Path) -> None:
    """Unless carl-bench is installed, which registers its own."""
    program = IDS.format(imports=imports)
    assert run(program).split() == sorted(f"carl/{name}-v0" for name in ENVIRONMENTS)
    theirs = tmp_path / "carl_bench-1.1.1.dist-info"
    theirs.mkdir()
    (theirs / "METADATA").write_text("Metadata-Version: 2.1\nName: carl-bench\nVersion: 1.1.1\n")
    assert run(program, tmp_path).split() == []


def test_an_id_makes_its_environment_with_its_contexts() -> None:
    """What is made is the wrapper itself, with all that it takes."""
    env = gymnasium.make(
        "carl/CARLCartPole-v0", contexts={0: {"gravity": 5.0}}, state_key="obs", render_mode=None
    )
    assert isinstance(env, CARLEnv)
    seen, _ = env.reset(seed=1)
    assert seen["context"]["gravity"] == [5.0]
    assert seen in env.observation_space
    env.close()


def test_an_environment_over_brax_names_its_robot() -> None:
    """It is not the same physics, so the name is not the same."""
    with pytest.raises(AttributeError, match="CARLHalfCheetah is that robot in MuJoCo"):
        _ = hud_mcp.carl.CARLBraxHalfcheetah

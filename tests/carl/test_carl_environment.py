"""The contextual wrapper: what it observes, when it changes, and what it refuses."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from context_changes import ROBOTS
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp.carl
from hud_mcp.carl import (
    ENVIRONMENTS,
    CARLCartPole,
    CARLEnv,
    CARLMountainCar,
    ContextFeature,
    ContextSelector,
    ContextSpace,
    CustomSelector,
    RandomSelector,
    RoundRobinSelector,
    StaticSelector,
    UniformFloatContextFeature,
)
from hud_mcp.errors import InvalidContext, InvalidEnvironment

SOME: dict[str, dict[str, Any]] = {
    "a": {"gravity": 9.0},
    "b": {"gravity": 20, "length": 1.0},
    "c": {"masscart": 5.0},
}


def make(name: str, **options: Any) -> CARLEnv:
    """An environment by its name, without a picture."""
    return getattr(hud_mcp.carl, name)(render_mode=None, **options)


class Counting(gymnasium.Env[np.ndarray, int]):
    """Says what is done to it, in order."""

    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        """Nothing was done."""
        self.log: list[str] = []

    def __setattr__(self, name: str, value: Any) -> None:
        """Note what is set."""
        if name == "size":
            self.log.append(f"size is set to {value}")
        super().__setattr__(name, value)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin."""
        super().reset(seed=seed)
        self.log.append(f"reset with {seed} {options}")
        return np.array([self.size], dtype=np.float32), {"own": "info"}


class CountingContexts(CARLEnv):
    """The counting environment in contexts, with a hyperparameter as its feature."""

    @staticmethod
    def get_context_features() -> Mapping[str, Any]:
        """One."""
        return {"size": UniformFloatContextFeature("size", lower=1, upper=10, default_value=2)}


def test_a_reset_selects_then_updates_then_resets_then_adds_the_context() -> None:
    """In this order, and the wrapped environment's info stays beside the id."""
    bare = Counting()

    def pick(selector: ContextSelector) -> tuple[Any, int]:
        bare.log.append("select")
        return selector.contexts[1], 1

    env = CountingContexts(
        bare,
        contexts={0: {}, 1: {"size": 7}},
        context_selector=CustomSelector,
        context_selector_kwargs={"selector_function": pick},
    )
    seen, info = env.reset(seed=5, options={"x": 1})
    assert bare.log == ["select", "size is set to 7.0", "reset with 5 {'x': 1}"]
    assert seen["state"] == [7.0]
    assert seen["context"]["size"] == [7.0]
    assert info == {"own": "info", "context_id": 1}


@each_of("as_dict", [True, False])
@each_of("name", ENVIRONMENTS)
def test_an_observation_is_inside_its_space(name: str, *, as_dict: bool) -> None:
    """In dict and in vector form, after a reset and after steps."""
    env = make(name, obs_context_as_dict=as_dict)
    seen, _ = env.reset(seed=1)
    for _ in range(3):
        assert seen in env.observation_space
        assert isinstance(seen["context"], dict) == as_dict
        seen = env.step(env.action_space.sample())[0]
    env.close()


def drawn_values(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Contexts of an environment, from one end of its bounds to the other."""
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for f in make(name).get_context_space().features:
        if f.choices:
            optional[f.name] = st.sampled_from(f.choices)
        elif isinstance(f.default, int):
            optional[f.name] = st.integers(int(f.lower or 0), int(f.upper or 100))
        else:
            optional[f.name] = st.floats(
                -1000.0 if f.lower is None else f.lower, 1000.0 if f.upper is None else f.upper
            )
    return st.fixed_dictionaries({}, optional=optional)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*already returned terminated")
@pytest.mark.parametrize("name", sorted(set(ENVIRONMENTS) - {"CARLCarRacing", *ROBOTS}))
def test_no_context_leads_out_of_the_space(name: str) -> None:
    """Whatever is allowed, over many steps; a space that contexts can leave is wider than bare."""

    @settings(max_examples=25)
    @given(drawn_values(name), st.integers(0, 100))
    def check(context: dict[str, Any], seed: int) -> None:
        if make(name).get_context_space().problems(context):
            return
        env = make(name, contexts={0: context, 1: {}}, context_selector=StaticSelector)
        seen, _ = env.reset(seed=seed)
        env.action_space.seed(seed)
        for _ in range(40):
            assert seen in env.observation_space, (context, seen)
            seen, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                break
        assert seen in env.observation_space, (context, seen)
        env.close()

    check()


def test_a_zero_of_either_sign_is_zero() -> None:
    """Bounds of 0.0 and -0.0 are the same number, and what starts between them starts there."""
    env = make("CARLMountainCarContinuous", contexts={0: {"max_velocity_start": -0.0}})
    env.reset(seed=0)
    assert env.unwrapped.state[1] == 0.0
    env.close()


@each_of("name", ENVIRONMENTS)
def test_the_default_context_keeps_the_bare_space(name: str) -> None:
    """Who varies nothing has Gymnasium's bounds."""
    env = make(name)
    bare = gymnasium.make(env.env_name or "", disable_env_checker=True)
    assert env.observation_space["state"] == bare.observation_space
    bare.close()


def test_the_state_stands_under_state_or_another_key() -> None:
    """CARL's code calls it `obs`, its documentation `state`."""
    assert set(make("CARLCartPole").reset(seed=1)[0]) == {"state", "context"}
    ported = make("CARLCartPole", state_key="obs")
    seen, _ = ported.reset(seed=1)
    assert set(seen) == set(ported.observation_space.spaces) == {"obs", "context"}
    assert seen in ported.observation_space


def test_an_observation_carries_the_features_that_are_asked_for() -> None:
    """All by default; some, in their order; or none."""
    assert len(make("CARLCartPole").reset(seed=1)[0]["context"]) == 8
    some = make(
        "CARLCartPole",
        obs_context_features=["length", "gravity"],
        obs_context_as_dict=False,
        contexts=SOME,
    )
    assert some.reset(seed=1)[0]["context"].tolist() == [0.5, 9.0]
    assert some.reset(seed=1)[0]["context"].tolist() == [1.0, 20.0]
    none = make("CARLCartPole", obs_context_features=[])
    assert none.reset(seed=1)[0]["context"] == {}
    with pytest.raises(InvalidContext, match=r"no context feature 'lenght'. Did you mean 'length'"):
        make("CARLCartPole", obs_context_features=["lenght"])


def test_an_observation_may_be_changed_by_who_gets_it() -> None:
    """The next one is not affected."""
    for as_dict in (True, False):
        env = make("CARLCartPole", obs_context_as_dict=as_dict)
        first = env.reset(seed=1)[0]["context"]
        (first["gravity"] if as_dict else first)[:] = -1
        assert env.step(0)[0] in env.observation_space


def test_a_partial_context_is_completed_each_time() -> None:
    """Nothing of the context before remains, in the environment or in the observation."""
    env = make("CARLCartPole", contexts=SOME)
    bare: Any = env.unwrapped
    for _ in range(2):
        for gravity, length, cart in ((9.0, 0.5, 1.0), (20.0, 1.0, 1.0), (9.8, 0.5, 5.0)):
            seen = env.reset(seed=1)[0]["context"]
            assert (bare.gravity, bare.length, bare.masscart) == (gravity, length, cart)
            assert seen["gravity"] == np.float32(gravity)
            assert seen["length"] == np.float32(length)
    assert all(len(context) == 8 for context in env.contexts.values())


def test_a_wrong_context_is_refused_with_each_feature_and_its_bounds() -> None:
    """Before anything is made of it, in all contexts at once."""
    wrong = {"x": {"masscart": -5, "gravty": 1}, "y": {"length": 9}}
    with pytest.raises(InvalidContext) as caught:
        make("CARLCartPole", contexts=wrong)
    assert str(caught.value) == (
        "context 'x': masscart: -5 is not within [0.1, 10.0]; there is no feature 'gravty'. Did "
        "you mean 'gravity'? The features are: gravity, masscart, masspole, length, force_mag, "
        "tau, initial_state_lower, initial_state_upper. context 'y': length: 9 is not within "
        "[0.05, 5.0]."
    )
    with pytest.raises(InvalidContext, match=r"initial_state_lower: 0.2 is above initial_state_up"):
        make("CARLCartPole", contexts={0: {"initial_state_lower": 0.2}})
    with pytest.raises(InvalidContext, match="maps keys to contexts, and this is a list"):
        make("CARLCartPole", contexts=[{}])
    with pytest.raises(InvalidContext, match=r"context 'x': a context maps .* this is None; write"):
        make("CARLCartPole", contexts={"x": None})
    with pytest.raises(InvalidContext, match=r"context 0: there is no feature 3\. The "):
        CARLCartPole(contexts={0: {3: 1.0}})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidContext, match="The selector has no contexts"):
        make("CARLCartPole", contexts={})


def test_a_context_that_a_selector_makes_up_is_checked_and_completed() -> None:
    """A refused one changes nothing."""
    given: dict[str, Any] = {"gravity": 5.0}
    env = make(
        "CARLCartPole",
        context_selector=CustomSelector,
        context_selector_kwargs={"selector_function": lambda _selector: (given, 0)},
    )
    assert env.reset(seed=1)[0]["context"]["length"] == [0.5]
    given["gravity"] = -1
    with pytest.raises(InvalidContext, match="gravity: -1 is not within"):
        env.reset(seed=1)
    assert env.unwrapped.gravity == 5.0  # type: ignore[attr-defined]


def test_the_defaults_are_one_context_in_turn() -> None:
    """As CARL has it, and nothing is selected before the first reset."""
    env = make("CARLCartPole")
    assert env.contexts == {0: CARLCartPole.get_default_context()}
    assert isinstance(env.context_selector, RoundRobinSelector)
    assert (env.context, env.context_id, env.context_key) == (None, None, None)
    env.reset(seed=1)
    assert (env.context, env.context_id, env.context_key) == (env.contexts[0], 0, 0)
    assert env.context_selector.n_calls == 1


def test_a_selector_is_a_class_or_an_instance() -> None:
    """An instance brings its contexts along, completed; anything else is refused."""
    made = make("CARLCartPole", contexts=SOME, context_selector=RandomSelector)
    assert isinstance(made.context_selector, RandomSelector)
    assert made.context_selector.contexts == made.contexts
    selector = StaticSelector(SOME)
    env = make("CARLCartPole", context_selector=selector)
    assert env.context_selector is selector
    assert env.contexts == made.contexts == selector.contexts
    assert make("CARLCartPole", contexts=SOME, context_selector=StaticSelector(SOME))
    with pytest.raises(InvalidContext, match="has other contexts"):
        make("CARLCartPole", contexts={0: {}}, context_selector=StaticSelector(SOME))
    for wrong in ("bork", dict, lambda contexts: contexts):
        with pytest.raises(ValueError, match="a ContextSelector, a subclass of it, or None"):
            make("CARLCartPole", context_selector=wrong)


def test_setting_the_id_changes_the_environment_at_once() -> None:
    """And the next reset goes on from there; ids are places, whatever the keys."""
    env = make("CARLCartPole", contexts=SOME)
    env.reset(seed=1)
    env.context_id = 1
    assert (env.context_id, env.context_key) == (1, "b")
    assert env.unwrapped.gravity == 20.0  # type: ignore[attr-defined]
    assert env.step(0)[0]["context"]["gravity"] == [20.0]
    assert env.reset(seed=1)[1]["context_id"] == 2
    with pytest.raises(InvalidContext, match="no context 3; the ids are 0 to 2"):
        env.context_id = 3
    assert env.context_id == 2


def test_new_contexts_are_selected_from_and_widen_the_space() -> None:
    """Setting them replaces the set of the selector too."""
    env = make("CARLMountainCar", contexts={0: {}})
    narrow = env.observation_space
    env.reset(seed=1)
    env.contexts = {"wide": {"min_position": -3.0}, "same": {}}
    assert env.reset(seed=1)[1]["context_id"] == 1
    assert env.context == CARLMountainCar.get_default_context()
    assert env.observation_space != narrow
    assert env.observation_space["state"].low[0] == -3  # type: ignore[attr-defined]
    assert env.base_observation_space == env.observation_space["state"]


def test_ids_are_plain_values_that_json_takes() -> None:
    """In the info of each step, whatever the selector."""
    for selector in (RoundRobinSelector, RandomSelector, StaticSelector):
        env = make("CARLCartPole", contexts=SOME, context_selector=selector)
        _, info = env.reset(seed=1)
        info |= env.step(0)[4]
        assert type(info["context_id"]) is int
        assert json.loads(json.dumps(info)) == info


PROGRAM = """
import sys
from hud_mcp.carl import CARLCartPole, RandomSelector
env = CARLCartPole(contexts={i: {} for i in range(20)}, context_selector=RandomSelector)
print([env.reset(seed=int(sys.argv[1]) if i == 0 else None)[1]["context_id"] for i in range(30)])
"""


def test_random_selection_follows_the_seed_of_a_reset_in_any_process() -> None:
    """The same seed gives the same contexts in two processes, another one gives others."""

    def run(seed: int) -> str:
        root = Path(hud_mcp.__file__).parent.parent
        command = [sys.executable, "-c", PROGRAM, str(seed)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=PATIENCE_S, cwd=root
        )
        return done.stdout

    env = make("CARLCartPole", contexts={i: {} for i in range(20)}, context_selector=RandomSelector)
    here = [env.reset(seed=4 if i == 0 else None)[1]["context_id"] for i in range(30)]
    assert run(4) == f"{here}\n"
    assert run(5) != f"{here}\n"


def test_a_wrapper_is_for_its_environment() -> None:
    """Another one is refused with what takes it; an argument too many is named."""
    with pytest.raises(InvalidEnvironment, match="wraps a CartPoleEnv, not a PendulumEnv; CARLAtt"):
        CARLCartPole(gymnasium.make("Pendulum-v1"))
    with pytest.raises(TypeError, match=r"no argument 'context'.* Did you mean 'contexts'"):
        CARLCartPole(gymnasium.make("CartPole-v1"), context={})
    for contexts in ({0: {}}, "CartPole-v1"):
        with pytest.raises(InvalidEnvironment, match="CARLCartPole wraps an environment, not"):
            CARLCartPole(contexts)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidEnvironment, match="CountingContexts needs the environment to wrap"):
        CountingContexts()


def test_an_environment_of_an_author_s_own_subclass_keeps_its_methods() -> None:
    """The start comes from the context, and the author's step is still the author's."""
    cartpole = gymnasium.envs.classic_control.CartPoleEnv

    class Slippery(cartpole):  # type: ignore[misc, valid-type]
        def step(self, action: Any) -> Any:
            state, *rest = super().step(action)
            return (state, *rest[:-1], {"slippery": True})

    env = CARLCartPole(
        Slippery(), contexts={0: {"initial_state_lower": 0.05, "initial_state_upper": 0.05}}
    )
    assert env.reset(seed=1)[0]["state"].tolist() == [np.float32(0.05)] * 4
    assert env.step(0)[4]["slippery"]


def test_the_static_methods_say_what_varies() -> None:
    """Features by name, their space, and the default context, without an environment."""
    features = CARLCartPole.get_context_features()
    assert isinstance(features["gravity"], ContextFeature)
    space = CARLCartPole.get_context_space()
    assert isinstance(space, ContextSpace)
    assert space.context_feature_names == list(features)
    assert CARLCartPole.get_default_context() == {n: f.default for n, f in features.items()}
    observed = make("CARLCartPole").get_observation_space(["gravity"])
    assert list(observed["context"].spaces) == ["gravity"]  # type: ignore[attr-defined]


def test_the_spec_makes_the_same_environment_again() -> None:
    """So that tools which copy environments by their spec have the contexts too."""
    env = make("CARLCartPole", contexts=SOME, context_selector=StaticSelector)
    assert env.spec is not None
    again = env.spec.make()
    assert isinstance(again, CARLCartPole)
    assert again.contexts == env.contexts
    for one, other in zip(env.reset(seed=3), again.reset(seed=3), strict=True):
        assert str(one) == str(other)


def test_many_environments_step_in_processes_of_their_own() -> None:
    """Gymnasium's vector environments take it as any other."""
    made = [lambda i=i: CARLCartPole(contexts={0: {"gravity": 5.0 + i}}) for i in range(2)]
    many = gymnasium.vector.AsyncVectorEnv(made, context="fork")
    try:
        seen, _ = many.reset(seed=1)
        assert seen["context"]["gravity"].ravel().tolist() == [5.0, 6.0]
        seen, *_ = many.step(np.array([0, 1]))
        assert seen in many.observation_space
    finally:
        many.close()


def test_the_state_is_never_hidden_by_the_context() -> None:
    """Both under one key would leave the context alone in the observation."""
    with pytest.raises(InvalidEnvironment, match="state_key is 'context'"):
        CARLCartPole(state_key="context")


def test_one_name_of_a_feature_is_no_list_of_names() -> None:
    """A text is a sequence of texts, and its first letter no feature."""
    with pytest.raises(InvalidContext, match=r"write \['gravity'\]"):
        CARLCartPole(obs_context_features="gravity")

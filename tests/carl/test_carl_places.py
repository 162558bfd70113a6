"""CARL's own module paths lead to the same things."""

import inspect
from importlib import import_module

import pytest
from tables import each_of

import hud_mcp.carl
from hud_mcp.carl import ENVIRONMENTS
from hud_mcp.carl.envs.carl_env import CARLEnv


@each_of(
    ("module", "names"),
    [
        ("envs", ("CARLEnv", *ENVIRONMENTS)),
        ("envs.carl_env", ("CARLEnv",)),
        ("context.context_space", ("ContextSpace", "ContextFeature", "UniformFloatContextFeature")),
        ("context.sampler", ("ContextSampler",)),
        ("context.selection", ("AbstractSelector", "RandomSelector", "StaticSelector")),
    ],
)
def test_a_name_is_the_same_object_in_both_places(module: str, names: tuple[str, ...]) -> None:
    """A program that changes `carl` into `hud_mcp.carl` and nothing else finds what it imports."""
    place = import_module(f"hud_mcp.carl.{module}")
    for name in names:
        assert getattr(place, name) is getattr(hud_mcp.carl, name)


def test_what_is_no_environment_is_no_name_of_envs() -> None:
    """A mistyped name fails as it does in any module."""
    with pytest.raises(
        AttributeError, match=r"'hud_mcp\.carl\.envs' has no attribute 'CARLCartPol'"
    ):
        _ = import_module("hud_mcp.carl.envs").CARLCartPol


@each_of(
    ("method", "documented"),
    [
        (
            "__init__",
            (
                "self env contexts obs_context_features obs_context_as_dict context_selector "
                "context_selector_kwargs kwargs"
            ),
        ),
        ("get_context_features", ""),
        ("get_context_space", ""),
        ("get_default_context", ""),
        ("get_observation_space", "self obs_context_feature_names"),
        ("reset", "self seed options"),
        ("step", "self action"),
    ],
)
def test_a_method_takes_what_its_document_says(method: str, documented: str) -> None:
    """Every parameter of document 003 is there, in its order, and is given in the same way."""
    taken = inspect.signature(getattr(CARLEnv, method)).parameters
    assert [name for name in taken if name in documented.split()] == documented.split()
    own = [p for name, p in taken.items() if name not in documented.split()]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in own)


def test_the_defaults_are_the_documented_ones() -> None:
    """What a call leaves out means the same."""
    init = inspect.signature(CARLEnv.__init__).parameters
    assert init["contexts"].default is None
    assert init["obs_context_as_dict"].default is True
    assert init["context_selector"].default is None
    reset = inspect.signature(CARLEnv.reset).parameters
    assert {reset["seed"].kind, reset["options"].kind} == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.isabstract(CARLEnv)
    assert "get_context_features" in CARLEnv.__abstractmethods__

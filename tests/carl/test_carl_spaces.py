"""Features in both libraries' words, the space that they make, and contexts drawn from it."""

import json
from pathlib import Path
from typing import Any

import ConfigSpace
import numpy as np
import pytest
from gymnasium import spaces
from tables import each_of

from hud_mcp.carl import (
    CARLCartPole,
    CategoricalContextFeature,
    ContextFeature,
    ContextSampler,
    ContextSpace,
    NormalFloatContextFeature,
    UniformFloatContextFeature,
    UniformIntegerContextFeature,
)
from hud_mcp.errors import InvalidContext
from hud_mcp.values.sampler import distribution_of, feature_of

SPACE = ContextSpace(
    [
        ContextFeature(name="gravity", default=9.8, lower=0.1),
        UniformFloatContextFeature("length", lower=0.5, upper=2.0, default_value=1.0),
        UniformIntegerContextFeature("levels", lower=1, upper=5, default_value=3),
        CategoricalContextFeature("drive", choices=["rear", "front"], default_value="front"),
        ContextFeature(name="dark", default=False),
        NormalFloatContextFeature("mass", mu=2.0, sigma=0.5, lower=1.0, upper=3.0),
    ]
)
DEFAULT = {
    "gravity": 9.8, "length": 1.0, "levels": 3, "drive": "front", "dark": False, "mass": 2.0
}  # fmt: skip


def test_a_hyperparameter_declares_a_feature() -> None:
    """With its default, its bounds or its choices, in plain values; infinity is no bound."""
    declared = {feature.name: feature for feature in SPACE.features}
    assert declared["length"] == ContextFeature(name="length", default=1.0, lower=0.5, upper=2.0)
    assert declared["levels"] == ContextFeature(name="levels", default=3, lower=1, upper=5)
    assert type(declared["levels"].default) is int
    assert declared["drive"] == ContextFeature(
        name="drive", default="front", choices=("rear", "front")
    )
    assert declared["mass"] == ContextFeature(name="mass", default=2.0, lower=1, upper=3)
    endless = UniformFloatContextFeature("g", lower=0.1, upper=np.inf, default_value=9.8)
    assert feature_of(endless) == ContextFeature(name="g", default=9.8, lower=0.1)
    assert feature_of(ConfigSpace.Constant("k", 4)).choices == (4,)
    order = ConfigSpace.OrdinalHyperparameter("size", ["s", "m", "l"])
    assert feature_of(order).choices == ("s", "m", "l")


@pytest.mark.parametrize("name", ["length", "levels", "drive"])
def test_a_feature_s_values_are_equally_likely(name: str) -> None:
    """There and back again, it is the same feature."""
    feature = SPACE.find(name)
    assert feature_of(distribution_of(feature)) == feature


@each_of("wrong", ["gravity", 9.8, None, ("a", 1)])
def test_what_declares_no_feature_is_refused(wrong: Any) -> None:
    """With what would."""
    with pytest.raises(InvalidContext, match=r"declares no context feature; give a ContextFeature"):
        ContextSpace([wrong])
    with pytest.raises(InvalidContext, match="is listed under 'g'; use one name"):
        ContextSpace({"g": ContextFeature(name="gravity", default=1.0)})


def test_names_defaults_and_bounds() -> None:
    """Under CARL's names for them; choices count from 0."""
    assert SPACE.context_feature_names == list(DEFAULT)
    assert SPACE.get_default_context() == SPACE.default == DEFAULT
    assert SPACE.get_lower_and_upper_bound("gravity") == (0.1, float("inf"))
    assert SPACE.get_lower_and_upper_bound("levels") == (1, 5)
    assert SPACE.get_lower_and_upper_bound("drive") == (0, 1)
    with pytest.raises(InvalidContext, match=r"no context feature 'lenght'. Did you mean 'length'"):
        SPACE.get_lower_and_upper_bound("lenght")


def test_a_context_is_completed_in_plain_values() -> None:
    """NumPy's numbers and integers for numbers are taken; JSON can hold the result."""
    filled = SPACE.insert_defaults({"gravity": np.float32(2), "levels": np.int64(4), "mass": 3})
    assert filled == {**DEFAULT, "gravity": 2.0, "levels": 4, "mass": 3.0}
    assert json.loads(json.dumps(filled)) == filled
    assert type(filled["mass"]) is float
    assert SPACE.insert_defaults({"mass": 3}, ["levels"]) == {"levels": 3, "mass": 3.0}
    with pytest.raises(InvalidContext, match="levels: 9 is not within"):
        SPACE.insert_defaults({"levels": 9})


def test_a_context_is_verified_with_everything_that_is_wrong() -> None:
    """As true as CARL's answer, and it says why."""
    assert SPACE.verify_context({"gravity": 1.0})
    assert SPACE.verify_context({}).problems == ()
    found = SPACE.verify_context({"gravity": 0, "levels": 9, "drive": "all", "masss": 1})
    assert not found
    said = " ".join(found.problems)
    for part in ("gravity: 0 is not", "levels: 9 is not", "drive: 'all' is not", "'masss'"):
        assert part in said
    assert len(found.problems) == 4


def test_two_features_can_be_in_order() -> None:
    """The first may not exceed the second, given or by default."""
    ordered = ContextSpace(
        [ContextFeature(name=name, default=1.0) for name in ("low", "high")],
        ordered=[("low", "high")],
    )
    assert ordered.verify_context({"low": 1.0, "high": 1.0})
    problem = "low: 3.0 is above high, which is 1.0"
    assert ordered.verify_context({"low": 3.0}).problems == (problem,)


def test_the_space_is_gymnasium_s_and_holds_its_contexts() -> None:
    """In dict form a number each, in vector form a place each."""
    as_dict, as_vector = SPACE.to_gymnasium_space(as_dict=True), SPACE.to_gymnasium_space()
    assert as_dict["levels"] == spaces.Box(1, 5, (1,), np.float32)  # type: ignore[index]
    assert as_dict["drive"] == spaces.Discrete(2)  # type: ignore[index]
    assert as_vector.shape == (6,)
    contexts = SPACE.sample_contexts(size=50, seed=1)
    assert isinstance(contexts, list)
    for context in [SPACE.default, *contexts]:
        assert SPACE.as_dict(context) in as_dict
        assert SPACE.as_vector(context) in as_vector
    assert SPACE.as_dict(SPACE.default)["drive"] == 1
    some = SPACE.to_gymnasium_space(["mass", "drive"])
    assert some.high.tolist() == [3, 1]  # type: ignore[attr-defined]
    text = ContextSpace([ContextFeature(name="locale", default="en")])
    with pytest.raises(InvalidContext, match=r"locale is text; it has no bounds. Give it choices"):
        text.to_gymnasium_space()


def test_contexts_are_drawn_from_what_is_bounded() -> None:
    """The asked features alone; the rest has its defaults, and nothing is infinite."""
    first, second = SPACE.sample_contexts(["length"], size=2, seed=3)  # type: ignore[misc]
    assert first["length"] != second["length"]
    assert {**first, "length": 1.0} == {**second, "length": 1.0} == DEFAULT
    every = SPACE.sample_contexts(size=300, seed=3)
    assert isinstance(every, list)
    assert all(SPACE.verify_context(context) for context in every)
    assert {context["gravity"] for context in every} == {9.8}
    assert {context["levels"] for context in every} == {1, 2, 3, 4, 5}
    assert {context["drive"] for context in every} == {"rear", "front"}
    assert {context["dark"] for context in every} == {True, False}
    lengths = [float(context["length"]) for context in every]
    assert min(lengths) < 0.6
    assert max(lengths) > 1.9
    assert isinstance(SPACE.sample_contexts(), dict)
    assert SPACE.sample_contexts(size=300, seed=3) == every
    assert SPACE.sample_contexts(size=300) != every
    with pytest.raises(InvalidContext, match=r"gravity: there is nothing to draw from"):
        SPACE.sample_contexts(["gravity"])
    with pytest.raises(ValueError, match="no context feature 'bork'"):
        SPACE.sample_contexts(["bork"])


def test_a_sampler_draws_what_it_has_distributions_for() -> None:
    """Complete contexts under 0, 1, 2; the same from the same seed, and going on from there."""
    distributions = [
        UniformFloatContextFeature("gravity", lower=1.0, upper=20.0),
        CategoricalContextFeature("drive", choices=["rear", "front"]),
        UniformIntegerContextFeature("levels", lower=2, upper=3),
    ]
    sampler = ContextSampler(distributions, SPACE, seed=4)
    assert sorted(sampler.context_feature_names) == ["drive", "gravity", "levels"]
    drawn = sampler.sample_contexts(30)
    assert list(drawn) == list(range(30))
    assert all(SPACE.verify_context(c) and list(c) == list(DEFAULT) for c in drawn.values())
    assert {c["levels"] for c in drawn.values()} == {2, 3}
    assert {c["length"] for c in drawn.values()} == {1.0}
    assert json.loads(json.dumps(list(drawn.values()))) == list(drawn.values())
    again = ContextSampler({d.name: d for d in distributions}, SPACE, seed=4)
    assert again.sample_contexts(30) == drawn
    assert again.sample_contexts(1)[0] != drawn[0]
    assert ContextSampler(distributions, SPACE, seed=5).sample_contexts(30) != drawn
    assert sampler.sample_contexts(0) == {}


def test_a_normal_distribution_keeps_to_its_mean_and_its_bounds() -> None:
    """Narrow, it is the mean; wide, it is cut off."""
    narrow = NormalFloatContextFeature("mass", mu=2.0, sigma=1e-9, lower=1.0, upper=3.0)
    drawn = ContextSampler([narrow], SPACE, seed=1).sample_contexts(20)
    assert all(c["mass"] == pytest.approx(2.0, abs=1e-6) for c in drawn.values())
    wide = NormalFloatContextFeature("mass", mu=2.0, sigma=5.0, lower=1.0, upper=3.0)
    masses = [c["mass"] for c in ContextSampler([wide], SPACE, seed=1).sample_contexts(50).values()]
    assert all(1 <= float(m) <= 3 for m in masses)
    assert len(set(masses)) == 50


def test_a_normal_distribution_needs_no_bounds() -> None:
    """As in CARL's examples; what is drawn keeps to the feature's bounds, where it has some."""
    gravity = NormalFloatContextFeature("gravity", mu=9.8, sigma=1)
    assert feature_of(gravity) == ContextFeature(name="gravity", default=9.8)
    drawn = ContextSampler([gravity], SPACE, seed=42).sample_contexts(200)
    values = [float(context["gravity"]) for context in drawn.values()]
    assert np.mean(values) == pytest.approx(9.8, abs=0.3)
    assert np.std(values) == pytest.approx(1, abs=0.2)
    mass = NormalFloatContextFeature("mass", mu=1.0, sigma=2)
    drawn = ContextSampler([mass], SPACE, seed=42).sample_contexts(200)
    masses = [float(context["mass"]) for context in drawn.values()]
    assert 1 <= min(masses) < max(masses) <= 3
    light = NormalFloatContextFeature("mass", mu=1.0, sigma=2, upper=1.5)
    assert feature_of(light) == ContextFeature(name="mass", default=1.0, upper=1.5)
    drawn = ContextSampler([light], SPACE, seed=42).sample_contexts(50)
    assert all(1 <= float(context["mass"]) <= 1.5 for context in drawn.values())
    with pytest.raises(InvalidContext, match=r"mass: .* draws nothing within \[1.0, 3.0\]"):
        ContextSampler([NormalFloatContextFeature("mass", mu=90, sigma=1)], SPACE, seed=1)


def test_a_sampler_reads_a_configspace_from_its_file(tmp_path: Path) -> None:
    """The form that ConfigSpace writes."""
    path = tmp_path / "train.json"
    ConfigSpace.ConfigurationSpace({"gravity": (1.0, 20.0)}).to_json(path)
    for given in (path, str(path)):
        drawn = ContextSampler(given, CARLCartPole.get_context_space(), seed=1).sample_contexts(3)
        assert len({context["gravity"] for context in drawn.values()}) == 3
    with pytest.raises(InvalidContext, match="no context distribution at"):
        ContextSampler(tmp_path / "no.json", SPACE, seed=1)


def test_a_sampler_refuses_what_its_environment_does_not_know_or_allow() -> None:
    """By name where it is made, by value where it is drawn."""
    with pytest.raises(InvalidContext, match=r"no feature 'lenght'. Did you mean 'length'"):
        ContextSampler([UniformFloatContextFeature("lenght", lower=0, upper=1)], SPACE, seed=1)
    wide = ContextSampler([UniformFloatContextFeature("mass", lower=5, upper=6)], SPACE, seed=1)
    with pytest.raises(InvalidContext, match=r"mass: 5.* is not within \[1.0, 3.0\]"):
        wide.sample_contexts(1)
    with pytest.raises(ValueError, match="is a list, a mapping or the path"):
        ContextSampler(7, SPACE, seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{nope", "[1]", '{"hyperparameters": 3}'])
def test_a_file_that_holds_no_distributions_is_named(text: str, tmp_path: Path) -> None:
    """Whatever ConfigSpace makes of it."""
    place = tmp_path / "drawn.json"
    place.write_text(text)
    with pytest.raises(InvalidContext, match=r"drawn.json' is not a ConfigSpace in JSON: "):
        ContextSampler(place, ContextSpace([ContextFeature(name="mass", default=1.0)]), seed=1)


def test_fewer_than_no_contexts_cannot_be_drawn() -> None:
    """An empty set under a number below zero would be taken for a drawn one."""
    space = ContextSpace([ContextFeature(name="mass", default=1.0, lower=0.0, upper=2.0)])
    with pytest.raises(InvalidContext, match="-1 contexts cannot be drawn"):
        ContextSampler(space.features, space, seed=1).sample_contexts(-1)

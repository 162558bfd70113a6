"""What a context may hold, and what is said of one that may not be."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tables import each_of

from hud_mcp.errors import InvalidContext
from hud_mcp.values.context import ContextFeature, ContextSpace, Scalar

SPACE = ContextSpace(
    [
        ContextFeature(name="gravity", default=9.8, lower=0, upper=30),
        ContextFeature(name="levels", default=3, lower=1),
        ContextFeature(name="locale", default="en", choices=("en", "de")),
        ContextFeature(name="dark", default=False),
        ContextFeature(name="sides", default=4, choices=(1, 4, 6)),
    ]
)


@each_of("default", [0, 1, 2, 0.0, 1.0, 2.5, True, False, "on", "yes", "1", ""])
def test_a_default_keeps_its_type(default: Scalar) -> None:
    """1 is not turned into True, and "on" stays text: the type says what else is taken."""
    feature = ContextFeature(name="a", default=default)
    assert feature.default == default
    assert type(feature.default) is type(default)


def test_what_is_left_out_is_the_default() -> None:
    """A filled context has every feature, in order."""
    filled = SPACE.fill({"levels": 5})
    assert filled == {"gravity": 9.8, "levels": 5, "locale": "en", "dark": False, "sides": 4}
    assert list(filled) == [feature.name for feature in SPACE.features]
    assert SPACE.fill({}) == SPACE.default


@each_of(
    "context",
    [
        {"gravity": 0},
        {"gravity": 30.0},
        {"levels": 2**63 - 1},
        {"locale": "de"},
        {"dark": True},
        {"sides": 6},
    ],
)
def test_a_value_of_its_kind_and_within_bounds_is_taken(context: dict[str, Any]) -> None:
    """Bounds are inclusive, and an integer is a number."""
    assert SPACE.problems(context) == []


@each_of(
    ("context", "said"),
    [
        ({"gravty": 1}, "there is no feature 'gravty'. Did you mean 'gravity'? The features are:"),
        ({"gravity": 31}, "gravity: 31 is not within [0.0, 30.0]"),
        ({"gravity": -0.1}, "gravity: -0.1 is not within [0.0, 30.0]"),
        ({"gravity": "1"}, "gravity: '1' is not a number"),
        ({"gravity": True}, "gravity: True is not a number"),
        ({"gravity": float("nan")}, "gravity: nan is not a finite number"),
        ({"levels": 0}, "levels: 0 is not within [1.0, None]"),
        ({"levels": 2.0}, "levels: 2.0 is not an integer"),
        ({"levels": 2**70}, "is not a finite number, or an integer of more than 64 bits"),
        ({"levels": None}, "levels: None is not an integer"),
        ({"locale": "fr"}, "locale: 'fr' is not one of ('en', 'de')"),
        ({"dark": 1}, "dark: 1 is not true or false"),
        ({"dark": "true"}, "dark: 'true' is not true or false"),
        ({"sides": True}, "sides: True is not one of (1, 4, 6)"),
        ({"sides": []}, "sides: [] is not one of (1, 4, 6)"),
    ],
)
def test_a_wrong_value_names_its_feature_and_what_is_taken(
    context: dict[str, Any], said: str
) -> None:
    """Nothing is coerced, so that what is recorded is what was asked for."""
    with pytest.raises(InvalidContext) as caught:
        SPACE.fill(context)
    assert said in str(caught.value)


def test_every_wrong_feature_is_named_at_once() -> None:
    """One error is enough to correct all of them."""
    with pytest.raises(InvalidContext, match=r"dark: 3 .*; levels: 'x' .*; there is no .*'z'"):
        SPACE.fill({"dark": 3, "levels": "x", "z": 1})


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from([f.name for f in SPACE.features]) | st.text(max_size=3),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    )
)
def test_a_context_is_filled_exactly_where_it_has_no_problem(context: dict[str, Any]) -> None:
    """`problems` and `fill` agree, and a filled context has no problem."""
    if SPACE.problems(context):
        with pytest.raises(InvalidContext):
            SPACE.fill(context)
    else:
        assert SPACE.problems(SPACE.fill(context)) == []


def test_two_features_of_one_name_are_refused() -> None:
    """A name means one feature."""
    with pytest.raises(InvalidContext, match="'a' is declared twice"):
        ContextSpace([ContextFeature(name="a", default=1), ContextFeature(name="a", default=2)])


def test_the_union_of_two_spaces_takes_the_second_s_feature() -> None:
    """An environment may narrow a feature of its world."""
    narrow = ContextSpace([ContextFeature(name="levels", default=1, upper=2)])
    both = SPACE | narrow
    assert both.default["levels"] == 1
    assert both.problems({"levels": 3}) != []
    assert SPACE.problems({"levels": 3}) == []


@each_of(
    "fields",
    [
        {"name": "9a", "default": 1},
        {"name": "a b", "default": 1},
        {"name": "a", "default": 5, "upper": 4},
        {"name": "a", "default": "x", "choices": ("y",)},
        {"name": "a", "default": float("inf")},
        {"name": "a", "default": 1, "minimum": 0},
    ],
)
def test_a_feature_whose_default_is_not_allowed_cannot_be_declared(fields: dict[str, Any]) -> None:
    """A declaration that contradicts itself fails where it is written."""
    with pytest.raises(ValidationError):
        ContextFeature(**fields)

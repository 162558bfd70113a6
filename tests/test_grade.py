"""What a template may yield as its grade; anything else is a failure, never a zero."""

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tables import each_of

from hud_mcp.errors import GradingFailed
from hud_mcp.graders import EvaluationResult
from hud_mcp.values.grade import Grade, Outcome, SubScore, read_grade

WHERE = "env.py:7"


@each_of(
    ("value", "reward"),
    [
        (1, 1.0),
        (0, 0.0),
        (0.25, 0.25),
        (-3, -3.0),
        (True, 1.0),
        (False, 0.0),
        (Fraction(1, 4), 0.25),
        ({"score": 0.5}, 0.5),
        ({"reward": 0.5}, 0.5),
        ({"score": 0.1, "reward": 0.9}, 0.9),
        (Grade(reward=0.75), 0.75),
        (SimpleNamespace(reward=0.5), 0.5),
    ],
)
def test_every_form_of_a_grade_gives_its_reward(value: Any, reward: float) -> None:
    """Numbers, grades, mappings and objects with a reward are grades."""
    grade = read_grade(value, where=WHERE)
    assert grade.reward == reward
    assert type(grade.reward) is float


def test_a_mapping_s_other_fields_become_parts_of_the_grade() -> None:
    """What the HUD wire knows is kept under its name, and everything else as info."""
    grade = read_grade(
        {
            "score": 0.5,
            "content": "Half.",
            "subscores": [{"name": "a", "value": 1, "weight": 0.5}],
            "info": {"seen": 1},
            "extra": [1],
        },
        where=WHERE,
    )
    assert grade.content == "Half."
    assert grade.subscores == (SubScore(name="a", value=1, weight=0.5),)
    assert grade.info == {"seen": 1, "extra": [1]}


def test_an_object_s_content_is_kept() -> None:
    """An evaluation result of another library explains itself."""
    value = SimpleNamespace(reward=1, content="All of it.")
    assert read_grade(value, where=WHERE).content == "All of it."


def test_a_result_object_keeps_its_parts_its_info_and_what_it_has_beside() -> None:
    """As combine() and HUD's graders build it; also one of another library with the same fields."""
    tree = SubScore(name="all", value=0.5, children=(SubScore(name="a", value=1, info={"x": 1}),))
    result = EvaluationResult(reward=0.5, content="Half.", info={"seen": 1}, subscores=[tree])
    result = EvaluationResult.model_validate({**dict(result), "extra": [2]})
    grade = read_grade(result, where=WHERE)
    assert grade.subscores == (tree,)
    assert (grade.content, grade.info) == ("Half.", {"seen": 1, "extra": [2]})

    leaf = SimpleNamespace(name="a", value=1, weight=1, children=None, info={"x": 1})
    part = SimpleNamespace(name="all", value=0.5, weight=1, children=[leaf], info=None)
    other = SimpleNamespace(reward=0.5, subscores=[part], info=None, content=None, isError=False)
    assert read_grade(other, where=WHERE).subscores == (tree,)


def test_what_another_object_has_by_a_grade_s_names_is_not_taken_for_it() -> None:
    """An object with a reward is a grade, whatever its methods are called."""
    value = SimpleNamespace(reward=0.5, info=print, done=len, content=5, subscores="none")
    assert read_grade(value, where=WHERE) == Grade(reward=0.5)


def test_nothing_may_be_written_as_null() -> None:
    """HUD's wire has null where there are no children and no info."""
    part = {"name": "a", "value": 1, "children": None, "info": None}
    grade = read_grade({"score": 1, "subscores": [part], "info": None}, where=WHERE)
    assert grade.subscores == (SubScore(name="a", value=1),)
    assert read_grade({"score": 1, "subscores": None}, where=WHERE).subscores == ()
    assert Grade.model_validate({"reward": 1, "subscores": None, "info": None}).info == {}


def test_hud_s_other_names_are_read() -> None:
    """`metadata` is info, `score` is value, `isError` is is_error."""
    part = SubScore.model_validate({"name": "a", "value": 0.5, "metadata": {"x": 1}})
    assert (part.info, part.metadata, part.score) == ({"x": 1}, {"x": 1}, 0.5)
    tree = SubScore(name="all", value=0.5, children=(part,), info={"secret": 1})
    shown = {"name": "all", "weight": 1.0, "value": 0.5, "children": [
        {"name": "a", "weight": 1.0, "value": 0.5, "children": []}]}  # fmt: skip
    assert tree.to_summary() == shown
    assert Grade.model_validate({"reward": 1, "isError": True, "done": False}).is_error


@each_of(
    "value",
    [
        Grade(reward=1, is_error=True, content="no bash"),
        {"score": 1, "isError": True, "content": "no bash"},
        {"reward": 1, "is_error": True, "content": "no bash"},
        {"reward": 1, "is_error": False, "isError": True, "content": "no bash"},
        EvaluationResult(reward=1, isError=True, content="no bash"),
        EvaluationResult(isError=True, content="no bash"),
        SimpleNamespace(reward=1, is_error=True, content="no bash"),
    ],
)
def test_a_grade_that_says_it_failed_is_no_reward(value: Any) -> None:
    """Whatever number it carries."""
    with pytest.raises(GradingFailed, match=f"^{WHERE}: the grade reports .* no bash$"):
        read_grade(value, where=WHERE)


def test_a_grade_that_is_not_done_says_so_beside_its_reward() -> None:
    """A task is over once it is graded; whoever wants to know finds it in the receipt."""
    grade = read_grade({"score": 1, "done": False}, where=WHERE)
    assert (grade.done, grade.info) == (False, {"done": False})
    assert read_grade({"score": 1, "done": True}, where=WHERE).info == {}


def test_a_part_s_info_is_made_json_or_grading_fails() -> None:
    """A receipt can always be stored."""
    inner = SubScore(name="b", value=1, info={"at": WHERE, "odd": Outcome, "path": Path("/x")})
    grade = read_grade(
        Grade(reward=1, subscores=(SubScore(name="a", value=1, children=(inner,)),)), where=WHERE
    )
    assert grade.subscores[0].children[0].info["path"] == "/x"
    grade.model_dump_json()
    circle: dict[str, Any] = {}
    circle["again"] = circle
    for info in (circle, {"bytes": b"\xff"}):
        broken = {"score": 1, "subscores": [SubScore.model_construct(
            name="a", value=1, weight=1, children=(), info=info)]}  # fmt: skip
        with pytest.raises(GradingFailed, match="info cannot be kept as JSON"):
            read_grade(broken, where=WHERE)


@each_of(
    ("value", "said"),
    [
        (None, "yielded None as its grade; yield a number, a Grade, or a dict"),
        ("1.0", "yielded '1.0' as its grade"),
        ([1.0], "yielded [1.0] as its grade"),
        ({}, "yielded {} as its grade"),
        ({"points": 1}, "yielded {'points': 1} as its grade"),
        ({"score": "1"}, "yielded '1' as its reward; a reward is a finite number"),
        ({"score": None}, "yielded None as its reward"),
        (math.nan, "yielded nan as its reward"),
        (math.inf, "yielded inf as its reward"),
        (10**400, "as its reward; a reward is a finite number"),
        ({"score": math.nan}, "yielded nan as its reward"),
        (SimpleNamespace(reward="high"), "as its grade"),
        ({"score": 1, "info": "text"}, "the grade's info: input should be a valid dictionary"),
        ({"score": 1, "content": 5}, "the grade's content: input should be a valid string, got 5"),
        ({"score": 1, "subscores": 3}, "the grade's subscores: input should be a valid tuple"),
        (
            {"score": 1, "subscores": [{"name": "a", "value": 2}]},
            "the grade's subscores.0.value: input should be less than or equal to 1, got 2",
        ),
    ],
)
def test_what_is_no_grade_fails_grading_with_the_template_s_line(value: Any, said: str) -> None:
    """It is not taken for 0, and the text says where and what was yielded."""
    with pytest.raises(GradingFailed) as caught:
        read_grade(value, where=WHERE)
    assert str(caught.value).startswith(f"{WHERE}: ")
    assert said in str(caught.value)


KEYS = ["score", "reward", "info", "content", "subscores", "name", "value", "children", "metadata"]
KEYS += ["done", "isError", "is_error"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
        )
    ),
    max_leaves=6,
)


@given(anything)
def test_whatever_is_yielded_is_a_finite_reward_or_a_failed_grading(value: Any) -> None:
    """No other exception reaches the session, and no reward is infinite."""
    try:
        grade = read_grade(value, where=WHERE)
    except GradingFailed:
        return
    assert math.isfinite(grade.reward)


@each_of("fields", [{"reward": math.nan}, {"reward": math.inf}, {}, {"reward": 1, "score": 1}])
def test_a_grade_without_a_finite_reward_cannot_be_made(fields: dict[str, Any]) -> None:
    """There is no default reward."""
    with pytest.raises(ValidationError):
        Grade(**fields)


def test_the_outcomes_are_six_and_named_as_they_are_stored() -> None:
    """Their names are part of every record, so that they never change by accident."""
    assert [o.value for o in Outcome] == [
        "graded",
        "cancelled",
        "expired",
        "environment_failed",
        "grading_failed",
        "lost",
    ]

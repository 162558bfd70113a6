"""What a task has changed in a state, and the grade that follows from it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp import Before, grade_checks


def board(*ids: str) -> dict[str, Any]:
    """A state with rows in an order."""
    return {"cards": [{"id": key, "title": f"Card {key}"} for key in ids], "user": ""}


@each_of(
    ("now", "beside", "found"),
    [
        (board("a", "b", "c"), [], []),
        (board("a", "c"), [], ["cards.b.id", "cards.b.title"]),
        (board("a", "c"), ["cards.b"], []),
        (board("b", "a", "c"), [], ["cards (order)"]),
        (board("b", "a", "c"), ["cards.b"], []),
        (board("c", "b", "a"), ["cards.b"], ["cards (order)"]),
        (board("a", "b", "c", "d"), ["cards.d"], []),
        ({**board("a", "b", "c"), "user": "mara"}, [], []),
        ({**board("a", "b", "c"), "extra": 1}, [], ["extra"]),
    ],
)
def test_changes_names_what_differs_beside_what_was_asked(
    now: dict[str, Any], beside: list[str], found: list[str]
) -> None:
    """Rows go by their id, their order counts, and a row that may change may also move."""
    state = board("a", "b", "c")
    before = Before(state, allowed=["user"])
    state.clear()
    state.update(now)
    assert before.changes(beside=beside) == found


def test_a_path_is_not_allowed_by_one_that_only_begins_alike() -> None:
    """`cards.1` does not allow `cards.10`."""
    state = {"cards": {"1": "x", "10": "y"}}
    before = Before(state)
    state["cards"] = {"1": "new", "10": "new"}
    assert before.changes(beside=["cards.1"]) == ["cards.10"]


@given(
    st.dictionaries(st.text(min_size=1), st.floats(0, 1), min_size=1),
    st.lists(st.text(), max_size=3),
)
def test_a_grade_is_the_mean_of_its_checks_and_half_of_it_after_side_effects(
    checks: dict[str, float], effects: list[str]
) -> None:
    """The parts add up to the reward, so that a page that shows them says the same."""
    grade = grade_checks(checks, effects)
    mean = sum(checks.values()) / len(checks)
    assert grade.reward == pytest.approx(mean / 2 if effects else mean)
    parts = sum(part.value * part.weight for part in grade.subscores or ())
    assert parts == pytest.approx(grade.reward)


def test_a_grade_of_no_check_is_a_mistake_of_the_author() -> None:
    """Nothing to check is not a reward of 0, nor of 1."""
    with pytest.raises(ValueError, match="one check or more"):
        grade_checks({})

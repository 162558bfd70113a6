"""Graders of text: strict where laxness would let a wrong answer pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.graders.text import contains, exact_match, numeric_match


@each_of(
    ("answer", "expected", "reward"),
    [
        ("Paris", "Paris", 1),
        (" paris. ", "Paris", 1),
        ('"Paris"', "paris", 1),
        ("New\n  York!", "new york", 1),
        ("\uff30aris", "paris", 1),
        ("Straße", "STRASSE", 1),
        (5, "5", 1),
        (None, "none", 1),
        ("Paris, France", "Paris", 0),
        ("Pari", "Paris", 0),
        ("", "Paris", 0),
        ("1.50", "1.5", 0),
        ("-5", "5", 0),
    ],
)
def test_exact_match_ignores_only_how_a_text_is_written(
    answer: object, expected: str, reward: float
) -> None:
    """Case, spacing, quotes and a final stop; nothing of the content."""
    assert exact_match(answer, expected) == reward


def test_case_counts_where_it_is_asked_for() -> None:
    """For all graders of text."""
    assert exact_match("paris", "Paris", ignore_case=False) == 0
    assert contains("in paris", "Paris", ignore_case=False) == 0
    assert exact_match("Paris.", "Paris", ignore_case=False) == 1


@given(st.text(), st.text())
def test_a_match_is_its_own_mirror(one: str, other: str) -> None:
    """Every text matches itself, and no order is preferred."""
    assert exact_match(one, one) == 1
    assert exact_match(one, other) == exact_match(other, one)


@each_of(
    ("answer", "expected", "reward"),
    [
        ("The capital is Paris.", "paris", 1),
        ("Paris", "Paris", 1),
        ("Parisian", "Paris", 0),
        ("red and blue", ["red", "blue"], 1),
        ("red and blue", ["red", "green"], 0),
        ("use C++ here", "C++", 1),
        ("it is New  York", "new york", 1),
        ("15 apples", "5", 0),
        ("5 apples", "5", 1),
        ("a.b", "a*b", 0),
        ("", "x", 0),
    ],
)
def test_contains_finds_whole_words(answer: str, expected: str | list[str], reward: float) -> None:
    """A part of a word or of a number is not the word."""
    assert contains(answer, expected) == reward


@each_of("expected", ["", "  ", [], ["a", ""], ".", "''", ["a", "!"]])
def test_an_expectation_that_everything_meets_is_refused(expected: str | list[str]) -> None:
    """Such a grader would give full reward for anything."""
    with pytest.raises(ValueError, match="at least one non-empty text"):
        contains("anything", expected)


@each_of(
    ("answer", "expected", "tolerance", "reward"),
    [
        ("5", 5, 0, 1),
        ("5.0", 5, 0, 1),
        ("-5", 5, 0, 0),
        ("0.5", 5, 0, 0),
        ("50", 5, 0, 0),
        ("5.04", 5, 0.05, 1),
        ("5.06", 5, 0.05, 0),
        ("0.1 + 0.2 = 0.30000000000000004", 0.3, 0, 1),
        ("nan", 5, 0, 0),
        (float("nan"), 5, 0, 0),
        (float("inf"), 5, 1e308, 0),
        ("", 0, 0, 0),
        ("no idea", 0, 0, 0),
        (False, 0, 0, 0),
        (10**400, 5, 0, 0),
        (-(10**400), 5, 0, 0),
        ("9" * 400, 5, 0, 0),
    ],
)
def test_a_number_matches_within_the_tolerance_alone(
    answer: object, expected: float, tolerance: float, reward: float
) -> None:
    """A sign, a decimal point and an absent number never match."""
    assert numeric_match(answer, expected, tolerance=tolerance) == reward


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none(), st.floats(-1e9, 1e9))
def test_any_answer_is_graded_with_0_or_1(answer: object, expected: float) -> None:
    """An agent cannot break the grading by what it answers."""
    assert numeric_match(answer, expected) in (0.0, 1.0)
    assert contains(answer, "x") in (0.0, 1.0)


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "It is {}.", "{:,}", "{:+} kg", "{}.0"])
)
def test_a_number_is_read_however_it_is_written(number: int, form: str) -> None:
    """With separators, in a sentence, with a sign or a unit."""
    assert numeric_match(form.format(number), number) == 1
    assert numeric_match(form.format(number), number + 1) == 0


@pytest.mark.parametrize("expected", [0, 1e-10])
def test_the_tolerance_is_of_the_expected_number_s_own_size(expected: float) -> None:
    """Nearly nothing is not nothing."""
    assert numeric_match(expected, expected) == 1
    assert numeric_match(expected + 1e-11, expected) == 0

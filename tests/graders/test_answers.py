"""Functions of an answer, as tasks name them in `evaluate`."""

import asyncio
import random
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.errors import GraderFailed
from hud_mcp.graders import (
    gaia_match,
    match_all,
    match_diff,
    match_fuzzy,
    match_regex,
    match_single,
    response_includes,
    response_is,
    response_match,
)
from hud_mcp.graders.answers import MatchResult, _distance
from hud_mcp.graders.reading import one_line
from hud_mcp.values.grade import read_grade


@each_of(
    ("answer", "texts", "score"),
    [
        ("It is the Mitochondria.", ["mitochondria"], 1),
        ("mitochondrial", ["mitochondria"], 1),
        ("red\n and  BLUE", ["red and blue"], 1),
        ("red and blue", ["red", "blue"], 1),
        ("red and blue", [["red", "blue"]], 1),
        ("red and blue", [["red"], "green"], 0),
        ("15 apples", ["5"], 0),
        ("2.5 apples", ["5"], 0),
        ("-5 apples", ["5"], 0),
        ("1,234", ["234"], 0),
        ("5.5", ["5"], 0),
        ("the answer is 5.", ["5"], 1),
        ("(5)", [5], 1),
        ("item A5", ["a5"], 1),
        ("item XA51", ["a5"], 0),
        ("", ["x"], 0),
        (None, ["none"], 0),
        ("STRASSE", ["stra\u00dfe"], 1),
    ],
)
def test_an_answer_includes_texts(answer: str | None, texts: list[Any], score: float) -> None:
    """All of them, whatever their case; a part of a number is another number."""
    assert response_includes(answer, *texts) == score


def test_hud_s_rule_finds_parts_of_numbers() -> None:
    """For rows that were written for it."""
    assert response_includes("15 apples", "5", compat="hud") == 1


@each_of("texts", [[], [""], [" "], [[]], ["a", ""]])
def test_what_every_answer_includes_is_refused(texts: list[Any]) -> None:
    """Such a row would give full reward for anything."""
    with pytest.raises((ValueError, TypeError), match=r"at least one non-empty text|missing 1"):
        response_includes("anything", *texts)


@pytest.mark.parametrize("text", [None, True, {"a": 1}])
def test_what_is_no_text_is_refused(text: Any) -> None:
    """Not compared by how Python shows it."""
    with pytest.raises(TypeError, match="compared with text or a number"):
        response_is("x", text)
    with pytest.raises(TypeError, match="compared with text or a number"):
        response_includes("x", [text])


@each_of(
    ("answer", "text", "score"),
    [(" Paris\n", "Paris", 1), ("paris", "Paris", 0), ("5", 5, 1), ("5.0", 5, 0), (None, "", 1),
     ("a  b", "a b", 0)],
)  # fmt: skip
def test_an_answer_is_a_text(answer: str | None, text: Any, score: float) -> None:
    """To the letter; only space around it is ignored."""
    assert response_is(answer, text) == score


@pytest.mark.anyio
@each_of(
    ("answer", "pattern", "score"),
    [
        ("order 1234.", r"\b\d{4}\b", 1),
        ("Order", "order", 0),
        ("Order", "(?i)order", 1),
        ("a\nb", "a.b", 0),
        ("a\nb", "^b$", 0),
        ("x", "", 1),
        (None, "x", 0),
        ("\ud800 \u00e9", "\u00e9", 1),
        ('"\n{}', '"', 1),
    ],
)
async def test_an_answer_matches_an_expression(
    answer: str | None, pattern: str, score: float
) -> None:
    """As `re.search` has it."""
    assert await response_match(answer, pattern) == score


@pytest.mark.anyio
async def test_a_wrong_expression_is_told_with_its_reason() -> None:
    """It is the author's mistake, and no 0 of the agent's."""
    with pytest.raises(ValueError, match=r"is not a regular expression: missing \)"):
        await response_match("x", "(")
    with pytest.raises(ValueError, match="is not a regular expression"):
        await response_match("x", "a{99999999999999}")


@pytest.mark.anyio
async def test_an_expression_without_end_holds_nobody_up() -> None:
    """It is stopped by the kernel, while the loop goes on and other searches are done."""
    with anyio.fail_after(PATIENCE_S):
        evil = asyncio.create_task(response_match("a" * 40, "(a+)+b"))
        assert await response_match("abc", "b") == 1
        assert not evil.done(), "the other search did not wait for it"
        took = "more than (2 s of computing|15 s, on a busy machine) on a text of 40"
        with pytest.raises(GraderFailed, match=took):
            await evil


@each_of(
    ("answer", "truth", "score"),
    [
        ("42", "42", 1),
        ("$42", "42", 1),
        ("42%", "42", 1),
        ("1,000", "1000", 1),
        ("\u20ac42", "42", 0),
        ("42 apples", "42", 0),
        ("42.0", "42", 1),
        ("1000", "1,000", 0),
        ("1,000", "1,000", 1),
        ("banana", "inf", 1),
        ("nan", "nan", 0),
        ("Hello, World", "hello world", 1),
        ("hello world", "Hello, World", 0),
        ("HelloWorld!", "hello world", 1),
        ("a, b; c", "A,B,C", 1),
        ("b, a", "a, b", 0),
        ("a, 2.0", "a,2", 1),
        ("a., b", "a, b", 0),
        ("", "x", 0),
        (None, "none", 1),
    ],
)
def test_gaia_answers_are_scored_by_the_official_rule(
    answer: str | None, truth: str, score: float
) -> None:
    """With what is odd in it, so that scores can be compared."""
    assert gaia_match(answer, truth) == score


@each_of(
    ("result", "score", "mode"),
    [
        (match_single("Hello, World!", " world "), 1, "single"),
        (match_single("Hello", "world"), 0, "single"),
        (match_all("a red hat", ["RED", "blue"]), 0.5, "all"),
        (match_all("x", []), 0, "all"),
        (match_fuzzy("Kitten", "sitting"), 1 - 3 / 7, "fuzz"),
        (match_fuzzy("", "abc"), 0, "fuzz"),
        (match_fuzzy("", ""), 1, "fuzz"),
        (match_regex("a\nb", "a.b"), 1, "regex"),
        (match_regex("A", "a"), 0, "regex"),
        (match_regex("x", "("), 0, "regex"),
        (match_diff(8, 10), 0.8, "diff"),
        (match_diff(-10, 10), 0, "diff"),
        (match_diff(0, 0.0), 1, "diff"),
        (match_diff(float("nan"), 1), 0, "diff"),
        (match_diff(float("inf"), float("inf")), 1, "diff"),
        (match_diff("abcd", "bcde"), 0.75, "diff"),
        (match_diff("8", 10), 0, "diff"),
    ],
)
def test_hud_0_2_s_comparisons_are_here(result: MatchResult, score: float, mode: str) -> None:
    """With their scores and modes, and a reason in words."""
    assert (result.score, result.mode) == (pytest.approx(score), mode)
    assert result.reason.endswith(".")
    assert read_grade(result, where="x").reward == result.score


def test_each_expected_text_has_its_own_score() -> None:
    """A person sees which one was missing."""
    assert match_all("red", ["red", "blue"]).criteria_scores == {"red": 1.0, "blue": 0.0}


def table_distance(one: str, other: str) -> int:
    """Levenshtein's distance by the table of the textbooks."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        last, row[0] = row[0], i + 1
        for j, b in enumerate(other):
            last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (a != b))
    return row[-1]


@given(st.text("ab\u00e9", max_size=12), st.text("ab\u00e9", max_size=12))
def test_the_distance_is_levenshtein_s(one: str, other: str) -> None:
    """By bits as by the table."""
    assert _distance(one, other) == table_distance(one, other)


@pytest.mark.timeout(PATIENCE_S)  # where a step is taken for each pair, it takes hours
def test_answers_of_any_length_are_compared_in_no_time() -> None:
    """An agent cannot hold up the server by a long answer."""
    source = random.Random(1)
    long = "".join(source.choices("ab \n", k=2_000_000))
    assert 0 <= match_fuzzy(long, "a" * 50_000).score < 0.1
    assert 0 <= match_diff(long, long[::-1]).score < 0.1
    assert response_includes(long, "ccc") == 0
    assert gaia_match(long, "a, b") == 0
    assert match_single(long, "c").score == 0


@pytest.mark.long
@given(st.text() | st.none(), st.text(min_size=1).filter(partial(one_line, ignore_case=True)))
@example(answer=None, text="\x1b.")
def test_any_answer_has_a_score(answer: str | None, text: str) -> None:
    """Beside any text of which a reader sees something; only its own text is surely the text."""
    for function in (response_includes, response_is, gaia_match):
        assert function(answer, text) in (0.0, 1.0)
    assert response_is(text, text) == 1
    assert response_includes(text, text) == 1

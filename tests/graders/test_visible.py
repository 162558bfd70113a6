"""Differences that no reader sees decide nothing, in any function that compares answers."""

import anyio

from hud_mcp.graders import (
    contains,
    contains_all,
    contains_any,
    exact_match,
    f1_score,
    normalize,
    numeric_match,
    response_includes,
    response_is,
    response_match,
)
from hud_mcp.graders.reading import trimmed, visible

UNSEEN = [
    # As it was answered, and as it is expected.
    ("I can\u2019t", "I can't"), ("I can\u02bct", "I can't"), ("I can\u00b4t", "I can't"),
    ("I can`t", "I can't"), ("say \u201cyes\u201d to it", 'say "yes" to it'),
    ("say \u00abyes\u00bb to it", 'say "yes" to it'),
    ("say \u300cyes\u300d to it", 'say "yes" to it'),
    ("say \u201eyes\u201c to it", 'say "yes" to it'), ("say ``yes'' to it", 'say "yes" to it'),
    ("Pa\u200bris", "Paris"), ("\ufeffParis", "Paris"), ("Pa\u00adris", "Paris"),
    ("Paris\u200e", "Paris"), ("Pa\u2060ris", "Paris"), ("Paris\ufe0f", "Paris"),
    ("Paris\x00", "Paris"), ("New\u00a0York", "New York"), ("New\u202fYork", "New York"),
    ("New\u3000York", "New York"), ("New\u2003York", "New York"), ("New\tYork", "New York"),
    ("New\u2800York", "New York"), ("well\u2011known", "well-known"),
    ("well\u2010known", "well-known"), ("2010\u20132015", "2010-2015"), ("\u22125", "-5"),
    ("\uff30aris", "Paris"), ("\ufb01ne", "fine"), ("caf\u0065\u0301", "caf\u00e9"),
    ("10\u2076", "10^6"), ("2\u00bd", "2 1/2"), ("1\u20442", "1/2"), ("5\u2032", "5'"),
]  # fmt: skip
STOPS = [".", "!", "\u3002", "\uff0e", "\uff01", "\uff61", "\u06d4", "\u0964", "\u1362", "\u2026",
         '."', "\u3002\u300d", ".\u201d", "'"]  # fmt: skip
SEEN = [
    ("C", "C++"), ("-5", "5"), ("cant", "can't"), ("3 5", "3.5"), ("106", "10\u2076"),
    ("21/2", "2\u00bd"), ("Paris?", "Paris"), ("\u5317\u4eac\uff1f", "\u5317\u4eac"),
    ("resume", "r\u00e9sum\u00e9"), ("a b", "ab"), ("x2", "x\u00b2"), ("\u0440aris", "paris"),
]  # fmt: skip


def test_what_nobody_sees_is_no_difference_to_any_function() -> None:
    """Each way round, in each function; the regular expression is the expected text itself."""
    wrong: list[tuple[str, str, str]] = []
    for one, other in UNSEEN:
        for answer, wanted in ((one, other), (other, one)):
            functions = [exact_match, contains, f1_score, response_includes, response_is]
            wrong += [(answer, wanted, f.__name__) for f in functions if f(answer, wanted) != 1.0]
            lists = [contains_all, contains_any]
            wrong += [(answer, wanted, f.__name__) for f in lists if f(answer, [wanted]) != 1.0]
            if normalize(answer) != normalize(wanted):
                wrong.append((answer, wanted, "normalize"))
    assert wrong == []


def test_an_expression_is_found_in_what_a_reader_sees() -> None:
    """And in what was written, for one that names the very sign."""

    async def found(answer: str, pattern: str) -> float:
        return await response_match(answer, pattern)

    assert anyio.run(found, "I can\u2019t", "can't") == 1
    assert anyio.run(found, "I can\u2019t", "can\u2019t") == 1
    assert anyio.run(found, "Pa\u200bris", "^Paris$") == 1
    assert anyio.run(found, "Paris", "^Pari$") == 0


def test_a_final_stop_of_any_script_is_no_difference() -> None:
    """With a quote before or behind it; where texts are looked for, it bounds a word."""
    wrong = [
        (stop, function.__name__)
        for stop in STOPS
        for answer, wanted in ((f"\u5317\u4eac{stop}", "\u5317\u4eac"), ("Paris", f"Paris{stop}"))
        for function in (exact_match, contains, response_includes, f1_score)
        if function(answer, wanted) != 1.0
    ]
    assert wrong == []
    assert response_includes("Parisian", "Paris.") == 0
    assert response_includes("a.b", ".") == 1


def test_what_a_reader_sees_stays_different() -> None:
    """A sign, an accent, a raised digit, a question mark, and a letter of another script."""
    wrong = [
        (one, other)
        for one, other in SEEN
        if exact_match(one, other) or exact_match(other, one) or response_is(one, other)
    ]
    assert wrong == []
    assert numeric_match("106", 1e6) == 0
    assert exact_match("I can\u2019t", "I can't", normalize_text=False) == 0, "asked to the letter"


def test_a_text_of_invisible_signs_is_empty() -> None:
    """So that nobody expects one by mistake."""
    assert visible("\u200b\ufeff\u00ad") == ""
    assert trimmed("\u300c\u3002\u300d", ignore_case=True) == ""

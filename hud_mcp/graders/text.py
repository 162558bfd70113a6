"""Graders of text: each returns a number from 0 to 1 and is pure.

They are strict where laxness would let a wrong answer pass: a sign, a decimal point, a part of
a word. They are lax where people write the same thing differently: case, spacing, separators. With
`compat="hud"` each follows the rule of HUD's function of the same name.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from hud_mcp.graders.reading import one_line, read_number, trimmed, without_stops

__all__ = [
    "Compat",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "normalize",
    "numeric_match",
    "occurrence",
]

Compat = Literal["strict", "hud"]
"""The rule of a grader: this package's, or that of HUD's function of the same name."""

_HUD_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_HUD_PUNCTUATION = re.compile(r"[^\w\s]")
_PROSE = re.compile(
    # What belongs to a number stays: 3.5, 1,234, 10:30, 1/2, -5, .5.
    r"[,:/](?!(?<=\d.)\d)"
    r"|\.(?!(?<=\d.)\d)(?!(?<!\w.)\d)"
    r"|-(?!(?<![\w)].)\.?\d)"
    r"|[;!?\"'`()\[\]{}\\\u00a1\u00bf\u2014\u2015]"
)
_BEFORE_DIGITS = (
    r"(?<![\d.+^-])(?<!\d[,'/:_])(?<![-+][$\u00a3\u00a4\u00a5\u20ac])(?<!\^\{)(?<!\d\*\*)"
)
_AFTER_DIGITS = (
    r"(?![\d^]| \^|\*\*\d|[.,'/_-]\d|:\d\d(?!\d)|e[-+]?\d| ?[\u00d7x*·] ?10 ?[\^*]"
    r"| \d{3}(?!\d)| \d+/\d)"
)


def normalize(text: Any, *, compat: Compat = "strict") -> str:
    """Return a text without differences of writing: case, punctuation, articles, spacing.

    Signs, decimal points and other parts of numbers stay. So do signs that are not punctuation of
    prose (`C++`, `C#`, `50%`). Articles stay if the text has nothing else.

    Args:
        text: Turned into text.
        compat: `hud` drops every sign and each a, an and the.
    """
    if compat == "hud":
        lowered = _HUD_PUNCTUATION.sub(" ", str(text).lower())
        return " ".join(_ARTICLES.sub(" ", lowered).split())
    folded = one_line(str(text), ignore_case=True)
    plain = _PROSE.sub(" ", without_stops(folded))
    return " ".join(_ARTICLES.sub(" ", plain).split()) or " ".join(plain.split())


def exact_match(
    answer: Any,
    expected: str,
    *,
    normalize_text: bool = True,
    ignore_case: bool = True,
    compat: Compat = "strict",
) -> float:
    """1.0 if the answer is the expected text, apart from case, spacing, quotes and a final stop.

    Differences that no reader sees do not count: kinds of quotes, apostrophes, blanks and hyphens,
    and signs without a shape.

    Args:
        answer: The submitted answer; turned into text.
        expected: The reference.
        normalize_text: Whether spacing within, quotes, a final stop and what nobody sees are
            ignored; without, only case and space around.
        ignore_case: Whether `Paris` and `paris` are the same.
        compat: `hud` compares the results of HUD's `normalize`: `-5` is then `5`.
    """
    given, wanted = str(answer), str(expected)
    if compat == "hud":
        if normalize_text:
            return float(normalize(given, compat="hud") == normalize(wanted, compat="hud"))
        return float(given.strip().lower() == wanted.strip().lower())
    if normalize_text:
        return float(
            trimmed(given, ignore_case=ignore_case) == trimmed(wanted, ignore_case=ignore_case)
        )
    given, wanted = given.strip(), wanted.strip()
    return float(given.casefold() == wanted.casefold() if ignore_case else given == wanted)


def contains(
    answer: Any,
    substring: str | Iterable[str],
    *,
    case_sensitive: bool | None = None,
    ignore_case: bool | None = None,
    compat: Compat = "strict",
) -> float:
    """1.0 if every expected text occurs in the answer as a word or a run of words.

    Args:
        answer: The submitted answer; turned into text.
        substring: The expected text, or several.
        case_sensitive: Whether `Paris` and `paris` differ; they do not by default.
        ignore_case: The same, the other way round.
        compat: `hud` finds parts of words and of numbers too, and finds nothing in everything.

    Raises:
        ValueError: No text is expected, or a text has only spaces, quotes and stops, so that
            everything would pass.
    """
    wanted = [substring] if isinstance(substring, str) else substring
    found = _found(answer, wanted, _folds(case_sensitive, ignore_case), compat, "contains")
    return float(all(found))


def contains_all(
    answer: Any,
    substrings: Iterable[str],
    *,
    case_sensitive: bool | None = None,
    ignore_case: bool | None = None,
    compat: Compat = "strict",
) -> float:
    """1.0 if each of the texts occurs in the answer; otherwise as `contains`."""
    folds = _folds(case_sensitive, ignore_case)
    return float(all(_found(answer, substrings, folds, compat, "contains_all")))


def contains_any(
    answer: Any,
    substrings: Iterable[str],
    *,
    case_sensitive: bool | None = None,
    ignore_case: bool | None = None,
    compat: Compat = "strict",
) -> float:
    """1.0 if at least one of the texts occurs in the answer; otherwise as `contains`."""
    folds = _folds(case_sensitive, ignore_case)
    return float(any(_found(answer, substrings, folds, compat, "contains_any")))


def numeric_match(
    answer: Any, expected: float, *, tolerance: float = 0.0, compat: Compat = "strict"
) -> float:
    """1.0 if the answer's last number is the expected one, give or take the tolerance.

    Args:
        answer: A number, or text. The last number of a text counts, because people and models
            conclude with the result. It is read whole, in the notations of many countries and of
            LaTeX (`9.500,25`, `10^6`, `1.5 million`, `minus 5`); where it cannot be, as in
            `2024-05-12`, or has two readings, there is no number.
        expected: The reference.
        tolerance: The largest absolute difference that still matches.
        compat: `hud` takes the first run of digits, which knows no separators: `1,234` is 1.
    """
    if compat == "hud":
        first = _HUD_NUMBER.search(str(answer))
        return float(first is not None and abs(float(first[0]) - expected) <= tolerance)
    number = read_number(answer)
    if number is None:
        return 0.0
    # Room for binary fractions (0.1 + 0.2), too little for one more among ten digits.
    return float(abs(number - expected) <= tolerance + 1e-13 * abs(expected))


def f1_score(answer: Any, reference: str, *, compat: Compat = "strict") -> float:
    """How well the answer's words match the reference: the harmonic mean of precision and recall.

    Precision is the share of the answer's words that the reference has. Recall is the share of the
    reference's words that the answer has. A word counts as often as it occurs.

    Args:
        answer: The submitted answer; turned into text.
        reference: What is expected.
        compat: Whose `normalize` splits the words.
    """
    given = Counter(normalize(answer, compat=compat).split())
    wanted = Counter(normalize(reference, compat=compat).split())
    common = (given & wanted).total()
    if common == 0:
        return 0.0
    precision, recall = common / given.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def occurrence(wanted: str, *, whole_words: bool) -> "re.Pattern[str]":
    """Return an expression that finds a line of text, but not within another written number."""
    before, after = (r"(?<!\w)", r"(?!\w)") if whole_words else ("", "")
    if wanted[0].isdigit():
        before += _BEFORE_DIGITS
        if re.match(r"\d{3}(?!\d)|\d+/\d", wanted):
            before += r"(?<!\d )"
    elif re.match(r"[-+.$\u00a3\u00a4\u00a5\u20ac]+\d", wanted):
        before += r"(?<![\w+^-])"
    if wanted[-1].isdigit():
        after += _AFTER_DIGITS
    return re.compile(before + re.escape(wanted) + after)


def _folds(case_sensitive: bool | None, ignore_case: bool | None) -> bool:  # noqa: FBT001  # private
    """Whether case is ignored. Two answers that differ raise `ValueError`."""
    if case_sensitive is not None and ignore_case is not None and case_sensitive is ignore_case:
        raise ValueError("case_sensitive and ignore_case contradict each other; give one of them")
    if ignore_case is not None:
        return ignore_case
    return not case_sensitive


def _found(
    answer: Any,
    wanted: Iterable[str],
    ignore_case: bool,  # noqa: FBT001  # private, always positional
    compat: Compat,
    name: str,
) -> list[bool]:
    if isinstance(wanted, str):
        raise TypeError(f"{name}() takes a list of texts, got the text {wanted!r:.80}")
    texts = list(wanted)
    if compat == "hud":
        text = str(answer).lower() if ignore_case else str(answer)
        return [(each.lower() if ignore_case else each) in text for each in texts]
    texts = [trimmed(each, ignore_case=ignore_case) for each in texts]
    if not texts or not all(texts):
        raise ValueError(f"{name}() needs at least one non-empty text to look for")
    text = trimmed(str(answer), ignore_case=ignore_case)
    return [occurrence(each, whole_words=True).search(text) is not None for each in texts]

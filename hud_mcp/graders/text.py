"""Graders of text: each returns a number from 0 to 1 and is pure.

They are strict where laxness would let a wrong answer pass (a sign, a decimal point, a part of
a word) and lax where people differ in writing the same thing (case, spacing, separators). With
`compat="hud"` each follows the rule of HUD's function of the same name.
"""

import math
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Literal

__all__ = [
    "Compat",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "normalize",
    "numeric_match",
    "read_number",
]

Compat = Literal["strict", "hud"]
"""Whose rule a grader follows: this package's, or that of HUD's function of the same name."""

_DIGITS = r"(?:\d{1,3}(?:[,\u00a0\u2009\u202f]\d{3})+|\d++)"
_UNSIGNED = rf"(?:{_DIGITS}(?:\.\d++)?+|\.\d++)(?:[eE][-+]?\d++)?+"
_NUMBER = re.compile(
    # Possessive: an answer of a million digits must not be tried a million times over.
    r"(?<![\w.])(?P<sign>[-+]?)[$€£¥]?(?:"
    r"(?:(?P<whole>\d++)\ )?(?<!/)(?P<top>\d++)/(?P<bottom>\d++)(?![\w/])"
    rf"|(?P<plain>{_UNSIGNED}))(?!\w*\d)"
)
_DASHES = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2012": "-", "\u2044": "/"})
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")
_SEPARATORS = str.maketrans("", "", ",\u00a0\u2009\u202f")

_HUD_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_HUD_PUNCTUATION = re.compile(r"[^\w\s]")
_PROSE = re.compile(
    # What belongs to a number stays: 3.5, 1,234, 10:30, 1/2, -5, .5.
    r"[,:/](?!(?<=\d.)\d)"
    r"|\.(?!(?<=\d.)\d)(?!(?<!\w.)\d)"
    r"|-(?!(?<![\w)].)\.?\d)"
    r"|[;!?\"'`()\[\]{}\\\u00a1\u00ab\u00bb\u00bf\u2010\u2011\u2014\u2015\u2018-\u201e\u2026]"
)


def normalize(text: Any, *, compat: Compat = "strict") -> str:
    """A text without differences of writing: case, punctuation, articles, spacing.

    Signs, decimal points and other parts of numbers stay. So do signs that are not punctuation of
    prose (`C++`, `C#`, `50%`). Articles stay if the text has nothing else.

    Args:
        text: Turned into text.
        compat: `hud` drops every sign and each a, an and the.
    """
    if compat == "hud":
        lowered = _HUD_PUNCTUATION.sub(" ", str(text).lower())
        return " ".join(_ARTICLES.sub(" ", lowered).split())
    folded = unicodedata.normalize("NFKC", str(text)).translate(_DASHES).casefold()
    plain = _PROSE.sub(" ", folded)
    return " ".join(_ARTICLES.sub(" ", plain).split()) or " ".join(plain.split())


def exact_match(
    answer: Any,
    expected: str,
    *,
    normalize_text: bool = True,
    ignore_case: bool = True,
    compat: Compat = "strict",
) -> float:
    """1.0 if the answer is the expected text, apart from case, spacing and a final stop.

    Args:
        answer: The submitted answer; turned into text.
        expected: The reference.
        normalize_text: Whether spacing within, quotes and a final stop are ignored; without,
            only case and space around.
        ignore_case: Whether `Paris` and `paris` are the same.
        compat: `hud` compares the results of HUD's `normalize`: `-5` is then `5`.
    """
    given, wanted = str(answer), str(expected)
    if compat == "hud":
        if normalize_text:
            return float(normalize(given, compat="hud") == normalize(wanted, compat="hud"))
        return float(given.strip().lower() == wanted.strip().lower())
    if normalize_text:
        return float(_normal(given, ignore_case) == _normal(wanted, ignore_case))
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
    """1.0 if the answer's number is the expected one.

    Args:
        answer: A number, or text. The last number of a text counts, because people and models
            conclude with the result. `1,234` is 1234; `50 %` is 50; `1/2` is 0.5; `-$5` is -5.
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


def read_number(answer: Any) -> float | None:
    """The last number of an answer, or None where there is none."""
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int | float):
        try:
            return float(answer)
        except OverflowError:  # an integer that no float holds
            return math.inf if answer > 0 else -math.inf
    text = _VULGAR.sub(lambda sign: f" {unicodedata.normalize('NFKC', sign[0])}", str(answer))
    numbers = deque(_NUMBER.finditer(text.translate(_DASHES)), maxlen=1)
    return _value(numbers[0]) if numbers else None


def _value(number: "re.Match[str]") -> float:
    """What a written number is; NaN where it is divided by 0."""
    if number["plain"]:
        value = float(number["plain"].translate(_SEPARATORS))
    else:
        top, below = float(number["top"]), float(number["bottom"])
        value = float(number["whole"] or 0) + (top / below if below else math.nan)
    return -value if number["sign"] == "-" else value


def _folds(case_sensitive: bool | None, ignore_case: bool | None) -> bool:  # noqa: FBT001  # private
    """Whether case is ignored.

    Raises:
        ValueError: Both ways to say so are used, and differ.
    """
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
    """Whether each text occurs."""
    if isinstance(wanted, str):
        raise TypeError(f"{name}() takes a list of texts, got the text {wanted!r:.80}")
    texts = list(wanted)
    if compat == "hud":
        text = str(answer).lower() if ignore_case else str(answer)
        return [(each.lower() if ignore_case else each) in text for each in texts]
    texts = [_normal(each, ignore_case) for each in texts]
    if not texts or not all(texts):
        raise ValueError(f"{name}() needs at least one non-empty text to look for")
    text = _normal(str(answer), ignore_case)
    return [re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text) is not None for each in texts]


def _normal(text: str, ignore_case: bool) -> str:  # noqa: FBT001  # private, always positional
    text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.split()).strip("\"'`").rstrip(".!").strip()
    return text.casefold() if ignore_case else text

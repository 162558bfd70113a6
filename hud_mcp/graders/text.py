"""Graders of text: each returns 1.0 or 0.0 and is pure.

They are strict where laxness would let a wrong answer pass (a sign, a decimal point)
and lax where people differ in writing the same thing (case, spacing, separators).
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = ["contains", "exact_match", "numeric_match", "read_number"]

_NUMBER = re.compile(
    # Possessive: an answer of a million digits must not be tried a million times over.
    r"(?<![\w.])[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d++)(?:\.\d++)?+|\.\d++)(?:[eE][-+]?\d++)?+"
    r"(?!\w*\d)"
)
_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2012": "-"})


def exact_match(answer: Any, expected: str, *, ignore_case: bool = True) -> float:
    """1.0 where the answer is the expected text, apart from case, spacing and a final stop.

    Args:
        answer: What was submitted; turned into text.
        expected: The reference.
        ignore_case: Whether `Paris` and `paris` are the same.
    """
    return float(_normal(str(answer), ignore_case) == _normal(expected, ignore_case))


def contains(answer: Any, expected: str | Iterable[str], *, ignore_case: bool = True) -> float:
    """1.0 where every expected text occurs in the answer as a word or a run of words.

    Raises:
        ValueError: Nothing is expected, or an expected text has nothing but spaces, quotes
            and stops: everything would pass.
    """
    wanted = [expected] if isinstance(expected, str) else list(expected)
    if not wanted or not all(_normal(w, ignore_case) for w in wanted):
        raise ValueError("contains() needs at least one non-empty text to look for")
    text = _normal(str(answer), ignore_case)
    return float(
        all(
            re.search(rf"(?<!\w){re.escape(_normal(w, ignore_case))}(?!\w)", text) is not None
            for w in wanted
        )
    )


def numeric_match(answer: Any, expected: float, *, tolerance: float = 0.0) -> float:
    """1.0 where the answer's number is the expected one.

    Args:
        answer: A number, or text; of several numbers in a text the last one counts, since
            people and models conclude with the result. `1,234` is 1234; `50 %` is 50.
        expected: The reference.
        tolerance: The largest absolute difference that still matches.
    """
    number = read_number(answer)
    if number is None:
        return 0.0
    # Room for binary fractions (0.1 + 0.2), too little for one more among ten digits.
    return float(abs(number - expected) <= tolerance + 1e-13 * abs(expected))


def read_number(answer: Any) -> float | None:
    """The last number of an answer, or None where there is none."""
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int | float):
        try:
            return float(answer)
        except OverflowError:  # an integer that no float holds
            return math.inf if answer > 0 else -math.inf
    found = _NUMBER.findall(str(answer).translate(_MINUS))
    return float(found[-1].replace(",", "")) if found else None


def _normal(text: str, ignore_case: bool) -> str:  # noqa: FBT001  # private, always positional
    text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.split()).strip("\"'`").rstrip(".!").strip()
    return text.casefold() if ignore_case else text

"""Functions of an answer alone, as a task's `evaluate` names them.

Each takes the submitted text first. They are pure; `response_match` is awaited, since it searches
in a process of its own.
"""

import math
import re
import string
from collections.abc import Iterable, Sequence
from typing import Any

from hud_mcp.graders.pattern import Pattern, search
from hud_mcp.graders.reading import one_line, trimmed, visible
from hud_mcp.graders.text import Compat, numeric_match, occurrence

__all__ = [
    "Text",
    "gaia_final_answer",
    "gaia_match",
    "numeric_match",
    "response_includes",
    "response_is",
    "response_match",
]

Text = str | int | float
"""A text, or a number that is compared as it is written."""


def response_includes(
    answer: str | None,
    texts: Text | Sequence[Text],
    *more: Text | Sequence[Text],
    compat: Compat = "strict",
) -> float:
    """1.0 if every text occurs in the answer; case does not count.

    A part of a word is found (`mitochondria` in `mitochondrial`); a part of a number is not
    (`5` in `15`, in `2.5` or in `-5`). Differences that no reader sees, as those between kinds of
    apostrophes, do not count.

    Args:
        answer: What was submitted; None is nothing.
        texts: A text to look for, or a list of them.
        *more: More of the same.
        compat: `hud` finds parts of numbers too.

    Raises:
        ValueError: No text is given, or an empty one: everything would pass.
    """
    wanted = [each for given in (texts, *more) for each in _several(given)]
    expected = [one_line(_text(each), ignore_case=True) for each in wanted]
    if not expected or not all(expected):
        raise ValueError("response_includes() needs at least one non-empty text to look for")
    given = one_line(answer or "", ignore_case=True)
    if compat == "hud":
        return float(all(each in given for each in expected))
    return float(all(_pattern(each).search(given) for each in expected))


def response_is(answer: str | None, text: Text) -> float:
    """1.0 if the answer is exactly the text; case counts, space around it does not.

    Only what no reader sees does not count, such as the kind of a blank or of an apostrophe.

    Args:
        answer: What was submitted; None is nothing.
        text: The reference; a number is compared as it is written.
    """
    return float(visible(answer or "").strip() == visible(_text(text)).strip())


async def response_match(answer: str | None, pattern: Pattern) -> float:
    """1.0 if the regular expression is found in the answer, as `re.search` finds it.

    It is also found where it fits what a reader sees: `can't` finds a typographic apostrophe.

    Args:
        answer: What was submitted; None is nothing.
        pattern: The expression; `(?i)` at its begin ignores case, `^…$` asks for the whole.

    Raises:
        ValueError: It is not a regular expression; the text says why.
        GraderFailed: It was not found out within 2 s of computing.
    """
    given = answer or ""
    # A process each, so the second one is only for a text that differs.
    texts = dict.fromkeys((given, visible(given)))
    for text in texts:
        if await search(pattern, text):
            return 1.0
    return 0.0


def gaia_match(answer: str | None, truth: Text) -> float:
    """1.0 if GAIA's own scorer accepts the answer.

    The rule is the benchmark's official one, with its oddities, so that scores can be compared
    (https://huggingface.co/spaces/gaia-benchmark, `scorer.py`):

    - If the truth is a number, the answer is compared as a number, without `$`, `%` and `,`. An
    answer that is not a number counts as infinity: the truth `inf` accepts `banana`, and `nan`
    accepts nothing. `$42` is 42, `€42` is not.
    - A truth with `,` or `;` is a list, even `1,000`. The answer must have as many elements, in
    that order. Within one, punctuation counts and spaces do not.
    - Any other truth is compared without spaces, punctuation and case.

    Args:
        answer: The submitted answer, without words around it; None counts as empty.
        truth: The reference.
    """
    given, truth = "None" if answer is None else answer, str(truth)
    if _is_number(truth):
        return float(_gaia_number(given) == float(truth))
    if any(sign in truth for sign in ",;"):
        wanted, parts = re.split("[,;]", truth), re.split("[,;]", given)
        if len(wanted) != len(parts):
            return 0.0
        return float(all(map(_gaia_element, parts, wanted)))
    return float(_gaia_text(given, punctuation=False) == _gaia_text(truth, punctuation=False))


def gaia_final_answer(answer: str | None, truth: Text) -> float:
    """1.0 if GAIA's own scorer accepts the text after the last `FINAL ANSWER:`."""
    return gaia_match((answer or "").rpartition("FINAL ANSWER:")[2].strip(), truth)


def _gaia_element(given: str, wanted: str) -> bool:
    if _is_number(wanted):
        return _gaia_number(given) == float(wanted)
    return _gaia_text(given, punctuation=True) == _gaia_text(wanted, punctuation=True)


def _gaia_number(text: str) -> float:
    for sign in "$%,":
        text = text.replace(sign, "")
    return float(text) if _is_number(text) else math.inf


def _gaia_text(text: str, *, punctuation: bool) -> str:
    text = re.sub(r"\s", "", text).lower()
    return text if punctuation else text.translate(str.maketrans("", "", string.punctuation))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _several(given: Text | Iterable[Text]) -> Iterable[Text]:
    return [given] if isinstance(given, str | int | float) else given


def _text(value: Any) -> str:
    """Return a text unchanged, or a number as it is written.

    Raises:
        TypeError: The value is neither.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"an answer is compared with text or a number, got {value!r:.80}")


def _pattern(wanted: str) -> "re.Pattern[str]":
    """Return an expression for a text without its final stop and its quotes.

    These bound a word. A lone stop stays.
    """
    core = trimmed(wanted, ignore_case=True)
    return occurrence(core or wanted, whole_words=core not in ("", wanted))

"""Numbers as people write them, read whole or not at all.

A part of a written number is another number: the 6 of `10^6`, the 5 of `0,5`. A notation with one
reading is that number. A notation with two readings, or none, is no number. The libraries
`price-parser`, `quantulum3`, `math-verify` and `number-parser` take parts of a number: the 12 of
`12:30`. The library `babel` needs the country.
"""

import math
import re
from collections import deque
from typing import Any

from hud_mcp.graders.visible import unmarked, visible

__all__ = ["read_number"]

_AROUND_CHARS = 48
"""The characters to either side of a number that are read as its surroundings."""
_MOST_NAMES = 500
"""The most names with digits in them, such as `H2O`, that may follow the number."""

_SCALES = {
    r"hundred": 1e2,
    r"dozens?": 12,
    r"(?-i:k)|thousands?|tausend|тыс(?:яч\w{0,2})?": 1e3,
    r"lakhs?": 1e5,
    r"mil{1,2}i?[oó]n(?:s|en|es|i|e|y|ów|er)?|milh(?:ão|ões)|mil[ij]o(?:en|ner)|миллион\w{0,2}"
    r"|mio|mln": 1e6,
    r"crores?": 1e7,
    r"billions?|mil{1,2}[ijy]?ard?(?:en|er|[seiy])?|bilh(?:ão|ões)|миллиард\w{0,2}|bn|mrd|mld": 1e9,
    r"trillions?|bill(?:ionen|ón|ones)|trilh(?:ão|ões)": 1e12,
}
"""The words that multiply the number before them. Spelling tells differing languages apart."""
_SCALE_SIGNS = {"十": 10, "百": 1e2, "千": 1e3, "万": 1e4, "萬": 1e4, "만": 1e4, "亿": 1e8, "億": 1e8,
          "억": 1e8}  # fmt: skip
_AMOUNTS = {"K": 1e3, "M": 1e6, "m": 1e6, "mn": 1e6, "B": 1e9, "b": 1e9, "T": 1e12, "tn": 1e12}
"""The abbreviations that multiply an amount of money."""
_UNITS = re.compile(r" ?(?:m|b|T|tn)| K")
"""The abbreviations that are a unit after any other number; the rest have two readings there."""

_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR"
_CURRENCY = f"(?:(?:[A-Z]{{1,3}})?[$\u00a2\u00a3\u00a4\u00a5\u0e3f\u20a0-\u20cf]|(?:{_CODES}))"
_END = rf"(?:(?!\w)|(?=(?:{_CODES})\b))"
# Possessive: an answer of a million digits must not be tried a million times over.
_RUN = r"(?:\d++(?:[.,'_]\d++|\ \d{3}(?!\d))*+|(?<![\w.])\.\d++)(?:[eE][-+]?\d++)?+"
_POWER = r"\ ?(?:\^|\*\*)\ ?[{{(]?(?P<{}>[-+]?\d{{1,9}}(?:\.\d{{1,9}})?+)(?!\d)[)}}]?"
_NO_OPERAND = r"(?<![\w)\]}%°])"
_NUMBER = re.compile(
    rf"""
    (?P<sign> \b(?i:minus|negative|plus)\s
      | {_NO_OPERAND}(?<![\w)\]}}%°]\ )-\ (?=[\d.$€£¥])
      | {_NO_OPERAND}[-+] )?
    (?P<money> {_CURRENCY}\ ?(?P<inner>[-+]?))?
    (?: (?:(?P<whole>\d++)\ )?(?P<top>{_RUN})\ ?/\ ?(?P<bottom>{_RUN})(?![\w/])
      | (?P<base>{_RUN}){_POWER.format("power")}
      | (?P<run>{_RUN})(?:\ ?[\u00d7x*·]\ ?10{_POWER.format("ten")})?+ )
    (?P<scale> (?:[ -]?(?i:{"|".join(_SCALES)}){_END})+ | [{"".join(_SCALE_SIGNS)}]+ )?
    (?P<amount> \ ?(?:K|M|mn?|B|b|T|tn)(?:(?=[$€£¥])|{_END})(?![\^·*]) )?
    (?P<paid> \ ?{_CURRENCY} )?
    """,
    re.VERBOSE,
)
_FORMS = tuple((re.compile(form), factor) for form, factor in _SCALES.items())

_NAME_BEFORE = re.compile(
    # A letter at its side, as in H2O and COVID-19; or the power of a unit: m^2, (m/s)^{-2}.
    r"(?:[^\W\d][-._]?|[^\W\d] ?\^[{(]?|\([^()\d]*\)\^[{(]?)$"
)
_NAME_AFTER = re.compile(r"(?!(?:[kcd]?m|ft|in|yd|mi)[23](?!\w))\w*\d")
_PART_BEFORE = re.compile(
    rf"""(?:
    (?:^|[^\w.,'])[\d.,']*\d\ (?:and\ )?         # two numbers that nothing parts: 3 5
  | (?<!\w)(?i:{"|".join(_SCALES)})\ (?:and\ )?
  | \d(?:[-:'"°_—~]|\.+|\ -|\ ?[-+*/\u00d7x·^÷—~]\ ?|['"°]\ )   # 2024-05-12, 12:30, 5'10, 2 + 3
  | [)\]}}%]\ ?[-+*\u00d7·^÷]\ ?
  | \w(?:\ -\ |\ ?[+*\u00d7·÷]\ ?|\ [x\u00d7]\ |[(\[{{])              # x * 5, f(5); not C++ 5
  | /\ ?|[-+.]|(?:^|[\s(])—
  | (?<![-=])[<>]=?\ ?|[≤≥≪≫≠±√∛∜]\ ?|!=\ ?              # a bound, and no value
  | \\[A-Za-z]+\ ?[{{(\[]?|[}}\])][{{(\[]
  | \b(?i:to\ the(?:\ power(?:\ of)?)?|sqrt|root\ of|log|ln|sin|cos|tan|exp)\ (?:of\ )?
  | \d%?\ (?i:times|over|out\ of|of|by|multiplied\ by|divided\ by|mod)[ ]
    )$""",
    re.VERBOSE,
)
_PART_AFTER = re.compile(
    r"""
    [-.:_]\w*\d | x[\da-f]+\b | [^\W\d]{1,2}[-+*]\d
  | \ ?(?:\^|\*\*) | \ ?[±÷√∞π] | \ ?[<>≤≥]\ ?\w | \ ?[\u00d7·*]\ ?[\w(\\] | \+ | \ \+\ ?\w
  | \ ?\\[A-Za-z] | \ ?pi\b | i\b | [exyz]\^ | \(\d
  | \ ?and\ (?:a|one)[ ](?:half|third|quarter)
  | [ -](?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?
        |\w+dths?|\w+[nr]dths?|\w+ionths?)\b
  | \ (?:squared|cubed|factorial|below\ zero)\b | (?:\ ?°|\ degrees)[ CF]*\ below\ zero
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORD_AFTER = re.compile(
    r" (?:and )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty"
    r"|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b",
    re.IGNORECASE,
)
"""The rest of a number that is written in words, as in `2 million five hundred`."""
_INDIAN = re.compile(r"[1-9]\d?(?:,\d\d)+,\d{3}")


def read_number(answer: Any) -> float | None:
    """Return the last number of an answer; None if it is missing or has two readings."""
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int | float):
        try:
            return float(answer)
        except OverflowError:  # an integer that no float holds
            return math.inf if answer > 0 else -math.inf
    text = unmarked(visible(str(answer)))
    for found in reversed(deque(_NUMBER.finditer(text), maxlen=_MOST_NAMES)):
        before = text[max(0, found.start() - _AROUND_CHARS) : found.start()]
        after = text[found.end() : found.end() + _AROUND_CHARS]
        if _NAME_BEFORE.search(before) or _NAME_AFTER.match(after):
            continue
        is_part = _PART_BEFORE.search(before) or _PART_AFTER.match(after)
        return None if is_part else _value(found, after)
    return None


def _value(found: "re.Match[str]", after: str) -> float | None:
    """Return the value of one written number; NaN for a division by 0."""
    size, scale = _size(found), _scale(found, after)
    signs = [each for each in (found["sign"], found["inner"]) if each]
    if size is None or scale is None or len(signs) > 1:
        return None
    is_negative = bool(signs) and signs[0].strip().lower() in ("-", "minus", "negative")
    return -size * scale if is_negative else size * scale


def _size(found: "re.Match[str]") -> float | None:
    if found["run"]:
        run = _decimal(found["run"])
        return None if run is None else _times_ten(run, found["ten"])
    first, second = (_decimal(found[name]) for name in (
        ("top", "bottom") if found["top"] else ("base", "power")))  # fmt: skip
    if first is None or second is None:
        return None
    one, other = float(first), float(second)
    if found["top"]:
        return float(found["whole"] or 0) + (one / other if other else math.nan)
    return _power(one, other)


def _power(base: float, exponent: float) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return math.nan


def _times_ten(run: str, ten: str | None) -> float:
    """Return a decimal number times a power of ten, without the error of two roundings."""
    if ten is None:
        return float(run)
    if ten.lstrip("+-").isdigit() and "e" not in run.lower():
        return float(f"{run}e{ten}")
    return float(run) * _power(10.0, float(ten))


def _decimal(run: str) -> str | None:
    """Return the digits as Python reads them, without separators; None with two readings.

    A single comma separates thousands if three digits follow and a number may begin so. A
    single point is always that of decimals.
    """
    run, mark, exponent = (
        re.split("([eE])", run, maxsplit=1) if re.search("[eE]", run) else (run, "", "")
    )
    marks = re.findall(r"[^\d+-]", run)
    if not marks or marks == ["."]:
        return run + mark + exponent
    last, others = marks[-1], set(marks[:-1])
    if _is_grouped(run, last):
        return "".join(re.findall(r"\d", run)) + mark + exponent
    if last not in ".," or last in others or len(others) > 1:
        return None
    head, _, tail = run.rpartition(last)
    if others and not _is_grouped(head, *others):
        return None
    return "".join(re.findall(r"\d", head)) + "." + tail + mark + exponent


def _is_grouped(run: str, mark: str) -> bool:
    grouped = re.fullmatch(rf"[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+", run) is not None
    return grouped or (mark == "," and _INDIAN.fullmatch(run) is not None)


def _scale(found: "re.Match[str]", after: str) -> float | None:
    """Return the factor of the words and signs behind a number; None with two readings."""
    factor = 1.0
    scale = found["scale"] or ""
    if scale and _WORD_AFTER.match(after):
        return None
    for word in re.findall(r"[^\W\d_]+", scale):
        factor *= _of_word(word)
    amount = found["amount"]
    if amount is None:
        return factor
    if found["money"] or found["paid"]:
        return factor * _AMOUNTS[amount.strip()]
    return factor if _UNITS.fullmatch(amount) else None


def _of_word(word: str) -> float:
    for form, factor in _FORMS:
        if form.fullmatch(word if word == "k" else word.lower()):
            return factor
    return math.prod(_SCALE_SIGNS[sign] for sign in word)

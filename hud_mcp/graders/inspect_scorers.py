"""Inspect's scorers `match`, `includes` and `choice`, by their published rules and oddities.

Source: `inspect_ai.scorer` (MIT, github.com/UKGovernmentBEIS/inspect_ai).
"""

import math
import re
import string
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, get_args

from hud_mcp.environment.function import Function

Location = Literal["begin", "end", "any", "exact"]
LOCATIONS: tuple[Location, ...] = get_args(Location)

_LETTERS = 26


def letter_of(index: int) -> str:
    """Return the mark before a choice: letters, then numbers from 1."""
    return chr(ord("A") + index) if index < _LETTERS else str(index - _LETTERS + 1)


_EDGES = "!?:;()[]{}'\"`"
"""The signs that may surround a number; those of bounds and of roughness do not belong here."""
_MINUS, _PLUS = "-\u2212\ufe63\uff0d负負", "+\uff0b\ufe62正"
_POINTS, _GROUPS = "\u066b\uff0e", ",\uff0c\ufe50、\u066c\u2007\u2008'\u2019\u02bc\uff07"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_DIGITS = {
    sign: value
    for value, signs in enumerate((
        "零〇○", "一壹幺", "二贰貳两兩", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖",
    ))
    for sign in signs
}  # fmt: skip
_TENS = {"廿": 20, "卅": 30, "卌": 40}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
_POINT_WORDS = "点點"
_CHINESE = frozenset("".join([*_DIGITS, *_TENS, *_UNITS, *_MYRIADS, _POINT_WORDS, "负負"]))


def inspect_number(text: str, *, trim: bool = True) -> float | None:
    """Return a finite number in a word or a whole answer, or None."""
    text = text.strip(_EDGES) if trim else text
    for read in (float, _of_signs):
        try:
            found = read(text)
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            continue
        if math.isfinite(found):
            return found
    return None


def _of_signs(text: str) -> float:
    """Return a number in any script, with fraction and exponent, or raise `ValueError`."""
    text, is_negative = text.strip(), False
    while text and text[0] in _MINUS + _PLUS:
        is_negative ^= text[0] in _MINUS
        text = text[1:].lstrip()
    sign = -1.0 if is_negative else 1.0
    if len(text) == 1:
        return sign * unicodedata.numeric(text)
    base, exponent = _raised(text)
    value = sign * _with_fraction(base)
    # A negative base with a fractional power cannot be: an exponent is whole.
    return value if exponent is None else float(value**exponent)


def _raised(text: str) -> tuple[str, int | None]:
    kept = text.rstrip(f" \t\n\u00a0\u202f\u2009{_GROUPS}")
    base = kept.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹")
    if len(base) == len(kept):
        return text.strip(), None
    base = base[:-1] if base.endswith(("⁻", "⁺")) else base
    exponent = kept[len(base) :]
    if not base.rstrip():
        return text.strip(), None
    return base.rstrip(), int(exponent.translate(_RAISED))


def _with_fraction(text: str) -> float:
    places = [i for i, sign in enumerate(text) if 0 < unicodedata.numeric(sign, 0) < 1]
    if not places:
        return _without_marks(text)
    head, tail = text[: places[0]].strip(), text[places[0] + 1 :]
    if len(places) > 1 or tail.strip().strip(_GROUPS):
        raise ValueError(text)
    return (_without_marks(head) if head else 0.0) + unicodedata.numeric(text[places[0]])


def _without_marks(text: str) -> float:
    # Where a Chinese reading fails, its digits may still stand among those of other scripts.
    readings = [_chinese] if _CHINESE.intersection(text) else []
    for read in (*readings, _of_any_script):
        with suppress(ValueError):
            return read(text)
    return unicodedata.numeric(text) if len(text) == 1 else math.nan


def _of_any_script(text: str) -> float:
    return float(_ascii(text))


def _ascii(text: str) -> str:
    """Return digits of any script as Python reads them, or raise `ValueError`."""
    point = "." if "." in text else ""
    after_comma = text.rpartition(",")[2]
    if "," in text and (
        text.rfind(",") > text.rfind(".") >= 0
        or (not point and 1 <= sum(_digit(sign) is not None for sign in after_comma) <= 3)  # noqa: PLR2004  # Inspect's rule
    ):
        point = ","
    made: list[str] = []
    for place, sign in enumerate(text):
        if sign in _POINTS or sign == point:
            made.append(".")
        elif sign in "eE":
            made.append("e")
        elif sign in _MINUS[:4] + _PLUS[:3] and text[place - 1] in "eE" and place:
            made.append("-" if sign in _MINUS else "+")
        elif (digit := _digit(sign)) is not None:
            made.append(digit)
        elif not (sign in _GROUPS or sign.isspace() or (point and sign in ",.")):
            raise ValueError(text)
    return "".join(made)


def _digit(sign: str) -> str | None:
    value = unicodedata.digit(sign, _DIGITS.get(sign, -1))
    return None if value < 0 else str(value)


def _chinese(text: str) -> float:
    whole, part = text, ""
    for point in "点點\uff0e.":
        if point in text:
            whole, _, part = text.partition(point)
            break
    if any(sign in _UNITS or sign in _MYRIADS or sign in _TENS for sign in whole):
        value = _chinese_units(whole)
    else:
        value = int(_chinese_digits(whole) or "0")
    base, fraction = 0.1, 0.0
    for digit in _chinese_digits(part):
        fraction += int(digit) * base
        base /= 10.0
    return float(value) + fraction


def _chinese_digits(text: str) -> str:
    digits = [_digit(sign) for sign in text if not sign.isspace()]
    if None in digits:
        raise ValueError(text)
    return "".join(filter(None, digits))


def _chinese_units(text: str) -> int:
    total = section = number = 0
    for sign in text:
        if sign.isspace() or sign in "零〇○":
            continue
        if sign in _TENS:
            section += _TENS[sign]
        elif sign in _UNITS:
            section, number = section + (number or 1) * _UNITS[sign], 0
        elif sign in _MYRIADS:
            total, section, number = total + (section + number) * _MYRIADS[sign], 0, 0
        elif (digit := _digit(sign)) is not None:
            number = int(digit)
        else:
            raise ValueError(text)
    return total + section + number


_SIGNS = re.compile(r"[$,£€*_]")
_ESCAPED = re.compile(r"\\([$,£€*_])")
_FULL_STOP = re.compile(r"\.(?=\s|$|\D)")
_AROUND = string.whitespace + string.punctuation
_WRAPPED = (
    (re.compile(r"\$\s*([A-Za-z\d](?:[A-Za-z\d ,]*[A-Za-z\d,])?)\s*\$"), r"\1"),
    (re.compile(r"\*\*\s*([A-Za-z\d](?:[A-Za-z\d ,]*[A-Za-z\d,])?)\s*\*\*"), r"\1"),
    (re.compile(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))"), r"\1\2\3"),
)
"""The marks that may surround the letters of choices: LaTeX, bold type, brackets."""
_MANY_BLANKS = re.compile(r"(\s{4})\s+(\s{4})")
_ANSWER_LINE = re.compile(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)")
_ANSWER = re.compile(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:\W|$)")


def match(
    answer: str | None,
    targets: Sequence[str],
    *,
    location: Location = "end",
    ignore_case: bool = True,
    numeric: bool = False,
) -> float:
    """1.0 if the answer begins with a target, ends with it, has it or is it, as Inspect compares.

    Space and punctuation around both do not count.

    Args:
        answer: What was submitted; None is nothing.
        targets: Any one of them.
        location: Where it has to be.
        ignore_case: Whether case does not count.
        numeric: Whether a target that is a number is compared as a number, of five digits, with
            the first number, the last one, any, or the whole answer. Numbers of any script are
            read. Currencies and thousands separators do not count; a per cent sign does.
    """
    given = answer or ""
    return float(
        any(
            _matches(
                given.strip(), each.strip(), location, ignore_case=ignore_case, numeric=numeric
            )
            for each in targets
        )
    )


def includes(answer: str | None, targets: Sequence[str], *, ignore_case: bool = True) -> float:
    """1.0 if a target occurs in the answer, as Inspect compares.

    Args:
        answer: What was submitted; None is nothing.
        targets: Any one of them.
        ignore_case: Whether case does not count.
    """
    given = answer or ""
    if ignore_case:
        return float(any(each.casefold() in given.casefold() for each in targets))
    return float(any(each in given for each in targets))


def choice(answer: str | None, target: str, count: int, *, several: bool = False) -> float:
    """1.0 if the answer's last `ANSWER: …` names exactly the right choices, as Inspect reads it.

    Args:
        answer: What was submitted; None is nothing.
        target: The letters of the right ones, such as `B` or `A,C`.
        count: How many choices there are.
        several: Whether more than one may be named.
    """
    known = [letter_of(index) for index in range(count)]
    words = target.upper().replace(",", " ").split()
    wanted = [name for word in words for name in ([word] if word.isnumeric() else word)]
    # Inspect's expressions try each way to part a run of blanks: a long one would hold up others.
    given = _MANY_BLANKS.sub(_fewer, answer or "")
    for wrapped, bare in _WRAPPED:
        given = wrapped.sub(bare, given)
    found = _ANSWER_LINE.findall(given) or _ANSWER.findall(given)
    if not found:
        return 0.0
    named = found[-1].strip().rstrip(".").upper()
    return float(sorted(_named(named, known, several=several)) == sorted(wanted))


def _fewer(blanks: re.Match[str]) -> str:
    line_end = "\n" if "\n" in blanks[0] else ""
    return f"{blanks[1]}{line_end}{blanks[2]}"


def _named(text: str, known: Sequence[str], *, several: bool) -> set[str]:
    if not several:
        parts = [each for each in text.split(",") if each]
        return set(parts) if len(parts) == 1 and parts[0] in known else set()
    plain = text.replace(" AND ", ",").replace(" ", "")
    for named in ({each for each in plain.split(",") if each}, set(plain)):
        if named <= set(known):
            return named
    return set()


def _matches(
    given: str, wanted: str, location: Location, *, ignore_case: bool, numeric: bool
) -> bool:
    if ignore_case:
        given, wanted = given.casefold(), wanted.casefold()
    if numeric:
        wanted = _plain(wanted)
        if (number := inspect_number(wanted)) is not None:
            return _same_number(_plain(given), number, location)
    given, wanted = given.strip(_AROUND), wanted.strip(_AROUND)
    if location == "begin":
        return given.startswith(wanted)
    if location == "end":
        return given.endswith(wanted)
    return given == wanted if location == "exact" else wanted in given


def _same_number(given: str, wanted: float, location: Location) -> bool:
    if location == "exact":
        found = [inspect_number(given, trim=False)]
    else:
        found = [each for word in given.split() if (each := inspect_number(word)) is not None]
    if location == "begin":
        found = found[:1]
    elif location == "end":
        found = found[-1:]
    return any(each is not None and f"{each:.5g}" == f"{wanted:.5g}" for each in found)


def _plain(text: str) -> str:
    return _FULL_STOP.sub("", _SIGNS.sub("", _ESCAPED.sub(r"\1", text)))


INCLUDES = Function.of_answer(
    includes, name="inspect_includes", weak="An answer that lists much has what is looked for."
)

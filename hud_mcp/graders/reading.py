"""The reading of an answer: its visible part, and the numbers that people write in it.

Signs that no reader tells apart become one, by Unicode's own properties, which the `regex` library
has. Letters of two scripts that look alike stay different, because the tables of them take `1` for
`l` too.

A part of a written number is another number: the 6 of `10^6`, the 5 of `0,5`. A notation with two
readings, or none, is no number. The libraries `price-parser`, `quantulum3`, `math-verify` and
`number-parser` take parts of a number: the 12 of `12:30`. The library `babel` needs the country.
"""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from hud_mcp.base import libraries

if TYPE_CHECKING:
    import regex


_SINGLE = "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02c8\u055a\u2018-\u201b\u2032\u2035\u2039\u203a"
"""Marks that stand for an apostrophe or a single quote; every other quotation mark is double."""
_SHAPES = str.maketrans(
    dict.fromkeys("\u02d7\u2010\u2011\u2012\u2013\u2043\u2212", "-")
    | dict.fromkeys("\u2044\u2215", "/")
    | {"`": "'", "\u2032": "'", "\t": " ", "\u2800": " "}
    | dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n")
    # Not the newline; and the separator of units (31) is a blank for Python, as are the four above.
    | dict.fromkeys(map(chr, (*range(9), *range(14, 28), *range(127, 133), *range(134, 160))))
    | {"\x1f": " "}
)
_ASCII_STOPS = ".!"
_EDGES = " '\""


def visible(text: str) -> str:
    """Return a text in which only differences are left that a reader can see.

    Kinds of quotes, of apostrophes, of blanks and of hyphens are one each, and signs without a
    shape are gone. Raised digits keep their place (`10^6`), and fractions are spelled (`2 1/2`).
    Case, spacing and punctuation stay. The time grows with the text's length alone.
    """
    if not text.isascii():
        signs = _signs()
        # Before the compatible forms, which make 106 of a raised 6, and 21/2 of a half.
        text = signs.raised.sub(lambda run: f"^{_compatible(run[0])}", text)
        text = signs.fraction.sub(_spelled, text)
        text = signs.single.sub("'", text)
        text = signs.unseen.sub("", _compatible(text))
        text = signs.blank.sub(" ", signs.double.sub('"', text))
    return text.replace("\r\n", "\n").translate(_SHAPES).replace("''", '"')


def one_line(text: str, *, ignore_case: bool) -> str:
    """Return the visible part of a text, with one blank in place of each spacing."""
    line = " ".join(visible(text).split())
    return _compatible(line.casefold()) if ignore_case else line


def trimmed(text: str, *, ignore_case: bool) -> str:
    """Return a text in one line, without the quotes around it and the stops of any script.

    A question mark is no stop: it makes a doubt of an answer.
    """
    line = one_line(text, ignore_case=ignore_case)
    end = len(line)
    while end and (line[end - 1] in _EDGES or _is_stop(line[end - 1])):
        end -= 1
    return line[:end].lstrip(_EDGES)


def without_stops(text: str) -> str:
    """Return a text with blanks for other scripts' punctuation: stops, commas, brackets."""
    return text if text.isascii() else _signs().punctuation.sub(" ", text)


def _is_stop(sign: str) -> bool:
    if sign.isascii():
        return sign in _ASCII_STOPS
    ends = _signs().stop.match(sign) is not None
    return ends and not {"QUESTION", "INTERROBANG"} & set(unicodedata.name(sign, "").split())


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _spelled(sign: "regex.Match[str]") -> str:
    return f"{' ' * bool(sign[1])}{_compatible(sign[2])}"


class _Signs:
    def __init__(self) -> None:
        compile_ = libraries.regex.compile
        self.raised = compile_("[\u2070-\u207e\u00b9\u00b2\u00b3]+")
        self.fraction = compile_("(?<=(\\d)?)([\u00bc-\u00be\u2150-\u215e\u2189])")
        self.single = compile_(f"[{_SINGLE}]")
        self.double = compile_(r"(?!')\p{Quotation_Mark}")
        self.unseen = compile_(r"\p{Default_Ignorable_Code_Point}")
        self.blank = compile_(r"\p{Zs}")
        self.punctuation = compile_(
            r"(?![\x00-\x7f])[\p{Terminal_Punctuation}\p{Ps}\p{Pe}\p{Pi}\p{Pf}]"
        )
        self.stop = compile_(r"\p{Sentence_Terminal}")


# Made with the first text that is not ASCII: a server's start does not wait for the library.
_signs = cache(_Signs)


def _fraction(found: re.Match[str]) -> str:
    return f"{found[1]} {found[2]}/{found[3]}" if found[1] else f"{found[2]}/{found[3]}"


_SIZES = r"left|right|displaystyle|textstyle|[bB]igg?[lr]?"
_FACES = r"text(?:bf|it|rm|sf|tt)?|math(?:bf|it|rm|sf)|boxed|fbox|emph|operatorname"
_SIGNS = {
    "times|ast": "\u00d7", "cdot": "·", "div": "÷", "pm|mp": "±", "le|leq|lt|ge|geq|gt": "≤",
    "ne|neq": "≠", "approx|sim|simeq|equiv": "≈", "to|rightarrow|Rightarrow|implies": "→",
    "quad|qquad|thinspace": " ", "degree": "°",
}  # fmt: skip
"""Commands, and the signs that they stand for; for a bound it does not matter which one it is."""
_PART = r"\s*\{\s*([-+]?[\d.,]+)\s*\}"

_LATEX: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"\\(?:{_SIZES})(?![A-Za-z])"), ""),
    (re.compile(r"\{([.,'])\}"), r"\1"),
    (re.compile(r"\\!"), ""),
    (re.compile(r"\\[,;:> ]"), " "),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)"), "°"),
    (re.compile(r"\\([$%#&_{}])"), r"\1"),
    (re.compile(r"\\[()\[\]]"), " "),
    *((re.compile(rf"\\(?:{names})(?![A-Za-z])"), sign) for names, sign in _SIGNS.items()),
    (re.compile(rf"(\d)?[ ]?[ ]?\\[dtc]?frac{_PART}{_PART}"), _fraction),
    (re.compile(r"(\d)?[ ]?[ ]?\\[dtc]?frac\s*(\d)\s*(\d)(?!\d)"), _fraction),
    *((re.compile(rf"\\(?:{_FACES})\s*\{{([^{{}}]*)\}}"), r" \1 "),) * 3,  # one in the other
)
_HTML: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<sup>\s*([^<>]{1,40}?)\s*</sup>", re.IGNORECASE), r"^{\1}"),
    (re.compile(r"<sub>", re.IGNORECASE), "_"),
    (re.compile(r"</?(?:b|i|u|em|strong|p|br|span|div|sub|code|td|tr|li|math)(?: [^<>]*)?/?>",
                re.IGNORECASE), " "),
)  # fmt: skip
_EMPHASIS = re.compile(
    # Stars that are no sign of a product or a power, and underscores that join nothing.
    r"(?<!\*)\*{1,3}(?!\*)(?!(?<=[\w)]\*)[\w(])(?!(?<=[\d)]\*\*)[-\d(])"
    r"(?!(?<=\ \*)\ )(?!(?<=\ \*\*)\ )"
    r"|(?<![^\W_])_+|_+(?![^\W_])"
)
_LONG_DASH = re.compile(r"--+")


def unmarked(text: str) -> str:
    """Return a text without markup. It takes a result of `visible`."""
    if "\\" in text or "{" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    if "<" in text:
        for pattern, replacement in _HTML:
            text = pattern.sub(replacement, text)
    return _LONG_DASH.sub("\u2014", _EMPHASIS.sub("", text))


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
_SCALE_SIGNS = {
    "十": 10, "百": 1e2, "千": 1e3, "万": 1e4, "萬": 1e4, "만": 1e4, "亿": 1e8, "億": 1e8,
    "억": 1e8,
}  # fmt: skip
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

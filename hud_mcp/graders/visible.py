"""The visible part of a text: signs that no reader tells apart become one, and markup goes.

The kinds of signs are Unicode's own properties, as the `regex` library has them. Letters of two
scripts that look alike stay different, because the tables of them take `1` for `l` too.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from hud_mcp.base import libraries

if TYPE_CHECKING:
    import regex

__all__ = ["one_line", "trimmed", "unmarked", "visible", "without_stops"]


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

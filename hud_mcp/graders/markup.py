r"""Text without what LaTeX, Markdown and HTML write around numbers: `\frac{1}{2}` is `1/2`."""

import re
from collections.abc import Callable

__all__ = ["unmarked"]


def _fraction(found: re.Match[str]) -> str:
    """A fraction on one line, apart from the number before it."""
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
    """A text without markup.

    Args:
        text: What `visible` made of one.
    """
    if "\\" in text or "{" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    if "<" in text:
        for pattern, replacement in _HTML:
            text = pattern.sub(replacement, text)
    return _LONG_DASH.sub("\u2014", _EMPHASIS.sub("", text))

"""Inspect's scorers `match`, `includes` and `choice`, by their published rules.

The rules are those of `inspect_ai.scorer` (MIT, github.com/UKGovernmentBEIS/inspect_ai), with what
is odd in them, so that scores can be compared.
"""

import re
import string
from collections.abc import Sequence

from hud_mcp.environment.function import Function
from hud_mcp.graders.inspect_numbers import inspect_number
from hud_mcp.graders.letters import Location, letter_of

__all__ = ["INCLUDES", "choice", "includes", "match"]

_SIGNS = re.compile(r"[$,£€*_]")
_ESCAPED = re.compile(r"\\([$,£€*_])")
_FULL_STOP = re.compile(r"\.(?=\s|$|\D)")
_AROUND = string.whitespace + string.punctuation
_WRAPPED = (
    (re.compile(r"\$\s*([A-Za-z\d](?:[A-Za-z\d ,]*[A-Za-z\d,])?)\s*\$"), r"\1"),
    (re.compile(r"\*\*\s*([A-Za-z\d](?:[A-Za-z\d ,]*[A-Za-z\d,])?)\s*\*\*"), r"\1"),
    (re.compile(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))"), r"\1\2\3"),
)
"""What may stand around the letters of choices: LaTeX, bold type, brackets."""
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
    """The choices that a text names; none where it names what is none."""
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
    """A text without what is written around numbers."""
    return _FULL_STOP.sub("", _SIGNS.sub("", _ESCAPED.sub(r"\1", text)))


INCLUDES = Function.of_answer(
    includes,
    name="inspect_includes",
    weak="An answer that lists much has what is looked for.",
)

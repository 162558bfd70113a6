"""Functions of an answer alone, as a task's `evaluate` names them.

Each takes the submitted text first. The `match_…` are those of HUD 0.2's `hud.evaluators.match`, as
lax as they were: a long answer that names everything passes `match_all`. A search for a pattern has
a process of its own.
"""

import json
import math
import re
import string
import subprocess
import sys
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any

import anyio.to_thread
from pydantic import AfterValidator, Field

from hud_mcp.environment.function import Function
from hud_mcp.errors import GraderFailed
from hud_mcp.graders.reading import one_line, trimmed, visible
from hud_mcp.graders.text import Compat, occurrence
from hud_mcp.values.action import Value

__all__ = ["gaia_match"]

Text = str | int | float
"""A text, or a number that is compared as it is written."""

_CPU_S = 2
"""The most seconds that a search may compute."""
_WALL_S = 15.0
"""The most seconds that a search may take in all, for a busy machine."""
_AT_ONCE = 4
# A process ends a search that Python cannot interrupt. The timeout of the `regex` library counts
# the time of all threads, and it reads `x{e}` as "nearly x": a wrong answer would pass.
_SEARCH = f"""
import json, re, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, ({_CPU_S}, {_CPU_S}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
pattern, flags, text = json.load(sys.stdin)
sys.stdout.write("found" if re.search(pattern, text, flags) else "absent")
"""
_OUT_OF_TIME = {-24, -9}
"""The return codes of SIGXCPU, and of SIGKILL, which follows it."""

_limiter = anyio.CapacityLimiter(_AT_ONCE)


def search_now(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Whether an author's expression is found in an agent's text, as `re.search` finds it.

    Raises:
        ValueError: The pattern is not a regular expression; the text says why.
        GraderFailed: The search did not end within 2 s of computing.
    """
    if (fault := _fault(pattern, flags)) is not None:
        raise ValueError(f"{pattern!r:.200} is not a regular expression: {fault}")
    given = json.dumps([pattern, int(flags), text])
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter, and the program above
            [sys.executable, "-I", "-S", "-c", _SEARCH],
            input=given.encode(),
            capture_output=True,
            timeout=_WALL_S,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        raise GraderFailed(_too_long(pattern, text, f"{_WALL_S:g} s, on a busy machine")) from None
    except OSError as exc:
        raise GraderFailed(f"A pattern cannot be searched for: {exc.strerror}.") from exc
    if done.stdout in (b"found", b"absent"):
        return done.stdout == b"found"
    if done.returncode in _OUT_OF_TIME:
        raise GraderFailed(_too_long(pattern, text, f"{_CPU_S} s of computing"))
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise GraderFailed(f"The search for {pattern!r:.200} failed: {said or done.returncode}.")


async def search(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Search as `search_now` does, while others go on.

    If this call is cancelled, the search ends by itself, by its bounds.
    """
    return await anyio.to_thread.run_sync(
        lambda: search_now(pattern, text, flags=flags), abandon_on_cancel=True, limiter=_limiter
    )


def _fault(pattern: str, flags: int) -> str | None:
    try:
        re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as exc:
        return str(exc)
    return None


def _checked(pattern: str) -> str:
    if (fault := _fault(pattern, 0)) is not None:
        raise ValueError(f"is not a regular expression: {fault}")
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]
"""An expression of a task, which is refused when the task meets its environment."""


def _too_long(pattern: str, text: str, bound: str) -> str:
    return (
        f"The pattern {pattern!r:.200} takes more than {bound} on a text of {len(text)} "
        "characters. Write one that tries fewer ways, without repeats inside of repeats."
    )


_MOST_DISTANCE_CHARS = 20_000
_MOST_DIFF_CHARS = 1_000
"""The longest texts that are compared sign by sign: the server waits meanwhile."""


class MatchResult(Value):
    """What a comparison found; HUD 0.2 calls it an evaluation result."""

    score: float = Field(ge=0, le=1, description="1 is the same, 0 nothing of it.")
    reason: str = Field(description="In words.")
    mode: str | None = Field(default=None, description="How it was compared.")
    criteria_scores: dict[str, float] = Field(default_factory=dict)

    @property
    def reward(self) -> float:
        """The score, under the name that a template's grade has."""
        return self.score


def match_single(response: Any, answer: Text) -> MatchResult:
    """1.0 if the answer occurs in the response, as HUD 0.2 compares; case does not count."""
    found = str(answer).lower().strip() in str(response).lower().strip()
    return MatchResult(
        score=float(found), reason="It is there." if found else "It is not there.", mode="single"
    )


def match_all(response: Any, answers: Sequence[Text]) -> MatchResult:
    """The share of the answers that occur in the response, as HUD 0.2 compares; 0 of none."""
    if isinstance(answers, str):
        raise TypeError(f"match_all() takes a list of answers, got the text {answers!r:.80}")
    text = str(response).lower()
    scores = {str(each): float(str(each).lower() in text) for each in answers}
    found = sum(scores[str(each)] for each in answers)
    share = found / len(answers) if answers else 0.0
    reason = f"{found:g} of {len(answers)} are there."
    return MatchResult(score=share, reason=reason, mode="all", criteria_scores=scores)


def match_fuzzy(response: Any, answer: Text) -> MatchResult:
    """The likeness of two texts: 1 less the share of signs to edit, as HUD 0.2 compares.

    Args:
        response: What was submitted. Beyond 20,000 characters each further one counts as one to
            be edited.
        answer: What is expected.
    """
    one, other = str(response).lower(), str(answer).lower()
    longest = max(len(one), len(other))
    score = 1.0 if one == other else 1.0 - _distance(one, other) / longest
    return MatchResult(score=score, reason=f"They are alike by {score:.1%}.", mode="fuzz")


def match_regex(response: Any, pattern: str) -> MatchResult:
    """1.0 if a regular expression is found in the response; a stop stands for newlines too.

    A faulty expression scores 0, as HUD has it, and the reason says so.

    Raises:
        GraderFailed: It was not found out within 2 s of computing.
    """
    try:
        found = search_now(pattern, str(response), flags=re.DOTALL)
    except ValueError as exc:
        return MatchResult(score=0.0, reason=f"{exc}.", mode="regex")
    reason = "The pattern is there." if found else "The pattern is not there."
    return MatchResult(score=float(found), reason=reason, mode="regex")


def match_diff(response: Any, answer: Text) -> MatchResult:
    """The nearness of two numbers or the likeness of two texts, as HUD 0.2 compares.

    Args:
        response: What was submitted: a number, or text.
        answer: What is expected, of the same kind; else both are compared as text, by
            `difflib.SequenceMatcher.ratio`, of which beyond 1,000 characters nothing is alike.
    """
    if isinstance(response, int | float) and isinstance(answer, int | float):
        apart = abs(response - answer)
        most = max(abs(response), abs(answer))
        near = 1.0 if response == answer else max(0.0, 1.0 - apart / most)
        score = near if near == near else 0.0  # noqa: PLR0124  # NaN is near nothing
        return MatchResult(score=score, reason=f"They are {apart:g} apart.", mode="diff")
    one, other = str(response), str(answer)
    if one == other:
        score = 1.0
    else:
        first, second = one[:_MOST_DIFF_CHARS], other[:_MOST_DIFF_CHARS]
        common = SequenceMatcher(None, first, second).ratio() * (len(first) + len(second))
        score = common / (len(one) + len(other))
    return MatchResult(score=score, reason=f"They are alike by {score:.1%}.", mode="diff")


def _distance(one: str, other: str) -> int:
    """Return Levenshtein's distance; of text beyond the bound, each sign counts.

    A column of the table is two long integers (Hyyrö, "Explaining and Extending the Bit-parallel
    Approximate String Matching Algorithm of Myers", 2001).
    """
    beyond = max(len(one), len(other)) - min(max(len(one), len(other)), _MOST_DISTANCE_CHARS)
    one, other = one[:_MOST_DISTANCE_CHARS], other[:_MOST_DISTANCE_CHARS]
    if not one or not other:
        return len(one) + len(other) + beyond
    places: dict[str, int] = {}
    for index, sign in enumerate(one):
        places[sign] = places.get(sign, 0) | 1 << index
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    up, down, distance = every, 0, len(one)
    for sign in other:
        here = places.get(sign, 0)
        level = ((((here & up) + up) ^ up) | here | down) & every
        rise, fall = (down | ~(level | up)) & every, up & level
        distance += bool(rise & last) - bool(fall & last)
        rise, fall = (rise << 1 | 1) & every, (fall << 1) & every
        up, down = (fall | ~(level | rise)) & every, rise & level
    return distance + beyond


async def _match_regex(answer: str, pattern: Pattern) -> float:
    """1.0 if the expression is found; a stop stands for newlines too, as in HUD 0.2."""
    # Of a task: a wrong expression is refused when the task meets its environment.
    return float(await search(pattern, answer, flags=re.DOTALL))


_LISTS = "An answer that lists much has what is looked for."

MATCH_SINGLE = Function.of_answer(match_single, weak=_LISTS)
MATCH_ALL = Function.of_answer(match_all, weak=_LISTS)
MATCH_REGEX = Function.of_answer(_match_regex, name="match_regex")


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
    """Return a text unchanged, or a number as it is written; else raise `TypeError`."""
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

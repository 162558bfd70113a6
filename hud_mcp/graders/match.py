"""The five ways to compare of HUD 0.2's `hud.evaluators.match`, as lax as they were.

`match_single` finds a part of a word, and a long answer that names everything passes `match_all`.
`hud_mcp.graders.contains` and its neighbours are stricter.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from pydantic import Field

from hud_mcp.environment.function import Function
from hud_mcp.graders.answers import Text
from hud_mcp.graders.pattern import Pattern, search, search_now
from hud_mcp.values.action import Value

__all__ = [
    "MATCH_ALL",
    "MATCH_REGEX",
    "MATCH_SINGLE",
    "MatchResult",
    "match_all",
    "match_diff",
    "match_fuzzy",
    "match_regex",
    "match_single",
]

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
    # Of a task: a wrong expression is refused when the task meets its environment.
    return float(await search(pattern, answer, flags=re.DOTALL))


_LISTS = "An answer that lists much has what is looked for."

MATCH_SINGLE = Function.of_answer(match_single, weak=_LISTS)
MATCH_ALL = Function.of_answer(match_all, weak=_LISTS)
MATCH_REGEX = Function.of_answer(_match_regex, name="match_regex")

"""Graders: how an answer or a state becomes a number.

Each name loads its module when it is first asked for: a file that compares two texts does not
wait for an HTTP client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hud_mcp.graders.answers import (
        gaia_match,
        response_includes,
        response_is,
        response_match,
    )
    from hud_mcp.graders.bash import BashGrader
    from hud_mcp.graders.changes import Before, grade_checks
    from hud_mcp.graders.combination import combine, combine_all, combine_any
    from hud_mcp.graders.grader import Grader
    from hud_mcp.graders.judge import LLMJudgeGrader
    from hud_mcp.graders.match import (
        MatchResult,
        match_all,
        match_diff,
        match_fuzzy,
        match_regex,
        match_single,
    )
    from hud_mcp.graders.results import EvaluationResult, SubScore
    from hud_mcp.graders.text import (
        contains,
        contains_all,
        contains_any,
        exact_match,
        f1_score,
        normalize,
        numeric_match,
    )

_HOMES = {
    "answers": "gaia_match response_includes response_is response_match",
    "bash": "BashGrader",
    "changes": "Before grade_checks",
    "combination": "combine combine_all combine_any",
    "grader": "Grader",
    "judge": "LLMJudgeGrader",
    "match": "MatchResult match_all match_diff match_fuzzy match_regex match_single",
    "results": "EvaluationResult SubScore",
    "text": "contains contains_all contains_any exact_match f1_score normalize numeric_match",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "BashGrader",
    "Before",
    "EvaluationResult",
    "Grader",
    "LLMJudgeGrader",
    "MatchResult",
    "SubScore",
    "combine",
    "combine_all",
    "combine_any",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "gaia_match",
    "grade_checks",
    "match_all",
    "match_diff",
    "match_fuzzy",
    "match_regex",
    "match_single",
    "normalize",
    "numeric_match",
    "response_includes",
    "response_is",
    "response_match",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hud_mcp.graders' has no attribute {name!r}")
    value = getattr(import_module(f"hud_mcp.graders.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

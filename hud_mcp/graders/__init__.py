"""Graders: the measures of an answer or a state. Each name loads its module at its first use."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import declared_names, lazy_names

if TYPE_CHECKING:
    from hud_mcp.graders.answers import MatchResult as MatchResult
    from hud_mcp.graders.answers import gaia_match as gaia_match
    from hud_mcp.graders.answers import match_all as match_all
    from hud_mcp.graders.answers import match_diff as match_diff
    from hud_mcp.graders.answers import match_fuzzy as match_fuzzy
    from hud_mcp.graders.answers import match_regex as match_regex
    from hud_mcp.graders.answers import match_single as match_single
    from hud_mcp.graders.answers import response_includes as response_includes
    from hud_mcp.graders.answers import response_is as response_is
    from hud_mcp.graders.answers import response_match as response_match
    from hud_mcp.graders.bash import BashGrader as BashGrader
    from hud_mcp.graders.combination import Before as Before
    from hud_mcp.graders.combination import EvaluationResult as EvaluationResult
    from hud_mcp.graders.combination import Grader as Grader
    from hud_mcp.graders.combination import SubScore as SubScore
    from hud_mcp.graders.combination import combine as combine
    from hud_mcp.graders.combination import combine_all as combine_all
    from hud_mcp.graders.combination import combine_any as combine_any
    from hud_mcp.graders.combination import grade_checks as grade_checks
    from hud_mcp.graders.judge import LLMJudgeGrader as LLMJudgeGrader
    from hud_mcp.graders.text import contains as contains
    from hud_mcp.graders.text import contains_all as contains_all
    from hud_mcp.graders.text import contains_any as contains_any
    from hud_mcp.graders.text import exact_match as exact_match
    from hud_mcp.graders.text import f1_score as f1_score
    from hud_mcp.graders.text import normalize as normalize
    from hud_mcp.graders.text import numeric_match as numeric_match
else:
    __getattr__ = lazy_names(__name__)
    __all__ = [*declared_names(__file__)]  # noqa: PLE0604  # strings, from the lines above

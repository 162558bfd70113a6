"""The table of the functions that tasks of every environment may name."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "graders",
    functions={
        "response_includes": "hud_mcp.graders.answers:response_includes",
        "response_is": "hud_mcp.graders.answers:response_is",
        "response_match": "hud_mcp.graders.answers:response_match",
        "numeric_match": "hud_mcp.graders.text:numeric_match",
        "gaia_match": "hud_mcp.graders.answers:gaia_match",
        "gaia_final_answer": "hud_mcp.graders.answers:gaia_final_answer",
        "inspect_match": "hud_mcp.graders.inspect_scorers:match",
        "inspect_choice": "hud_mcp.graders.inspect_scorers:choice",
        "match_fuzzy": "hud_mcp.graders.answers:match_fuzzy",
        "match_regex": "hud_mcp.graders.answers:MATCH_REGEX",
        "match_diff": "hud_mcp.graders.answers:match_diff",
        "inspect_includes": "hud_mcp.graders.inspect_scorers:INCLUDES",
        "match_single": "hud_mcp.graders.answers:MATCH_SINGLE",
        "match_all": "hud_mcp.graders.answers:MATCH_ALL",
    },
)

"""How answers are compared: the graders' own rules, which load with the first answer."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.graders import answers, inspect_scorers, match
    from hud_mcp.graders.text import numeric_match
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.graders.answers",
        "hud_mcp.graders.inspect_scorers",
        "hud_mcp.graders.match",
        "hud_mcp.graders.text:numeric_match",
    )

__all__ = ["answers", "inspect_scorers", "match", "numeric_match"]

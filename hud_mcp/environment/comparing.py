"""How answers are compared: the graders' own rules, which load with the first answer."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.graders import answers as answers
    from hud_mcp.graders import inspect_scorers as inspect_scorers
    from hud_mcp.graders import match as match
    from hud_mcp.graders.text import numeric_match as numeric_match
else:
    __getattr__ = lazy_names(__name__)

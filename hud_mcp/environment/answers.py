"""Functions over the submitted answer, which `evaluate` of any task may name."""

from hud_mcp.function import Function
from hud_mcp.template import Answer

__all__ = ["ANSWER_FUNCTIONS"]


async def response_includes(answer: Answer[str], *texts: str | list[str]) -> float:
    """1.0 where every text occurs in the answer; case does not count."""
    wanted = [text for each in texts for text in ([each] if isinstance(each, str) else each)]
    said = answer.raw.casefold()
    return float(bool(wanted) and all(text.casefold() in said for text in wanted))


ANSWER_FUNCTIONS = (Function(response_includes, use="evaluate"),)
"""In every environment."""

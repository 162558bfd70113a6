"""The dialects that there are, by the path of a request."""

from collections.abc import Mapping

from hud_mcp.plugins.models.gateway.dialects import Action
from hud_mcp.plugins.models.gateway.dialects.chat import CHAT
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.dialects.gemini import GEMINI
from hud_mcp.plugins.models.gateway.dialects.messages import MESSAGES
from hud_mcp.plugins.models.gateway.dialects.responses import RESPONSES

__all__ = ["DIALECTS", "dialect_of"]

DIALECTS: Mapping[str, Dialect] = {each.name: each for each in (MESSAGES, CHAT, RESPONSES, GEMINI)}


def dialect_of(method: str, path: str, headers: Mapping[str, str]) -> tuple[Dialect, Action] | None:
    """Return the dialect of a request and its action; None if no dialect has the path.

    `/v1/models` is of two: the header `anthropic-version` tells them apart.
    """
    found: list[tuple[Dialect, Action]] = [
        (each, act) for each in DIALECTS.values() if (act := each.action(method, path))
    ]
    if len(found) > 1 and "anthropic-version" not in headers:
        return found[1]
    return found[0] if found else None

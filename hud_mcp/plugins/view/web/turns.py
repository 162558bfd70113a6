"""What the pages of operators show of a model's turns, beside the steps that they led to."""

from datetime import datetime

from hud_mcp.base.text import clip_and_count
from hud_mcp.plugins.view.web.values import Json, seconds
from hud_mcp.record.recorded_turn import RecordedTurn
from hud_mcp.show.turns import call_text, removed_text, turn_facts

__all__ = ["turn_row"]

_CHARS = 20_000
"""Of one text; `hud-mcp trace --full` shows the rest."""


def turn_row(turn: RecordedTurn, started_at: datetime) -> Json:
    """A turn as a page draws it.

    Args:
        turn: As it is recorded.
        started_at: When its trajectory began.
    """
    return {
        "number": turn.number,
        "after_s": seconds(started_at, turn.started_at),
        "took_s": seconds(turn.started_at, turn.ended_at),
        "facts": [f"{name} {_clipped(value)}" for name, value in turn_facts(turn)],
        "reasoning": _clipped(turn.reasoning),
        "text": _clipped(turn.text),
        "calls": [_clipped(call_text(call)) for call in turn.calls],
        "error": _clipped(turn.error),
        "removed": [f"{name}: {value}" for name, value in removed_text(turn)],
    }


def _clipped(text: str | None) -> str | None:
    return None if text is None else clip_and_count(text, _CHARS)

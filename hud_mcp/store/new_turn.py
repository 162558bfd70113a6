"""A model's turn on its way into the store: its row, and its figures as columns."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hud_mcp.record.model_turn import ModelTurn
from hud_mcp.record.recorded_turn import bounded
from hud_mcp.store.json_text import to_json

__all__ = ["NewTurn"]


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is to be written.

    Attributes:
        digest: Of what was reported: the same report again, as of a call that is repeated, adds
            nothing.
        row: It as JSON values, masked and cut.
        size: Of its row, in bytes.
        figures: Its tokens, its cost and its seconds, by column.
    """

    digest: str
    row: dict[str, Any]
    size: int
    figures: dict[str, Any]

    @classmethod
    def of(cls, turn: ModelTurn) -> "NewTurn":
        """The row of a turn."""
        reported = to_json(turn.model_dump(mode="json")).encode()
        kept = bounded(turn)
        usage = kept.usage
        figures = {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cached_tokens": usage.cached,
            "cost_usd": kept.cost_usd,
            "model_s": _seconds(kept.started_at, kept.ended_at),
        }
        row = kept.model_dump(mode="json", exclude_defaults=True)
        return cls(
            digest=hashlib.sha256(reported).hexdigest(),
            row=row,
            size=len(to_json(row)),
            figures=figures,
        )


def _seconds(started_at: datetime, ended_at: datetime) -> float:
    return max(0.0, (ended_at - started_at).total_seconds())

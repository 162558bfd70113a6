"""One reply of a model in a session: what it said, what it called, and what that used.

It is stored apart from the steps. No agent reads it, no grader and no replay either.
"""

from datetime import datetime
from typing import Any

from pydantic import Field

from hud_mcp.action import Value

__all__ = ["MODEL", "ModelCall", "ModelTurn", "TokenUsage"]

MODEL = "hud-mcp/model"
"""In the `_meta` of a tool call: the `ModelTurn` that made it, or several in a list. In the
`_meta` of the reply: why it was not recorded."""


class ModelCall(Value):
    """One tool call as the model made it, before anything was scaled or renamed."""

    name: str
    arguments: dict[str, Any] | str = Field(
        default_factory=dict, description="Text where the model wrote no JSON object."
    )
    id: str | None = Field(default=None, description="The provider's, or None.")


class TokenUsage(Value):
    """Tokens of one reply; None where the provider does not say.

    The names and what they include follow OpenTelemetry's GenAI conventions
    (`gen_ai.usage.*`): cached tokens are part of the input, those of reasoning of the output.
    """

    input: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)
    cached: int | None = Field(default=None, ge=0, description="Of the input, read from a cache.")
    cache_write: int | None = Field(
        default=None, ge=0, description="Of the input, written to a cache."
    )
    reasoning: int | None = Field(default=None, ge=0, description="Of the output.")


class ModelTurn(Value):
    """One reply of a model, and the request that it answers."""

    model: str | None = Field(
        default=None, description="As it was asked for, with its provider: `anthropic:…`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Temperature, limits, look, the system prompt's digest."
    )
    text: str | None = Field(default=None, description="What it said beside its calls.")
    reasoning: str | None = Field(default=None, description="What it thought, where that is told.")
    calls: tuple[ModelCall, ...] = ()
    usage: TokenUsage = Field(default_factory=TokenUsage)
    cost_usd: float | None = Field(
        default=None, ge=0, description="In US dollars; None where its price is not known."
    )
    stop_reason: str | None = Field(default=None, description="In the provider's word.")
    error: str | None = Field(
        default=None, description="Why there was no reply, where a request failed for good."
    )
    started_at: datetime
    ended_at: datetime

    @property
    def latency_s(self) -> float:
        """Seconds from the request to the whole reply, retries included."""
        return (self.ended_at - self.started_at).total_seconds()

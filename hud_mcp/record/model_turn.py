"""One reply of a model in a session. No agent reads it, no grader and no replay either."""

from datetime import datetime
from typing import Any

from pydantic import Field

from hud_mcp.values.action import Value

__all__ = ["MODEL", "ModelCall", "ModelTurn", "TokenUsage"]

MODEL = "hud-mcp/model"
"""The key of `ModelTurn`s in a call's `_meta`; in a reply's, of the reason for no record."""


class ModelCall(Value):
    """One tool call as the model made it, before anything was scaled or renamed."""

    name: str
    arguments: dict[str, Any] | str = Field(
        default_factory=dict,
        description="The arguments; text if the model did not write a JSON object.",
    )
    id: str | None = Field(default=None, description="The provider's, or None.")


class TokenUsage(Value):
    """Tokens of one reply; None if the provider does not report them.

    The names and their meanings follow OpenTelemetry's GenAI conventions (`gen_ai.usage.*`). The
    input includes cached tokens, and the output includes reasoning.
    """

    input: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)
    cached: int | None = Field(default=None, ge=0, description="Input tokens read from a cache.")
    cache_write: int | None = Field(
        default=None, ge=0, description="Input tokens written to a cache."
    )
    reasoning: int | None = Field(default=None, ge=0, description="Output tokens of reasoning.")


class ModelTurn(Value):
    """One reply of a model, and its request."""

    model: str | None = Field(
        default=None, description="The requested model, with its provider: `anthropic:…`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Temperature, limits, look, the system prompt's digest."
    )
    text: str | None = Field(default=None, description="Its text beside its calls.")
    reasoning: str | None = Field(
        default=None, description="Its reasoning, if the provider returns it."
    )
    calls: tuple[ModelCall, ...] = ()
    usage: TokenUsage = Field(default_factory=TokenUsage)
    cost_usd: float | None = Field(
        default=None, ge=0, description="In US dollars; None if its price is unknown."
    )
    stop_reason: str | None = Field(default=None, description="In the provider's word.")
    error: str | None = Field(
        default=None, description="Why there was no reply, if a request finally failed."
    )
    started_at: datetime
    ended_at: datetime

    @property
    def latency_s(self) -> float:
        """Seconds from the request to the whole reply, retries included."""
        return (self.ended_at - self.started_at).total_seconds()

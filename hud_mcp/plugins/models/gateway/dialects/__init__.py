"""The wire forms in which programs ask models: their requests, replies and errors.

A dialect reads and never sends. It reads what strangers write: a wrong type is passed over, and
only a request that no budget could bind is `Unreadable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hud_mcp.errors import HudMcpError
from hud_mcp.values.model_turn import ModelCall, TokenUsage, TurnTokens

__all__ = ["Action", "Asked", "Json", "Picture", "ReadTurn", "Said", "TurnTokens", "Unreadable"]

Json = dict[str, Any]

Action = Literal["turn", "count", "models", "hello"]
"""An exchange with the model, a count of tokens, the list of models, a sign of life."""


class Unreadable(HudMcpError):
    """A request cannot be read; the sentence is for the agent. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a message, for the session's screenshots."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """Messages of a request as the record has them."""

    messages: tuple[Json, ...]
    """Each `{"role", "parts"}`. A part is `{"text"}`, `{"reasoning"}`, `{"call": {"name",
    "arguments", "id"}}`, `{"result": TEXT, "id"}`, `{"image": SHA256, "mime", "bytes"}`,
    `{"image": URL}` or `{"other": TYPE}`."""
    pictures: Mapping[str, Picture] = field(default_factory=dict[str, Picture])
    """By the SHA-256 of their bytes, in hexadecimal."""
    text_bytes: int = 0
    """At least the bytes of its text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a reply, before its messages are read."""

    items: tuple[Json, ...]
    """The messages as they came, without the system prompt at their head."""
    dialect: str = ""
    model: str = ""
    is_stream: bool = False
    digests: tuple[bytes, ...] = ()
    """Of each item, without what may change when it is sent again; empty for reasoning."""
    cap: int | None = None
    """The most tokens of output that the body asks for."""
    thinking: int | None = None
    """The tokens of reasoning that a cap has to leave room for."""
    choices: int = 1
    """The number of replies that it asks for; each may use the whole cap."""
    system: str | None = None
    system_digest: str = ""
    tools: tuple[Json, ...] = ()
    tools_digest: str | None = None
    """None without tools."""
    hosted: tuple[str, ...] = ()
    """Tools that the provider runs: their input and their price are in no bound."""
    settings: Json = field(default_factory=dict[str, Any])
    """Temperature, effort, tier of service and such, as the body names them."""
    previous: str | None = None
    """The provider's id of the reply that it continues (`previous_response_id`)."""
    is_side: bool = False
    """It names itself a helper's, or it wants JSON of a schema and gives no tools."""
    text_bytes: int = 0
    """The bytes of the whole body but for its pictures and documents."""
    pictures: int = 0
    pages: int = 0
    """At most so many pages of documents; a document that is only named counts as 100."""


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A reply as far as it has come."""

    text: str | None = None
    reasoning: str | None = None
    calls: tuple[ModelCall, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    stop_reason: str | None = None
    provider_id: str | None = None
    model: str | None = None
    """The model that the provider names."""
    error: str | None = None
    tokens: TurnTokens | None = None
    is_too_long: bool = False
    """It passed `REPLY_BYTES`: its later part was not read."""

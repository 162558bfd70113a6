"""The wire forms in which programs ask models: their requests, replies and errors.

A dialect reads and never sends. It reads what strangers write: a wrong type is passed over, and
only a request that no budget could bind is `Unreadable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hud_mcp.errors import HudMcpError
from hud_mcp.values.model_turn import ModelCall, TokenUsage

__all__ = ["Action", "Asked", "Dialect", "Picture", "ReadTurn", "ReplyReader", "Said", "Unreadable"]

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
class TurnTokens:
    """The tokens of one reply, where an engine returns them."""

    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    texts: tuple[str, ...] = ()


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


class ReplyReader(Protocol):
    """Reads a copy of a reply while it passes, and says how far it may pass.

    Keep the bytes that came, and send on as many of the oldest as `feed` returns. Once it
    `is_complete`, or after `end`: record the turn, then send what is left.
    """

    @property
    def is_complete(self) -> bool:
        """Whether the whole reply was read."""
        ...

    def feed(self, chunk: bytes) -> int:
        """Read more bytes.

        Returns:
            How many of the bytes that were fed and not yet let on may go on now. An event of a
            stream goes on when it is whole, the last one not before the turn is recorded; a reply
            without a stream not before its end.
        """
        ...

    def end(self) -> None:
        """Take note of the end of the body; a reply without a stream is read now."""
        ...

    def turn(self) -> ReadTurn:
        """Return the turn as far as it has come; at any time, as often as one likes."""
        ...


class Dialect(Protocol):
    """One wire form."""

    @property
    def name(self) -> str:
        """`messages`, `chat`, `responses` or `gemini`."""
        ...

    def action(self, method: str, path: str) -> Action | None:
        """Return the action of a path, which may have a query; None for any other path."""
        ...

    def request(self, path: str, body: bytes, headers: Mapping[str, str]) -> Asked:
        """Read a request of the action `turn`; names of headers are lower-case.

        Raises:
            Unreadable: It is no JSON object in UTF-8, names no model, or says one thing twice.
        """
        ...

    def said(self, asked: Asked, start: int = 0) -> Said:
        """Read the messages from an item on; pictures are decoded."""
        ...

    def spoken(self, item: Json, /) -> tuple[str, list[Any]]:
        """Return the role of an item, and its parts: those of `Said`, and media as they came."""
        ...

    def reader(self, asked: Asked, status: int, content_type: str) -> ReplyReader:
        """Return the reader of one reply."""
        ...

    def with_model(self, path: str, body: bytes, model: str) -> tuple[str, bytes]:
        """Return path and body with another model; all other bytes are the same."""
        ...

    def with_cap(self, body: bytes, tokens: int) -> bytes:
        """Return the body with another cap of output; all other bytes are the same."""
        ...

    def error(
        self, status: int, message: str, *, is_stream: bool = False
    ) -> tuple[int, str, bytes]:
        """Return status, content type and body of an error; of a stream, its last event."""
        ...

"""Conversations as programs and providers wrote them, one exchange a line, by dialect."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Asked, ReadTurn
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS
from hud_mcp.plugins.models.gateway.dialects.replies import ReplyReader

__all__ = ["DIALECT_NAMES", "EXCHANGES", "STREAM", "WHOLE", "Exchange", "exchanges", "read", "told"]

Json = dict[str, Any]

DIALECT_NAMES = tuple(DIALECTS)
STREAM, WHOLE = "text/event-stream; charset=utf-8", "application/json"


@dataclass(frozen=True)
class Exchange:
    """A request and its reply, with what the record should have of them.

    Attributes:
        name: The dialect's.
        about: What is special in it.
        path: The request's, with its query.
        headers: Of the request, those that matter.
        request: Its body.
        status: The reply's.
        events: The events of the reply, if it was a stream.
        whole: The body of the reply; also what a provider would send in place of `events`.
        turn: The turn to be read.
        place: The turn before, the one that it repeats, and the roles of its new messages.
        is_broken: It does not end as replies do.
    """

    name: str
    about: str
    path: str
    headers: dict[str, str]
    request: Json
    status: int
    events: list[Json | str] | None
    whole: Json | str | None
    turn: Json
    place: Json
    is_broken: bool

    @property
    def dialect(self) -> Dialect:
        """The dialect."""
        return DIALECTS[self.name]

    @property
    def body(self) -> bytes:
        """The request's body, as programs write it."""
        return json.dumps(self.request, ensure_ascii=False).encode()

    def asked(self) -> Asked:
        """Read the request."""
        return self.dialect.request(self.path, self.body, self.headers)

    def stream(self, newline: str = "\n", *, between: str = "") -> bytes:
        """Return the reply as a stream, with a text between each two events."""
        told = ""
        for event in self.events or []:
            name = event.get("type") if isinstance(event, dict) else None
            data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
            head = f"event: {name}{newline}" if isinstance(name, str) else ""
            told += f"{between}{head}data: {data}{newline}{newline}"
        return told.encode()

    def plain(self) -> bytes:
        """Return the reply as one body."""
        whole = self.whole
        return (whole if isinstance(whole, str) else json.dumps(whole)).encode()


def exchanges(name: str) -> list[Exchange]:
    """Return the recorded conversation of a dialect."""
    lines = (Path(__file__).parent / "recorded" / f"{name}.jsonl").read_text().splitlines()
    return [Exchange(name=name, **json.loads(line)) for line in lines]


EXCHANGES = [each for name in DIALECT_NAMES for each in exchanges(name)]


def read(reader: ReplyReader, data: bytes, size: int = 10**9) -> int:
    """Feed bytes in pieces of a size; return how many went on before the end."""
    went = sum(reader.feed(data[at : at + size]) for at in range(0, len(data), size))
    reader.end()
    return went


def told(turn: ReadTurn) -> Json:
    """Return a turn as recordings have it."""
    kept = {k: v for k, v in asdict(turn).items() if k not in ("is_too_long", "tokens")}
    kept["calls"] = [each.model_dump() for each in turn.calls]
    kept["usage"] = turn.usage.model_dump(exclude_none=True)
    if turn.tokens is not None:
        kept["tokens"] = {name: list(each) for name, each in turn.tokens if name != "shared"}
    return kept

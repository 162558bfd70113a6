"""A reply while it comes: events of a stream, or one body, to the same turn."""

import re
from collections.abc import Callable
from typing import Any, Literal

from hud_mcp.base.text import clip, clip_json
from hud_mcp.plugins.models.gateway.dialects import Json, ReadTurn
from hud_mcp.plugins.models.gateway.dialects.body import (
    clean,
    dict_of,
    dicts_of,
    mended,
    objects_in,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.tokens import TokenLists, turn_tokens
from hud_mcp.values.model_turn import ModelCall, TokenUsage

__all__ = ["REPLY_BYTES", "BodyReader", "Came", "Draft", "ReplyReader", "StreamReader"]

REPLY_BYTES = 16 * 1024 * 1024
"""The most bytes of a reply that are read; the others pass, and are not in the record."""

_ERROR_CHARS = 2_000
_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
_LINE = re.compile(rb"\r\n|\n|\r")

Key = tuple[int, int]
"""The place of a piece in its reply: of its item, and of its part in the item."""

Came = Literal["more", "last", "end"]
"""Whether more events come that change the turn, only its end, or none."""

Fold = Callable[["Draft", Json], Came]
"""Writes one event of a stream, or a whole reply, into a draft."""


class Draft:
    """The pieces of a reply, in the places that the provider names."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._texts: dict[Key, list[str]] = {}
        self._thoughts: dict[Key, list[str]] = {}
        self._calls: dict[Key, _Call] = {}
        self._tokens: dict[int, TokenLists] = {}
        self.usage = dict[str, int]()
        self.stop_reason: str | None = None
        self.provider_id: str | None = None
        self.model: str | None = None
        self.error: str | None = None

    def say(self, key: Key, text: Any) -> None:
        """Add to a text."""
        if text_of(text):
            self._texts.setdefault(key, []).append(text)

    def think(self, key: Key, text: Any) -> None:
        """Add to a text of reasoning."""
        if text_of(text):
            self._thoughts.setdefault(key, []).append(text)

    def call(
        self,
        key: Key,
        *,
        name: Any = None,
        call_id: Any = None,
        text: Any = None,
        given: Any = None,
    ) -> None:
        """Add to a call: what it is called first stays, `text` is a piece of its arguments.

        `given` are arguments that are no piece: an object, or a text that need not be JSON.
        """
        call = self._calls.setdefault(key, _Call())
        call.name = call.name or text_of(name)
        call.id = call.id or text_of(call_id) or None
        call.pieces.append(text_of(text))
        call.given = given if isinstance(given, dict | str) else call.given

    def tokens(self, item: int) -> TokenLists:
        """Return the lists of an item's tokens."""
        return self._tokens.setdefault(item, TokenLists())

    def calls_so_far(self) -> int:
        """The number of its calls."""
        return len(self._calls)

    def drop(self, item: int) -> None:
        """Forget the pieces of an item, which comes again whole."""
        for each in (self._texts, self._thoughts, self._calls):
            for key in [key for key in each if key[0] == item]:
                del each[key]
        self._tokens.pop(item, None)

    def named(self, reply: Json, *, id_name: str = "id", model_name: str = "model") -> None:
        """Note the reply's id and model, if these are there."""
        self.provider_id = text_of(reply.get(id_name)) or self.provider_id
        self.model = text_of(reply.get(model_name)) or self.model

    def count(self, **numbers: int | None) -> None:
        """Note tokens; a number that is not there changes nothing."""
        self.usage.update({name: n for name, n in numbers.items() if n is not None})

    def fail(self, error: Any) -> None:
        """Note an error in the provider's words."""
        said = text_of(dict_of(error).get("message")) or text_of(error) or clip_json(error)
        self.error = clip(mended(said or "no reason"), _ERROR_CHARS)

    def turn(self, *, is_too_long: bool = False) -> ReadTurn:
        """Return the turn as far as it has come."""
        return ReadTurn(
            text=_joined(self._texts),
            reasoning=_joined(self._thoughts),
            calls=tuple(self._calls[key].read() for key in sorted(self._calls)),
            usage=self._usage(),
            stop_reason=mended(self.stop_reason or "") or None,
            provider_id=mended(self.provider_id or "") or None,
            model=mended(self.model or "") or None,
            error=self.error,
            tokens=turn_tokens(self._tokens[item] for item in sorted(self._tokens)),
            is_too_long=is_too_long,
        )

    def _usage(self) -> TokenUsage:
        numbers = dict(self.usage)
        if (fresh := numbers.pop("fresh", None)) is not None:
            numbers["input"] = sum((fresh, numbers.get("cached", 0), numbers.get("cache_write", 0)))
        return TokenUsage(**numbers)


class _Call:
    def __init__(self) -> None:
        self.name = ""
        self.id: str | None = None
        self.pieces = list[str]()
        self.given: Any = None

    def read(self) -> ModelCall:
        text = mended("".join(self.pieces))
        read: Any = objects_in(text) if text else self.given or {}
        arguments = clean(read) if isinstance(read, dict) or not text else text
        return ModelCall(
            name=mended(self.name), arguments=arguments, id=mended(self.id or "") or None
        )


def _joined(texts: dict[Key, list[str]]) -> str | None:
    whole = "\n\n".join("".join(texts[key]) for key in sorted(texts))
    return mended(whole) or None


class ReplyReader:
    """Reads a copy of a reply while it passes, and says how far it may pass.

    Keep the bytes that came, and send on as many of the oldest as `feed` returns. Once it
    `is_complete`, or after `end`: record the turn, then send what is left.

    Attributes:
        is_complete: Whether the whole reply was read.
    """

    def __init__(self, fold: Fold) -> None:
        self.is_complete = False
        self._fold, self._draft = fold, Draft()
        self._is_too_long = False

    def feed(self, chunk: bytes) -> int:
        """Read more bytes.

        Returns:
            How many of the bytes that were fed and not yet let on may go on now. An event of a
            stream goes on when it is whole, the last one not before the turn is recorded; a reply
            without a stream not before its end.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Take note of the end of the body; a reply without a stream is read now."""
        raise NotImplementedError

    def turn(self) -> ReadTurn:
        """Return the turn as far as it has come; at any time, as often as one likes."""
        return self._draft.turn(is_too_long=self._is_too_long)


class StreamReader(ReplyReader):
    """Reads server-sent events from chunks that are split anywhere."""

    def __init__(self, fold: Fold) -> None:
        super().__init__(fold)
        self._tail = bytearray()  # of the event that is not whole
        self._begins = self._fed = self._let_on = 0  # bytes: at the tail's begin, come, let on
        self._is_held = False

    def feed(self, chunk: bytes) -> int:
        """Read more bytes, and let whole events on."""
        self._fed += len(chunk)
        if self._is_too_long:
            return self._let(self._fed)
        if self.is_complete:
            return 0
        searched = max(0, len(self._tail) - 3)
        self._tail += chunk
        goes = self._let_on
        begin = 0
        while not self.is_complete and (found := _BLANK.search(self._tail, max(begin, searched))):
            self._event(bytes(self._tail[begin : found.end()]))
            begin = found.end()
            goes = goes if self._is_held else self._begins + begin
        del self._tail[:begin]
        self._begins += begin
        if self._fed > REPLY_BYTES and not self.is_complete:
            self._is_too_long, goes = True, self._fed
            self._tail.clear()
        return self._let(goes)

    def end(self) -> None:
        """Read an event that the body's end cut its blank line off."""
        if not self.is_complete and not self._is_too_long:
            self._event(bytes(self._tail))
        self.is_complete = self.is_complete or self._is_held

    def _let(self, goes: int) -> int:
        more, self._let_on = goes - self._let_on, goes
        return more

    def _event(self, event: bytes) -> None:
        lines = _LINE.split(event.removeprefix(b"\xef\xbb\xbf"))
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        came: Came = "more"
        if data == b"[DONE]":
            came = "end"
        elif read := dict_of(objects_in(data)):
            came = self._fold(self._draft, read)
        self.is_complete = came == "end"
        self._is_held = self._is_held or came != "more"


class BodyReader(ReplyReader):
    """Reads a reply of one body, or the error in its place; it goes on at its end."""

    def __init__(self, fold: Fold, *, is_error: bool) -> None:
        super().__init__(fold)
        self._is_error, self._body = is_error, bytearray()

    def feed(self, chunk: bytes) -> int:
        """Keep more bytes, and let nothing on before their end."""
        if self._is_too_long:
            return len(chunk)
        self._body += chunk
        held = len(self._body)
        if held <= REPLY_BYTES:
            return 0
        self._is_too_long = True
        self._body.clear()
        return held

    def end(self) -> None:
        """Read the body."""
        if self._is_too_long or self.is_complete:
            return
        read = objects_in(bytes(self._body))
        replies = dicts_of(read) or [dict_of(read)]  # Gemini's streams are lists without `alt=sse`
        if self._is_error or replies[0].get("error"):
            shown = self._body.decode("utf-8", "replace")
            self._draft.fail(replies[0].get("error") or shown or "an empty body")
            self.is_complete = bool(read)
        elif replies[0]:
            self.is_complete = [self._fold(self._draft, each) for each in replies][-1] != "more"

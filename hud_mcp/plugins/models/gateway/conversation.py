"""The turns of one run as conversations: each request adds its new messages to a turn before it."""

import hashlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import (
    Asked,
    Json,
    Picture,
    ReadTurn,
    Said,
    Unreadable,
)
from hud_mcp.plugins.models.gateway.dialects.body import clean, dict_of, text_of
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS
from hud_mcp.values.model_turn import TurnTokens

__all__ = ["Conversation", "Place"]

_PICTURE_TOKENS, _PAGE_TOKENS = 5_000, 20_000
"""At most so many tokens of a picture, and of a page of a document."""
_FRAME_TOKENS = 2_000
"""More than a provider writes round a request, as for its own tools."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a request among the turns of its run."""

    after: int | None
    """The turn that it continues; None for a new conversation."""
    repeats: int | None
    """The turn whose request came again."""
    is_side: bool
    messages: tuple[Json, ...]
    """The messages that are new since `after`; none for a repeat. The reply of turn N, sent back as
    it came, is `{"role": "assistant", "turn": N}`."""
    pictures: Mapping[str, Picture]
    system: str | None
    """The system prompt, if no turn before has it."""
    tools: tuple[Json, ...]
    """The tools, if no turn before has them."""
    most_input_tokens: int
    """More input than the provider can count: one token has at least one byte."""
    head: bytes
    """The digest of its messages, from the first to the last."""


@dataclass(frozen=True, slots=True)
class _Turn:
    number: int
    asked: Asked
    place: Place
    reply: ReadTurn


class Conversation:
    """All turns of one run, by the messages of their requests.

    A request that begins with all messages of an earlier one continues it, whichever agent sent it:
    sub-agents are branches, and a compaction begins anew. Requests in flight are not known yet.
    """

    def __init__(self) -> None:
        """Begin without turns."""
        self._by_head: dict[bytes, _Turn] = {}
        self._by_request: dict[tuple[Any, ...], _Turn] = {}
        self._by_id: dict[str, _Turn] = {}
        self._systems, self._tools = set[str](), set[str | None]()
        self._ids: dict[int, array[int]] = {}

    def place(self, asked: Asked) -> Place:
        """Find the place of a request; `recorded` is told once its turn has a number.

        Raises:
            Unreadable: It continues a reply that this run did not get.
        """
        heads, before = self._heads(asked)
        if again := self._by_request.get(_request(asked, heads[-1])):
            return self._again(asked, again)
        start = 0
        for length in range(len(heads) - 2, 0, -1):  # the longest of the shorter ones
            if found := self._by_head.get(heads[length]):
                before, start = found, length
                break
        while start > 1 and heads[start - 1] == heads[start]:
            start -= 1  # reasoning, which no digest has, belongs to the new messages
        said = DIALECTS[asked.dialect].said(asked, start)
        new_system = asked.system_digest not in self._systems
        return Place(
            after=None if before is None else before.number,
            repeats=None,
            is_side=asked.is_side or bool(self._tools and asked.tools_digest is None),
            messages=_referring(said, before),
            pictures=said.pictures,
            system=asked.system if new_system else None,
            tools=() if asked.tools_digest in self._tools else tuple(map(clean, asked.tools)),
            most_input_tokens=_most_input_tokens(asked, said.text_bytes, before, start),
            head=heads[-1],
        )

    def recorded(self, asked: Asked, place: Place, number: int, reply: ReadTurn) -> None:
        """Take note of a turn that has its number."""
        # The record has the items; of the request only figures are needed on.
        turn = _Turn(number, replace(asked, items=()), place, replace(reply, tokens=None))
        if reply.tokens is not None:
            self._ids[number] = array("q", (*reply.tokens.prompt_ids, *reply.tokens.ids))
        self._by_request.setdefault(_request(asked, place.head), turn)
        if asked.tools_digest is not None or place.head not in self._by_head:
            self._by_head[place.head] = turn
        if reply.provider_id is not None:
            self._by_id[reply.provider_id] = turn
        self._systems.add(asked.system_digest)
        if asked.tools_digest is not None:
            self._tools.add(asked.tools_digest)

    def new_tokens(self, place: Place, reply: ReadTurn) -> TurnTokens | None:
        """Return a reply's tokens without those that its prompt shares with the turn before."""
        if (tokens := reply.tokens) is None:
            return None
        # Once only: a run of many turns holds the tokens of the last ones.
        before = self._ids.pop(-1 if place.after is None else place.after, ())
        pairs = enumerate(zip(before, tokens.prompt_ids, strict=False))
        most = min(len(before), len(tokens.prompt_ids))
        shared = next((at for at, (one, other) in pairs if one != other), most)
        return tokens.model_copy(
            update={"shared": shared, "prompt_ids": tokens.prompt_ids[shared:]}
        )

    def _heads(self, asked: Asked) -> tuple[list[bytes], _Turn | None]:
        """Return the digest of each beginning of the messages, and the turn before them all."""
        before = None if asked.previous is None else self._by_id.get(asked.previous)
        if asked.previous is not None and before is None:
            raise Unreadable('"previous_response_id" names no reply of this run.')
        heads = [b"" if before is None else before.place.head + text_of(asked.previous).encode()]
        for digest in asked.digests:
            chained = hashlib.blake2b(heads[-1] + digest, digest_size=16).digest()
            heads.append(chained if digest else heads[-1])
        return heads, before

    def _again(self, asked: Asked, first: _Turn) -> Place:
        place, most = first.place, _most_input_tokens(asked, 0, first, len(asked.items))
        return Place(place.after, first.number, place.is_side, (), {}, None, (), most, place.head)


def _request(asked: Asked, head: bytes) -> tuple[Any, ...]:
    return (head, asked.system_digest, asked.tools_digest, asked.is_side)


def _same_frame(asked: Asked, other: Asked) -> bool:
    """Whether two requests have one system prompt and the same tools."""
    return (asked.system_digest, asked.tools_digest) == (other.system_digest, other.tools_digest)


def _most_input_tokens(asked: Asked, new_bytes: int, before: _Turn | None, start: int) -> int:
    counted = None if before is None else before.reply.usage.input
    if before is None or counted is None or not _same_frame(asked, before.asked):
        return _FRAME_TOKENS + asked.text_bytes + _media_tokens(asked.pictures, asked.pages)
    if start == 0:  # `previous` alone names what came before
        counted += before.reply.usage.output or 0
        return counted + asked.text_bytes + _media_tokens(asked.pictures, asked.pages)
    # What no digest has, such as reasoning, may have grown too.
    grown = max(new_bytes, asked.text_bytes - before.asked.text_bytes)
    pictures = asked.pictures - before.asked.pictures
    return counted + grown + _media_tokens(pictures, asked.pages - before.asked.pages)


def _media_tokens(pictures: int, pages: int) -> int:
    return _PICTURE_TOKENS * max(0, pictures) + _PAGE_TOKENS * max(0, pages)


def _referring(said: Said, before: _Turn | None) -> tuple[Json, ...]:
    """Return the messages; a turn's number stands for its reply, if that was not changed."""
    if before is None or not said.messages or said.messages[0]["role"] != "assistant":
        return said.messages
    parts, reply = said.messages[0]["parts"], before.reply
    calls = [dict_of(part.get("call")) for part in parts if "call" in part]
    text = "".join(text_of(part.get("text")) for part in parts)
    same_calls = [(each["name"], each["arguments"]) for each in calls] == [
        (each.name, each.arguments) for each in reply.calls
    ]
    if same_calls and text.split() == (reply.text or "").split():
        return ({"role": "assistant", "turn": before.number}, *said.messages[1:])
    return said.messages

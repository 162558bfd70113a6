"""A reply in the wire form of each dialect, whole or as a stream."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hud_mcp.plugins.models.gateway.dialects import Json
from hud_mcp.plugins.models.gateway.dialects.body import dict_of, objects_in, text_of
from hud_mcp.plugins.models.translate.wishes import Tool
from hud_mcp.values.model_turn import TokenUsage

__all__ = ["WRITERS", "Block", "Kind", "Reply", "Writer"]

Kind = Literal["text", "thought", "call"]
_SIGNATURE = "dHJhbnNsYXRlZA=="
"""Programs leave out reasoning without a signature; the real one is remembered."""


@dataclass(eq=False)
class Block:
    """A part of a reply: a text, reasoning, or a call with its arguments as JSON."""

    kind: Kind
    text: str = ""
    id: str = ""
    tool: Tool = field(default_factory=lambda: Tool("", "", {}))
    number: int = 0

    @property
    def arguments(self) -> Json:
        """The arguments of a call."""
        return dict_of(objects_in(self.text))


@dataclass
class Reply:
    """A reply as far as it has come.

    Attributes:
        stop: The reason of its end: `stop`, `length`, `tool_call`, `content_filter` or `error`.
        has_usage: Whether a stream is asked to end with its usage; Chat Completions alone asks.
    """

    id: str
    model: str
    has_usage: bool = False
    blocks: list[Block] = field(default_factory=list[Block])
    usage: TokenUsage = field(default_factory=TokenUsage)
    stop: str = "stop"
    created: int = field(default_factory=lambda: int(time.time()))

    def add(self, block: Block) -> None:
        """Add the next block."""
        block.number = len(self.blocks)
        self.blocks.append(block)

    @property
    def counts(self) -> tuple[int, ...]:
        """The tokens given, made, cached, written to a cache, and of reasoning."""
        usage = self.usage
        known = (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning)
        return tuple(number or 0 for number in known)

    def end(self, words: Mapping[str, str]) -> str:
        """Return a dialect's word for its end; some engines say `stop` after a call."""
        has_call = any(block.kind == "call" for block in self.blocks)
        stop = "tool_call" if has_call and self.stop == "stop" else self.stop
        return words.get(stop, words["stop"])


class Writer:
    """Writes one reply; a block of a stream is open between `opened` and `closed`."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def whole(self) -> Json:
        """Return the whole reply."""
        raise NotImplementedError

    def begun(self) -> Iterable[bytes]:
        """Return the events before the first block."""
        return ()

    def opened(self, block: Block) -> Iterable[bytes]:  # noqa: ARG002
        """Return the events of a new block, which is empty."""
        return ()

    def added(self, block: Block, text: str) -> Iterable[bytes]:  # noqa: ARG002
        """Return the events of a piece of a block."""
        return ()

    def closed(self, block: Block) -> Iterable[bytes]:  # noqa: ARG002
        """Return the events of a block that is whole."""
        return ()

    def ended(self) -> Iterable[bytes]:
        """Return the last events."""
        return ()


def _event(data: Json) -> bytes:
    head = f"event: {data['type']}\n" if "type" in data else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


class _Messages(Writer):
    _ENDS: Mapping[str, str] = {"stop": "end_turn", "length": "max_tokens",
                                "tool_call": "tool_use", "content_filter": "refusal"}  # fmt: skip
    _DELTAS: Mapping[Kind, tuple[str, str]] = {
        "text": ("text_delta", "text"), "thought": ("thinking_delta", "thinking"),
        "call": ("input_json_delta", "partial_json"),
    }  # fmt: skip

    def whole(self) -> Json:
        reply = self.reply
        content = [self._block(block, block.text) for block in reply.blocks]
        return {"id": reply.id, "type": "message", "role": "assistant", "model": reply.model,
                "content": content, **self._end(), "usage": self._usage()}  # fmt: skip

    def begun(self) -> Iterator[bytes]:
        message = {**self.whole(), "stop_reason": None}
        yield _event({"type": "message_start", "message": message})

    def opened(self, block: Block) -> Iterator[bytes]:
        yield self._of(block, "content_block_start", content_block=self._block(block, ""))

    def added(self, block: Block, text: str) -> Iterator[bytes]:
        kind, name = self._DELTAS[block.kind]
        yield self._of(block, "content_block_delta", delta={"type": kind, name: text})

    def closed(self, block: Block) -> Iterator[bytes]:
        if block.kind == "thought":
            signed = {"type": "signature_delta", "signature": _SIGNATURE}
            yield self._of(block, "content_block_delta", delta=signed)
        yield self._of(block, "content_block_stop")

    def ended(self) -> Iterator[bytes]:
        yield _event({"type": "message_delta", "delta": self._end(), "usage": self._usage()})
        yield _event({"type": "message_stop"})

    def _block(self, block: Block, text: str) -> Json:
        if block.kind == "text":
            return {"type": "text", "text": text}
        if block.kind == "thought":
            return {"type": "thinking", "thinking": text, "signature": text and _SIGNATURE}
        given = block.arguments if text else {}
        return {"type": "tool_use", "id": block.id, "name": block.tool.name, "input": given}

    def _end(self) -> Json:
        return {"stop_reason": self.reply.end(self._ENDS), "stop_sequence": None}

    def _usage(self) -> Json:
        given, made, cached, written, thought = self.reply.counts
        return {
            "input_tokens": max(0, given - cached - written), "output_tokens": made,
            "cache_read_input_tokens": cached, "cache_creation_input_tokens": written,
            "output_tokens_details": {"thinking_tokens": thought},
        }  # fmt: skip

    def _of(self, block: Block, kind: str, **more: Any) -> bytes:
        return _event({"type": kind, "index": block.number, **more})


class _Chat(Writer):
    _ENDS: Mapping[str, str] = {"stop": "stop", "length": "length", "tool_call": "tool_calls",
                                "content_filter": "content_filter"}  # fmt: skip

    def whole(self) -> Json:
        text, thought = (
            "".join(block.text for block in self.reply.blocks if block.kind == kind)
            for kind in ("text", "thought")
        )
        message: Json = {"role": "assistant", "content": text or None}
        if thought:
            message["reasoning_content"] = thought
        if calls := [self._call(block, block.text) for block in self._calls()]:
            message["tool_calls"] = calls
        choice = {"message": message, "logprobs": None, "finish_reason": self.reply.end(self._ENDS)}
        return self._top("chat.completion", choice) | self._usage()

    def begun(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def opened(self, block: Block) -> Iterator[bytes]:
        if block.kind == "call":
            yield self._chunk({"tool_calls": [self._call(block, "")]})

    def added(self, block: Block, text: str) -> Iterator[bytes]:
        if block.kind == "call":
            piece = {"index": self._calls().index(block), "function": {"arguments": text}}
            yield self._chunk({"tool_calls": [piece]})
        else:
            yield self._chunk({"content" if block.kind == "text" else "reasoning_content": text})

    def ended(self) -> Iterator[bytes]:
        # Some programs read the first choice of each chunk: they get the usage only on demand.
        yield self._chunk({}, self.reply.end(self._ENDS))
        if self.reply.has_usage:
            top = self._top("chat.completion.chunk", {})
            yield _event({**top, "choices": [], **self._usage()})
        yield b"data: [DONE]\n\n"

    def _calls(self) -> list[Block]:
        return [block for block in self.reply.blocks if block.kind == "call"]

    def _call(self, block: Block, text: str) -> Json:
        function = {"name": block.tool.name, "arguments": text}
        index = self._calls().index(block)
        return {"index": index, "id": block.id, "type": "function", "function": function}

    def _chunk(self, delta: Json, end: str | None = None) -> bytes:
        choice = {"delta": delta, "finish_reason": end}
        return _event(self._top("chat.completion.chunk", choice))

    def _top(self, kind: str, choice: Json) -> Json:
        reply = self.reply
        return {"id": reply.id, "object": kind, "created": reply.created, "model": reply.model,
                "choices": [{"index": 0, **choice}]}  # fmt: skip

    def _usage(self) -> Json:
        given, made, cached, written, thought = self.reply.counts
        return {"usage": {
            "prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }}  # fmt: skip


class _Responses(Writer):
    _ENDS: Mapping[str, str] = {"stop": "", "length": "max_output_tokens",
                                "content_filter": "content_filter"}  # fmt: skip
    _DELTAS: Mapping[Kind, str] = {
        "text": "response.output_text", "thought": "response.reasoning_summary_text",
        "call": "response.function_call_arguments",
    }  # fmt: skip
    _PARTS: Mapping[Kind, str] = {
        "text": "response.content_part", "thought": "response.reasoning_summary_part",
    }  # fmt: skip
    _count = -1

    def whole(self) -> Json:
        return self._top([self._item(block, block.text) for block in self.reply.blocks])

    def begun(self) -> Iterator[bytes]:
        begun = {**self._top([]), "status": "in_progress", "usage": None}
        yield self._numbered("response.created", response=begun)

    def opened(self, block: Block) -> Iterator[bytes]:
        item = {**self._item(block, ""), "status": "in_progress"}
        yield self._of(block, "response.output_item.added", item=item)
        if part := self._PARTS.get(block.kind):
            yield self._of(block, f"{part}.added", part=_part(block, ""))

    def added(self, block: Block, text: str) -> Iterator[bytes]:
        if not block.tool.is_text:
            yield self._of(block, f"{self._DELTAS[block.kind]}.delta", delta=text, logprobs=[])

    def closed(self, block: Block) -> Iterator[bytes]:
        kind, name, text = self._DELTAS[block.kind], "text", block.text
        if block.tool.is_text:  # its text is whole only now
            kind, name = "response.custom_tool_call_input", "input"
            text = text_of(block.arguments.get("input"))
            yield self._of(block, f"{kind}.delta", delta=text)
        elif block.kind == "call":
            name = "arguments"
        yield self._of(block, f"{kind}.done", logprobs=[], **{name: text})
        if part := self._PARTS.get(block.kind):
            yield self._of(block, f"{part}.done", part=_part(block, text))
        item = self._item(block, block.text)
        yield self._of(block, "response.output_item.done", item=item)

    def ended(self) -> Iterator[bytes]:
        whole = self.whole()
        yield self._numbered(f"response.{whole['status']}", response=whole)

    def _top(self, output: list[Json]) -> Json:
        reply, why = self.reply, self.reply.end(self._ENDS)
        given, made, cached, written, thought = reply.counts
        return {
            "id": reply.id, "object": "response", "created_at": reply.created,
            "status": "incomplete" if why else "completed", "model": reply.model,
            "incomplete_details": {"reason": why} if why else None, "error": None,
            "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "metadata": {}, "instructions": None, "store": False,
            "usage": {
                "input_tokens": given, "output_tokens": made, "total_tokens": given + made,
                "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
                "output_tokens_details": {"reasoning_tokens": thought},
            },
        }  # fmt: skip

    def _item(self, block: Block, text: str) -> Json:
        item: Json = {"id": f"item_{block.number}", "status": "completed"}
        parts = [_part(block, text)] if text else []
        if block.kind == "text":
            return item | {"type": "message", "role": "assistant", "content": parts}
        if block.kind == "thought":
            return item | {"type": "reasoning", "summary": parts, "encrypted_content": _SIGNATURE}
        item |= {"type": "function_call", "call_id": block.id, "name": block.tool.name}
        if block.tool.space:
            item["namespace"] = block.tool.space
        if block.tool.is_text:
            said = text_of(block.arguments.get("input")) if text else ""
            return item | {"type": "custom_tool_call", "input": said}
        return item | {"arguments": text}

    def _of(self, block: Block, kind: str, **more: Any) -> bytes:
        place = {"item_id": f"item_{block.number}", "output_index": block.number}
        place |= {"content_index": 0, "summary_index": 0} if block.kind != "call" else {}
        return self._numbered(kind, **place, **more)

    def _numbered(self, kind: str, **more: Any) -> bytes:
        self._count += 1
        return _event({"type": kind, "sequence_number": self._count, **more})


def _part(block: Block, text: str) -> Json:
    if block.kind == "thought":
        return {"type": "summary_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class _Gemini(Writer):
    _ENDS: Mapping[str, str] = {"stop": "STOP", "length": "MAX_TOKENS",
                                "content_filter": "SAFETY", "error": "OTHER"}  # fmt: skip

    def whole(self) -> Json:
        parts = [self._part(block, block.text) for block in self.reply.blocks]
        return self._chunk(parts, self.reply.end(self._ENDS))

    def added(self, block: Block, text: str) -> Iterator[bytes]:
        if block.kind != "call":
            yield _event(self._chunk([self._part(block, text)]))

    def closed(self, block: Block) -> Iterator[bytes]:
        if block.kind == "call":
            yield _event(self._chunk([self._part(block, block.text)]))

    def ended(self) -> Iterator[bytes]:
        yield _event(self._chunk([], self.reply.end(self._ENDS)))

    def _part(self, block: Block, text: str) -> Json:
        if block.kind == "call":
            call = {"id": block.id, "name": block.tool.name, "args": block.arguments}
            return {"functionCall": call}
        return {"text": text, "thought": True} if block.kind == "thought" else {"text": text}

    def _chunk(self, parts: list[Json], end: str | None = None) -> Json:
        chunk: Json = {"modelVersion": self.reply.model, "responseId": self.reply.id}
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        chunk["candidates"] = [candidate]
        if end is not None:
            candidate["finishReason"] = end
            given, made, cached, _, thought = self.reply.counts
            chunk["usageMetadata"] = {
                "promptTokenCount": given, "candidatesTokenCount": max(0, made - thought),
                "thoughtsTokenCount": thought, "cachedContentTokenCount": cached,
                "totalTokenCount": given + made,
            }  # fmt: skip
        return chunk


WRITERS: Mapping[str, Callable[[Reply], Writer]] = {
    "messages": _Messages, "chat": _Chat, "responses": _Responses, "gemini": _Gemini,
}  # fmt: skip
"""The writers of the dialects."""

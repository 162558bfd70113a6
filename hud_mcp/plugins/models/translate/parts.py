"""The parts of a reply as the models' library gives them, as blocks one after the other."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hud_mcp.plugins import models
from hud_mcp.plugins.models.translate.wishes import Tool
from hud_mcp.plugins.models.translate.writing import Block, Writer

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponseStreamEvent

__all__ = ["Blocks", "block_of"]


def block_of(part: Any, tools: Mapping[str, Tool]) -> Block | None:
    """Return the block of a part of a reply; None for what no dialect has."""
    kinds = models.messages
    if isinstance(part, kinds.ToolCallPart):
        tool = tools.get(part.tool_name) or Tool(part.tool_name, "", {})
        return Block("call", _arguments(part.args), part.tool_call_id, tool)
    if isinstance(part, kinds.TextPart | kinds.ThinkingPart):
        return Block("text" if isinstance(part, kinds.TextPart) else "thought", part.content)
    return None


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given) if given else ""


class Blocks:
    """Writes the blocks of a stream.

    What comes beside a call that is open waits for the end, because its arguments may go on.
    """

    def __init__(self, writer: Writer, tools: Mapping[str, Tool]) -> None:
        self._writer, self._tools = writer, tools
        self._open: Block | None = None
        self._waiting: list[Block] = []
        self._of_part: dict[int, Block] = {}

    def feed(self, came: "ModelResponseStreamEvent") -> Iterable[bytes]:
        """Return the events for one of the library's."""
        kinds = models.messages
        if isinstance(came, kinds.PartStartEvent):
            block = block_of(came.part, self._tools)
            if block is not None:
                self._of_part[came.index] = block
                yield from self._begin(block)
        elif isinstance(came, kinds.PartDeltaEvent) and came.index in self._of_part:
            delta, block = came.delta, self._of_part[came.index]
            is_call = isinstance(delta, kinds.ToolCallPartDelta)
            text = _arguments(delta.args_delta) if is_call else getattr(delta, "content_delta", "")
            if text and block is self._open:
                block.text += text
                yield from self._writer.added(block, text)
            elif text and block in self._waiting:
                block.text += text
            elif text:  # the block is closed, or had no text before
                block = self._of_part[came.index] = Block(block.kind, text)
                yield from self._begin(block)

    def end(self) -> Iterable[bytes]:
        """Return the events of all blocks that are open or wait."""
        yield from self._close()
        for block in self._waiting:
            yield from self._start(block)
            yield from self._close()

    def _begin(self, block: Block) -> Iterable[bytes]:
        if not block.text and block.kind != "call":
            return
        if self._open is not None and self._open.kind == "call":
            self._waiting.append(block)
            return
        yield from self._close()
        yield from self._start(block)

    def _start(self, block: Block) -> Iterable[bytes]:
        self._writer.reply.add(block)
        self._open = block
        yield from self._writer.opened(block)
        if block.text:
            yield from self._writer.added(block, block.text)

    def _close(self) -> Iterable[bytes]:
        block, self._open = self._open, None
        if block is not None:
            if block.kind == "call" and not block.text.strip():
                block.text = "{}"
                yield from self._writer.added(block, "{}")
            yield from self._writer.closed(block)

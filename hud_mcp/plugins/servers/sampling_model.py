"""The model that a user names for servers which ask their client for one."""

import base64
import os
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from hud_mcp.base.contention import Pauses
from hud_mcp.errors import GraderFailed
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.registry import service

if TYPE_CHECKING:
    import mcp_types as types

__all__ = ["ADDRESS", "MODEL", "ask_model", "named_model", "variables_of"]

MODEL, ADDRESS = "HUD_MCP_SAMPLING_MODEL", "HUD_MCP_SAMPLING_URL"
"""The variables that name the model, as PROVIDER:MODEL, and its address."""


def variables_of(model: Any) -> dict[str, str]:
    """Return the variables that give a job's model to its servers; the user's own stand."""
    kind = service("model options")
    if os.environ.get(MODEL) or not isinstance(model, kind) or ":" not in model.name:
        return {}
    return {MODEL: model.name, ADDRESS: model.base_url or ""}


def named_model(tokens: int) -> Any:
    """Return the options of the named model; None without a name, GraderFailed if it is wrong."""
    name, address = os.environ.get(MODEL), os.environ.get(ADDRESS) or None
    if not name:
        return None
    try:
        return service("model options")(name=name, base_url=address, max_tokens=tokens)
    except ValueError as exc:
        raise GraderFailed(f"{MODEL} or {ADDRESS} is wrong: {exc}") from None


async def ask_model(options: Any, asked: "types.CreateMessageRequestParams") -> tuple[str, Json]:
    """Return the named model's reply to a conversation, and its figures; or a HudMcpError."""
    # On a thread: a provider's library takes seconds to load, in which other sessions go on.
    requests = await anyio.to_thread.run_sync(service("model requests"), options)
    keep = {"temperature", "stop_sequences"}
    requests.settings = asked.model_dump(include=keep, exclude_none=True)
    try:
        reply = await requests.reply(_messages(asked), [], pauses=Pauses(), guess=0)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5.0):
            await requests.aclose()
    use = reply.turn.usage
    tokens = None if use.input is None else use.input + (use.output or 0)
    figures: Json = {"model": options.name, "tokens": tokens, "cost_usd": reply.turn.cost_usd}
    return reply.response.text or "", figures


def _messages(asked: "types.CreateMessageRequestParams") -> list[Any]:
    kinds = service("model libraries").messages
    messages: list[Any] = []
    for each in asked.messages:
        blocks: list[Any] = [*each.content_as_list]
        if each.role == "assistant":
            parts = [kinds.TextPart(block.text) for block in blocks if block.type == "text"]
            messages.append(kinds.ModelResponse(parts=parts))
        else:
            said = [
                kinds.BinaryContent(base64.b64decode(block.data), media_type=block.mime_type)
                if block.type == "image"
                else block.text
                for block in blocks
            ]
            part = kinds.UserPromptPart(said)
            messages.append(kinds.ModelRequest(parts=[part], instructions=asked.system_prompt))
    return messages

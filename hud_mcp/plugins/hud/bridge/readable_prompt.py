"""A HUD task's prompt as text that any client can show."""

import json
from typing import Any, cast

__all__ = ["readable_prompt"]

_ROLES = ("user", "assistant", "system")


def readable_prompt(prompt: Any) -> Any:
    """A prompt whose every part is text: what else it has is described or written as JSON."""
    if prompt is None:
        return ""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list):
        return json.dumps(prompt, ensure_ascii=False)
    messages: list[Any] = []
    for item in cast("list[Any]", prompt):
        if isinstance(item, dict) and "content" in item:
            message = cast("dict[str, Any]", item)
            role = message.get("role") if message.get("role") in _ROLES else "user"
            messages.append({"role": role, "content": _content_text(message["content"])})
        else:
            messages.append(item if isinstance(item, str) else json.dumps(item))
    return messages or ""


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_content_text(part) for part in cast("list[Any]", content))
    if isinstance(content, dict):
        part = cast("dict[str, Any]", content)
        if isinstance(part.get("text"), str):
            return part["text"]
        if "data" in part:
            return f"[{part.get('type', 'data')}: {part.get('mimeType', 'of an unknown kind')}]"
    return json.dumps(content, ensure_ascii=False)

"""What HUD's clients read: errors name the methods of the wire, and not the tools of MCP."""

import re
from collections.abc import Mapping

__all__ = ["in_hud_words"]

_METHODS: Mapping[str, str] = {
    "start_task": "tasks.start",
    "list_tasks": "tasks.list",
    "cancel_task": "tasks.cancel",
    "task_status": "tasks.grade with the same answer",
    "response": "tasks.grade",
}
"""The tool that a text names, and what does the same on the wire."""

_TOOL = re.compile(
    r"`(start_task|list_tasks|cancel_task|task_status|response)`"
    r"|\b(start_task|list_tasks|cancel_task|task_status)\b"
    r"|(?<=\bwith )(response)\b"
)


def in_hud_words(text: str) -> str:
    """A text of this package as a peer of the channel can act on it."""
    return _TOOL.sub(lambda found: _METHODS[next(filter(None, found.groups()))], text)

"""What HUD's clients read: errors name the methods of the wire, and not the tools of MCP."""

import re
from collections.abc import Mapping

from hud_mcp.values.call import CANCEL_TASK, LIST_TASKS, RESPONSE, START_TASK, TASK_STATUS

__all__ = ["in_hud_words"]

_METHODS: Mapping[str, str] = {
    START_TASK: "tasks.start",
    LIST_TASKS: "tasks.list",
    CANCEL_TASK: "tasks.cancel",
    TASK_STATUS: "tasks.grade with the same answer",
    RESPONSE: "tasks.grade",
}
"""The tool that a text names, and what does the same on the wire."""

_PLAIN = "|".join(name for name in _METHODS if name != RESPONSE)  # that one is a word, too
_TOOL = re.compile(
    rf"`({'|'.join(_METHODS)})`"
    rf"|\b({_PLAIN})\b"
    rf"|(?<=\bwith )({RESPONSE})\b"
)


def in_hud_words(text: str) -> str:
    """A text of this package as a peer of the channel can act on it."""
    return _TOOL.sub(lambda found: _METHODS[next(filter(None, found.groups()))], text)

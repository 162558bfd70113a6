"""The core tools, one file each; `step` and `act` share theirs, as do both kinds of words."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.tools.cancel_task import CANCEL_TASK
from hud_mcp.server.tools.list_tasks import LIST_TASKS
from hud_mcp.server.tools.note import NOTE
from hud_mcp.server.tools.response import MESSAGE_USER, RESPONSE
from hud_mcp.server.tools.screenshot import SCREENSHOT
from hud_mcp.server.tools.start_task import START_TASK
from hud_mcp.server.tools.step import ACT, STEP
from hud_mcp.server.tools.task_status import TASK_STATUS
from hud_mcp.server.view import View

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["CORE", "CoreTool", "listed_core_tools"]

CORE: Mapping[str, CoreTool] = {
    tool.name: tool
    for tool in (
        LIST_TASKS, START_TASK, STEP, ACT, SCREENSHOT, MESSAGE_USER, RESPONSE, TASK_STATUS,
        CANCEL_TASK, NOTE,
    )
}  # fmt: skip
"""The core tools by name, in the order for clients."""


def listed_core_tools(view: View, tools: Iterable[CoreTool] = CORE.values()) -> "list[Tool]":
    """Return the core tools for clients of a view, in order."""
    return [
        tool.listed(view)
        for tool in tools
        if tool.is_for(one_session=view.one_session) and tool.is_useful(view)
    ]

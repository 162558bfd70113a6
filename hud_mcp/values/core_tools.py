"""What the tools are called that every server has, whatever its environments."""

from typing import Final

__all__ = [
    "ACT",
    "CANCEL_TASK",
    "CORE_TOOLS",
    "LIST_TASKS",
    "NOTE",
    "RESPONSE",
    "SCREENSHOT",
    "START_TASK",
    "STEP",
    "TASK_STATUS",
]

LIST_TASKS: Final = "list_tasks"
START_TASK: Final = "start_task"
STEP: Final = "step"
ACT: Final = "act"
SCREENSHOT: Final = "screenshot"
RESPONSE: Final = "response"
TASK_STATUS: Final = "task_status"
CANCEL_TASK: Final = "cancel_task"
NOTE: Final = "note"

CORE_TOOLS: Final = frozenset(
    {LIST_TASKS, START_TASK, STEP, ACT, SCREENSHOT, RESPONSE, TASK_STATUS, CANCEL_TASK, NOTE}
)
"""An environment's own tools have other names."""

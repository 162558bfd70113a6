"""What a channel's peers may start: templates, and rows with their own prompts."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, name_known
from hud_mcp.session.registry import Sessions

__all__ = ["Startable"]


class Startable:
    """What can be started on one channel.

    Args:
        sessions: The registry, which knows the listed tasks.
        environment: The environment that the channel serves.
    """

    def __init__(self, sessions: Sessions, environment: Environment) -> None:
        self._sessions = sessions
        self._environment = environment

    def listed(self) -> list[dict[str, Any]]:
        """All of it, as the wire has it."""
        rows = [
            {
                "id": task.id,
                "description": task.title,
                "args": self._environment.template_of(task).arguments.schema,
            }
            for task in self._sessions.tasks
            if task.prompt is not None and task.env == self._environment.name
        ]
        return [*self._environment.manifest()["templates"], *rows]

    def mint(self, task_id: str, args: Mapping[str, Any]) -> Task:
        """The task that a peer names.

        Args:
            task_id: A template's id, or a listed row's.
            args: The template's arguments; a row has its own.

        Raises:
            InvalidTask: There is no such task, or the arguments do not fit.
        """
        name, tasks = self._environment.name, self._sessions.tasks
        if task_id in self._environment.templates:
            return self._sessions.mint(task_id, args, environment=name)
        if task_id in tasks and tasks[task_id].env == name:
            if args:
                raise InvalidTask(
                    f"{task_id!r} is a row with its own arguments; pass no arguments."
                )
            return tasks[task_id]
        ids = [str(each["id"]) for each in self.listed()]
        known = name_known(task_id, ids, what="There are")
        raise InvalidTask(f"unknown task: {task_id!r}.{known}")

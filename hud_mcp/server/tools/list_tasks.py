"""The tool `list_tasks`."""

from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result
from hud_mcp.server.schemas import string_schema
from hud_mcp.task import Task
from hud_mcp.taskset import is_like
from hud_mcp.template import Template

__all__ = ["LIST_TASKS"]

_PAGE = 100
"""Tasks in one reply."""


async def list_tasks(call: Call) -> dict[str, Any]:
    """List what can be started."""
    sessions, given = call.sessions, call.arguments
    environment = given.get("environment")
    if environment is not None:
        sessions.find_environment(environment)
    pattern, offset = given.get("filter"), given.get("offset", 0)

    def wanted(env: str, *names: str) -> bool:
        if environment is not None and env != environment:
            return False
        return pattern is None or is_like(pattern, env, *names)

    tasks = [t for t in sessions.tasks if wanted(t.env, t.id, t.template)]
    page = tasks[offset : offset + _PAGE]
    templates = [
        (e, t)
        for e in sessions.environments.values()
        for t in e.templates.values()
        if wanted(e.name, t.id)
    ]
    value: dict[str, Any] = {
        "tasks": [_task_row(t) for t in page],
        "total": len(tasks),
        "templates": [_template_row(e, t) for e, t in templates],
    }
    if not tasks and not templates:
        known = ", ".join(sessions.environments)
        text = f"Nothing matches. Leave out the filter to see all; the environments are: {known}."
        return structured_result(value, text)
    lines = [f"{len(tasks)} tasks:"] if tasks else []
    lines += [f"{t.id}: {t.title or t.template} [{t.env}]" for t in page]
    if tasks and (rest := len(tasks) - offset - len(page)) > 0:
        lines.append(f"… {rest} more; call again with offset={offset + len(page)}.")
    lines += ["Templates:"] if templates else []
    lines += [_template_line(e, t) for e, t in templates]
    lines += [*sessions.notes(environment), "Begin with start_task."]
    return structured_result(value, "\n".join(lines))


def _task_row(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "environment": task.env,
        "template": task.template,
        "description": task.title,
    }


def _template_row(environment: Environment, template: Template) -> dict[str, Any]:
    return {
        "id": template.id,
        "environment": environment.name,
        "description": template.description,
        "arguments": template.arguments.schema,
    }


def _template_line(environment: Environment, template: Template) -> str:
    said = f": {template.description}" if template.description else ""
    return f"{template.id}({', '.join(template.arguments.names)}){said} [{environment.name}]"


LIST_TASKS = CoreTool(
    run=list_tasks,
    title="List tasks",
    description="List the tasks that can be started, and the templates with their arguments. Call "
    "start_task next, with a task's id, or with a template and its arguments.",
    arguments={
        "environment": Argument(string_schema("Only this environment's.")),
        "filter": Argument(string_schema("Only ids and templates like this; * matches anything.")),
        "offset": Argument(
            {"type": "integer", "description": "Skip so many tasks."}, may_be_negative=False
        ),
    },
    begins=True,
    read_only=True,
    idempotent=True,
)

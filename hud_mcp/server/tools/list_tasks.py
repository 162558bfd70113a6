"""The tool `list_tasks`. Its pages are small, because several hosts cut longer results."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from hud_mcp.base.text import clip
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import is_like
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTask
from hud_mcp.server.arguments import Argument, list_schema, open_schema, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result

__all__ = ["LIST_TASKS", "MOST_BYTES"]

MOST_BYTES = 8000
"""The largest reply, as text and as data."""

_ROWS_BYTES = 6800
"""The part of the rows in it; the rest is for the notes and the next step."""
_NOTES_BYTES = 800
_FILTER_CHARS = 200
_LINE_CHARS = 120
"""The longest line of one task or template."""


async def list_tasks(call: Call) -> dict[str, Any]:
    """List the tasks and templates that can be started."""
    sessions, given = call.sessions, call.arguments
    environment = given.get("environment")
    if environment is not None:
        sessions.catalogue.find_environment(environment)
    if (template := given.get("template")) is not None:
        found = sessions.catalogue.resolve_template(template, environment)
        return _one_template(found, found.find_template(template))
    pattern, offset = given.get("filter"), given.get("offset", 0)
    # the pattern is matched on the event loop
    if pattern is not None and len(pattern) > _FILTER_CHARS:
        raise InvalidTask(f"filter: {len(pattern)} characters; the limit is {_FILTER_CHARS}.")

    def wanted(env: str, *names: str) -> bool:
        if environment is not None and env != environment:
            return False
        return pattern is None or is_like(pattern, env, *names)

    tasks = [t for t in sessions.tasks if wanted(t.env, t.id, t.template)]
    templates = [
        (e, t)
        for e in sessions.environments.values()
        for t in e.templates.values()
        if wanted(e.name, t.id)
    ]
    if not tasks and not templates:
        known = ", ".join(sessions.environments)
        text = f"Nothing matches. Leave out the filter to see all; the environments are: {known}."
        value: dict[str, Any] = {"tasks": [], "total": 0, "templates": [], "next": text}
        return structured_result(value, text)
    page = _Page(offset)
    page.take(tasks, templates)
    return page.result(_clipped(sessions.catalogue.notes(environment)))


class _Page:
    """The tasks and templates of one reply, tasks first."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._rows: dict[str, list[dict[str, Any]]] = {"tasks": [], "templates": []}
        self._lines: dict[str, list[str]] = {"tasks": [], "templates": []}

    def take(
        self, tasks: Sequence[Task], templates: Sequence[tuple[Environment, Template]]
    ) -> None:
        """Add as many rows as there is room for, from the offset on."""
        self._tasks, self._templates = len(tasks), len(templates)
        later = templates[max(0, self._offset - len(tasks)) :]
        room = _ROWS_BYTES
        for each in (*tasks[self._offset :], *later):
            row, line = _task_row(each) if isinstance(each, Task) else _template_row(*each)
            room -= max(len(orjson.dumps(row)), len(line.encode())) + 1
            if room < 0 and (self._rows["tasks"] or self._rows["templates"]):
                return
            kind = "tasks" if isinstance(each, Task) else "templates"
            self._rows[kind].append(row)
            self._lines[kind].append(line)

    def result(self, notes: Sequence[str]) -> dict[str, Any]:
        """Return the reply, with the next step."""
        shown = self._offset + sum(map(len, self._rows.values()))
        left = max(0, self._tasks + self._templates - shown)
        then = "Begin with start_task."
        if left:
            then = f"{left} more: call list_tasks with offset={shown}, or with a filter. {then}"
        if self._rows["templates"]:
            then = f"{then} list_tasks with a template's id tells its arguments."
        value: dict[str, Any] = {"total": self._tasks, **self._rows, "next": then}
        if left:
            value["next_offset"] = shown
        if notes:
            value["notes"] = list(notes)
        lines: list[str] = []
        if self._tasks:
            lines += [f"{self._tasks} tasks:", *self._lines["tasks"]]
        if self._lines["templates"]:
            lines += ["Templates:", *self._lines["templates"]]
        return structured_result(value, "\n".join([*lines, *notes, then]))


def _task_row(task: Task) -> tuple[dict[str, Any], str]:
    row = {
        "id": task.id,
        "environment": task.env,
        "template": task.template,
        "description": _line(task.title),
    }
    return row, f"{task.id}: {row['description'] or task.template} [{task.env}]"


def _template_row(environment: Environment, template: Template) -> tuple[dict[str, Any], str]:
    said = _line(template.description)
    row = {
        "id": template.id,
        "environment": environment.name,
        "description": said,
        "takes": _line(", ".join(template.arguments.names)),
    }
    told = f": {said}" if said else ""
    return row, f"{template.id}({row['takes']}){told} [{environment.name}]"


def _one_template(environment: Environment, template: Template) -> dict[str, Any]:
    """Return a template with the schema of its arguments, if there is room for it."""
    value: dict[str, Any] = {
        "id": template.id,
        "environment": environment.name,
        "description": clip(template.description, 4 * _LINE_CHARS),
        "arguments": template.arguments.schema,
        "next": f"Begin with start_task, template={template.id!r}.",
    }
    if len(orjson.dumps(value)) > MOST_BYTES:
        fields: Mapping[str, Any] = template.arguments.schema["properties"]
        value["arguments"] = {
            "type": "object",
            "description": "Too long to be shown; the manifest of the environment has it whole.",
            "properties": {name: {} for name in _fitting(fields)},
        }
    shown = orjson.dumps(value["arguments"]).decode()
    text = f"{template.id}: {value['description']}\nIts arguments: {shown}\n{value['next']}"
    return structured_result({"templates": [value], "next": value["next"]}, text)


def _fitting(names: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for name in names:
        if sum(map(len, kept)) + 6 * len(kept) > _ROWS_BYTES // 2:
            break
        kept.append(name)
    return kept


def _clipped(notes: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for note in notes:
        room = _NOTES_BYTES - sum(len(each.encode()) for each in kept)
        if room < _LINE_CHARS:
            return [*kept, "…"]
        kept.append(clip(note, room // 2))
    return kept


def _line(text: str) -> str:
    return clip(" ".join(text.split()), _LINE_CHARS)


_ROW = open_schema(
    {
        "id": string_schema("Its id."),
        "description": string_schema("One line."),
        "environment": string_schema("The task's or template's environment."),
        "template": string_schema("The template of a task."),
        "takes": string_schema("The names of a template's arguments."),
        "arguments": {"type": "object", "description": "Their schema, where it was asked for."},
    },
    "id",
)

LIST_TASKS = CoreTool(
    run=list_tasks,
    title="List tasks",
    description="List the tasks that can be started, and the templates, by id with a line each. "
    "Give `template` to see the arguments of one. Call start_task next, with a task's id, or with "
    "a template and its arguments.",
    arguments={
        "environment": Argument(string_schema("Only this environment's.")),
        "filter": Argument(string_schema("Only ids and templates like this; * matches anything.")),
        "offset": Argument(
            {"type": "integer", "description": "Skip so many: tasks first, then templates."},
            may_be_negative=False,
        ),
        "template": Argument(string_schema("The id of one template: its arguments are told.")),
    },
    returns=open_schema(
        {
            "tasks": list_schema(_ROW, "What can be started by id."),
            "templates": list_schema(_ROW, "What can be started with arguments."),
            "total": {"type": "integer", "description": "How many tasks there are."},
            "next_offset": {"type": "integer", "description": "Of the next page, if there is one."},
            "notes": list_schema({"type": "string"}, "Further remarks."),
            "next": string_schema("What to do next."),
        },
        "next",
    ),
    begins=True,
    read_only=True,
    idempotent=True,
)

"""The tool `list_tasks`. Its pages are small, because several hosts cut longer results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from hud_mcp.base.text import clip
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import is_like
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTask
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result
from hud_mcp.server.view import View, argument_lines, feature_lines, features_schema

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
    page = _Page(offset, len(tasks), len(templates))
    described = ((t, sessions.catalogue.phrase(t)) for t in tasks[offset:])
    page.take(described, templates[max(0, offset - len(tasks)) :])
    several = len(sessions.environments) > 1
    return page.result(_clipped(sessions.catalogue.notes(environment)), several=several)


class _Page:
    """The tasks and templates of one reply, tasks first.

    Args:
        offset: The rows of earlier pages.
        tasks: How many tasks match.
        templates: How many templates do.
    """

    def __init__(self, offset: int, tasks: int, templates: int) -> None:
        self._offset = offset
        self._in_all = (tasks, templates)
        self._room = _ROWS_BYTES
        self._tasks: list[dict[str, Any]] = []
        self._templates: list[dict[str, Any]] = []

    def take(
        self,
        tasks: Iterable[tuple[Task, str]],
        templates: Iterable[tuple[Environment, Template]],
    ) -> None:
        """Add as many rows as there is room for."""
        for task, phrase in tasks:
            row = {"id": task.id, "environment": task.env, "template": task.template}
            if not self._add(self._tasks, {**row, "description": _line(phrase)}):
                return
        for environment, template in templates:
            row = {"id": template.id, "environment": environment.name}
            takes = _line(", ".join(template.arguments.names))
            row |= {"description": _line(template.description), "takes": takes}
            if not self._add(self._templates, row):
                return

    def _add(self, rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
        """Add a row, which is longer than its line of text; return whether there was room."""
        self._room -= len(orjson.dumps(row)) + 1
        if self._room < 0 and (self._tasks or self._templates):
            return False
        rows.append(row)
        return True

    def result(self, notes: Sequence[str], *, several: bool) -> dict[str, Any]:
        """Return the reply, with the next step.

        Args:
            notes: Remarks for its end.
            several: Whether each line names its environment.
        """
        shown = self._offset + len(self._tasks) + len(self._templates)
        left = max(0, sum(self._in_all) - shown)
        then = "Begin with start_task."
        if left:
            then = f"{left} more: call list_tasks with offset={shown}, or with a filter. {then}"
        if self._templates:
            then = f"{then} list_tasks with `template` tells what one takes."
        value: dict[str, Any] = {
            "total": self._in_all[0], "tasks": self._tasks, "templates": self._templates,
            "next": then, **({"next_offset": shown} if left else {}),
            **({"notes": list(notes)} if notes else {}),
        }  # fmt: skip
        lines: list[str] = []
        if self._in_all[0]:
            lines += [f"{self._in_all[0]} tasks:", *self._task_lines(several=several)]
        if self._templates:
            lines += ["Templates:", *self._template_lines(several=several)]
        return structured_result(value, "\n".join([*lines, *notes, then]))

    def _task_lines(self, *, several: bool) -> Iterator[str]:
        """Write the ids of neighbours that ask for the same in one line, before their phrase."""
        for (env, phrase), rows in groupby(self._tasks, lambda r: (r["environment"], _phrase(r))):
            told = f"{', '.join(row['id'] for row in rows)}: {phrase}"
            yield f"{told} [{env}]" if several else told

    def _template_lines(self, *, several: bool) -> Iterator[str]:
        """Write each template with its arguments; its phrase stands once."""
        told = {(row["environment"], row["description"]) for row in self._tasks}
        for row in self._templates:
            env, said = row["environment"], row["description"]
            phrase = f": {said}" if said and (env, said) not in told else ""
            yield f"{row['id']}({row['takes']}){phrase}" + (f" [{env}]" if several else "")


def _phrase(row: Mapping[str, Any]) -> str:
    return row["description"] or row["template"]


def _one_template(environment: Environment, template: Template) -> dict[str, Any]:
    """Return a template with the schemas of its arguments and its context, if there is room."""
    space, then = environment.context_space, f"Begin with start_task, template={template.id!r}."
    value: dict[str, Any] = {
        "id": template.id,
        "environment": environment.name,
        "description": clip(template.description, 4 * _LINE_CHARS),
        "arguments": template.arguments.schema,
        **({"context": features_schema(space)} if space.features else {}),
        "next": then,
    }
    for part in ("arguments", "context"):
        if part in value and len(orjson.dumps(value)) > MOST_BYTES:
            value[part] = _named_only(value[part]["properties"])
    lines = [*argument_lines(template), *feature_lines(space)]
    told = clip("\n".join(lines) or "It takes no arguments.", _ROWS_BYTES)
    text = f"{template.id}: {value['description']}\n{told}\n{then}"
    return structured_result({"templates": [value], "next": then}, text)


def _named_only(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Too long to be shown; the manifest of the environment has it whole.",
        "properties": {name: {} for name in _fitting(fields)},
    }


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


def _arguments(view: View) -> Mapping[str, Argument]:
    return {
        "environment": view.environment("Only this one's."),
        "filter": Argument(string_schema("Only ids like this; * matches anything.")),
        "offset": Argument(
            {"type": "integer", "description": "Rows to skip."},
            may_be_negative=False,
        ),
        "template": Argument(string_schema("Tell what this template takes.")),
    }


LIST_TASKS = CoreTool(
    run=list_tasks,
    title="List tasks",
    description="List the tasks and templates that start_task can start, a line each.",
    arguments=_arguments,
    begins=True,
    read_only=True,
    idempotent=True,
)

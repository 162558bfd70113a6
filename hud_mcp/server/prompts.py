"""Prompts: one for each template, and `task`. Getting a prompt starts a held task."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

from hud_mcp.environment import Environment
from hud_mcp.environment.prompt import PromptMessage
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.errors import HudMcpError, InvalidTask, did_you_mean
from hud_mcp.server.call import ask_session
from hud_mcp.server.own_tools import safe_names
from hud_mcp.server.texts import begun_text
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions

__all__ = ["Prompts"]

_TYPE_WORDS = {"string": "text", "boolean": "true or false", "array": "a JSON list",
               "object": "a JSON object", "number": "number", "integer": "integer"}  # fmt: skip


class Prompts:
    """The prompts of one server.

    Args:
        sessions: The registry that starts the tasks.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        every = [(e, t) for e in sessions.environments.values() for t in e.templates.values()]
        ids = [t.id for _, t in every]
        safe = safe_names(sessions.environments)
        self._templates: dict[str, tuple[Environment, Template]] = {
            (t.id if ids.count(t.id) == 1 and t.id != "task" else f"{safe[e.name]}.{t.id}"): (e, t)
            for e, t in every
        }
        own = {n: p for e in sessions.environments.values() for n, p in e.world.prompts.items()}
        self._passed = {n: p for n, p in own.items() if n not in self._templates}

    def declared(self) -> list[types.Prompt]:
        """Return every prompt, with its arguments described."""
        prompts = [
            types.Prompt(
                name=name,
                title=template.description or name,
                description=f"{template.description or name} ({environment.name})",
                arguments=[
                    types.PromptArgument(
                        name=argument,
                        description=_describe(template.arguments.schema["properties"][argument]),
                        required=argument in template.arguments.required,
                    )
                    for argument in template.arguments.names
                ],
            )
            for name, (environment, template) in self._templates.items()
        ]
        if count := len(self._sessions.tasks):
            said = "The id of a listed task."
            argument = types.PromptArgument(name="id", description=said, required=True)
            said = f"One of {count} listed tasks"
            prompts.append(
                types.Prompt(
                    name="task", title="Start a task", description=said, arguments=[argument]
                )
            )
        return prompts + [types.Prompt.model_validate(each) for each in self._passed.values()]

    async def get(
        self, name: str, arguments: Mapping[str, str], caller: Caller
    ) -> types.GetPromptResult:
        """Start a task, or find the untouched one that the same request started before.

        MCP has no system messages. They become the user's, and say that they are instructions.

        Raises:
            MCPError: -32602 with a text that names the fault.
        """
        if caller.is_agent:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}.")
        if name in self._passed:
            rest = dict(arguments)
            session = rest.pop(self._passed[name]["arguments"][-1]["name"], None)
            found = await ask_session(
                self._sessions, session, caller, "prompts/get", name=name, arguments=rest
            )
            return types.GetPromptResult.model_validate(found)
        try:
            task = self._task(name, arguments)
            session = self._sessions.roster.untouched(task, caller)
            if session is None:
                session = await self._sessions.start(task, caller=caller, provisional=True)
        except HudMcpError as exc:
            raise MCPError(code=INVALID_PARAMS, message=str(exc)) from None
        then = f"The environment is ready. {begun_text(session, self._sessions)}"
        asked = session.prompt.messages if session.prompt else ()
        return types.GetPromptResult(
            description=self._sessions.catalogue.phrase(task) or None,
            messages=[
                types.PromptMessage(
                    role="assistant" if message.role == "assistant" else "user", content=content
                )
                for message in (*asked, PromptMessage("user", then))
                for content in _contents(message)
            ],
        )

    def complete(self, name: str, argument: str, typed: str) -> list[str]:
        """Return values of an argument that begin with, or contain, the typed text."""
        known: Iterable[str] = ()
        if name == "task":
            known = self._sessions.tasks.ids
        elif name in self._templates:
            properties = self._templates[name][1].arguments.schema["properties"]
            known = map(_shown, _suggestions(properties.get(argument, {})))
        typed = typed.lower()
        return sorted(
            (value for value in known if typed in value.lower()),
            key=lambda value: not value.lower().startswith(typed),
        )

    def _task(self, name: str, arguments: Mapping[str, str]) -> Task:
        if name == "task" and len(self._sessions.tasks):
            return self._listed_task(arguments)
        if name not in self._templates:
            hint = did_you_mean(name, self._templates)
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}.{hint}")
        environment, template = self._templates[name]
        return self._sessions.catalogue.mint(
            template.id, template.arguments.parse_text(arguments), environment=environment.name
        )

    def _listed_task(self, arguments: Mapping[str, str]) -> Task:
        given = arguments.get("id", "")
        if set(arguments) - {"id"} or given not in self._sessions.tasks.ids:
            known = ", ".join(sorted(arguments)) or "nothing"
            hint = did_you_mean(given, self._sessions.tasks.ids)
            raise InvalidTask(
                f"The prompt 'task' takes one argument, `id`, the id of a listed task; got {known}"
                f"{f' with id {given!r}' if given else ''}.{hint} list_tasks shows them."
            )
        return self._sessions.tasks[given]


def _contents(message: PromptMessage) -> list[types.TextContent | types.ImageContent]:
    """Return a message's text, then its pictures, one block each."""
    blocks: list[types.TextContent | types.ImageContent] = [
        types.TextContent(type="text", text=message.told)
    ]
    parts: Any = (message.original or {}).get("content")
    for part in cast("list[Any]", parts) if isinstance(parts, list) else [parts]:
        if isinstance(part, dict) and cast("dict[str, Any]", part).get("type") == "image":
            with suppress(ValidationError):  # a picture of another shape stays named in the text
                blocks.append(types.ImageContent.model_validate(part))
    return blocks


def _describe(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        kind = "one of " + ", ".join(_shown(v) for v in schema["enum"])
    else:
        kind = _TYPE_WORDS.get(schema.get("type", ""), "JSON")
    given = schema.get("default")
    default = f"; {_shown(given)} by default" if given is not None else ""
    said = schema.get("description", "").rstrip(".")
    return f"{said} ({kind}{default})" if said else f"{kind}{default}"


def _suggestions(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema names, its default first unless it has an enum."""
    values = list(schema.get("enum", ()))
    if schema.get("type") == "boolean":
        values = [True, False]
    if "const" in schema:
        values = [schema["const"]]
    default = schema.get("default")
    if default is not None and default not in values:
        values.insert(0, default)
    return values + [v for v in schema.get("examples", ()) if v not in values]


def _shown(value: Any) -> str:
    """Return a JSON value in the form that a person types into a prompt's argument."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()

"""The tools of the environments' own, beside the core tools."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hud_mcp.absent import drop_absent
from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidEnvironment, InvalidTask, LimitReached
from hud_mcp.schema import read_texts
from hud_mcp.server.call import Call
from hud_mcp.server.names import safe_names
from hud_mcp.server.results import step_result
from hud_mcp.session.registry import Sessions
from hud_mcp.tool import Tool

__all__ = ["OwnTool", "own_tools"]

_MOST_CHARS = 1000
"""Of a description; hosts take little more."""


class OwnTool:
    """A tool of the environments' own, under one name that clients may call.

    Args:
        name: The name that clients call.
        tools: The environments that have it, each with its tool.
        is_listed: Whether it stands in `tools/list`.
    """

    def __init__(
        self, name: str, tools: Sequence[tuple[Environment, Tool]], *, is_listed: bool = True
    ) -> None:
        self.name = name
        self.is_listed = is_listed
        self._tools = {environment.name: tool for environment, tool in tools}
        self._first, self.tool = tools[0]

    @property
    def title(self) -> str:
        """What people read."""
        return self.name.replace("_", " ").capitalize()

    @property
    def description(self) -> str:
        """What a model reads."""
        told = self.tool.description or f"{self.tool.name}: a tool of the environment's own."
        return told[:_MOST_CHARS]

    @property
    def is_destructive(self) -> bool:
        """Whether it may undo something: what changes nothing does not."""
        return not self.tool.read_only

    @property
    def is_open_world(self) -> bool:
        """Whether it may reach what lies outside of the server: as its author or its world says."""
        tool = self.tool
        if tool.open_world is not None:
            return tool.open_world
        return self._first.world.open_world or not tool.replayable

    @property
    def public_parts(self) -> tuple[Any, ...]:
        """Everything that a client reads of it, beside its name."""
        schema = self.tool.arguments.schema
        return schema, self.description, self.is_destructive, self.is_open_world

    def schema(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """The input schema: the author's arguments, and `session` with the schema given."""
        schema = self.tool.arguments.schema
        return {**schema, "properties": {**schema["properties"], "session": session}}

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Check what does not depend on the session.

        Raises:
            InvalidTask: The session is not text.
            LimitReached: They are too large.
        """
        if len(str(given)) > max_bytes:
            raise LimitReached(f"{self.name}: the arguments are larger than {max_bytes} bytes.")
        session = given.get("session")
        if session is not None and not isinstance(session, str):
            raise InvalidTask(f"{self.name}: 'session' must be a string.")
        return {k: v for k, v in given.items() if k != "session" or session}

    async def run(self, call: Call) -> dict[str, Any]:
        """Perform a call of it."""
        session = await call.session()
        # A session goes on in the version of its environment that it began with.
        own = self._tools.get(session.environment.name)
        tool = session.environment.tools.get(own.name) if own is not None else None
        if tool is None:
            whose = ", ".join(repr(name) for name in self._tools)
            raise InvalidTask(
                f"{self.name} belongs to environment {whose}; this session is in "
                f"{session.environment.name!r}."
            )
        given = {k: v for k, v in call.arguments.items() if k != "session"}
        with call.heartbeat(tool.name):
            stepped = await session.call_tool(
                tool, _read(tool, given), call.look(image=False, text=False)
            )
        return step_result(stepped, session)


def _read(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read what came as text, and drop what counts as absent; the tool checks the rest."""
    schema = tool.arguments.schema
    known = {k: v for k, v in given.items() if v is not None or k in schema["properties"]}
    return drop_absent(read_texts(known, schema), schema)


def own_tools(sessions: Sessions, *, taken: Collection[str]) -> dict[str, OwnTool]:
    """The environments' own tools by every name that clients may call.

    A tool's own name means that of the session's environment, whatever else is served. What
    several environments have alike is listed once. Where they differ, each is listed with its
    environment's name before its own.

    Args:
        sessions: What is served.
        taken: The names of the core tools.

    Raises:
        InvalidEnvironment: Two would have the same name.
    """
    every: dict[str, list[tuple[Environment, Tool]]] = {}
    for environment in sessions.environments.values():
        for tool in environment.tools.values():
            if tool.name in taken:
                raise InvalidEnvironment(
                    f"{tool.where}: {tool.name!r} is the name of a core tool; choose another."
                )
            every.setdefault(tool.name, []).append((environment, tool))
    found: dict[str, OwnTool] = {}
    safe = safe_names(sessions.environments)
    for name, tools in every.items():
        each = [
            OwnTool(f"{safe[environment.name]}_{name}".lower(), [(environment, tool)])
            for environment, tool in tools
        ]
        are_alike = all(own.public_parts == each[0].public_parts for own in each)
        found[name] = OwnTool(name, tools, is_listed=are_alike)
        if are_alike:
            continue
        for own in each:
            if own.name in taken or own.name in every or own.name in found:
                raise InvalidEnvironment(
                    f"{own.tool.where}: {name!r} would be listed as {own.name!r}, which is the "
                    "name of another tool; choose another."
                )
            found[own.name] = own
    return found

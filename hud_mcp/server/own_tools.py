"""The tools of the environments' own, beside the core tools."""

from collections.abc import Collection, Mapping
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
    """A tool of one environment's own, under the name that clients see."""

    def __init__(self, name: str, environment: Environment, tool: Tool) -> None:
        self.name = name
        self.tool = tool
        self._environment = environment

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
        return self._environment.world.open_world or not tool.replayable

    def schema(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """The input schema: the author's arguments, and `session` with the schema given."""
        schema = self.tool.arguments.schema
        return {**schema, "properties": {**schema["properties"], "session": session}}

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read what came as text, and drop what counts as absent; the tool checks the rest.

        Raises:
            InvalidTask: The session is not text.
            LimitReached: They are too large.
        """
        if len(str(given)) > max_bytes:
            raise LimitReached(f"{self.name}: the arguments are larger than {max_bytes} bytes.")
        session = given.get("session")
        if session is not None and not isinstance(session, str):
            raise InvalidTask(f"{self.name}: 'session' must be a string.")
        taken = self.tool.arguments.schema
        known = {k: v for k, v in given.items() if v is not None or k in taken["properties"]}
        kept = drop_absent(read_texts(known, taken), taken)
        if not session:
            kept.pop("session", None)
        return kept

    async def run(self, call: Call) -> dict[str, Any]:
        """Perform a call of it."""
        session = await call.session()
        # A session goes on in the version of its environment that it began with.
        tool = session.environment.tools.get(self.tool.name)
        if tool is None or session.environment.name != self._environment.name:
            raise InvalidTask(
                f"{self.tool.name} belongs to environment {self._environment.name!r}; this session "
                f"is in {session.environment.name!r}."
            )
        arguments = {k: v for k, v in call.arguments.items() if k != "session"}
        with call.heartbeat(tool.name):
            stepped = await session.call_tool(tool, arguments, call.look(image=False, text=False))
        return step_result(stepped, session)


def own_tools(sessions: Sessions, *, taken: Collection[str]) -> dict[str, OwnTool]:
    """The environments' own tools by the name that clients see.

    A name that two environments use is prefixed by the environment's for both.

    Args:
        sessions: What is served.
        taken: The names of the core tools.

    Raises:
        InvalidEnvironment: One has the name of a core tool.
    """
    every = [(e, t) for e in sessions.environments.values() for t in e.tools.values()]
    names = [t.name for _, t in every]
    safe = safe_names(sessions.environments)
    found: dict[str, OwnTool] = {}
    for environment, tool in every:
        is_alone = names.count(tool.name) == 1
        name = tool.name if is_alone else f"{safe[environment.name]}_{tool.name}".lower()
        if name in taken:
            raise InvalidEnvironment(
                f"{tool.where}: {name!r} is the name of a core tool; choose another."
            )
        found[name] = OwnTool(name, environment, tool)
    return found

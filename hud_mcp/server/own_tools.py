"""The environments' own tools, beside the core tools."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base.reading import Fault
from hud_mcp.environment import Environment
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import InvalidEnvironment, InvalidTask
from hud_mcp.server.arguments import check_size, fillable
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import tool_entry
from hud_mcp.server.results import passed_result, step_result
from hud_mcp.session.draft import Stepped
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.call import OWN_SESSION

if TYPE_CHECKING:
    import mcp_types as types

__all__ = ["OwnTool", "listed_names", "own_tools", "safe_names"]

_LEAVE_S = 3.0
"""The time for a server to hear that nobody answers its question."""
_MOST_CHARS = 1000
"""The longest description; hosts take little more."""


class OwnTool:
    """An environments' own tool, under one name for clients.

    Args:
        name: The name that clients call.
        tools: The environments that have it, each with its tool.
        is_listed: Whether it stands in `tools/list`.
    """

    begins = False

    def __init__(
        self, name: str, tools: Sequence[tuple[Environment, Tool]], *, is_listed: bool = True
    ) -> None:
        self.name = name
        self.is_listed = is_listed
        self._tools = {environment.name: tool for environment, tool in tools}
        self._first, self.tool = tools[0]

    @property
    def description(self) -> str:
        """The text for models."""
        told = self.tool.description or f"{self.tool.name}: a tool of the environment's own."
        return told[:_MOST_CHARS]

    def listed(self) -> "types.Tool":
        """Return the tool for clients, with the argument `session` beside the author's."""
        if (entry := self.tool.entry(self.name)) is not None:
            return entry
        tool, schema = self.tool, self.tool.arguments.schema
        fields = {name: fillable(field) for name, field in schema["properties"].items()}
        open_world = tool.open_world  # by its author, or by its world
        if open_world is None:
            open_world = self._first.world.open_world or not tool.replayable
        return tool_entry(
            self.name,
            self.description,
            {**schema, "properties": {**fields, "session": {"type": "string"}}},
            read_only_hint=tool.read_only,
            destructive_hint=not tool.read_only,
            idempotent_hint=tool.read_only,
            open_world_hint=open_world,
        )

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Check the arguments that do not depend on the session.

        Returns:
            The tool's `arguments`, and the `session` if one is named.

        Raises:
            InvalidTask: The session is not text, or a value is no JSON.
            LimitReached: The arguments are too large.
        """
        check_size(self.name, given, max_bytes)
        rest, name = dict(given), self.tool.session_argument
        # Ours first: a wire that names its own session passes an agent's argument `session` on.
        session = rest.pop(OWN_SESSION, None) or rest.pop(name, None)
        if session is not None and not isinstance(session, str):
            raise InvalidTask(f"{self.name}: {Fault.of(name, {'type': 'string'}, session)}.")
        return {"arguments": rest, **({"session": session} if session else {})}

    async def run(self, call: Call) -> dict[str, Any]:
        """Perform a call of the tool."""
        session = await call.session()
        # A session goes on in the version of its environment that it began with.
        own = self._tools.get(session.environment.name)
        tool = session.environment.tools.get(own.name) if own is not None else None
        if tool is None:
            *others, last = map(repr, self._tools)
            whose = f"the environments {', '.join(others)} and" if others else "environment"
            raise InvalidTask(
                f"{self.name} belongs to {whose} {last}; this session is in "
                f"{session.environment.name!r}."
            )
        args, names = call.arguments["arguments"], tool.arguments.names
        if not tool.passes_through:  # an unknown null is one that a framework filled in
            kept = {k: v for k, v in args.items() if v is not None or k in names}
            args = tool.arguments.reader.read(kept)
        with call.heartbeat(tool.name):
            stepped = await _converse(session, tool, args, call)
        if (asked := stepped.needed) is not None:
            needed = {"inputRequests": asked.requests, "requestState": asked.state}
            return {"resultType": "input_required", **needed}
        return passed_result(stepped, session) if stepped.reply else step_result(stepped, session)


async def _converse(session: Session, tool: Tool, args: dict[str, Any], call: Call) -> Stepped:
    """Call a tool of another server, and ask a client of the earlier era what it wants to know.

    The session is free meanwhile. If the client leaves, the server learns that nobody answers.
    """
    exchange = replace(call.exchange, progress=call.progress, look=call.look())
    stepped = await session.call_tool(tool, args, exchange.look, exchange)
    ask = exchange.ask
    while (needed := stepped.needed) is not None and ask is not None:
        exchange = replace(exchange, state=needed.state)
        try:
            answers = {key: await ask(each) for key, each in needed.requests.items()}
        except BaseException:
            none = {key: {"action": "cancel"} for key in needed.requests}
            left = replace(exchange, responses=none, declared=frozenset(), progress=None)
            with anyio.move_on_after(_LEAVE_S, shield=True):
                await session.call_tool(tool, args, left.look, left)
            raise
        exchange = replace(exchange, responses=answers)
        stepped = await session.call_tool(tool, args, exchange.look, exchange)
    return stepped


def own_tools(sessions: Sessions, *, taken: Collection[str]) -> dict[str, OwnTool]:
    """Return the environments' own tools by every name for clients.

    A tool's own name means the tool of the session's environment. Equal tools of several
    environments are listed once. Tools that differ are each listed with their environment's name
    before their own.

    Args:
        sessions: The registry.
        taken: The names of the core tools.

    Raises:
        InvalidEnvironment: Two tools would have the same name.
    """
    environments = sessions.environments
    found: dict[str, OwnTool] = {}
    qualified: list[OwnTool] = []
    for name in dict.fromkeys(name for each in environments.values() for name in each.tools):
        tools = _tools_called(name, environments)
        are_alike = _are_alike(name, tools)
        found[name] = OwnTool(name, tools, is_listed=are_alike)
        if name in taken:
            raise InvalidEnvironment(
                f"{tools[0][1].where}: {name!r} is the name of a core tool; choose another."
            )
        if not are_alike:
            qualified += [_qualified(*each, environments) for each in tools]
    for own in qualified:
        if own.name in taken or own.name in found:
            raise InvalidEnvironment(
                f"{own.tool.where}: {own.tool.name!r} would be listed as {own.name!r}, which is "
                "the name of another tool; choose another."
            )
        found[own.name] = own
    return found


def listed_names(environments: Mapping[str, Environment], environment: Environment) -> list[str]:
    """Return the clients' names of an environment's own tools, in order.

    Args:
        environments: All served environments, by name.
        environment: One of them, perhaps in an earlier version.
    """
    return [
        name
        if _are_alike(name, _tools_called(name, environments))
        else _qualified(environment, tool, environments).name
        for name, tool in environment.tools.items()
    ]


def _tools_called(
    name: str, environments: Mapping[str, Environment]
) -> list[tuple[Environment, Tool]]:
    return [(each, each.tools[name]) for each in environments.values() if name in each.tools]


def _are_alike(name: str, tools: Sequence[tuple[Environment, Tool]]) -> bool:
    """Whether clients read the same of all the tools."""
    if len(tools) < 2:  # noqa: PLR2004  # a single tool
        return True
    first, *others = (OwnTool(name, [each]).listed() for each in tools)
    return all(other == first for other in others)


def _qualified(
    environment: Environment, tool: Tool, environments: Mapping[str, Environment]
) -> OwnTool:
    """Return a tool under its own name, with its environment's name before it."""
    prefix = safe_names([*environments, environment.name])[environment.name]
    return OwnTool(f"{prefix}_{tool.name}".lower(), [(environment, tool)])


_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CHARS = 40


def safe_names(names: Iterable[str]) -> Mapping[str, str]:
    """Return a safe name for each name, of letters, digits, _ and -, for prompts, tools and URLs.

    A safe name stays. Others lose their unsafe characters, and get a number if two are equal.
    """
    given = list(dict.fromkeys(names))
    found = {name: name for name in given if _SAFE.fullmatch(name)}
    taken = set(found)
    for name in given:
        if name in found:
            continue
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
        plain = (plain if plain[:1].isalpha() else f"env-{plain}".rstrip("-"))[:_CHARS]
        made, count = plain, 1
        while made in taken:
            count += 1
            made = f"{plain}-{count}"
        found[name] = made
        taken.add(made)
    return found

"""Tools of an environment, and custom actions of a world: an author's typed async functions.

Agents read the schemas of both, and arguments are checked against these schemas.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from hud_mcp.environment.arguments import Arguments, source_line
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import ActionFailed, InvalidEnvironment, InvalidTask, did_you_mean
from hud_mcp.values.action import ActionEffect, CustomAction
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.observation import Look
from hud_mcp.values.reply import ToolReply

__all__ = ["CustomActions", "Exchange", "Tool", "actions", "prefixed_name"]


_NAME_CHARS = 40
_NAME = re.compile(rf"[a-z0-9_]{{1,{_NAME_CHARS}}}")
"""The form of a tool's name. Hosts prefix it and cap the whole at 64 characters."""


def prefixed_name(server: str, tool: str, taken: Collection[str]) -> str:
    """Return a free name for a server's tool, with the server's name as a prefix."""
    plain = re.sub(r"[^a-z0-9_]+", "_", f"{server}_{tool}".lower()).strip("_") or "tool"
    name, count = plain[:_NAME_CHARS], 1
    while name in taken:
        count += 1
        name = f"{plain[: _NAME_CHARS - len(str(count)) - 1]}_{count}"
    return name


@dataclass(frozen=True, slots=True)
class Exchange:
    """The channel beside a call of a tool, to its caller.

    Attributes:
        progress: Reports progress to the caller; None if nobody listens.
        look: The bounds of what the caller takes.
        declared: The modes of elicitation that the caller's client has.
        ask: Asks that client, and returns its answer; None if it answers by calling again.
        responses: The answers to the questions of a call that waits for them.
        state: The token that names this waiting call.
    """

    progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None
    look: Look = Look()  # noqa: RUF009  # frozen, and made for each call otherwise
    declared: frozenset[str] = frozenset()
    ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    responses: Mapping[str, Any] | None = None
    state: str | None = None


class Tool:
    """One declared tool.

    Args:
        function: An async function; a parameter annotated with the world's class receives the
            session's world, the others are JSON arguments.
        name: Its name; the function's by default.
        read_only: Whether it changes nothing.
        replayable: Whether a second call with the same arguments does the same to a new world, and
            nothing outside of it. A session that called a tool without this is lost with its
            server.
        open_world: Whether it reaches beyond the server; hosts learn it. None takes the value of
            its environment's world, or true if it is not replayable.

    Raises:
        InvalidEnvironment: It is not async, its name is taken or not allowed, or an argument has no
            JSON schema.
    """

    def __init__(
        self,
        function: Callable[..., Awaitable[Any]],
        *,
        name: str | None = None,
        read_only: bool = False,
        replayable: bool = True,
        open_world: bool | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.where = source_line(function)
        self.read_only = read_only
        self.replayable = replayable
        self.open_world = open_world
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(f"{self.where}: tool {self.name!r} must be an async function.")
        if not _NAME.fullmatch(self.name):
            raise InvalidEnvironment(
                f"{self.where}: {self.name!r} cannot name a tool; use a to z, 0 to 9 and _, at "
                "most 40 characters."
            )
        if self.name in CORE_TOOLS or self.name == "session":
            raise InvalidEnvironment(
                f"{self.where}: {self.name!r} is the name of a core tool; choose another."
            )
        self.description = inspect.cleandoc(function.__doc__ or "")
        self.arguments = Arguments(function, noun=f"tool {self.name!r}")
        if self.arguments.context_names:
            raise InvalidEnvironment(
                f"{self.where}: tool {self.name!r} takes the context as "
                f"{self.arguments.context_names[0]!r}, but only templates get it. Keep what the "
                "tool needs in the world."
            )
        if "session" in self.arguments.names:
            raise InvalidEnvironment(
                f"{self.where}: tool {self.name!r}: the argument 'session' is added by the server; "
                "rename yours."
            )

    passes_through = False
    """Whether another server reads the arguments, and answers with a `ToolReply`."""
    session_argument = "session"
    """The argument that names the session, which the server adds."""

    def entry(self, name: str) -> Any:  # noqa: ARG002  # for tools of other servers
        """Return its whole entry in a list of tools, under a name; None to have it written."""
        return None

    def recorded(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments as the record keeps them."""
        return args

    def kept(self, reply: ToolReply) -> dict[str, Any]:
        """Return what the record keeps of a reply beside its text and its first picture."""
        return {"is_error": reply.is_error}

    def is_same(self, reply: Any, text: str | None, kept: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether a call that a replay made again has the result that the record keeps."""
        return True

    def rename(self, name: str) -> None:
        """Offer the tool under another name."""
        self.name = name

    async def call(self, args: Mapping[str, Any], world: Any) -> Any:
        """Run the tool; a wrong argument is an `InvalidTask`, and the tool did not run."""
        worlds = dict.fromkeys(self.arguments.world_types, world)
        return await self.function(**self.arguments.parse(args), **worlds)

    async def call_in(
        self,
        args: Mapping[str, Any],
        world: Any,
        services: dict[str, SharedService],  # noqa: ARG002  # for tools that connect to something
        exchange: Exchange | None = None,  # noqa: ARG002  # for tools of other servers
    ) -> Any:
        """Run the tool in a session, with the named services that its tools have opened.

        Each service is closed with the world. A wrong argument is an `InvalidTask`, as in `call`.
        """
        return await self.call(args, world)


_Function = Callable[..., Awaitable[ActionEffect | str | None]]


class CustomActions(Mapping[str, Mapping[str, Any]]):
    """The custom actions of a kind of world, made by `actions`: each one's JSON schema, by name."""

    def __init__(self, functions: Mapping[str, _Function]) -> None:
        self._actions = {name: _CustomAction(name, each) for name, each in functions.items()}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self._actions[name].schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)

    async def perform(self, world: Any, action: CustomAction) -> ActionEffect:
        """Check an action's arguments, and call its function with them.

        Args:
            world: The function's first parameter.
            action: The action, as the agent sent it.

        Returns:
            The function's effect. A returned text becomes an effect, and None an empty one.

        Raises:
            ActionFailed: No action has this name, an argument is unknown, missing or of the wrong
                kind, or the function refused it. Only the function itself can have changed
                anything.
        """
        if action.action not in self._actions:
            known = ", ".join(each.signature for each in self._actions.values())
            hint = did_you_mean(action.action, self._actions)
            raise ActionFailed(
                f"There is no custom action {action.action!r}.{hint} There are: {known}."
            )
        return await self._actions[action.action].perform(world, action.args or {})


class _CustomAction:
    def __init__(self, name: str, function: _Function) -> None:
        self._name = name
        self._function = function
        where = source_line(function)
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(f"{where}: the custom action {name!r} must be async.")
        if not inspect.signature(function).parameters:
            raise InvalidEnvironment(
                f"{where}: the custom action {name!r} has no parameters; the first is the world."
            )

    @cached_property
    def _arguments(self) -> Arguments:
        # Made when it is first asked for: pydantic takes milliseconds for each, and a world's
        # module is imported by programs that only name it.
        arguments = Arguments(self._function, noun=f"custom action {self._name!r}", skip=1)
        for other in (*arguments.world_types, *arguments.context_names):
            raise InvalidEnvironment(
                f"{arguments.where}: custom action {self._name!r}: {other!r} is no argument that "
                "an agent can give. The world is the first parameter; keep the context in it."
            )
        return arguments

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments, described by the docstring's first paragraph."""
        said = inspect.cleandoc(self._function.__doc__ or "").partition("\n\n")[0]
        schema = self._arguments.schema
        fields = {name: _without_null(each) for name, each in schema["properties"].items()}
        described = {"description": " ".join(said.split())} if said else {}
        return {**schema, **described, "properties": fields}

    @property
    def signature(self) -> str:
        """Its name and arguments, for people: `goto {url}`, with a `?` after optional ones."""
        required = self._arguments.required
        shown = [each if each in required else f"{each}?" for each in self._arguments.names]
        return f"{self._name} {{{', '.join(shown)}}}" if shown else self._name

    async def perform(self, world: Any, args: Mapping[str, Any]) -> ActionEffect:
        required = self._arguments.required
        given = {name: v for name, v in args.items() if v is not None or name in required}
        try:
            read = self._arguments.parse(given)
        except InvalidTask as exc:
            raise ActionFailed(f"{exc} It is used as {self.signature}.") from None
        done = await self._function(world, **read)
        if isinstance(done, ActionEffect):
            return done
        return ActionEffect() if done is None else ActionEffect(text=done)


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an argument's schema without null, because some hosts cannot read `anyOf`."""
    choices = cast("list[Mapping[str, Any]]", schema.get("anyOf", ()))
    others = [each for each in choices if each.get("type") != "null"]
    if len(others) != 1 or len(others) == len(choices):
        return schema
    said = {name: each for name, each in schema.items() if name != "anyOf"}
    if said.get("default", ...) is None:
        del said["default"]
    return {**said, **others[0]}


def actions(*functions: _Function, **named: _Function) -> CustomActions:
    """Declare the custom actions of a world, for `WorldSpec.custom_actions`.

    The first parameter of each function is the world, or whatever its `act` passes to
    `CustomActions.perform`. The others are arguments: their annotations give the JSON schema, and
    `Annotated[str, Field(description=…)]` describes one. Agents read the docstring's first
    paragraph.

    Args:
        functions: Async functions or methods, each with the name of its action.
        named: Further functions or methods, by the names of their actions.

    Raises:
        InvalidEnvironment: A function is not async or has no parameters, or two have one name.
    """
    table = {each.__name__: each for each in functions}
    if len(table) < len(functions) or table.keys() & named.keys():
        names = ", ".join([*(each.__name__ for each in functions), *named])
        raise InvalidEnvironment(f"Custom actions have different names; these are {names}.")
    return CustomActions({**table, **named})

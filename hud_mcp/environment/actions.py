"""Custom actions of a world: typed functions, as tools are.

`actions(press, dim)` makes the table of them. It is a `WorldSpec`'s `custom_actions`, which agents
read, and it performs them, with arguments checked against what agents have read.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from hud_mcp.environment.arguments import Arguments, source_line
from hud_mcp.errors import ActionFailed, InvalidEnvironment, InvalidTask, did_you_mean
from hud_mcp.values.action import ActionEffect, CustomAction

__all__ = ["CustomActions", "actions"]

_Function = Callable[..., Awaitable[ActionEffect | str | None]]


class CustomActions(Mapping[str, Mapping[str, Any]]):
    """The custom actions of a kind of world: the JSON schema of each one's arguments, by name.

    Made by `actions`.
    """

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
            What the function returned: an effect, the text of one, or None for an empty one.

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
    """One custom action: a function whose first parameter is the world."""

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
        """As `goto {url}`, with a `?` after optional arguments."""
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
    """The schema of an argument that is left out in place of null: some hosts read no `anyOf`."""
    choices = cast("list[Mapping[str, Any]]", schema.get("anyOf", ()))
    others = [each for each in choices if each.get("type") != "null"]
    if len(others) != 1 or len(others) == len(choices):
        return schema
    said = {name: each for name, each in schema.items() if name != "anyOf"}
    if said.get("default", ...) is None:
        del said["default"]
    return {**said, **others[0]}


def actions(*functions: _Function, **named: _Function) -> CustomActions:
    """Declare the custom actions of a world.

    The first parameter of each function is the world, or whatever its `act` passes to
    `CustomActions.perform`. The others are arguments: their annotations give the JSON schema, and
    `Annotated[str, Field(description=…)]` describes one. Agents read the docstring's first
    paragraph.

    Args:
        functions: Async functions or methods, each named as its action is.
        named: More of them, by the names of their actions.

    Raises:
        InvalidEnvironment: A function is not async or has no parameters, or two have one name.
    """
    table = {each.__name__: each for each in functions}
    if len(table) < len(functions) or table.keys() & named.keys():
        names = ", ".join([*(each.__name__ for each in functions), *named])
        raise InvalidEnvironment(f"Custom actions have different names; these are {names}.")
    return CustomActions({**table, **named})

"""The tools of a user's own on the world: their schemas for its model, and their calls."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast
from weakref import WeakKeyDictionary

import orjson

from hud_mcp.environment.conversation import UserTurn
from hud_mcp.environment.tool import Tool
from hud_mcp.environment.user import User
from hud_mcp.environment.world import current_world
from hud_mcp.errors import ActionFailed, InvalidTask

__all__ = ["call_tool", "make_calls", "repeat_calls", "repeated_calls", "tools_of"]

_MOST_CHARS = 20_000
"""Of one result, for the model."""


def tools_of(user: User, names: Collection[str] | None = None) -> dict[str, Tool]:
    """Return the tools of a user by their names: all, or some of them."""
    some = [each for each in user.tools if names is None or each.__name__ in names]
    return {tool.name: tool for tool in (Tool(_asynchronous(each)) for each in some)}


async def call_tool(tools: Mapping[str, Tool], name: str, arguments: Any) -> tuple[str, bool]:
    """Call a tool; return its result as text, and whether it was refused.

    A wrong name and wrong arguments are refused as by the agent's tools, and nothing was done.
    """
    if name not in tools:
        return f"There is no tool {name!r}; there are {', '.join(tools)}.", True
    if not isinstance(arguments, Mapping):
        return "Its arguments are no JSON object; nothing was done.", True
    given = cast("Mapping[str, Any]", arguments)
    try:
        found = await tools[name].call(given, current_world.get(None))
    except (ActionFailed, InvalidTask) as exc:
        return str(exc), True
    text = found if isinstance(found, str) else orjson.dumps(found, default=str).decode()
    return text[:_MOST_CHARS], False


async def make_calls(user: User, made: UserTurn) -> UserTurn:
    """Make the calls of a turn by a script, whose results follow its words.

    A call that is refused is not kept: its reason is said, and nothing was done.
    """
    tools = tools_of(user, {str(call["name"]) for call in made.calls})  # a schema takes time
    said, done = [made.text], list[Mapping[str, Any]]()
    for call in made.calls:
        text, is_refused = await call_tool(tools, str(call["name"]), call["arguments"])
        said.append(text)
        done += [] if is_refused else [call]
    words = "\n".join(each for each in said if each)
    return made.model_copy(update={"text": words, "calls": tuple(done)})


_repeated: "WeakKeyDictionary[User, dict[int, list[tuple[Mapping[str, Any], str]]]]" = (
    WeakKeyDictionary()
)
"""By the number of the turn: each call of a user that was resumed, with its result."""


async def repeat_calls(user: User, made: UserTurn) -> None:
    """Call again what a turn on record called, so that the world is as it was."""
    tools = tools_of(user, {str(call["name"]) for call in made.calls})
    done = _repeated.setdefault(user, {}).setdefault(len(user.said), [])
    for call in made.calls:
        done.append((call, (await call_tool(tools, str(call["name"]), call["arguments"]))[0]))


def repeated_calls(user: User, turn: int) -> Sequence[tuple[Mapping[str, Any], str]]:
    """Return the calls of a turn from the record, with their results."""
    return _repeated.get(user, {}).get(turn, ())


def _asynchronous(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function of the same signature, which a declared tool has to be."""
    if iscoroutinefunction(function):
        return function

    @wraps(function)
    async def call(**arguments: Any) -> Any:
        return function(**arguments)

    return call

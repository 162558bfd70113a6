"""A tool of an environment's own: declared once, checked before it runs."""

from typing import Any

import pytest
from tables import each_of

from hud_mcp.environment.spec import EmptyWorld
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import InvalidEnvironment, InvalidTask
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.world import World

pytestmark = pytest.mark.anyio


async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Both are integers.
    """
    return a + b


async def who(world: World, name: str) -> tuple[World, str]:
    """Say what came."""
    return world, name


def test_a_tool_takes_its_name_and_description_from_its_function() -> None:
    """The whole docstring is what a model reads."""
    tool = Tool(add)
    assert (tool.name, tool.read_only) == ("add", False)
    assert tool.description == "Add two numbers.\n\nBoth are integers."
    assert tool.where == f"{__file__}:{add.__code__.co_firstlineno}"
    assert Tool(add, name="sum_up", read_only=True).name == "sum_up"


async def test_a_call_gives_the_result_and_the_world_to_whoever_asks() -> None:
    """Arguments come from the client, the world from the session."""
    world = EmptyWorld()
    assert await Tool(add).call({"a": 2}, world) == 3
    assert await Tool(who).call({"name": "n"}, world) == (world, "n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "tool 'add': argument 'a' is required"),
        ({"a": "2"}, "a: expected a whole number such as 10, got '2'"),
        ({"a": 1, "c": 1}, "there is no argument 'c'. It takes: a, b"),
    ],
)
async def test_wrong_arguments_do_not_run_the_tool(given: dict[str, Any], said: str) -> None:
    """They are refused before the function is called."""
    ran: list[int] = []

    async def add(a: int, b: int = 1) -> None:
        ran.append(a + b)

    with pytest.raises(InvalidTask) as caught:
        await Tool(add).call(given, None)
    assert said in str(caught.value)
    assert ran == []


def not_async(a: int) -> int:
    """Cannot be awaited."""
    return a


async def takes_session(session: str) -> str:
    """Takes what the server takes."""
    return session


async def takes_any(**options: str) -> None:
    """Takes what has no name."""


@each_of(
    ("function", "name", "said"),
    [
        (not_async, None, "tool 'not_async' must be an async function."),
        (add, "Add", "'Add' cannot name a tool; use a to z, 0 to 9 and _, at most 40 characters."),
        (add, "add two", "'add two' cannot name a tool"),
        (add, "a" * 41, "cannot name a tool"),
        (add, "session", "'session' is the name of a core tool; choose another."),
        *((add, name, f"{name!r} is the name of a core tool") for name in sorted(CORE_TOOLS)),
        (takes_session, None, "the argument 'session' is added by the server; rename yours."),
        (takes_any, None, "takes **options: str (variadic keyword)"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_refused_with_its_line(
    function: Any, name: str | None, said: str
) -> None:
    """The author sees the file, the line, and what to do."""
    with pytest.raises(InvalidEnvironment) as caught:
        Tool(function, name=name)
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: ")
    assert said in str(caught.value)


def test_a_built_in_is_no_tool() -> None:
    """It has no line, and is named instead."""
    with pytest.raises(InvalidEnvironment, match=r"built-in function print>: tool 'print' must be"):
        Tool(print)  # pyright: ignore[reportArgumentType]  # the mistake

"""Tools of several environments that have the same name, on one server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from waiting import PATIENCE_S

from hud_mcp import Environment
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.server.app import build_server
from hud_mcp.server.local import LocalTools
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


def counter(name: str, *, by: int, words: str = "Add to it.") -> Environment:
    """An environment whose tool `add` adds a multiple, and which alone has another tool."""
    env = Environment(name)

    @env.template()
    async def task() -> Any:
        yield "Answer."
        yield 1.0

    async def add(amount: int) -> str:
        return str(amount * by)

    add.__doc__ = words
    env.tool(add)
    return env


@asynccontextmanager
async def served(
    tmp_path: Path, *environments: Environment
) -> AsyncIterator[tuple[Client, Sessions]]:
    """A client of a server of them."""
    sessions = Sessions(environments, store=Store(tmp_path / "s.sqlite3"))
    try:
        with anyio.fail_after(PATIENCE_S):
            async with Client(build_server(sessions)) as client:
                yield client, sessions
    finally:
        await sessions.close()


async def added(client: Client, tool: str, environment: str) -> tuple[bool, str]:
    """Whether a call of a tool in a new session was refused, and its text."""
    chosen = {"environment": environment, "template": "task"}
    begun = await client.call_tool("start_task", chosen)
    assert begun.structured_content is not None, begun
    session = begun.structured_content["session"]
    reply = await client.call_tool(tool, {"amount": "3", "session": session})
    return bool(reply.is_error), getattr(reply.content[0], "text", "")


async def test_tools_that_read_alike_are_one_tool(tmp_path: Path) -> None:
    """A model reads it once; it is that of the session's environment."""
    async with served(tmp_path, counter("a", by=1), counter("b", by=10)) as (client, _):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names.count("add") == 1
        assert not [name for name in names if name.endswith("_add")]
        assert (await added(client, "add", "a"))[1].startswith("3")
        assert (await added(client, "add", "b"))[1].startswith("30")
        begun = await client.call_tool("start_task", {"environment": "b", "template": "task"})
        assert "Its own tools: add." in getattr(begun.content[0], "text", "")


async def test_tools_that_differ_have_their_environment_s_name_too(tmp_path: Path) -> None:
    """The bare name works in each session all the same: solutions of authors use it."""
    other = counter("b", by=10, words="Add ten times as much.")
    async with served(tmp_path, counter("a", by=1), other) as (client, sessions):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"a_add", "b_add"} <= set(names)
        assert "add" not in names
        assert (await added(client, "b_add", "b"))[1].startswith("30")
        assert (await added(client, "add", "b"))[1].startswith("30")
        assert (await added(client, "add", "a"))[1].startswith("3")
        begun = await client.call_tool("start_task", {"environment": "b", "template": "task"})
        assert "Its own tools: b_add." in getattr(begun.content[0], "text", "")
        refused, told = await added(client, "b_add", "a")
        assert refused
        assert told.startswith("b_add belongs to environment 'b'; this session is in 'a'.")
        local = LocalTools(sessions)
        begun = await local.call("start_task", {"environment": "b", "template": "task"}, {})
        session = begun["structuredContent"]["session"]
        reply = await local.call("add", {"amount": 2, "session": session}, {})
        assert reply["content"][0]["text"].startswith("20")


async def test_two_names_that_would_be_the_same_are_refused(tmp_path: Path) -> None:
    """A tool that nobody could call is no tool."""
    taken = Environment("c")

    @taken.tool
    async def a_add() -> str:
        return ""

    other = counter("b", by=10, words="Add ten times as much.")
    with pytest.raises(InvalidEnvironment, match="'add' would be listed as 'a_add'"):
        async with served(tmp_path, counter("a", by=1), other, taken):
            pass

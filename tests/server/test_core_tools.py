"""A core tool is one record: whoever adds one sees it everywhere that tools are seen."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from slate import Moments, registry, slates
from waiting import PATIENCE_S

from hud_mcp import Environment
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.server.app import build_server
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result
from hud_mcp.server.tools import CORE

pytestmark = pytest.mark.anyio

ONLY: Any = {"hud-mcp/only": f"sess-{'1' * 32}"}


async def measure_text(call: Call) -> dict[str, Any]:
    """Count the letters of a text."""
    count = len(call.arguments["text"])
    return structured_result({"letters": count}, f"{count} letters.")


def measuring(**more: Any) -> CoreTool:
    """The toy of these tests, in the few lines that a core tool takes."""
    return CoreTool(
        run=measure_text,
        title="Measure a text",
        description=lambda view: "Count letters" + (" alone." if view.one_session else "."),
        arguments={"text": Argument(string_schema("What to count.")), "unit": Argument({})},
        required=("text",),
        read_only=True,
        **more,
    )


@asynccontextmanager
async def peer(tmp_path: Path, tools: Sequence[CoreTool]) -> AsyncIterator[Client]:
    """A client of a server with these core tools."""
    async with registry(tmp_path / "s.sqlite3", slates(Moments())) as sessions:
        with anyio.fail_after(PATIENCE_S):
            async with Client(build_server(sessions, tools=tools)) as client:
                yield client


async def test_a_tool_from_outside_is_listed_with_what_it_declares(tmp_path: Path) -> None:
    """Its schema, its texts and its hints, behind the others; theirs are as they were."""
    async with peer(tmp_path, [*CORE.values(), measuring()]) as client:
        listed = (await client.list_tools()).tools
    everywhere = {name: tool for name, tool in CORE.items() if not tool.needs_user}
    core = [name for name, tool in everywhere.items() if tool.is_for(one_session=False)]
    assert [tool.name for tool in listed][: len(core) + 1] == [*core, "measure_text"]
    (toy,) = (tool for tool in listed if tool.name == "measure_text")
    assert (toy.title, toy.description) == ("Measure a text", "Count letters.")
    assert toy.input_schema == {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to count."}, "unit": {}},
        "additionalProperties": False,
        "required": ["text"],
    }
    assert toy.annotations is not None
    assert (toy.annotations.read_only_hint, toy.annotations.destructive_hint) == (True, False)


async def test_a_tool_from_outside_is_called_and_names_the_argument_that_is_wrong(
    tmp_path: Path,
) -> None:
    """Its function has only what its declaration lets through."""
    async with peer(tmp_path, [measuring()]) as client:
        done = await client.call_tool("measure_text", {"text": "tea", "unit": None})
        assert done.structured_content == {"letters": 3}
        for given, said in (
            (
                {"text": 5},
                "Invalid arguments for measure_text: text: expected a string such as '5', got 5.",
            ),
            ({}, "Invalid arguments for measure_text: argument 'text' is required."),
            ({"text": "tea", "txet": "x"}, "there is no argument 'txet'. Did you mean 'text'?"),
        ):
            refused = await client.call_tool("measure_text", given)
            assert refused.is_error
            assert said in str(refused.content[0])
        with pytest.raises(MCPError, match="Unknown tool: list_tasks"):
            await client.call_tool("list_tasks", {})


@pytest.mark.parametrize("begins", [False, True])
async def test_an_agent_of_one_session_has_a_tool_as_it_declares(
    tmp_path: Path,
    begins: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """What begins sessions is neither listed for it nor there when it calls."""
    async with peer(tmp_path, [*CORE.values(), measuring(begins=begins)]) as client:
        listed = {tool.name: tool for tool in (await client.list_tools(meta=ONLY)).tools}
        assert ("measure_text" in listed) is not begins
        everywhere = {name: tool for name, tool in CORE.items() if not tool.needs_user}
        assert {name for name, tool in everywhere.items() if not tool.begins} <= set(listed)
        if begins:
            with pytest.raises(MCPError, match="Unknown tool: measure_text"):
                await client.call_tool("measure_text", {"text": "tea"}, meta=ONLY)
        else:
            assert listed["measure_text"].description == "Count letters alone."
            done = await client.call_tool("measure_text", {"text": "tea"}, meta=ONLY)
            assert done.structured_content == {"letters": 3}
        others = await client.list_tools(cache_mode="bypass")
        assert "measure_text" in {tool.name for tool in others.tools}


async def test_a_core_tool_is_not_hidden_by_an_environment_s_own(tmp_path: Path) -> None:
    """Whoever serves both is told where the environment's is declared."""
    env = Environment("measures")

    @env.tool
    async def measure_text() -> str:
        """Measure otherwise."""
        return "no"

    async with registry(tmp_path / "s.sqlite3", env) as sessions:
        with pytest.raises(InvalidEnvironment, match=r"test_core_tools\.py:\d+: 'measure_text' is"):
            build_server(sessions, tools=[measuring()])

"""How the tools of an author's MCP server are listed to clients of ours."""

from mcp_types import Tool, ToolAnnotations
from tables import each_of

from hud_mcp import Environment
from hud_mcp.plugins.servers.published import PublishedTool
from hud_mcp.server.own_tools import OwnTool


@each_of(
    ("hints", "open_world"),
    [
        (None, True),
        (ToolAnnotations(read_only_hint=True), True),
        (ToolAnnotations(open_world_hint=False), False),
        (ToolAnnotations(open_world_hint=True), True),
    ],
)
def test_hints_of_another_server_s_tool_are_passed_on(
    hints: ToolAnnotations | None,
    open_world: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """What its server leaves unsaid is what hosts assume: it reaches what lies outside."""
    env = Environment("toolbox")
    declared = Tool(name="add", input_schema={"type": "object"}, annotations=hints)
    entry = declared.model_dump(by_alias=True, exclude_none=True)
    tool = PublishedTool(entry, environment=env, capability="tools", name="tools_add")
    env.offer(tool)
    listed = OwnTool("tools_add", [(env, tool)]).listed()
    assert listed.annotations is not None
    assert listed.annotations.open_world_hint is open_world
    read_only = hints is not None and bool(hints.read_only_hint)
    assert listed.annotations.read_only_hint is read_only
    assert listed.annotations.destructive_hint is not read_only

"""Tasks of MCP benchmarks over several servers that run without a network and without keys.

`mcp:in=mcp-local mcp.json` has all servers of a file in their place: those with keys, or with a
network. Tools are named `SERVER_TOOL`, as the benchmarks have them.
"""

from mcp_answers import declare

from hud_mcp import Environment, SandboxLimits, ToolServer

MEMORY = "repos/memory_mcp_server/memories-for-mcp.json"
"""The memory of MCP-Atlas, in its folder of files."""

env = Environment(
    "mcp-local",
    version="0.1.0",
    world=ToolServer(
        {
            "filesystem": ["@modelcontextprotocol/server-filesystem@2026.8.31", "{folder}"],
            "git": ["mcp-server-git==2026.10.19"],
            "memory": ToolServer(
                ["@modelcontextprotocol/server-memory@2026.8.31"],
                env={"MEMORY_FILE_PATH": f"/workspace/{MEMORY}"},
            ),
            "calculator": ["mcp-server-calculator==0.2.1"],
            "mcp-server-code-runner": ["mcp-server-code-runner@0.1.8"],
        },
        limits=SandboxLimits(disk_bytes=1024**3),
    ),
)
declare(env)

"""The least that stands between a client and a server over stdio: the SDK's server and client.

    python benchmarks/server_call_proxy.py COMMAND …

It passes calls on, in no sandbox and without a record.
"""

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def main(command: list[str]) -> None:
    """Pass on until the standard input ends."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=".")
    async with Client(stdio_client(parameters)) as behind:

        async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
            return await behind.list_tools()

        async def call_tool(_context: Any, params: Any) -> types.CallToolResult:
            return await behind.call_tool(params.name, params.arguments or {})

        server = Server("proxy", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

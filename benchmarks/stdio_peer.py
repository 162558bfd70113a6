"""A server with one echo tool, over the transport that its argument names.

It is what `stdio.py` measures: `ours`, `sdk` (the SDK's own stdio transport) or `floor` (a bare
loop over JSON lines, which answers the same frames without looking at them).
"""

# ruff: noqa: PLC0415 - the floor must not pay for what the others import

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


def main() -> None:
    """Serve until the input ends."""
    {"ours": _ours, "sdk": _sdk, "floor": _floor}[sys.argv[1]]()


def _ours() -> None:
    import anyio

    from hud_mcp.server.middleware import trace_where_seen
    from hud_mcp.server.stdio.descriptors import claim_stdio
    from hud_mcp.server.stdio.serve import serve_stdio

    with claim_stdio() as streams:
        server = _server()
        trace_where_seen(server)
        anyio.run(serve_stdio, server, streams)


def _sdk() -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        server = _server()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def _server() -> "Server[Any]":
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, TextContent

    async def call(
        ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        del ctx
        text = str((params.arguments or {}).get("text", ""))
        return CallToolResult(content=[TextContent(type="text", text=text)])

    return Server("echo", version="1", on_call_tool=call)


def _floor() -> None:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        content = [{"type": "text", "text": request["params"].get("arguments", {}).get("text")}]
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}}
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""OpenEnv's own client of tools at work: it prints what it has seen. Usage: tools.py URL."""

import asyncio
import json
import sys

from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.mcp_client import MCPToolClient


async def main(url: str) -> None:
    """One episode whose every step is a call of a tool."""
    told = {}
    client = MCPToolClient(base_url=url)
    async with client as env:
        await env.reset(task="say-rug")
        told["tools"] = {tool.name: tool.description for tool in await env.list_tools()}
        told["lit"] = await env.call_tool("light", count=2)
        try:
            await env.call_tool("light", count=0)
        except RuntimeError as exc:
            told["refused"] = str(exc)
        wrong = await env.step(CallToolAction(tool_name="light", arguments={"count": 0}))
        ended = await env.step(CallToolAction(tool_name="answer", arguments={"answer": "rug"}))
        told["typed"] = [wrong.observation.error.error_type.value, ended.observation.tool_name]
        told["reward"], told["done"] = ended.reward, ended.done
        session = client._production_session_id
    client._production_session_id = session
    gone = await client._production_mcp_request("tools/list", {"session_id": session})
    told["gone"] = gone["error"]["message"]
    print(json.dumps(told))


asyncio.run(main(sys.argv[1]))

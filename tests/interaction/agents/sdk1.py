"""A conversation of a client of the MCP SDK before 2.0, in a virtual environment of its own.

Reads the server's command, or its URL, from the arguments; prints what it saw as JSON.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(transport: str, target: list[str]) -> None:
    """List, start, act, look, answer."""
    seen: dict[str, object] = {"sdk": version("mcp")}
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            parameters = StdioServerParameters(command=target[0], args=target[1:], env=None)
            read, write = await stack.enter_async_context(stdio_client(parameters))
        else:
            opened = streamablehttp_client(target[0])
            read, write, _ = await stack.enter_async_context(opened)
        session = await stack.enter_async_context(ClientSession(read, write))
        hello = await session.initialize()
        seen["protocol"] = hello.protocolVersion
        seen["tools"] = [t.name for t in (await session.list_tools()).tools]
        seen["prompts"] = [p.name for p in (await session.list_prompts()).prompts]
        arguments = {"template": "collect", "arguments": {"marker": "old", "wanted": ["tea"]}}
        begun = await session.call_tool("start_task", arguments)
        held = begun.structuredContent["session"]
        action = {"type": "type", "text": "tea", "enter_after": True}
        stepped = await session.call_tool("step", {"actions": [action]})
        seen["step"] = [c.type for c in stepped.content]
        seen["text"] = stepped.content[0].text
        wrong = await session.call_tool("act", {"type": "clik", "session": held})
        seen["error"] = [wrong.isError, wrong.content[0].text]
        got = await session.get_prompt("total", {"a": "4", "b": "5"})
        seen["prompt"] = got.messages[0].content.text
        graded = await session.call_tool("response", {"session": held, "answer": "done"})
        seen["reward"] = graded.structuredContent["reward"]
        read_back = await session.read_resource(f"hud://sessions/{held}/trajectory")
        seen["steps"] = len(json.loads(read_back.contents[0].text)["steps"])
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))

"""An agent of pydantic-ai works on one task of a browser, over stdio, and is graded."""

import argparse
import asyncio

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

TOOLS = ("step", "act", "response")


async def main(model: str, base_url: str | None, task: str) -> None:
    """Start a task, let the agent work on it, and print its grade."""
    process = StdioTransport("hud-mcp", ["serve", "browser"])
    server = MCPToolset(process, max_retries=3, init_timeout=60)
    agent = Agent(
        OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url)),
        toolsets=[server.filtered(lambda _ctx, tool: tool.name in TOOLS)],
    )
    async with server:
        started = await server.direct_call_tool("start_task", {"task": task})
        print(started["prompt"])
        result = await agent.run(f"{started['prompt']}\n\n{started['next']}")
        print(result.output)
        status = await server.direct_call_tool("task_status", {"session": started["session"]})
    print(status.get("receipt", "The task was not answered."))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", help="a model of OpenAI, or of the server at --base-url")
parser.add_argument("--base-url", help="a server with the same API")
parser.add_argument("--task", default="shop-price-lamp")
asyncio.run(main(**vars(parser.parse_args())))

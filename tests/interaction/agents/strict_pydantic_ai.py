"""An agent of pydantic-ai, with strict tools: URL of the server, of the model, the task."""

import asyncio
import dataclasses
import importlib.metadata
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def strictly(_ctx: Any, tools: list[Any]) -> list[Any]:
    """The same tools, each strict."""
    return [dataclasses.replace(tool, strict=True) for tool in tools]


async def main(server_url: str, model_url: str, task: str) -> None:
    """Run the agent."""
    provider = OpenAIProvider(base_url=model_url, api_key="none")
    tools = MCPToolset(server_url, max_retries=3).prepared(strictly)
    agent = Agent(OpenAIChatModel("strict-1", provider=provider), toolsets=[tools])
    result = await agent.run(task)
    print(importlib.metadata.version("pydantic-ai-slim"))
    print(result.output)


asyncio.run(main(*sys.argv[1:]))

"""An agent of OpenAI's framework, with strict schemas: URLs of server and model, the task."""

import asyncio
import importlib.metadata
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main(server_url: str, model_url: str, task: str) -> None:
    """Run the agent."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=model_url, api_key="none", max_retries=0)
    async with MCPServerStreamableHttp(
        params={"url": server_url, "timeout": 60}, client_session_timeout_seconds=60
    ) as server:
        agent = Agent(
            name="strict",
            instructions="Do the task.",
            model=OpenAIChatCompletionsModel(model="strict-1", openai_client=client),
            mcp_servers=[server],
            mcp_config={"convert_schemas_to_strict": True},
        )
        result = await Runner.run(agent, task, max_turns=20)
    print(importlib.metadata.version("openai-agents"))
    print(result.final_output)


asyncio.run(main(*sys.argv[1:]))

"""An agent of OpenAI's Agents SDK works on one task of a browser, over stdio, and is graded."""

import argparse
import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, create_static_tool_filter
from openai import AsyncOpenAI

TOOLS = ["step", "act", "response"]


async def main(model: str, base_url: str | None, task: str) -> None:
    """Start a task, let the agent work on it, and print its grade."""
    set_tracing_disabled(True)
    async with MCPServerStdio(
        params={"command": "hud-mcp", "args": ["serve", "browser"]},
        client_session_timeout_seconds=60,
        tool_filter=create_static_tool_filter(allowed_tool_names=TOOLS),
    ) as server:
        agent = Agent(
            name="browser",
            model=OpenAIResponsesModel(model, AsyncOpenAI(base_url=base_url)),
            mcp_servers=[server],
        )
        started = (await server.call_tool("start_task", {"task": task})).structured_content
        print(started["prompt"])
        prompt = f"{started['prompt']}\n\n{started['next']}"
        result = await Runner.run(agent, prompt, max_turns=30)
        print(result.final_output)
        status = await server.call_tool("task_status", {"session": started["session"]})
    print(status.structured_content.get("receipt", "The task was not answered."))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", help="a model of OpenAI, or of the server at --base-url")
parser.add_argument("--base-url", help="a server with the same API")
parser.add_argument("--task", default="shop-price-lamp")
asyncio.run(main(**vars(parser.parse_args())))

"""A bare loop: Anthropic's Messages API, an MCP client, and a browser's task to its grade."""

import argparse
import asyncio

from anthropic import AsyncAnthropic
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(model: str, base_url: str | None, task: str) -> None:
    """Start a task, let the model work on it, and print its grade."""
    server = StdioServerParameters(command="hud-mcp", args=["serve", "browser"])
    async with Client(stdio_client(server)) as client, AsyncAnthropic(base_url=base_url) as api:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in (await client.list_tools()).tools
            if tool.name in ("act", "response")  # which show text alone
        ]
        started = await client.call_tool("start_task", {"task": task})
        turns = [{"role": "user", "content": started.content[0].text}]
        while turns[-1]["role"] == "user" and len(turns) < 60:
            said = await api.messages.create(
                model=model, max_tokens=4096, tools=tools, messages=turns
            )
            turns.append({"role": "assistant", "content": said.content})
            results = []
            for call in [block for block in said.content if block.type == "tool_use"]:
                text = (await client.call_tool(call.name, call.input)).content[0].text
                results.append({"type": "tool_result", "tool_use_id": call.id, "content": text})
            turns += [{"role": "user", "content": results}] if results else []
        status = {"session": started.structured_content["session"]}
        print((await client.call_tool("task_status", status)).structured_content)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model")
parser.add_argument("--base-url")
parser.add_argument("--task", default="shop-price-lamp")
asyncio.run(main(**vars(parser.parse_args())))

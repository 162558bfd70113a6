"""An agent of LangGraph's, with strict tools: URL of the server, of the model, the task."""

import asyncio
import importlib.metadata
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


async def main(server_url: str, model_url: str, task: str) -> None:
    """Run the agent."""
    client = MultiServerMCPClient({"hud": {"transport": "streamable_http", "url": server_url}})
    tools = await client.get_tools()
    model = ChatOpenAI(model="strict-1", base_url=model_url, api_key="none", max_retries=0)
    agent = create_react_agent(model.bind_tools(tools, strict=True), tools)
    done = await agent.ainvoke({"messages": [("user", task)]}, {"recursion_limit": 40})
    print(importlib.metadata.version("langchain-mcp-adapters"))
    print(done["messages"][-1].content)


asyncio.run(main(*sys.argv[1:]))

"""A graph of LangGraph works on one task of a browser, over HTTP, and is graded."""

import argparse
import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

TOOLS = ("step", "act", "response")


async def main(model: str, base_url: str | None, task: str, url: str) -> None:
    """Start a task, let the graph work on it, and print its grade."""
    client = MultiServerMCPClient({"hud": {"transport": "streamable_http", "url": url}})
    async with client.session("hud") as session:
        tools = [tool for tool in await load_mcp_tools(session) if tool.name in TOOLS]
        # The Responses API takes the pictures of tools, which Chat Completions does not.
        chat = ChatOpenAI(model=model, base_url=base_url, use_responses_api=True).bind_tools(tools)

        async def think(state: MessagesState) -> dict:
            return {"messages": [await chat.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")

        started = (await session.call_tool("start_task", {"task": task})).structuredContent
        print(started["prompt"])
        prompt = f"{started['prompt']}\n\n{started['next']}"
        done = await graph.compile().ainvoke(
            {"messages": [("user", prompt)]}, {"recursion_limit": 60}
        )
        print(done["messages"][-1].text)
        status = await session.call_tool("task_status", {"session": started["session"]})
    print(status.structuredContent.get("receipt", "The task was not answered."))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", help="a model of OpenAI, or of the server at --base-url")
parser.add_argument("--base-url", help="a server with the same API")
parser.add_argument("--task", default="shop-price-lamp")
parser.add_argument("--url", default="http://127.0.0.1:8000/mcp")
asyncio.run(main(**vars(parser.parse_args())))

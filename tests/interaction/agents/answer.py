"""An agent that answers every task with its one argument."""

import asyncio
import os
import sys

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    """Answer."""
    headers = {"Authorization": f"Bearer {os.environ['HUD_MCP_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as web,
        Client(streamable_http_client(os.environ["HUD_MCP_URL"], http_client=web)) as client,
    ):
        arguments = {"session": os.environ["HUD_MCP_SESSION"], "answer": sys.argv[1]}
        await client.call_tool("response", arguments)


asyncio.run(main())

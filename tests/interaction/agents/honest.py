"""An agent that is a command: it answers as well as it can, and then asks for another task."""

import os

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    """Answer, then call start_task, as replies used to say."""
    headers = {"Authorization": f"Bearer {os.environ['HUD_MCP_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as web,
        Client(streamable_http_client(os.environ["HUD_MCP_URL"], http_client=web)) as client,
    ):
        session = os.environ["HUD_MCP_SESSION"]
        await client.call_tool("response", {"session": session, "answer": "not sure"})
        try:
            started = await client.call_tool("start_task", {"task": os.environ["HUD_MCP_TASK"]})
        except Exception as exc:  # noqa: BLE001  # whatever it is told
            print(f"was told: {exc}")
            return
        again = started.structured_content["session"]
        await client.call_tool("response", {"session": again, "answer": "3"})


if __name__ == "__main__":
    anyio.run(main)

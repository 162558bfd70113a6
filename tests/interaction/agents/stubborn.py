"""An agent that tries again when its connection breaks, and asks where it stands before.

It writes two notes. After the first one it makes a file, and waits for another one, so that
a test can kill the server between the two.
"""

# ruff: noqa: ASYNC240, ASYNC251  # nothing else runs here

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

PATIENCE_S = 60


async def call(name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool over a connection of its own, again and again until there is a reply."""
    session = {"session": os.environ["HUD_MCP_SESSION"]}
    headers = {"Authorization": f"Bearer {os.environ['HUD_MCP_TOKEN']}"}
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                async with (
                    httpx2.AsyncClient(headers=headers) as web,
                    Client(
                        streamable_http_client(os.environ["HUD_MCP_URL"], http_client=web),
                        read_timeout_seconds=5,
                    ) as client,
                ):
                    return await client.call_tool(name, {**arguments, **session})
            except Exception as exc:  # noqa: BLE001  # whatever a death looks like to a client
                print(f"refused: {type(exc).__name__}", flush=True)
                await anyio.sleep(0.1)


def note(number: int) -> dict[str, Any]:
    """The arguments of a step that writes one."""
    return {"actions": [{"type": "type", "text": f"note {number}", "enter_after": True}]}


async def main(stepped: str, killed: str) -> None:
    """Write two notes, with a pause between them."""
    await call("step", note(0))
    Path(stepped).touch()
    while not Path(killed).exists():
        time.sleep(0.01)
    await call("step", note(1))
    result = await call("response", {"answer": "done"})
    print(result.content[0].text)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])

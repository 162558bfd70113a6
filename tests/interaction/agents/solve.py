"""An agent that is a command: it reads the HUD_MCP_* variables and speaks MCP as any client does.

Its arguments say how it behaves, as TASK=BEHAVIOUR; the tests of `hud-mcp eval` run it.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(behaviour: str) -> None:
    """Work on the task that waits."""
    prompt, session = os.environ["HUD_MCP_PROMPT"], os.environ["HUD_MCP_SESSION"]
    print(f"working on {os.environ['HUD_MCP_TASK']}")
    if behaviour == "crash":
        raise SystemExit("no idea how to do this")
    if behaviour == "silent":
        return
    if behaviour == "hang":
        print("thinking", flush=True)
        time.sleep(600)  # noqa: ASYNC251  # an agent that does not answer
    config = json.loads(Path(os.environ["HUD_MCP_CONFIG"]).read_text())  # noqa: ASYNC240  # small
    server = config["mcpServers"]["hud-mcp"]
    assert server["url"] == os.environ["HUD_MCP_URL"]
    assert server["headers"]["Authorization"] == f"Bearer {os.environ['HUD_MCP_TOKEN']}"
    async with (
        httpx2.AsyncClient(headers=server["headers"]) as web,
        Client(streamable_http_client(server["url"], http_client=web)) as client,
    ):
        while behaviour == "wander":
            print("wandering", flush=True)
            await client.call_tool("step", {"session": session})
        counted = re.search(r"the letter '(.)' occur in '(\w+)'", prompt)
        backwards = re.search(r"Write the word '(\w+)' backwards", prompt)
        answer = "?"
        if counted is not None and behaviour != "wrong":
            answer = str(counted[2].lower().count(counted[1].lower()))
        elif backwards is not None:
            answer = backwards[1][::-1]
        arguments = {"session": session, "answer": answer}
        result = await client.call_tool("response", arguments)
        print(f"was told: {result.content[0].text.splitlines()[0]}")
        if behaviour == "linger":
            time.sleep(3)  # noqa: ASYNC251  # an agent that has answered, and goes on


if __name__ == "__main__":
    chosen = dict(argument.split("=") for argument in sys.argv[1:])[os.environ["HUD_MCP_TASK"]]
    anyio.run(main, chosen)
    if chosen == "solve_then_fail":
        raise SystemExit(7)

"""A server on the SDK, which speaks both eras: `python sdk_server.py [sse|http]`."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import Field

server = MCPServer("notes", version="1.2", instructions="Keep notes.")


@server.tool()
def add(text: str) -> str:
    """Add a note."""
    with Path("notes.txt").open("a") as notes:
        notes.write(text + "\n")
    return f"{len(Path('notes.txt').read_text().splitlines())} notes"


@server.tool()
def count() -> dict[str, Any]:
    """Count the notes, with structured content."""
    path = Path("notes.txt")
    return {"count": len(path.read_text().splitlines()) if path.exists() else 0, "nothing": None}


@server.tool()
def picture() -> Image:
    """Return a picture of one pixel."""
    return Image(
        data=bytes.fromhex(
            "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d7"
            "63f8cfc000000301010018dd8db00000000049454e44ae426082"
        ),
        format="png",
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("there is no note")


@server.tool()
async def wait(context: Context[Any, Any], steps: int = 3) -> str:
    """Report progress, then return."""
    for step in range(steps):
        await context.report_progress(step + 1, steps)
        await asyncio.sleep(0.12)
    return "waited"


@server.tool()
async def wait_for_ever() -> str:
    """Never return."""
    await asyncio.Event().wait()
    return ""


@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
def variable(name: str) -> str:
    """Return an environment variable."""
    return os.environ.get(name, "")


@server.tool()
def route(
    place: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Place"})], count: int = 1
) -> str:
    """Go to a place, which a header repeats."""
    return f"{place} {count}"


def serve_web(app: Any) -> None:
    """Serve on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    print("listening on", listening.getsockname()[1], flush=True)
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    asyncio.run(serving.serve(sockets=[listening]))


if __name__ == "__main__":
    if "sse" in sys.argv:
        serve_web(server.sse_app())
    elif "http" in sys.argv:
        serve_web(server.streamable_http_app())
    else:
        server.run()

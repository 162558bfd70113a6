"""A HUD environment with a shell, tools over MCP, and a robot that nobody can reach."""

# ruff: noqa: ANN001, ANN003, ANN201, ASYNC110, D103, RUF100  # as authors of HUD environments write them

import asyncio
import os
import socket
import struct
import tempfile
import zlib
from pathlib import Path

import uvicorn
from hud import Environment
from hud.capabilities import Capability
from mcp.server.fastmcp import FastMCP, Image

env = Environment("workbench")
NOTES = Path(os.environ.get("NOTES") or tempfile.mkdtemp())
root = NOTES / "root"
root.mkdir(exist_ok=True)
env.workspace(root)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


def server(name: str) -> FastMCP:
    """An MCP server with some tools."""
    made = FastMCP(name)

    @made.tool(annotations={"readOnlyHint": True})
    def multiply(a: int, b: int = 2) -> int:
        """Multiply two whole numbers."""
        return a * b

    @made.tool(name="Say-It")
    def say_it(session: str) -> str:
        """Say what was given, which is not a session of ours."""
        return f"it is {session}"

    @made.tool()
    def fail() -> str:
        """Fail, always."""
        raise ValueError("no luck")

    @made.tool()
    def draw() -> Image:
        """Draw a pixel."""
        return Image(data=PIXEL, format="png")

    @made.tool()
    def paint() -> Image:
        """Draw what cannot be made small: a picture of 2 MB."""
        raw = b"".join(b"\0" + os.urandom(3 * 800) for _ in range(800))
        head = struct.pack(">IIBBBBB", 800, 800, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
        png = b"\x89PNG\r\n\x1a\n"
        for kind, data in parts:
            png += struct.pack(">I", len(data)) + kind + data
            png += struct.pack(">I", zlib.crc32(kind + data))
        return Image(data=png, format="png")

    @made.tool()
    async def wait(name: str) -> str:
        """Wait for a file."""
        (NOTES / f"{name}-begun").write_text("x")
        while not (NOTES / name).exists():
            await asyncio.sleep(0.02)
        return "waited"

    return made


async def run(app) -> int:
    """Serve, and return the port."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    env.running = [*getattr(env, "running", []), asyncio.create_task(running.serve([sock]))]
    while not running.started:
        await asyncio.sleep(0.02)
    return sock.getsockname()[1]


@env.initialize
async def publish() -> None:
    """Publish what can be used, and what cannot."""
    port = await run(server("calc").streamable_http_app())
    env.add_capability(Capability.mcp(name="calc", url=f"http://127.0.0.1:{port}/mcp"))
    port = await run(server("events").sse_app())
    env.add_capability(
        Capability.mcp(name="events", url=f"http://127.0.0.1:{port}/sse", transport="sse")
    )
    env.add_capability(Capability.mcp(name="dead", url="http://127.0.0.1:9/mcp"))
    env.add_capability(Capability.mcp(name="socket", url="ws://127.0.0.1:9/mcp"))
    env.add_capability(Capability.robot(name="arm", url="ws://127.0.0.1:9", contract={}))


@env.template(description="Write a sum into a file")
async def total(a: int = 3, b: int = 4):
    (root / "numbers.txt").write_text(f"{a}\n{b}\n")
    yield "Write the sum of the numbers in numbers.txt into sum.txt."
    file = root / "sum.txt"
    yield 1.0 if file.exists() and file.read_text().strip() == str(a + b) else 0.0

"""A HUD environment whose capabilities do not answer, or not at once."""

# ruff: noqa: ANN001, ANN201, ANN202, D103, RUF100  # as authors of HUD environments write them

import asyncio
import os
import tempfile
import time
from pathlib import Path

from hud import Environment
from hud.capabilities import Capability

env = Environment("silent")
NOTES = Path(os.environ.get("NOTES") or tempfile.mkdtemp())


def silence(name):
    async def say_nothing(reader, _writer):
        with (NOTES / f"asked-{name}").open("a") as file:
            file.write(f"{time.monotonic()}\n")
        await reader.read()

    return say_nothing


@env.initialize
async def begin():
    env.servers = []
    for name in ("deaf", "mute"):
        server = await asyncio.start_server(silence(name), "127.0.0.1", 0)
        env.servers.append(server)
        port = server.sockets[0].getsockname()[1]
        env.add_capability(Capability.mcp(name=name, url=f"http://127.0.0.1:{port}/mcp"))
    env.add_capability(Capability.cdp(url="ws://127.0.0.1:9"))
    env.add_capability(
        Capability(name="wheel", protocol="steering/1", url="tcp://127.0.0.1:9", params={})
    )


@env.template()
async def ask():
    answer = yield "Well?"
    yield 1.0 if answer == "well" else 0.0

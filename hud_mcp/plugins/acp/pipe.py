"""A server of tools over standard input and output, which passes each message on over HTTP.

`python -m hud_mcp.plugins.acp.pipe FILE` is for agents that take no server over HTTP. The file,
which nobody else reads, has its address and its token: arguments and variables are seen by others.
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import orjson

from hud_mcp.base import libraries
from hud_mcp.plugins.acp import libraries as wires


async def pipe(url: str, token: str) -> None:
    """Pass messages on until standard input ends."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        # A call of a tool may take long.
        libraries.httpx2.AsyncClient(headers=headers, timeout=None) as client,
        libraries.streamable_http_client(url, http_client=client) as (received, sent),
        anyio.create_task_group() as group,
    ):
        group.start_soon(_write, received)
        async for line in anyio.wrap_file(sys.stdin.buffer):
            if line.strip():
                await sent.send(
                    wires.SessionMessage(wires.jsonrpc_message_adapter.validate_json(line))
                )
        group.cancel_scope.cancel()


async def _write(received: Any) -> None:
    output = anyio.wrap_file(sys.stdout.buffer)
    async for each in received:
        if not isinstance(each, Exception):
            message = each.message.model_dump(mode="json", by_alias=True, exclude_none=True)
            await output.write(orjson.dumps(message) + b"\n")
            await output.flush()


if __name__ == "__main__":
    _given = orjson.loads(Path(sys.argv[1]).read_bytes())
    anyio.run(pipe, _given["url"], _given["token"])

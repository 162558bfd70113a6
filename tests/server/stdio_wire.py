"""Probes that are served over pipes or by a child process, and the client's ends of them."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp.server.stdio.descriptors import StdioStreams
from hud_mcp.server.stdio.dispatcher import StdioLimits
from hud_mcp.server.stdio.serve import StopReason, serve_stdio
from server import stdio_probe
from server.stdio_probe import Json, Probe

MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Wire:
    """The client's ends: frames out, frames in, and nothing that knows the protocol."""

    def __init__(self, to_server: int, from_server: int) -> None:
        self._to_server = to_server
        self._from_server = from_server
        self._buffer = b""
        os.set_blocking(to_server, False)
        os.set_blocking(from_server, False)

    async def send(self, *messages: Json | bytes) -> None:
        """Write messages, each as one line; bytes are written as they are."""
        data = b"".join(
            message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            for message in messages
        )
        while data:
            await anyio.wait_writable(self._to_server)
            data = data[os.write(self._to_server, data) :]

    async def receive(self) -> Json:
        """Read one message."""
        while b"\n" not in self._buffer:
            await anyio.wait_readable(self._from_server)
            chunk = os.read(self._from_server, 1 << 20)
            if not chunk:
                raise EOFError(self._buffer)
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def answers(self, count: int) -> dict[Any, Json]:
        """Read so many answers; by id, each of which comes once."""
        found: dict[Any, Json] = {}
        while len(found) < count:
            message = await self.receive()
            assert message["id"] not in found
            found[message["id"]] = message
        return found

    async def shake_hands(self) -> None:
        """Open a connection of the handshake era."""
        await self.send(request("init", "initialize", HELLO))
        assert (await self.receive())["result"]["protocolVersion"] == "2025-11-25"
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def hang_up(self) -> None:
        """Close the way to the server."""
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1

    def stop_reading(self) -> None:
        """Close the way from the server."""
        if self._from_server >= 0:
            os.close(self._from_server)
            self._from_server = -1


def request(request_id: int | str, method: str, params: Json | None = None) -> Json:
    """Make a request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def call(request_id: int | str, tool: str, *, meta: Json = MODERN, **arguments: Any) -> Json:
    """Make a tool call; `key` among the arguments is what the probe records it as."""
    return request(request_id, "tools/call", {"name": tool, "arguments": arguments, **meta})


def code(message: Json) -> int:
    """Read an answer's error code."""
    return message["error"]["code"]


def text(message: Json) -> str:
    """Read a tool call's text."""
    return message["result"]["content"][0]["text"]


class Served:
    """A probe that is being served, and the client's ends of it."""

    def __init__(self, probe: Probe, wire: Wire) -> None:
        self.probe = probe
        self.wire = wire
        self.reason: StopReason | None = None
        self.ended = anyio.Event()

    async def run(self, streams: StdioStreams, limits: StdioLimits) -> None:
        """Serve to the end, and keep the reason."""
        try:
            self.reason = await serve_stdio(self.probe.server, streams, limits)
        finally:
            self.ended.set()


@asynccontextmanager
async def serving(
    probe: Probe | None = None, *, within_s: float = PATIENCE_S, **limits: Any
) -> AsyncIterator[Served]:
    """Serve a probe over two pipes, and hang up in the end."""
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    served = Served(probe or Probe(), Wire(client_out, client_in))
    try:
        with anyio.fail_after(within_s):
            async with anyio.create_task_group() as tasks:
                streams = StdioStreams(server_in, server_out)
                tasks.start_soon(served.run, streams, StdioLimits(**limits))
                yield served
                served.wire.hang_up()
                await served.ended.wait()
    finally:
        served.wire.hang_up()
        served.wire.stop_reading()
        os.close(server_in)
        os.close(server_out)


def child_env() -> dict[str, str]:
    """What a child needs to import the package from where this process did."""
    return {"PYTHONPATH": str(Path(hud_mcp.__file__).parents[1])}


@asynccontextmanager
async def child(*arguments: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], Wire]]:
    """Start the probe as a server in a process of its own."""
    process = subprocess.Popen(  # noqa: ASYNC220 - its raw pipes are the point
        [sys.executable, stdio_probe.__file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **child_env()},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    wire = Wire(os.dup(process.stdin.fileno()), process.stdout.fileno())
    process.stdin.close()
    process.stdin = None  # only the wire holds the way to the server
    try:
        with anyio.fail_after(PATIENCE_S):
            yield process, wire
    finally:
        wire.hang_up()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

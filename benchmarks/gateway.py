"""The time to the first byte of a model's reply through the gateway, beside the direct way.

    python benchmarks/gateway.py [BYTES]

A provider on loopback and the gateway have a process each; the client alternates between both ways
in one run. Then 64 streams run at once, on each way. Beside the times stands the processor time of
the gateway for one exchange, which other programs of the machine change least.
"""

import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

SECRET = "sk-the-key-of-the-benchmark"  # no key of anybody's
ROUNDS, AT_ONCE = 150, 64
EVENTS = [
    {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 100}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *[
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
        for _ in range(20)
    ],
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]
CHUNKS = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in EVENTS]


async def provide() -> None:
    """Be the provider."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"transfer-encoding: chunked\r\n\r\n"
                )
                for chunk in CHUNKS:
                    writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**25)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def stand_between(port: str) -> None:
    """Be the gateway."""
    from hud_mcp.agents.agent import Agent  # noqa: PLC0415  # in this process alone
    from hud_mcp.plugins.models.gateway.choice import choose  # noqa: PLC0415
    from hud_mcp.plugins.models.gateway.gateway import gateway_of  # noqa: PLC0415
    from hud_mcp.plugins.models.options import ModelOptions  # noqa: PLC0415

    async def record(_turn: object) -> None:
        """Keep nothing: a store takes as long with or without a gateway."""

    url = f"http://127.0.0.1:{port}"
    options = ModelOptions(name="anthropic:claude-opus-5", base_url=url)
    async with gateway_of(choose(options, None), options) as gateway:
        runs = [
            gateway.opened(Agent(record, session="s", prompt=""), record)  # type: ignore[arg-type]
            for _ in range(AT_ONCE)
        ]
        keys = [(await run.__aenter__()).key for run in runs]
        print(gateway.url.rpartition(":")[2], *keys, flush=True)
        await asyncio.sleep(3600)


@contextmanager
def process(*arguments: str) -> Iterator[tuple[list[str], psutil.Process]]:
    """Another process of this file, and the words that it says first."""
    variables = {**os.environ, "ANTHROPIC_API_KEY": SECRET}
    with subprocess.Popen(  # this file
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, env=variables
    ) as started:
        try:
            assert started.stdout is not None
            yield started.stdout.readline().split(), psutil.Process(started.pid)
        finally:
            started.kill()


def first_bytes_ms(port: str, body: bytes, key: str, times: int) -> list[float]:
    """The milliseconds to the first byte of each of some replies, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        connection.request("POST", "/v1/messages", body, headers_of(key))
        reply = connection.getresponse()
        reply.read(1)
        found.append((time.perf_counter() - began) * 1e3)
        reply.read()
    return found


def headers_of(key: str) -> dict[str, str]:
    """The headers of a request."""
    return {"content-type": "application/json", "x-api-key": key}


async def at_once_ms(port: str, body: bytes, keys: list[str]) -> tuple[list[float], float]:
    """The milliseconds to the first byte of each of some streams, and to the end of them all."""

    async def one(key: str) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers_of(key).items())
        began = time.perf_counter()
        writer.write(
            f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(body)}\r\n"
            "\r\n".encode()
            + body
        )
        assert await reader.readuntil(b"\r\n\r\n")
        assert await reader.read(1)
        took_ms = (time.perf_counter() - began) * 1e3
        await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
        return took_ms

    began = time.perf_counter()
    found = await asyncio.gather(*[one(key) for key in keys])
    return found, (time.perf_counter() - began) * 1e3


def cpu_s(process: psutil.Process) -> float:
    """The processor seconds of a process."""
    times = process.cpu_times()
    return times.user + times.system


def measure(size: int) -> None:
    """Print the figures."""
    said = [{"role": "user", "content": "x" * size}]
    body = json.dumps(
        {"model": "claude-opus-5", "max_tokens": 100, "stream": True, "messages": said}
    ).encode()
    with process("provider") as (words, _), process("gateway", words[0]) as (found, between):
        direct, (through, *keys) = words[0], found
        took: dict[str, list[float]] = {direct: [], through: []}
        for port in (direct, through):
            first_bytes_ms(port, body, keys[0], 20)
        began_s = cpu_s(between)
        for _ in range(6):
            for port in took:
                took[port] += first_bytes_ms(port, body, keys[0], ROUNDS // 6)
        used_ms = (cpu_s(between) - began_s) / ROUNDS * 1e3
        one = [statistics.median(took[port]) for port in (direct, through)]
        print(f"a body of {len(body):,} bytes, {len(CHUNKS)} events")
        print(f"first byte, alone: direct {one[0]:.2f} ms, through the gateway {one[1]:.2f} ms: "
              f"{one[1] - one[0]:.2f} ms more, {one[1] / one[0]:.1f} times")  # fmt: skip
        print(f"processor time of the gateway: {used_ms:.2f} ms an exchange")
        firsts: dict[str, list[float]] = {direct: [], through: []}
        wholes: dict[str, list[float]] = {direct: [], through: []}
        for _ in range(5):
            for port in firsts:
                first, whole = asyncio.run(at_once_ms(port, body, keys))
                firsts[port] += first
                wholes[port].append(whole)
        told = [(statistics.median(firsts[at]), statistics.median(wholes[at])) for at in firsts]
        print(f"{AT_ONCE} streams at once, first byte: direct {told[0][0]:.0f} ms, through the "
              f"gateway {told[1][0]:.0f} ms: {told[1][0] / told[0][0]:.1f} times; to the end of "
              f"all {told[0][1]:.0f} and {told[1][1]:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["provider"]:
            asyncio.run(provide())
        case ["gateway", port]:
            asyncio.run(stand_between(port))
        case arguments:
            measure(int(arguments[0]) if arguments else 60_000)

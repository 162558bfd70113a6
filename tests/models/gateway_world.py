"""A gateway between clients of HTTP and a provider on loopback whose every byte a test decides.

The gateway is opened as a job opens it, and its clients and the provider speak over sockets.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from waiting import PATIENCE_S

from hud_mcp.agents.agent import Agent
from hud_mcp.plugins.models.gateway.choice import choose
from hud_mcp.plugins.models.gateway.gateway import Gateway, OpenRun, gateway_of
from hud_mcp.plugins.models.gateway.http1 import Bounds
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.values.model_turn import ModelTurn

__all__ = [
    "MESSAGE",
    "SECRET",
    "STREAMED",
    "Got",
    "Opened",
    "RunHere",
    "Writer",
    "gateway_to",
    "provider",
    "said",
    "spoken",
    "sse",
]

SECRET = "sk-the-secret-of-the-provider-0123456789"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without certificates, which take longer to load than a request on loopback."""
MODELS = {
    "anthropic": "claude-opus-5",
    "openai": "gpt-5",
    "google": "gemini-2.5-pro",
    "openai-compatible": "some-model",
}


@dataclass(frozen=True)
class Got:
    """A request that the provider got; names of headers in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


class Writer:
    """Writes one reply of the provider; its `connection` is the port of the other side."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream
        self.connection: int = stream.get_extra_info("peername")[1]

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._stream.write(data)
        await self._stream.drain()

    async def begin(self, content_type: str = "text/event-stream", status: int = 200) -> None:
        """Begin a reply in chunks."""
        await self.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\nrequest-id: req_1\r\n"
            "transfer-encoding: chunked\r\n\r\n".encode()
        )

    async def chunk(self, data: bytes) -> None:
        """Write a chunk."""
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """End a reply in chunks."""
        await self.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Cut the connection."""
        self._stream.transport.abort()

    async def whole(
        self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a whole reply of JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        await self.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{more}"
            f"content-length: {len(data)}\r\n\r\n".encode()
            + data
        )

    async def stream(self, chunks: list[bytes]) -> None:
        """Write a whole stream."""
        await self.begin()
        for chunk in chunks:
            await self.chunk(chunk)
        await self.end()


Reply = Callable[[Got, Writer], Awaitable[None]]


@dataclass
class Provider:
    """A provider that runs.

    Attributes:
        url: Its address, without a path.
        got: Every request so far.
    """

    url: str
    got: list[Got] = field(default_factory=list)


@asynccontextmanager
async def provider(reply: Reply) -> AsyncIterator[Provider]:
    """A provider that answers as a function says, until the end of the block."""

    async def serve(reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        tasks.add(task := asyncio.current_task())
        try:
            while True:
                got = await _read(reader)
                there.got.append(got)
                await reply(got, Writer(stream))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            stream.close()

    tasks: set[asyncio.Task[Any] | None] = set()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**25)
    there = Provider(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield there
    finally:
        server.close()
        for task in [*tasks]:
            if task is not None:
                task.cancel()


async def _read(reader: asyncio.StreamReader) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines) if n}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = first.split(" ")
    return Got(method, target, headers, body)


@dataclass
class RunHere:
    """A run of the gateway.

    Attributes:
        turns: Its recorded turns.
    """

    opened: OpenRun
    agent: Agent
    turns: list[ModelTurn]

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self.opened.url

    @property
    def key(self) -> str:
        """The run's key."""
        return self.opened.key

    async def ask(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> httpx2.Response:
        """Send a request with the run's key, and read its whole reply."""
        async with httpx2.AsyncClient(timeout=PATIENCE_S, verify=NO_TLS, trust_env=False) as client:
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            given = {"x-api-key": self.key} if headers is None else headers
            return await client.request(method, f"{self.url}{path}", content=sent, headers=given)

    @asynccontextmanager
    async def asking(self, path: str, body: Any) -> AsyncIterator[httpx2.Response]:
        """Send a request, and give the reply as its head has come."""
        async with httpx2.AsyncClient(timeout=PATIENCE_S, verify=NO_TLS, trust_env=False) as client:
            given = {"x-api-key": self.key}
            url = f"{self.url}{path}"
            async with client.stream("POST", url, json=body, headers=given) as reply:
                yield reply

    async def raw(self, data: bytes, *, until: bytes = b"") -> bytes:
        """Send bytes over a new connection; return what comes until some bytes, or its end."""
        port = int(self.url.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            with suppress(anyio.BrokenResourceError):
                await stream.send(data)
            came = b""
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while not until or until not in came:
                    came += await stream.receive()
            return came


@dataclass
class Opened:
    """An open gateway."""

    gateway: Gateway

    @asynccontextmanager
    async def run(
        self, record: Callable[[ModelTurn], Awaitable[None]] | None = None
    ) -> AsyncIterator[RunHere]:
        """Open a run."""

        async def no_tools(*_: Any, **__: Any) -> Any:
            raise AssertionError

        turns: list[ModelTurn] = []

        async def keep(turn: ModelTurn) -> None:
            if record is not None:
                await record(turn)
            turns.append(turn)

        agent = Agent(no_tools, session="s", prompt="p")
        async with self.gateway.opened(agent, keep) as opened:
            yield RunHere(opened, agent, turns)


@asynccontextmanager
async def gateway_to(
    url: str,
    provider: str = "anthropic",
    *,
    bounds: Bounds | None = None,
    max_turns: int | None = None,
    spent_usd: float = 0.0,
    **limits: Any,
) -> AsyncIterator[Opened]:
    """Open a gateway whose one model is a provider's at an address."""
    at = url if provider in ("anthropic", "google") else f"{url}/v1"
    options = ModelOptions(name=f"{provider}:{MODELS[provider]}", base_url=at, **limits)
    choice = choose(options, None)
    with anyio.fail_after(PATIENCE_S):
        async with gateway_of(
            choice, options, bounds=bounds or Bounds(), max_turns=max_turns, spent_usd=spent_usd
        ) as gateway:
            yield Opened(gateway)


MESSAGE = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi"}],
}
"""A request in Anthropic's dialect."""
STREAMED = MESSAGE | {"stream": True}


def spoken(text: str = "4", given: int = 100, made: int = 10) -> list[bytes]:
    """The events of a reply in Anthropic's dialect."""
    usage = {"input_tokens": given, "output_tokens": 1}
    return sse(
        {"type": "message_start", "message": {"id": "msg_1", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *[
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": letter}}
            for letter in text
        ],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": made}},
        {"type": "message_stop"},
    )  # fmt: skip


def said(text: str = "4", given: int = 100, made: int = 10) -> dict[str, Any]:
    """A whole reply in Anthropic's dialect."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": given, "output_tokens": made},
    }  # fmt: skip


def sse(*events: Mapping[str, Any]) -> list[bytes]:
    """The events of a stream, each with its type as its name."""
    return [
        (f"event: {event['type']}\n" if "type" in event else "").encode()
        + f"data: {json.dumps(event)}\n\n".encode()
        for event in events
    ]

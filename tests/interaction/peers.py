"""Both ends of a conversation: `hud-mcp serve` in a process of its own, and real clients of it."""

# ruff: noqa: ASYNC240  # what is waited for and read is made by another process

import base64
import contextlib
import math
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import httpx2
import orjson
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from waiting import PATIENCE_S, until

from hud_mcp.errors import SourceNotFound
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(__file__).resolve().parent / "environments"
BOARD = str(ENVIRONMENTS / "board.py")
FAULTY = str(ENVIRONMENTS / "faulty.py")
"""How long a test waits for anything before it fails."""

LEGACY, MODERN = "legacy", "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@dataclass(frozen=True)
class Way:
    """A transport and a protocol era."""

    transport: str
    era: str

    def __str__(self) -> str:
        return f"{self.transport}-{'legacy' if self.era == LEGACY else 'modern'}"

    @property
    def remembers(self) -> bool:
        """Whether the connection identifies its caller."""
        return self.transport == "stdio" or self.era == LEGACY


WAYS = [Way(t, e) for t in ("stdio", "http") for e in (LEGACY, MODERN)]


# ------------------------------------------------------------------------------- the server


def serve_arguments(sources: Sequence[str], store: Path | str, *options: str) -> list[str]:
    """The arguments of a server's process, after the interpreter."""
    return ["-m", "hud_mcp", "serve", *sources, "--store", str(store), *options]


def child_environment(**more: str) -> dict[str, str]:
    """An environment in which the package is found, installed or not."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HUD_MCP_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}


@dataclass
class HttpServer:
    """A running server on a loopback port."""

    process: subprocess.Popen[bytes]
    url: str
    store: Path
    log: Path

    def logged(self) -> str:
        """Everything on its stderr so far."""
        return self.log.read_text(errors="replace")


@contextmanager
def http_server(
    folder: Path,
    sources: Sequence[str],
    *options: str,
    env: Mapping[str, str] | None = None,
    within: Sequence[str] = (),
) -> Iterator[HttpServer]:
    """Start a server over HTTP, and kill it at the end if it still runs.

    `within` is a command that runs what follows it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store, log = folder / "store.sqlite3", folder / "stderr.log"
    arguments = serve_arguments(sources, store, "--http", "127.0.0.1:0", *options)
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*within, sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=child_environment(**(env or {})),
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("HUD_MCP_URL="), log.read_text()
        yield HttpServer(process, line.removeprefix("HUD_MCP_URL=").strip(), store, log)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# ------------------------------------------------------------------------------- the client


@dataclass(frozen=True)
class Reply:
    """A tool's result, checked by the SDK on its way in."""

    text: str
    image: bytes | None
    mime_type: str | None
    is_error: bool
    structured: dict[str, Any]
    meta: dict[str, Any]
    raw: Any

    @property
    def step(self) -> dict[str, Any]:
        """What a step says beside its content."""
        return self.meta["hud-mcp/step"]


@dataclass(frozen=True)
class Held:
    """A task that was started."""

    session: str
    trajectory: str
    prompt: str


@dataclass
class Peer:
    """A connected client of one server."""

    client: Client
    store: Path
    way: Way = field(default_factory=lambda: Way("stdio", LEGACY))

    async def call(self, tool: str, /, **arguments: Any) -> Reply:
        """Call a tool, whatever comes of it."""
        with anyio.fail_after(PATIENCE_S):
            return read_reply(await self.client.call_tool(tool, arguments))

    async def ok(self, tool: str, /, **arguments: Any) -> Reply:
        """Call a tool that must succeed."""
        reply = await self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply

    async def error(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, and return what it says."""
        reply = await self.call(tool, **arguments)
        assert reply.is_error, reply.text
        assert not reply.structured
        return reply.text

    async def start(self, template: str, /, **arguments: Any) -> Held:
        """Start a task of a template."""
        reply = await self.ok("start_task", template=template, arguments=arguments)
        return held(reply)

    async def status(self, session: str) -> dict[str, Any]:
        """Where a session stands."""
        return (await self.ok("task_status", session=session)).structured

    async def ended(self, session: str) -> dict[str, Any]:
        """Wait until a session has ended, and return its receipt."""

        async def receipt() -> dict[str, Any] | None:
            status = await self.status(session)
            return status["receipt"] if status["state"] == "ended" else None

        return await until(receipt)

    async def record(self, task: Held) -> Trajectory:
        """What the store has of a session, read as another process does."""
        return await load(self.store, task.trajectory)


def held(reply: Reply) -> Held:
    """What a start returned."""
    trajectory = reply.meta["hud-mcp/start"]["trajectory"]
    return Held(reply.structured["session"], trajectory, reply.structured["prompt"])


def read_reply(result: Any) -> Reply:
    """A result as its parts."""
    texts = [c.text for c in result.content if c.type == "text"]
    images = [c for c in result.content if c.type == "image"]
    assert len(images) <= 1
    if images:
        assert result.structured_content is None, "hosts then hide the picture"
    return Reply(
        text="\n".join(texts),
        image=base64.b64decode(images[0].data) if images else None,
        mime_type=images[0].mime_type if images else None,
        is_error=bool(result.is_error),
        structured=result.structured_content or {},
        meta=result.meta or {},
        raw=result,
    )


async def load(store: Path, trajectory: str) -> Trajectory:
    """Read one session's record from a store that another process writes."""
    reader = Store(store)
    try:
        with anyio.fail_after(PATIENCE_S):
            return await reader.load_trajectory(trajectory)
    finally:
        await reader.close()


async def load_all(store: Path, *, template: str | None = None) -> list[Trajectory]:
    """Read every record of a store, or those of one template."""

    def ids() -> list[str]:
        with contextlib.closing(sqlite3.connect(store)) as connection:
            query = "SELECT name FROM sqlite_master WHERE name = 'sessions'"
            if connection.execute(query).fetchone() is None:  # nothing was ever recorded
                return []
            query = "SELECT id FROM sessions WHERE ? IN ('', task ->> 'template') ORDER BY rowid"
            return [row[0] for row in connection.execute(query, (template or "",))]

    reader = Store(store)
    try:
        return [await reader.load_trajectory(i) for i in await anyio.to_thread.run_sync(ids)]
    finally:
        await reader.close()


async def load_when(
    store: Path, trajectory: str, wanted: Callable[[Trajectory], bool]
) -> Trajectory:
    """Read a record again and again until it is as wanted."""

    async def found() -> Trajectory | None:
        with contextlib.suppress(SourceNotFound):
            record = await load(store, trajectory)
            return record if wanted(record) else None
        return None

    return await until(found)


@asynccontextmanager
async def stdio_peer(
    folder: Path,
    sources: Sequence[str],
    *options: str,
    era: str = LEGACY,
    env: Mapping[str, str] | None = None,
    python: Path | str = sys.executable,
    **client_options: Any,
) -> AsyncIterator[Peer]:
    """Connect to a server that the client starts; its stderr goes to `stderr.log`."""
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "store.sqlite3"
    parameters = StdioServerParameters(
        command=str(python),
        args=serve_arguments(sources, store, *options),
        env=child_environment(**(env or {})),
    )
    with (folder / "stderr.log").open("a") as errors:
        client = Client(stdio_client(parameters, errlog=errors), mode=era, **client_options)
        async with connected(client):
            yield Peer(client, store, Way("stdio", era))


@asynccontextmanager
async def http_peer(
    server: HttpServer,
    *,
    era: str = LEGACY,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    **client_options: Any,
) -> AsyncIterator[Peer]:
    """Connect to a server over HTTP."""
    sent = dict(headers or {})
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    timeout = httpx2.Timeout(PATIENCE_S, read=None)
    async with httpx2.AsyncClient(headers=sent, timeout=timeout) as web:
        transport = streamable_http_client(server.url, http_client=web)
        client = Client(transport, mode=era, **client_options)
        async with connected(client):
            yield Peer(client, server.store, Way("http", era))


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[Client]:
    """Connect a client, within a bound."""
    with anyio.fail_after(PATIENCE_S) as bound:
        async with client:
            bound.deadline = math.inf
            yield client


# ------------------------------------------------------------------------------- raw wires


@dataclass
class RawStdio:
    """A server on two pipes, and every byte that it wrote."""

    process: anyio.abc.Process
    store: Path
    log: Path
    written: bytearray = field(default_factory=bytearray)
    answers: dict[Any, dict[str, Any]] = field(default_factory=dict)
    order: list[Any] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    changed: anyio.Event = field(default_factory=anyio.Event)
    eof: anyio.Event = field(default_factory=anyio.Event)
    last_id: int = 0

    async def read(self) -> None:
        """Take in everything, and file the answers under their ids."""
        assert self.process.stdout is not None
        rest = b""
        async for chunk in self.process.stdout:
            self.written += chunk
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                message = orjson.loads(line)  # anything else on stdout is a fault
                assert message["jsonrpc"] == "2.0"
                if message.get("id", 0) is None:
                    self.refusals.append(message)  # the answer to what was no request
                elif "method" not in message:
                    assert message["id"] not in self.answers, "answered twice"
                    self.answers[message["id"]] = message
                    self.order.append(message["id"])
            self.changed.set()
            self.changed = anyio.Event()
        assert rest == b""
        self.eof.set()
        self.changed.set()

    async def send(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", **more, "method": method, "params": params or {}}
        await self.process.stdin.send(orjson.dumps(message) + b"\n")

    async def post(self, tool: str, arguments: dict[str, Any], *, modern: bool = False) -> int:
        """Send a tool call without waiting, and return its id."""
        self.last_id += 1
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if modern:
            params["_meta"] = ENVELOPE
        await self.send("tools/call", params, id=self.last_id)
        return self.last_id

    async def answer(self, request_id: Any) -> dict[str, Any]:
        """Wait for the answer to a request."""
        with anyio.fail_after(PATIENCE_S):
            while request_id not in self.answers:
                assert not self.eof.is_set(), self.log.read_text(errors="replace")
                await self.changed.wait()
        return self.answers[request_id]

    async def call(self, tool: str, *, modern: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        answer = await self.answer(await self.post(tool, arguments, modern=modern))
        assert "result" in answer, answer
        return answer["result"]

    async def state(self, session: str) -> str:
        """Where a session stands, for a 2025-era client."""
        return (await self.call("task_status", session=session))["structuredContent"]["state"]

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send any request and return its whole answer."""
        self.last_id += 1
        await self.send(method, params, id=self.last_id)
        return await self.answer(self.last_id)

    async def hello(self) -> None:
        """Begin as a 2025-era client."""
        await self.request("initialize", HELLO)
        await self.send("notifications/initialized")

    async def close_stdin(self) -> None:
        """Leave, as a client does."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def exit_status(self, within_s: float = PATIENCE_S) -> int:
        """Wait until it has exited, which may take so long."""
        with anyio.fail_after(within_s):
            return await self.process.wait()


@asynccontextmanager
async def raw_stdio(
    folder: Path,
    sources: Sequence[str],
    *options: str,
    env: Mapping[str, str] | None = None,
    **process_options: Any,
) -> AsyncIterator[RawStdio]:
    """Start a server on pipes of our own; killed at the end if it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    store, log = folder / "store.sqlite3", folder / "stderr.log"
    with log.open("ab") as errors:
        process = await anyio.open_process(
            [sys.executable, *serve_arguments(sources, store, *options)],
            stderr=errors,
            env=child_environment(**(env or {})),
            **process_options,
        )
    async with process, anyio.create_task_group() as group:
        raw = RawStdio(process, store, log)
        group.start_soon(raw.read)
        try:
            yield raw
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await process.wait()
                await raw.eof.wait()
            group.cancel_scope.cancel()


@dataclass(frozen=True)
class Gate:
    """Two files by which a test stops and releases a template or a world in the server."""

    folder: Path
    name: str

    @property
    def entered(self) -> str:
        """Made by the server when it arrives."""
        return str(self.folder / f"{self.name}.entered")

    @property
    def path(self) -> str:
        """Made by the test when it may go on."""
        return str(self.folder / f"{self.name}.gate")

    def hold(self) -> dict[str, Any]:
        """The board's action that stops here."""
        args = {"entered": self.entered, "gate": self.path}
        return {"type": "custom", "action": "hold", "args": args}

    async def arrived(self) -> None:
        """Wait until the server is there."""
        await until(Path(self.entered).exists)

    def open(self) -> None:
        """Let it go on."""
        Path(self.path).touch()


@dataclass
class RawHttp:
    """A 2025- or 2026-era client of a URL that keeps every byte that it receives."""

    web: httpx.AsyncClient
    url: str
    era: str
    received: bytearray = field(default_factory=bytearray)
    session_id: str | None = None
    last_id: int = 0

    def message(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """A request's body and headers."""
        self.last_id += 1
        headers = {"accept": "application/json, text/event-stream"}
        if self.era == MODERN:
            params = {**params, "_meta": ENVELOPE}
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            if (name := params.get("name") or params.get("uri")) is not None:
                headers["mcp-name"] = name
        elif self.session_id is not None:
            headers |= {"mcp-protocol-version": "2025-11-25", "mcp-session-id": self.session_id}
        body = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        return body, headers

    async def request(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        """Send a request and return its whole answer."""
        body, sent = self.message(method, params)
        with anyio.fail_after(PATIENCE_S):
            reply = await self.web.post(self.url, json=body, headers={**sent, **headers})
        self.received += str(reply.status_code).encode() + repr(reply.headers.raw).encode()
        self.received += reply.content
        self.session_id = reply.headers.get("mcp-session-id", self.session_id)
        for line in reply.text.splitlines():
            if line.startswith("data: {"):
                message = orjson.loads(line.removeprefix("data: "))
                if "id" in message:
                    return message
        return orjson.loads(reply.content)

    async def hello(self) -> None:
        """Begin, where an era has a beginning."""
        if self.era == MODERN:
            await self.request("server/discover", {})
            return
        await self.request("initialize", HELLO)
        body, headers = self.message("notifications/initialized", {})
        del body["id"]
        await self.web.post(self.url, json=body, headers=headers)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]

    async def drop_when(self, arrived: Gate, tool: str, **arguments: Any) -> None:
        """Call a tool, and break the connection once the server is at the gate."""
        body, headers = self.message("tools/call", {"name": tool, "arguments": arguments})
        async with anyio.create_task_group() as group:

            async def send() -> None:
                async with httpx.AsyncClient(headers=self.web.headers, timeout=None) as own:
                    await own.post(self.url, json=body, headers=headers)

            group.start_soon(send)
            await arrived.arrived()
            group.cancel_scope.cancel()


@asynccontextmanager
async def raw_http(url: str, era: str, *, token: str | None = None) -> AsyncIterator[RawHttp]:
    """Speak to a URL without the SDK."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S) as web:
        raw = RawHttp(web, url, era)
        await raw.hello()
        yield raw


def seconds_since(began: float) -> float:
    """By the clock that tests measure with."""
    return time.monotonic() - began

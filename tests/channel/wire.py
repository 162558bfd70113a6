"""The bare wire: a peer that sends what it likes, and servers to send it to."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from waiting import PATIENCE_S, until

from hud_mcp import Environment
from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS, Channel
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store

ROOT = Path(__file__).resolve().parents[2]
TALK = Path(__file__).resolve().parent / "environments" / "talk.py"


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.text = error["message"]
        self.data = error.get("data")


@dataclass
class Wire:
    """A connection on which any bytes can be sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: str = ""
    last: int = 0
    replies: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)

    def ask(self, method: str, /, **params: Any) -> int:
        """Send a request, and return its id."""
        self.last += 1
        frame = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.send(json.dumps(frame).encode() + b"\n")
        return self.last

    async def frame(self) -> dict[str, Any] | None:
        """The next frame; None at the end."""
        with anyio.fail_after(PATIENCE_S):
            line = await self.reader.readline()
        if not line:
            return None
        assert line.endswith(b"\n")
        return json.loads(line)

    async def reply(self, request_id: Any) -> dict[str, Any]:
        """The reply to one request, whatever comes before it."""
        while request_id not in self.replies:
            frame = await self.frame()
            assert frame is not None, "the connection ended"
            self.replies[frame["id"]] = frame
        return self.replies.pop(request_id)

    async def result(self, request_id: Any) -> dict[str, Any]:
        """The result of one request; its error is raised."""
        reply = await self.reply(request_id)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["result"]

    async def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Ask and wait."""
        return await self.result(self.ask(method, **params))

    async def refused(self, method: str, /, **params: Any) -> Refused:
        """Ask for what must be refused."""
        try:
            result = await self.call(method, **params)
        except Refused as exc:
            return exc
        raise AssertionError(f"{method} was not refused: {result}")

    async def hello(self, **params: Any) -> dict[str, Any]:
        """Say hello, and remember the session."""
        result = await self.call("hello", **params)
        self.session = result["session_id"]
        return result

    async def start(self, task: str, /, **args: Any) -> dict[str, Any]:
        """Start a task."""
        return await self.call("tasks.start", id=task, args=args)

    async def grade(self, answer: Any) -> dict[str, Any]:
        """Submit an answer."""
        return await self.call("tasks.grade", answer=answer)

    async def ended(self) -> bytes:
        """What comes until the other side ends the connection."""
        with anyio.fail_after(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b"reset"

    def drop(self) -> None:
        """Be gone without a word."""
        self.writer.transport.abort()


@asynccontextmanager
async def wire(port: int, *, hello: bool = True, **params: Any) -> AsyncIterator[Wire]:
    """Connect, and say hello where nothing else is wanted."""
    with anyio.fail_after(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
    found = Wire(reader, writer)
    try:
        if hello:
            await found.hello(**params)
        yield found
    finally:
        writer.transport.abort()


@dataclass
class Served:
    """A channel in this process."""

    port: int
    channel: Channel
    sessions: Sessions


@asynccontextmanager
async def served(
    env: Environment, store: Path, *, limits: Limits = CHANNEL_LIMITS, **options: Any
) -> AsyncIterator[Served]:
    """Serve an environment in this process."""
    sessions = Sessions([env], store=Store(store), limits=limits)
    channel = Channel(env, sessions=sessions, closes_sessions=True, **options)
    try:
        server = await channel.listen()
        yield Served(server.sockets[0].getsockname()[1], channel, sessions)
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


@dataclass
class Process:
    """A channel in a process of its own."""

    popen: subprocess.Popen[bytes]
    port: int
    log: Path

    def logged(self) -> str:
        """Everything on its stderr so far."""
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """End it as a crash does."""
        self.popen.kill()
        self.popen.wait(PATIENCE_S)

    def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(PATIENCE_S)


def child_environment(**more: str) -> dict[str, str]:
    """An environment in which the package is found, installed or not."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HUD_MCP_")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@contextmanager
def process(
    store: Path,
    *options: str,
    source: Path | str = TALK,
    command: tuple[str, ...] = (),
    python: Path | str = sys.executable,
) -> Iterator[Process]:
    """Serve in a process of its own, and kill it at the end if it still runs."""
    log = store.parent / "stderr.log"
    command = command or ("-m", "hud_mcp.channel", str(source), "--store", str(store))
    with log.open("ab") as errors:
        popen = subprocess.Popen(
            [str(python), *command, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=child_environment(),
        )
    try:
        assert popen.stdout is not None
        line = popen.stdout.readline().decode()
        assert line.startswith("HUD_SERVE_PORT="), log.read_text()
        yield Process(popen, int(line.removeprefix("HUD_SERVE_PORT=")), log)
    finally:
        popen.kill()
        popen.wait()
        popen.stdout.close()


@dataclass(frozen=True)
class Gate:
    """A place where a template waits."""

    path: str

    async def reached(self) -> None:
        """Wait until the template is there."""
        await until(Path(f"{self.path}.reached").exists)

    def open(self) -> None:
        """Let it go on."""
        Path(f"{self.path}.open").touch()

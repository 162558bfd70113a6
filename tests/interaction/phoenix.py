"""A server that is killed and started again on the same store, and conversations that go on."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import psutil
from peers import MODERN, PATIENCE_S, RawHttp, child_environment, serve_arguments

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

__all__ = ["Call", "Conversation", "Phoenix", "act", "step"]


class Phoenix:
    """One server process at a time, each on the same store.

    Args:
        folder: For its store and its log.
        sources: Its environments.
        options: More for `serve`.
        store: A database's URL, where the store is not a file in the folder.
        enter: What its command begins with.
    """

    def __init__(
        self,
        folder: Path,
        sources: Sequence[str],
        *options: str,
        store: str | None = None,
        enter: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.store = store or folder / "store.sqlite3"
        self.kills = 0
        self._arguments = serve_arguments(
            sources, self.store, "--http", "127.0.0.1:0", "--limit", "sessions=512", *options
        )
        self._enter = enter
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""
        self._up = anyio.Event()

    async def start(self) -> None:
        """Start a server, and return when it answers."""
        with (self.folder / "stderr.log").open("ab") as errors:
            self._process = await anyio.to_thread.run_sync(
                lambda: subprocess.Popen(
                    [*self._enter, sys.executable, *self._arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=child_environment(),
                )
            )
        assert self._process.stdout is not None
        line = (await anyio.to_thread.run_sync(self._process.stdout.readline)).decode()
        assert line.startswith("HUD_MCP_URL="), self.log()
        self._url = line.removeprefix("HUD_MCP_URL=").strip()
        self._up.set()

    def kill(self) -> None:
        """End the server without a warning; those who call wait for the next one."""
        assert self._process is not None
        self._up = anyio.Event()
        self.kills += 1
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> None:
        """Ask the server to end, and wait until it has; those who call wait for the next one."""
        assert self._process is not None
        self._up = anyio.Event()
        self._process.terminate()
        self.wait()

    def wait(self) -> None:
        """Wait until the server has ended by itself."""
        assert self._process is not None
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def children(self) -> list[psutil.Process]:
        """Every process that the server has started, and that those have."""
        assert self._process is not None
        return psutil.Process(self._process.pid).children(recursive=True)

    async def kill_and_start(self) -> None:
        """One life after another."""
        self.kill()
        await self.start()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the server that runs, over a connection of its own.

        Raises:
            httpx.TransportError: The server died before its reply was read.
        """
        await self._up.wait()
        async with httpx.AsyncClient(timeout=PATIENCE_S) as web:
            return await RawHttp(web, self._url, MODERN).call(tool, **arguments)

    def log(self) -> str:
        """Everything that the servers wrote to stderr."""
        return (self.folder / "stderr.log").read_text(errors="replace")

    def query(self, text: str, *values: Any) -> list[Any]:
        """Look into the store as it is now."""
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as connection:
            return connection.execute(text, values).fetchall()

    def write(self, text: str, *values: Any) -> None:
        """Change the store, as an older version's server would have left it."""
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as connection, connection:
            connection.execute(text, values)


@asynccontextmanager
async def phoenix(
    folder: Path,
    sources: Sequence[str],
    *options: str,
    store: str | None = None,
    enter: Sequence[str] = (),
) -> AsyncIterator[Phoenix]:
    """A server that can be killed and started again; killed at the end."""
    bird = Phoenix(folder, sources, *options, store=store, enter=enter)
    await bird.start()
    try:
        yield bird
    finally:
        bird.kill()


@dataclass(frozen=True)
class Call:
    """One call of a conversation, and how many steps it adds to the record."""

    tool: str
    arguments: dict[str, Any]
    steps: int = 1


def step(*actions: dict[str, Any]) -> Call:
    """A step of several actions."""
    return Call("step", {"actions": list(actions)})


def act(kind: str, **fields: Any) -> Call:
    """A step of one."""
    return Call("act", {"type": kind, **fields})


@dataclass
class Conversation:
    """A client that follows a script, whatever happens to the server.

    Where the connection broke, it asks how many steps there are: a call that was recorded
    is not repeated.
    """

    bird: Phoenix
    template: str
    arguments: dict[str, Any]
    script: Sequence[Call]
    answer: str
    session: str = ""
    trajectory: str = ""
    begun: int = 0
    recorded: int = 0
    texts: list[str] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)

    async def start(self) -> None:
        """Start the task; where the reply was lost, start another one."""
        while not self.session:
            self.begun += 1
            with contextlib.suppress(httpx.TransportError):
                reply = await self.bird.call(
                    "start_task", template=self.template, arguments=self.arguments
                )
                assert not reply.get("isError"), reply
                self.session = reply["structuredContent"]["session"]
                self.trajectory = reply["_meta"]["hud-mcp/start"]["trajectory"]

    async def perform(self, call: Call) -> None:
        """Make one call of the script, once as far as the record is concerned."""
        while True:
            try:
                reply = await self.bird.call(call.tool, session=self.session, **call.arguments)
            except httpx.TransportError:
                if await self.steps() > self.recorded:
                    break
            else:
                self.texts.append(reply["content"][0]["text"])
                break
        self.recorded += call.steps

    async def respond(self) -> None:
        """Submit the answer until a receipt comes back."""
        while not self.receipts:
            with contextlib.suppress(httpx.TransportError):
                reply = await self.bird.call("response", session=self.session, answer=self.answer)
                assert not reply.get("isError"), reply["content"][0]["text"]
                self.receipts.append(reply["structuredContent"])

    async def play(self) -> None:
        """The whole conversation."""
        await self.start()
        for call in self.script[self.recorded :]:
            await self.perform(call)
        await self.respond()

    async def steps(self) -> int:
        """How many steps the server knows of."""
        while True:
            with contextlib.suppress(httpx.TransportError):
                reply = await self.bird.call("task_status", session=self.session)
                assert not reply.get("isError"), reply["content"][0]["text"]
                status = reply["structuredContent"]
                assert status["state"] != "ended", status
                return status["steps"]

    async def record(self) -> Trajectory:
        """What the store has of it."""
        reader = Store(self.bird.store)
        try:
            return await reader.load_trajectory(self.trajectory)
        finally:
            await reader.close()

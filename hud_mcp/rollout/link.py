"""A server in a process of its own, and one connection to it that tells when it has died.

This module owns the MCP clients of a run and the child processes that they reach; `pipe.py` has
the processes that take calls without MCP. Whoever calls through a link learns of a death at once:
no call waits for a reply that cannot come.
"""

import base64
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

import anyio
from anyio.streams.text import TextReceiveStream

from hud_mcp.base import libraries
from hud_mcp.base.secrets import hidden_for_children
from hud_mcp.errors import EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.caller import OPERATOR_TOKEN, STOPPING

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process
    from mcp.client.client import Client

__all__ = [
    "CALL_S",
    "START_S",
    "TOKENS",
    "Address",
    "ConnectionLost",
    "CurrentLink",
    "Link",
    "Reply",
    "ServerCommand",
    "Wire",
    "http_link",
    "own_environment",
    "reply_of",
    "stdio_link",
    "stopped_at_the_end",
    "web_link",
]

T = TypeVar("T")

START_S = 60.0
"""How long a server may take to answer at all."""
CALL_S = 600.0
"""How long one call may take; the server bounds its own work below that."""
_STOP_S = 10.0
"""How long a server may take to end in order."""
TOKENS = frozenset({OPERATOR_TOKEN, "HUD_MCP_TOKEN", "HUD_MCP_CHANNEL_TOKEN"})
"""Variables of this process that no server of a run is given."""
_BREAKS = 3
"""A connection that breaks this often in a row, to a process that lives, is no connection."""


class ConnectionLost(HudMcpError):
    """No reply came, as the server died. The call may or may not have been performed."""


@dataclass(frozen=True)
class ServerCommand:
    """How the server of a run is started.

    Attributes:
        sources: The environments.
        taskset: The file of tasks.
        store_url: Where it records.
        job_id: The job of all its sessions.
        log: Where its stderr goes.
        extra: More arguments for `serve`.
    """

    sources: Sequence[str]
    taskset: Path
    store_url: str
    job_id: str
    log: TextIO
    extra: Sequence[str] = field(default=())

    def arguments(self) -> list[str]:
        """The arguments after the interpreter."""
        options = ["--taskset", str(self.taskset), "--store", self.store_url, "--job", self.job_id]
        return ["-P", "-m", "hud_mcp", "serve", *self.sources, *options, *self.extra]

    def log_end(self, chars: int = 2000) -> str:
        """The end of its log, for an error."""
        self.log.flush()
        path = Path(self.log.name)
        return path.read_text(errors="replace")[-chars:].strip() if path.is_file() else ""


@dataclass
class Address:
    """Where agents reach a server over HTTP; the next one listens in the same place.

    Attributes:
        token: The bearer token.
        port: Of the loopback; 0 until the first server has taken a free one.
        url: Where MCP is answered; empty until then.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    port: int = 0
    url: str = ""

    def move(self, url: str) -> None:
        """Take note of where the next server answers; nowhere where that is empty."""
        self.url = url


@dataclass(frozen=True)
class Reply:
    """A tool's result, as an agent sees it."""

    text: str
    image: bytes | None = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    structured: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Wire(Protocol):
    """What carries the calls of a link."""

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None
    ) -> Reply:
        """Call a tool.

        Raises:
            OSError, BrokenResourceError, ClosedResourceError: The connection broke.
        """
        ...

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for what is not a tool.

        Raises:
            MCPError: The server refused.
            HudMcpError: Nobody was expected to ask.
            OSError, BrokenResourceError, ClosedResourceError: The connection broke.
        """
        ...

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """The record's id of a session, and its receipt, where a reply has told of its end."""
        ...


class Link:
    """One connection to one server process.

    Args:
        wire: Carries the calls.
        dies_with_connection: Whether a broken connection is the server's death, as on a pipe.

    Attributes:
        died: Set when the server has died.
        find_ended: The wire's.
    """

    def __init__(self, wire: Wire, *, dies_with_connection: bool) -> None:
        self.died = anyio.Event()
        self.find_ended = wire.find_ended
        self._wire = wire
        self._breaks_allowed = 0 if dies_with_connection else _BREAKS
        self._breaks = 0
        self._waiting: set[anyio.CancelScope] = set()

    def die(self) -> None:
        """Take note that the server is gone: whoever waits for a reply is told."""
        self.died.set()
        for scope in self._waiting:
            scope.cancel()

    async def call(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> Reply:
        """Call a tool.

        Raises:
            ConnectionLost: No reply came.
        """
        reply = await self._heard(self._wire.call(name, arguments, meta))
        self._breaks = 0
        if reply.is_error and reply.meta.get(STOPPING):
            self.die()  # as one that is killed: what became of the call is in the record
            raise ConnectionLost("The server is being stopped.")
        return reply

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask the server for anything: a tool's call, lists, resources, prompts.

        Raises:
            ConnectionLost: No reply came.
            MCPError: The server refused.
        """
        return await self._heard(self._wire.ask(request))

    async def _heard(self, reply: Coroutine[Any, Any, T]) -> T:
        if self.died.is_set():
            reply.close()
            raise ConnectionLost("The server has died.")
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await reply
            except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
                raise self._broken(exc) from exc
            finally:
                self._waiting.discard(scope)
        raise ConnectionLost("The server died before it replied.")

    def _broken(self, exc: Exception) -> ConnectionLost:
        self._breaks += 1
        if self._breaks > self._breaks_allowed:
            self.die()
        return ConnectionLost(f"The connection to the server broke: {exc}.")


class _McpWire:
    """Calls over MCP.

    Args:
        client: A connected client.
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None
    ) -> Reply:
        """Call a tool."""
        more: dict[str, Any] = {} if meta is None else {"meta": dict(meta)}
        try:
            result = await self.ask(
                lambda client: client.call_tool(
                    name, dict(arguments), read_timeout_seconds=CALL_S, **more
                )
            )
        except libraries.MCPError as exc:
            return Reply(exc.error.message, is_error=True)
        return _reply(result)

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for anything."""
        try:
            return await request(self._client)
        except libraries.MCPError as exc:
            if exc.error.code != libraries.mcp_types.CONNECTION_CLOSED:
                raise
            raise anyio.BrokenResourceError(str(exc)) from exc
        except libraries.httpx2.HTTPError as exc:
            raise anyio.BrokenResourceError(str(exc)) from exc

    def find_ended(self, session: str) -> None:
        """Nothing is known here of what a server has ended: the record is."""


class CurrentLink:
    """The link that there is now, of one server after the other.

    Attributes:
        link: It; None while there is none.
    """

    def __init__(self) -> None:
        self.link: Link | None = None
        self._changed = anyio.Event()

    def change(self, link: Link | None) -> None:
        """Have another one, or none; whoever waits for that looks again."""
        self.link = link
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait until `change` is called."""
        await self._changed.wait()


def reply_of(result: Mapping[str, Any]) -> Reply:
    """A tool's result in its wire form, as an agent sees it."""
    texts = [each["text"] for each in result["content"] if each["type"] == "text"]
    images = [each["data"] for each in result["content"] if each["type"] == "image"]
    return Reply(
        text="\n".join(texts),
        image=base64.b64decode(images[0]) if images else None,
        is_error=bool(result.get("isError")),
        meta=result.get("_meta") or {},
        structured=result.get("structuredContent") or {},
    )


@asynccontextmanager
async def stdio_link(command: ServerCommand) -> AsyncGenerator[Link]:
    """Start a server, connect over stdio, and stop it at the end.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    parameters = libraries.StdioServerParameters(
        command=sys.executable, args=command.arguments(), env=own_environment()
    )
    client = libraries.Client(
        libraries.stdio_client(parameters, errlog=command.log), read_timeout_seconds=START_S
    )
    async with AsyncExitStack() as stack:
        await _connect(stack, client, command)
        yield Link(_McpWire(client), dies_with_connection=True)


@asynccontextmanager
async def http_link(command: ServerCommand, address: Address) -> AsyncGenerator[Link]:
    """Start a server on a loopback port, connect, and stop it at the end.

    Args:
        command: How it is started.
        address: Where; its port and its URL are filled in.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    process = await anyio.open_process(
        [
            *(sys.executable, *command.arguments()),
            *("--http", f"127.0.0.1:{address.port}", "--end-with-stdin", "--token-from-stdin"),
        ],
        stdin=subprocess.PIPE,  # which closes with this process, and ends the server too
        stderr=command.log,
        env=own_environment(),
        start_new_session=True,  # Ctrl-C is for the run, which then stops its server in order
    )
    async with stopped_at_the_end(process), anyio.create_task_group() as group:
        await _hand_over(process, address.token)
        stdout = TextReceiveStream(_pipe(process))
        address.url = await _announced_url(stdout, command)
        address.port = int(address.url.rpartition(":")[2].partition("/")[0])
        async with web_link(address.url, address.token, command) as link:
            group.start_soon(_watch, process, link)
            group.start_soon(_drain, stdout)
            try:
                yield link
            finally:
                group.cancel_scope.cancel()


@asynccontextmanager
async def web_link(
    url: str, token: str, command: ServerCommand | None = None
) -> AsyncGenerator[Link]:
    """Connect to a server that runs, over HTTP.

    Args:
        url: Where it answers.
        token: The bearer token.
        command: How it was started, where that is known: its log goes into the error.

    Raises:
        EnvironmentFailed: It does not answer.
    """
    headers = {"Authorization": f"Bearer {token}"}
    timeout = libraries.httpx2.Timeout(30, read=None)
    async with (
        libraries.httpx2.AsyncClient(headers=headers, timeout=timeout) as web,
        AsyncExitStack() as stack,
    ):
        transport = libraries.streamable_http_client(url, http_client=web)
        client = libraries.Client(transport, read_timeout_seconds=START_S)
        await _connect(stack, client, command)
        yield Link(_McpWire(client), dies_with_connection=False)


@asynccontextmanager
async def stopped_at_the_end(
    process: "Process", *, within_s: float = _STOP_S
) -> AsyncGenerator[None]:
    """Ask a process to end at the end of the block, and make it end where it does not in time."""
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
                with anyio.move_on_after(within_s):
                    await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def _watch(process: "Process", link: Link) -> None:
    await process.wait()
    link.die()


def own_environment() -> dict[str, str]:
    """What a server of a run finds in its environment: no token, as agents may read it there."""
    return {k: v for k, v in os.environ.items() if k not in TOKENS} | hidden_for_children()


async def _hand_over(process: "Process", token: str) -> None:
    """Give a server its token where no other process finds it: not in its environment."""
    if process.stdin is None:
        raise EnvironmentFailed("The server was started without a pipe to give it its token.")
    with suppress(anyio.BrokenResourceError, BrokenPipeError):  # a dead one is found out below
        await process.stdin.send(f"{token}\n".encode())


async def _drain(stdout: TextReceiveStream) -> None:
    """Take what else comes: a full pipe would stop the server."""
    async for _ in stdout:
        pass


def _pipe(process: "Process") -> "ByteReceiveStream":
    if process.stdout is None:
        raise EnvironmentFailed("The server was started without a pipe to read its address from.")
    return process.stdout


async def _connect(stack: AsyncExitStack, client: "Client", command: ServerCommand | None) -> None:
    try:
        await stack.enter_async_context(client)
    except (libraries.MCPError, OSError, TimeoutError, ExceptionGroup) as exc:
        raise EnvironmentFailed(
            f"The server did not start: {sole_cause(exc)}.\n{command.log_end() if command else ''}"
        ) from None


async def _announced_url(stdout: TextReceiveStream, command: ServerCommand) -> str:
    text = ""
    with anyio.move_on_after(START_S):
        async for chunk in stdout:
            text += chunk
            for line in text.splitlines(keepends=True):
                if line.startswith("HUD_MCP_URL=") and line.endswith("\n"):
                    return line.removeprefix("HUD_MCP_URL=").strip()
    raise EnvironmentFailed(f"The server did not start.\n{command.log_end()}")


def _reply(result: Any) -> Reply:
    texts = [c.text for c in result.content if c.type == "text"]
    images = [c.data for c in result.content if c.type == "image"]
    return Reply(
        text="\n".join(texts),
        image=base64.b64decode(images[0]) if images else None,
        is_error=bool(result.is_error),
        meta=result.meta or {},
        structured=result.structured_content or {},
    )

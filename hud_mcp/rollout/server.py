"""The servers of a job: processes that are started again when they die, or this process.

Sessions survive their server: a call waits for the next one, and its caller repeats a call that was
lost.
"""

import asyncio
import itertools
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import orjson
from anyio.abc import TaskStatus

from hud_mcp.agents.agent import Reply
from hud_mcp.base import libraries
from hud_mcp.base.lines import LineBuffer, dump_line
from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.record.values import Receipt
from hud_mcp.rollout import surfaces
from hud_mcp.rollout.link import (
    CALL_S,
    START_S,
    Address,
    CurrentLink,
    Link,
    Meta,
    ServerCommand,
    ServerLost,
    http_link,
    stdio_link,
)
from hud_mcp.server.local import LocalTools
from hud_mcp.session.caller import ONLY
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import ImageFormat

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream
    from mcp.client.client import Client


logger = logging.getLogger(__name__)

T = TypeVar("T")

_GIVE_UP_S = 1.0
"""The time to tell a server that nobody waits for a reply any more."""


class _Pipe:
    def __init__(self, stdin: "ByteSendStream", stdout: "ByteReceiveStream") -> None:
        self._stdin = stdin
        self._stdout = stdout
        # The server is this program's own: its lines need no bound.
        self._lines = LineBuffer(sys.maxsize)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}  # by the number of a call
        self._ended: dict[str, Receipt] = {}

    async def call(self, name: str, arguments: Mapping[str, Any], meta: Meta) -> Reply:
        number = next(self._numbers)
        told = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            call = {"call": number, "name": name, "arguments": arguments, "meta": meta or {}}
            await self._stdin.send(dump_line(call))
            with anyio.move_on_after(CALL_S):
                return self._read(await told, meta)
        finally:
            del self._waiting[number]
            # The server goes on with a call that nobody waits for, unless it hears so.
            if not told.done() or told.cancelled():
                await self._give_up(number)
        return Reply(f"{name} has not replied within {CALL_S:g} s.", is_error=True)

    async def _give_up(self, number: int) -> None:
        broken = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
        with suppress(*broken), anyio.move_on_after(_GIVE_UP_S, shield=True):
            await self._stdin.send(dump_line({"call": number}))

    def _read(self, told: Mapping[str, Any], meta: Meta) -> Reply:
        if (receipt := told.get("receipt")) is not None:
            self._ended[(meta or {})[ONLY]] = Receipt.model_validate(receipt)
        return Reply.of_wire(told["reply"])

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        del request
        raise HudMcpError("This job's server answers only calls; it has no lists.")

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        receipt = self._ended.pop(session, None)  # popped: many sessions pass through one server
        return None if receipt is None else (receipt.trajectory, receipt)

    async def receive(self) -> None:
        while (line := await self._line()) is not None:
            told = orjson.loads(line)
            waiting = self._waiting.get(told["call"])
            if waiting is not None and not waiting.done():  # its caller may have gone
                waiting.set_result(told)

    async def is_ready(self) -> bool:
        return await self._line() is not None

    async def _line(self) -> Any:
        while (line := self._lines.take()) is None:
            try:
                self._lines.feed(await self._stdout.receive())
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return None
        return line


@asynccontextmanager
async def pipe_link(command: ServerCommand) -> AsyncGenerator[Link]:
    """Start a server that takes calls on a pipe, and stop it at the end.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    server = command.child("--without-mcp")
    async with server.running() as process, anyio.create_task_group() as group:
        if process.stdin is None or process.stdout is None:
            raise EnvironmentFailed("The server was started without a pipe to call it.")
        pipe = _Pipe(process.stdin, process.stdout)
        ready = False  # it stays so after the bound
        with anyio.move_on_after(START_S):
            ready = await pipe.is_ready()
        if not ready:
            raise server.did_not_start()
        link = Link(pipe, dies_with_connection=True)
        group.start_soon(_receive, pipe, link)
        try:
            yield link
        finally:
            group.cancel_scope.cancel()


async def _receive(pipe: _Pipe, link: Link) -> None:
    await pipe.receive()
    link.die()


_WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0)
"""The waits before new starts, from the last answered call on; the last one stays."""
_PATIENCE = 8
"""The most servers in a row that answer nothing. A server that does not start counts twice."""


class AnyServer(Protocol):
    """The server of a job's sessions: processes one after the other, or this process."""

    @property
    def address(self) -> Address | None:
        """The address for agents that call it by themselves, or None."""
        ...

    @property
    def principal(self) -> str | None:
        """The caller's name that the server gives to its clients."""
        ...

    @property
    def lost(self) -> str | None:
        """The reason why there will be no server any more, or None."""
        ...

    @property
    def deaths(self) -> int:
        """The number of servers that have died."""
        ...

    async def call(
        self, name: str, arguments: dict[str, Any], meta: Meta = None, *, suspect: bool = False
    ) -> Reply:
        """Call a tool once."""
        ...

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make a request that is not a tool's call."""
        ...

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """Return the record's id and the receipt of a session that has ended here, or None."""
        ...

    async def death_after(self, count: int) -> None:
        """Wait until more than so many servers have died."""
        ...


class RunServer:
    """Server processes, one after the other at the same address."""

    def __init__(
        self,
        open_link: Callable[[], AbstractAsyncContextManager[Link]],
        *,
        address: Address | None,
        on_death: Callable[[str], None],
    ) -> None:
        self.deaths = 0
        self.address = address
        self._open_link = open_link
        self._on_death = on_death
        self._current = CurrentLink()
        self._answered = False
        self._in_vain = 0
        # Of suspect calls, one at a time: the call that ends servers is found by trying each alone.
        self._alone = anyio.Lock()
        self.lost: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether there is a server now."""
        link = self._current.link
        return link is not None and not link.died.is_set()

    @property
    def principal(self) -> str | None:
        """The caller's name that the server gives to its clients; None on stdio."""
        return "token" if self.address is not None else None

    async def call(
        self, name: str, arguments: dict[str, Any], meta: Meta = None, *, suspect: bool = False
    ) -> Reply:
        """Call a tool once. Without a server now, call it on the next server.

        After a death without an answer, calls are made one at a time until one is answered. Suspect
        calls, at which servers died before, always are. This shows which call ends servers.

        Raises:
            ConnectionLost: No reply came. Calling again reaches the next server.
            ServerLost: There will be no server any more.
        """
        while True:
            link = await self._ready()
            if not suspect and (not self._in_vain or self._answered):
                return await self._call(link, name, arguments, meta)
            # A call that waited for the lock may find another server, and looks again.
            async with self._alone:
                if link is self._current.link:
                    return await self._call(link, name, arguments, meta)

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make a request that is not a tool's call, with the errors of `Link.ask` and of `call`."""
        return await (await self._ready()).ask(request)

    async def _ready(self) -> Link:
        while (link := self._current.link) is None:
            if self.lost is not None:
                raise ServerLost(self.lost)
            await self._current.changed()
        return link

    async def _call(self, link: Link, name: str, arguments: dict[str, Any], meta: Meta) -> Reply:
        reply = await link.call(name, arguments, meta)
        self._answered = True
        return reply

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """Return the record's id and the receipt of a session, if a reply has told its end."""
        link = self._current.link
        return None if link is None else link.find_ended(session)

    async def death_after(self, count: int) -> None:
        """Wait until more than so many servers have died."""
        while self.deaths <= count:
            await self._current.changed()

    async def keep(self, *, task_status: TaskStatus[None]) -> None:
        """Start servers, one after the other, until this is cancelled or no server starts any more.

        Raises:
            EnvironmentFailed: The first server does not start.
        """
        waits = 0
        while True:
            self._answered = False
            link, reason = await self._serve_one(task_status)
            self.deaths += 1
            self._current.change(None)
            # A server that has answered was a good one: its death starts the count anew.
            waits = 0 if self._answered else waits + 1
            self._in_vain = 0 if self._answered else self._in_vain + (1 if link else 2)
            # Every call that waits has to hear it, so the change is told after the reason is set.
            if self._in_vain >= _PATIENCE:
                self.lost = (
                    f"The server died {self.deaths} times, and {waits} starts in a row answered "
                    f"nothing.{reason}"
                )
                self._current.change(None)
                return
            self._on_death("The server died; it is started again, and its tasks go on.")
            # A server that dies at once would be started in a circle.
            await anyio.sleep(_WAITS_S[min(waits, len(_WAITS_S) - 1)])

    async def _serve_one(self, task_status: TaskStatus[None]) -> tuple[Link | None, str]:
        """Run one server until it dies; return its link or None, and the reason."""
        link: Link | None = None
        try:
            async with self._open_link() as link:
                self._current.change(link)
                if self.deaths == 0:
                    task_status.started()  # only the first start is waited for
                try:
                    await link.died.wait()
                finally:  # at once, also if the connection broke: leaving takes a while
                    self._current.change(None)
        except Exception as exc:  # noqa: BLE001  # leaving a dead process fails in ways of its own
            cause = sole_cause(exc)
            if self.deaths == 0 and link is None:
                raise cause from None
            logger.info("a server of the run ended: %s: %s", type(cause).__name__, cause)
            return link, f" {cause}" if isinstance(cause, EnvironmentFailed) else ""
        return link, ""


@asynccontextmanager
async def run_server(
    command: ServerCommand,
    *,
    http: bool,
    answers_requests: bool,
    on_death: Callable[[str], None] = lambda _text: None,
) -> AsyncGenerator[RunServer]:
    """Keep a server for a job, and stop it at the end.

    Over HTTP it has a loopback port, for agents that call it by themselves; stdio is quicker. It
    speaks MCP there only if it answers requests by `ask`.

    Raises:
        EnvironmentFailed: The server does not start; the text has the end of its log.
    """
    address = Address() if http else None

    def open_link() -> AbstractAsyncContextManager[Link]:
        if address is not None:
            return http_link(command, address)
        return stdio_link(command) if answers_requests else pipe_link(command)

    server = RunServer(open_link, address=address, on_death=on_death)
    try:
        async with anyio.create_task_group() as group:
            await group.start(server.keep)
            try:
                yield server
            finally:
                group.cancel_scope.cancel()
    except BaseExceptionGroup as found:
        raise sole_cause(found) from None


class LocalServer:
    """The tools of sessions of this process, as a server that cannot die alone."""

    address = None
    principal = None
    lost: str | None = None
    deaths = 0

    def __init__(self, tools: LocalTools, client: "Client | None" = None) -> None:
        self._tools = tools
        self._client = client

    async def call(
        self, name: str, arguments: dict[str, Any], meta: Meta = None, *, suspect: bool = False
    ) -> Reply:
        """Call a tool."""
        del suspect  # this process dies with its callers
        return Reply.of_wire(await self._tools.call(name, arguments, meta or {}))

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make a request that is not a tool's call.

        Raises:
            HudMcpError: The server was started to answer calls alone.
        """
        if self._client is None:
            raise HudMcpError("This job's server answers only calls; it has no lists.")
        return await request(self._client)

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """Return the record's id and the receipt of a session that has ended here, or None."""
        return self._tools.find_ended(session)

    async def death_after(self, count: int) -> None:
        """Wait for a death that never comes."""
        del count
        await anyio.sleep_forever()


@asynccontextmanager
async def local_server(
    sessions: Sessions,
    environments: Sequence[Environment],
    *,
    image: ImageFormat,
    answers_requests: bool,
) -> AsyncGenerator[LocalServer]:
    """Run the environments' hooks, and serve sessions while the block runs."""
    try:
        sessions.begin()
        for environment in environments:
            if environment.has_hooks:
                await sessions.initialize(environment)
        await sessions.prepare()
        async with AsyncExitStack() as stack:
            client = None
            if answers_requests:
                server = surfaces.build_server(sessions, image=image)
                client = await stack.enter_async_context(libraries.Client(server))
            yield LocalServer(LocalTools(sessions, image=image), client)
    finally:
        with anyio.CancelScope(shield=True):  # bounded in itself
            await sessions.close()

"""The server of a run, which is started again when it dies.

Sessions survive their server: the next one on the same store goes on with them. So a call
waits while there is none, and what was lost with a connection is for its caller to repeat.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from anyio.abc import TaskStatus

from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.record.trajectory import Receipt
from hud_mcp.rollout import surfaces
from hud_mcp.rollout.link import (
    Address,
    CurrentLink,
    Link,
    Reply,
    ServerCommand,
    http_link,
    reply_of,
    stdio_link,
)
from hud_mcp.rollout.pipe import pipe_link
from hud_mcp.server.local import LocalTools
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import ImageFormat

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["AnyServer", "LocalServer", "RunServer", "ServerLost", "local_server", "run_server"]


logger = logging.getLogger(__name__)

T = TypeVar("T")

_WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Before each new start, counted from the last call that was answered; the last one lasts."""
_PATIENCE = 8
"""Servers in a row that answer nothing; one that does not even start counts twice."""


class ServerLost(HudMcpError):
    """The server of a run died, and cannot be had any more. The record keeps the steps so far."""


class AnyServer(Protocol):
    """What serves the sessions of a job: processes one after the other, or this process."""

    @property
    def address(self) -> Address | None:
        """Where agents of their own reach it, or None."""
        ...

    @property
    def principal(self) -> str | None:
        """Whom it takes its clients for."""
        ...

    @property
    def lost(self) -> str | None:
        """Why there will be no server any more, or None."""
        ...

    @property
    def deaths(self) -> int:
        """How many servers have died."""
        ...

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        meta: Mapping[str, Any] | None = None,
        *,
        suspect: bool = False,
    ) -> Reply:
        """Call a tool, once."""
        ...

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for what is not a tool."""
        ...

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """The record's id of a session, and its receipt, where this process has ended it."""
        ...

    async def death_after(self, count: int) -> None:
        """Wait until more than so many servers have died."""
        ...


class RunServer:
    """One server after the other, each in the place of the one before.

    Args:
        open_link: Starts a server and connects to it.
        on_death: Called with a line for people when a server has died.

    Attributes:
        deaths: How many servers have died.
        address: Where agents of their own reach it, or None.
        lost: Why there will be no server any more, or None.
    """

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
        self._alone = anyio.Lock()
        self.lost: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether there is a server now."""
        link = self._current.link
        return link is not None and not link.died.is_set()

    @property
    def principal(self) -> str | None:
        """Whom the server takes its clients for; None on stdio."""
        return "token" if self.address is not None else None

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        meta: Mapping[str, Any] | None = None,
        *,
        suspect: bool = False,
    ) -> Reply:
        """Call a tool, once; where there is no server now, of the next one.

        After a server that died without an answer, calls are made one at a time until one is
        answered: then it shows whose call it is that ends servers. Of suspects, one is made at
        a time in any case: else what ends servers is never told from what is there by chance.

        Args:
            name: The tool's.
            arguments: The call's.
            meta: The same.
            suspect: Whether servers died each time that this call was made.

        Raises:
            ConnectionLost: No reply came. Calling again reaches the next server.
            ServerLost: There will be none.
        """
        while True:
            link = await self._ready()
            if not suspect and (not self._in_vain or self._answered):
                return await self._call(link, name, arguments, meta)
            async with self._alone:
                if link is self._current.link:
                    return await self._call(link, name, arguments, meta)

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for what is not a tool, as any client does: lists, resources, prompts.

        Raises:
            ConnectionLost: No reply came. Asking again reaches the next server.
            ServerLost: There will be none.
            MCPError: The server refused.
        """
        return await (await self._ready()).ask(request)

    async def _ready(self) -> Link:
        while (link := self._current.link) is None:
            if self.lost is not None:
                raise ServerLost(self.lost)
            await self._current.changed()
        return link

    async def _call(
        self, link: Link, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None
    ) -> Reply:
        reply = await link.call(name, arguments, meta)
        self._answered = True
        return reply

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """The record's id of a session, and its receipt, where a reply has told of its end."""
        link = self._current.link
        return None if link is None else link.find_ended(session)

    async def death_after(self, count: int) -> None:
        """Wait until more than so many servers have died."""
        while self.deaths <= count:
            await self._current.changed()

    async def keep(self, *, task_status: TaskStatus[None]) -> None:
        """Start servers, one after the other, until this is cancelled or none can be had.

        Raises:
            EnvironmentFailed: The first one does not start.
        """
        waits = 0
        while True:
            self._answered = False
            link, reason = await self._serve_one(task_status)
            self.deaths += 1
            self._current.change(None)
            waits = 0 if self._answered else waits + 1
            self._in_vain = 0 if self._answered else self._in_vain + (1 if link else 2)
            if self._in_vain >= _PATIENCE:
                self.lost = (
                    f"The server died {self.deaths} times, and {waits} starts in a row answered "
                    f"nothing.{reason}"
                )
                self._current.change(None)
                return
            self._on_death("The server died; it is started again, and its tasks go on.")
            await anyio.sleep(_WAITS_S[min(waits, len(_WAITS_S) - 1)])

    async def _serve_one(self, task_status: TaskStatus[None]) -> tuple[Link | None, str]:
        """Run one server to its death.

        Returns:
            The link to it, which is None where it did not start; and why it did not.
        """
        link: Link | None = None
        try:
            async with self._open_link() as link:
                self._current.change(link)
                if self.deaths == 0:
                    task_status.started()
                try:
                    await link.died.wait()
                finally:  # at once, also where the connection broke: to leave takes a while
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
    """Keep a server for a run, and stop it at the end.

    Args:
        command: How it is started.
        http: Whether it listens on a loopback port, for agents of their own; else it is only
            reached through this object, over stdio, which is quicker.
        answers_requests: Whether `ask` is going to be called: it then speaks MCP over stdio too.
        on_death: Called with a line for people when a server has died.

    Raises:
        EnvironmentFailed: It does not start; the text has the end of its log.
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
    """Reaches the tools of sessions of this process; it cannot die alone.

    Args:
        tools: The tools.
        client: Asks for what is not a tool; None where nobody asks.
    """

    address = None
    principal = None
    lost: str | None = None
    deaths = 0

    def __init__(self, tools: LocalTools, client: "Client | None" = None) -> None:
        self._tools = tools
        self._client = client

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        meta: Mapping[str, Any] | None = None,
        *,
        suspect: bool = False,
    ) -> Reply:
        """Call a tool, as `RunServer.call` does."""
        del suspect
        return reply_of(await self._tools.call(name, arguments, meta or {}))

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for what is not a tool, as `RunServer.ask` does.

        Raises:
            HudMcpError: Nobody was expected to ask.
        """
        if self._client is None:
            raise HudMcpError("This job's server answers only calls; it has no lists.")
        return await request(self._client)

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """The record's id of a session that has ended here, and its receipt."""
        return self._tools.find_ended(session)

    async def death_after(self, count: int) -> None:
        """Wait for a death, which does not come."""
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
    """Have sessions served while the block runs, and close them at the end.

    Args:
        sessions: The registry, which is closed here.
        environments: Whose hooks run first.
        image: The format of pictures.
        answers_requests: Whether `ask` is going to be called.
    """
    try:
        sessions.begin()
        for environment in environments:
            if environment.has_hooks:
                await sessions.initialize(environment)
        async with AsyncExitStack() as stack:
            client = None
            if answers_requests:
                server = surfaces.build_server(sessions, image=image)
                client = await stack.enter_async_context(libraries.Client(server))
            yield LocalServer(LocalTools(sessions, image=image), client)
    finally:
        with anyio.CancelScope(shield=True):  # bounded in itself
            await sessions.close()

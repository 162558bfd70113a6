"""The sessions of a job in the process that runs it, where its agent is trusted."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError
from hud_mcp.record.trajectory import Receipt
from hud_mcp.rollout import surfaces
from hud_mcp.rollout.link import Reply, reply_of
from hud_mcp.server.local import LocalTools
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import ImageFormat

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["LocalServer", "local_server"]

T = TypeVar("T")


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

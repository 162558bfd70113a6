"""A server for one run that goes on elsewhere where its own is gone."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio

from hud_mcp.errors import SessionBusy
from hud_mcp.rollout.link import Address, ConnectionLost, Reply
from hud_mcp.rollout.server import RunServer, ServerLost
from hud_mcp.store.lease import LEASE_S

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["AnyOf", "Anywhere", "Places"]

T = TypeVar("T")

_PAUSE_S = 0.1
_TAKEN_S = LEASE_S + 30.0
"""How long a server that died on another machine may still own a session, and some more."""


class Places(Protocol):
    """Where a run may go on."""

    @property
    def lost(self) -> str | None:
        """Why no server may take the run any more; None as long as one may."""
        ...

    def other_place(self) -> RunServer | None:
        """A server that answers and may take the run, which is told that it does; or None."""
        ...


class AnyOf:
    """Any of several servers.

    Args:
        servers: At least one.
    """

    def __init__(self, servers: Sequence[RunServer]) -> None:
        self._servers = list(servers)

    @property
    def lost(self) -> str | None:
        """Why none of them can be had, or None."""
        reasons = [server.lost for server in self._servers]
        return reasons[-1] if all(reasons) else None

    def other_place(self) -> RunServer | None:
        """The first that answers."""
        return next((server for server in self._servers if server.is_up), None)


class Anywhere:
    """What one run calls: its server, or another one where that is gone.

    Args:
        server: Where it begins.
        places: Where else it may go on.
        address: Where agents of their own reach it, whichever it is.
    """

    principal = "token"

    def __init__(self, server: RunServer, places: Places, address: Address | None) -> None:
        self.address = address
        self._server = server
        self._places = places
        self._known = (server, server.deaths)
        self._taken_until_s = 0.0

    @property
    def lost(self) -> str | None:
        """Why there will be no server any more, or None."""
        return self._places.lost

    @property
    def deaths(self) -> int:
        """How many servers have died where it is."""
        return self._server.deaths

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        meta: Mapping[str, Any] | None = None,
        *,
        suspect: bool = False,
    ) -> Reply:
        """Call a tool, once: where it has moved, as soon as its session is let go of.

        Raises:
            ConnectionLost: No reply came. Calling again reaches the next server.
            ServerLost: There will be none.
        """
        while True:
            server = await self._ready()
            try:
                reply = await server.call(name, arguments, meta, suspect=suspect)
            except ServerLost as exc:
                raise self._loss(exc) from exc
            if not _is_taken(reply) or time.monotonic() >= self._taken_until_s:
                return reply
            await anyio.sleep(5 * _PAUSE_S)

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Ask for what is not a tool, as `RunServer.ask` does."""
        server = await self._ready()
        try:
            return await server.ask(request)
        except ServerLost as exc:
            raise self._loss(exc) from exc

    def find_ended(self, session: str) -> None:
        """Nothing is known here of what a server has ended: the record is."""

    async def death_after(self, count: int) -> None:
        """Wait until more than so many servers have died where it is."""
        await self._server.death_after(count)

    async def _ready(self) -> RunServer:
        while not self._server.is_up:
            if self._places.lost is not None:
                raise ServerLost(self._places.lost)
            if (other := self._places.other_place()) is not None:
                self._server = other
                break
            await anyio.sleep(_PAUSE_S)
        found = (self._server, self._server.deaths)
        if found != self._known:  # also where its own is back before the dead one's lease has ended
            self._known = found
            self._taken_until_s = time.monotonic() + _TAKEN_S
        return self._server

    def _loss(self, exc: ServerLost) -> ServerLost | ConnectionLost:
        return exc if self._places.lost is not None else ConnectionLost(str(exc))


def _is_taken(reply: Reply) -> bool:
    """Whether a server that may have died still owns the session."""
    return reply.is_error and reply.meta.get("hud-mcp/error") == SessionBusy.__name__

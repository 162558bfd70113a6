"""A replica around a server of MCP, from its first request to its last."""

import ctypes
import logging
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.operate.replicas.forwarding import Secret
from hud_mcp.plugins.operate.replicas.message import Announced
from hud_mcp.plugins.operate.replicas.replica import Replica
from hud_mcp.server.web.auth import Tokens
from hud_mcp.session.events import Phase
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session

DRAIN_S = 60.0
"""The default time to wait for sessions that cannot move."""


@dataclass
class ReplicaServing:
    """The options of a server that is one of several.

    `advertised` is None for the address that it listens on. `drain_s` bounds the wait at its end
    for sessions that cannot move.
    """

    sessions: Sessions
    tag: str
    secret: str
    advertised: str | None = None
    drain_s: float = DRAIN_S

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names for it in other replicas' Host headers, beside its address."""
        return () if self.advertised is None else (urlsplit(self.advertised).netloc,)

    async def begin(
        self,
        app: ASGIApp,
        *,
        address: str,
        path: str,
        access: Tokens | None,
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> ASGIApp:
        """Announce this replica, which listens on `address`; return the app that answers for `app`.

        Raises:
            StoreFailed: The store cannot be written.
        """
        self._replica = Replica(
            self.sessions,
            Announced(self.advertised or address, self.tag),
            secret=Secret(self.secret.encode()),
            access=access,
            max_body_bytes=max_body_bytes,
        )
        await self._replica.begin()
        return self._replica.around(app, path=path, security=security)

    async def leave(self, listener: socket.socket, is_waited_for: Callable[[], bool]) -> None:
        """Move what can move, wait for the rest, and answer the last calls of the listener.

        `is_waited_for` says whether some connection has brought no request yet.
        """
        await _drain(self._replica, self.drain_s)
        await _last_calls(self._replica, listener, is_waited_for)
        await self._replica.close()


logger = logging.getLogger(__name__)


_LOOK_S = 0.05
_LAST_CALLS_S = 5.0
"""Requests that came before the end may take so long."""
_ACCEPT_S = 0.5
"""The time for connections that the system has accepted and this process has not, and for
requests on connections that other replicas keep."""
_ATTACH_FILTER = 26
"""SO_ATTACH_FILTER of Linux: `socket` has no name for it."""


async def _drain(replica: Replica, within_s: float) -> None:
    """Move sessions to other replicas, and wait so long for the rest. Others get all new ones."""
    await replica.begin_to_leave()
    logger.info("this replica takes no new sessions; it waits for others up to %g s", within_s)
    with anyio.move_on_after(within_s) as bound:
        async with anyio.create_task_group() as group:
            while (living := replica.sessions.roster.living()) or replica.calls:
                for session in living:
                    if _may_move(session) and replica.routes.stop_calls(session.secret_digest):
                        group.start_soon(_move, replica, session)
                await anyio.sleep(_LOOK_S)
    if bound.cancelled_caught:
        left = len(replica.sessions.roster.living())
        logger.warning("%d sessions could not move within %g s", left, within_s)


async def _last_calls(
    replica: Replica, listener: socket.socket, is_waited_for: Callable[[], bool]
) -> None:
    """Take no more connections, and answer the requests on those that there are."""
    _refuse_connections(listener)
    await anyio.sleep(_ACCEPT_S)
    with anyio.move_on_after(_LAST_CALLS_S):
        while replica.requests or is_waited_for():  # noqa: ASYNC110  # some seconds, once
            await anyio.sleep(_LOOK_S)


def _may_move(session: Session) -> bool:
    return session.state.phase is Phase.OPEN and not session.is_busy and session.can_park


async def _move(replica: Replica, session: Session) -> None:
    try:
        with anyio.CancelScope(shield=True):  # bounded in itself
            await replica.sessions.move(session)
    except HudMcpError as exc:
        logger.warning("session %s did not move: %s", session.name, exc)
    finally:
        replica.routes.let_go(session.secret_digest)


def _refuse_connections(listener: socket.socket) -> None:
    """Let the system take no more connections; those that it has taken are still accepted.

    A closed listener would reset them, and their requests with them. If the system knows no filter,
    nothing is done.
    """
    if sys.platform != "linux":
        return
    nothing = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0 bytes
    program = struct.pack("HP", 1, ctypes.addressof(nothing))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
    except OSError as exc:
        logger.debug("connections cannot be refused: %s", exc)

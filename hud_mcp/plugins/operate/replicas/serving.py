"""Putting a replica around a server of MCP, from its first request to its last."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from hud_mcp.plugins.operate.replicas.announced import Announced
from hud_mcp.plugins.operate.replicas.drain import DRAIN_S, drain, last_calls
from hud_mcp.plugins.operate.replicas.replica import Replica
from hud_mcp.plugins.operate.replicas.signature import Secret
from hud_mcp.session.registry import Sessions

__all__ = ["ReplicaServing"]


@dataclass
class ReplicaServing:
    """What a server that is one of several is told of that.

    Attributes:
        sessions: Those of this process.
        tag: What marks its replies.
        secret: What all replicas share.
        advertised: Where the others reach it; None for the address that it listens on.
        drain_s: How long it waits at its end for sessions that cannot move.
    """

    sessions: Sessions
    tag: str
    secret: str
    advertised: str | None = None
    drain_s: float = DRAIN_S

    @property
    def hosts(self) -> tuple[str, ...]:
        """What other replicas call it in the Host header, beside the address it listens on."""
        return () if self.advertised is None else (urlsplit(self.advertised).netloc,)

    async def begin(
        self,
        app: ASGIApp,
        *,
        address: str,
        path: str,
        tokens: Mapping[str, str],
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> ASGIApp:
        """Tell the other replicas of this one; what answers in place of the app.

        Args:
            app: The server of MCP.
            address: The one that it listens on.
            path: That of MCP.
            tokens: Secret to principal.
            security: Which hosts and origins it answers.
            max_body_bytes: A larger request is refused.

        Raises:
            StoreFailed: The store cannot be written.
        """
        self._replica = Replica(
            self.sessions,
            Announced(self.advertised or address, self.tag),
            secret=Secret(self.secret.encode()),
            tokens=tokens,
            max_body_bytes=max_body_bytes,
        )
        await self._replica.begin()
        return self._replica.around(app, path=path, security=security)

    async def leave(self, listener: socket.socket, is_waited_for: Callable[[], bool]) -> None:
        """Move what can move, wait for the rest, and answer the last calls.

        Args:
            listener: Where connections come from.
            is_waited_for: Whether some connection has brought no request yet.
        """
        await drain(self._replica, self.drain_s)
        await last_calls(self._replica, listener, is_waited_for)
        await self._replica.close()

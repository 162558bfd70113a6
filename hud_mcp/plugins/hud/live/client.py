"""The connection of a live environment to its session, and the one over the control channel."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from hud_mcp import errors
from hud_mcp.errors import (
    EnvironmentFailed,
    HudMcpError,
    OperatorRefused,
    SessionEnded,
)
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import ChannelFailed, ChannelRefused, Place
from hud_mcp.session.caller import CREDENTIAL, OPERATOR_TOKEN

__all__ = ["Client", "OperatedChannel", "operator_token", "raised", "refused"]

_NO_METHOD = -32601


class Client(ABC):
    """The connection to one session: in this process, or on a server."""

    @abstractmethod
    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform one of `hud_mcp.plugins.hud.operations.OPERATIONS`.

        Args:
            operation: Its name.
            params: Its parameters as JSON.

        Returns:
            The operation's result as JSON.

        Raises:
            HudMcpError: The operation raised it; a wire keeps its class.
            EnvironmentFailed: The connection to the session broke.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. The session's record stays. It may be called twice."""


class OperatedChannel(Client):
    """Sessions of a server of this package, over one control connection. Made by `open`.

    `place` has the operator's token. If the connection drops, the next call makes it again.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stack = AsyncExitStack()
        self._client: ChannelClient | None = None
        self._closed = False

    @classmethod
    async def open(cls, place: Place) -> "OperatedChannel | None":
        """Connect; return None if another kind of server answers, such as HUD's own.

        Raises:
            OperatorRefused: A server of this package answers, and refuses the token.
            EnvironmentFailed: Nothing answers there.
        """
        made = cls(place)
        try:
            client = await made._connected()
            if not client.is_ours:
                await made.close()
                return None
            await made._check(client)
        except BaseException:
            await made.close()
            raise
        return made

    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation on the server."""
        client = await self._connected()
        try:
            return await client.call(operation, {**params, CREDENTIAL: self._place.token})
        except ChannelRefused as exc:
            if exc.code == _NO_METHOD:
                raise refused(str(self._place), self._place.token) from exc
            raise raised(exc.data.get("kind"), exc.message) from exc
        except ChannelFailed as exc:
            raise EnvironmentFailed(f"{exc} The record keeps the steps so far.") from exc

    async def close(self) -> None:
        """Disconnect. It may be called twice."""
        self._closed = True
        await self._stack.aclose()

    async def _connected(self) -> ChannelClient:
        if self._closed:
            raise SessionEnded("The connection to the server is closed. Call gym.make again.")
        if self._client is None or self._client.is_closed:
            await self._stack.aclose()
            try:
                self._client = await self._stack.enter_async_context(
                    ChannelClient.connect(self._place)
                )
            except ChannelRefused as exc:
                raise refused(str(self._place), self._place.token) from exc
            except ChannelFailed as exc:
                raise EnvironmentFailed(str(exc)) from exc
        return self._client

    async def _check(self, client: ChannelClient) -> None:
        """Check the token by an operation that needs no session."""
        try:
            await client.call("hud-mcp/urls", {CREDENTIAL: self._place.token})
        except ChannelRefused as exc:
            if exc.code == _NO_METHOD:
                raise refused(str(self._place), self._place.token) from exc


def operator_token(given: str | None) -> str | None:
    """Return the operator's token from the address, else from the environment variable."""
    return given or os.environ.get(OPERATOR_TOKEN) or None


def raised(kind: Any, text: str) -> HudMcpError:
    """Return the error of an operation that failed on its server."""
    found = getattr(errors, kind, None) if isinstance(kind, str) else None
    if isinstance(found, type) and issubclass(found, HudMcpError):
        return found(text)
    return HudMcpError(text)


def refused(place: str, token: str | None) -> OperatorRefused:
    """Return the error of a server that refuses the operator's token, or its absence."""
    if token is None:
        return OperatorRefused(
            f"{place} is operated with a token, and none was given. Start it with "
            f"--operator-token-file FILE, and set {OPERATOR_TOKEN} here to what is in the file."
        )
    return OperatorRefused(
        f"{place} does not take the operator's token that was given. Start it with "
        f"--operator-token-file FILE, and set {OPERATOR_TOKEN} here to what is in the file."
    )

"""Sessions of a server of this package for live environments, over the HUD control channel."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from hud_mcp.errors import EnvironmentFailed, SessionEnded
from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.live.wire import raised, refused
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.failures import ChannelFailed, ChannelRefused
from hud_mcp.plugins.hud.wire.place import Place
from hud_mcp.session.caller import CREDENTIAL

__all__ = ["OperatedChannel"]

_NO_METHOD = -32601


class OperatedChannel(Client):
    """One control connection, which is made again where it has dropped. Made by `open`.

    Args:
        place: Where the server is, with the operator's token.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stack = AsyncExitStack()
        self._client: ChannelClient | None = None
        self._closed = False

    @classmethod
    async def open(cls, place: Place) -> "OperatedChannel | None":
        """Connect.

        Returns:
            The connection; None where another kind of server answers, such as HUD's own.

        Raises:
            OperatorRefused: It is a server of this package, and does not take the token.
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
        """Perform an operation there."""
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
        """Find out whether the token is taken: an operation that names no session tells."""
        try:
            await client.call("hud-mcp/urls", {CREDENTIAL: self._place.token})
        except ChannelRefused as exc:
            if exc.code == _NO_METHOD:
                raise refused(str(self._place), self._place.token) from exc

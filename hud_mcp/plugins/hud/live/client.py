"""The connection of a live environment to its session, and the one over the control channel."""

import asyncio
import os
import secrets
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from hud_mcp import errors
from hud_mcp.base import libraries
from hud_mcp.base.process import OwnServer, make_secret_file
from hud_mcp.errors import EnvironmentFailed, HudMcpError, OperatorRefused, SessionEnded, sole_cause
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import ChannelFailed, ChannelRefused, Place
from hud_mcp.record.place import STORE_VARIABLE
from hud_mcp.rollout.link import stdio_client
from hud_mcp.session.caller import CREDENTIAL, OPERATOR_TOKEN

if TYPE_CHECKING:
    from mcp.client import client as sdk

__all__ = [
    "Client",
    "McpClient",
    "OperatedChannel",
    "new_token",
    "operator_token",
    "over_stdio",
    "raised",
    "refused",
]


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


_CALL_S = 900.0
"""Seconds for one call; the server's own bounds are lower."""
_STOP_S = 15.0

_LIMITS = ("idle_s=86400", "total_s=604800")
"""The limits of a server with one user, who may think for long."""

Open = Callable[[], "AbstractAsyncContextManager[sdk.Client]"]


class McpClient(Client):
    """One connection to an MCP server, owned by one task. Made by `open`."""

    def __init__(self, opening: Open, *, token: str | None, place: str) -> None:
        self._opening = opening
        self._token = token
        self._place = place
        self._leaving = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[sdk.Client] = loop.create_future()
        self._task = loop.create_task(self._hold(), name=f"connection to {place}")

    @classmethod
    async def open(cls, opening: Open, *, token: str | None, place: str) -> "McpClient":
        """Connect. If this call is cancelled, no connection and no server stays.

        EnvironmentFailed says that nothing answers there.
        """
        made = cls(opening, token=token, place=place)
        try:
            await asyncio.shield(made._ready)
        except BaseException:
            await made.close()
            raise
        return made

    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation; OperatorRefused says that the server refuses the token."""
        if self._task.done():
            raise SessionEnded("The connection to the server is closed. Call gym.make again.")
        meta: dict[str, Any] = {} if self._token is None else {CREDENTIAL: self._token}
        request = libraries.mcp_types.CallToolRequest(
            params=libraries.mcp_types.CallToolRequestParams.model_validate(
                {"name": operation, "arguments": dict(params), "_meta": meta}
            )
        )
        client = await self._ready
        try:
            # Not by `call_tool`, which would list the tools to look for this one.
            result = await client.session.send_request(
                request,
                TypeAdapter(libraries.mcp_types.CallToolResult),
                request_read_timeout_seconds=_CALL_S,
            )
        except libraries.MCPError as exc:
            if exc.error.code in (
                libraries.mcp_types.CONNECTION_CLOSED,
                libraries.mcp_types.REQUEST_TIMEOUT,
            ):
                raise self._broken(exc) from exc
            raise refused(self._place, self._token) from exc
        except (OSError, TimeoutError, libraries.httpx2.HTTPError) as exc:
            raise self._broken(exc) from exc
        except ExceptionGroup as exc:
            raise self._broken(sole_cause(exc)) from exc
        if result.is_error:
            text = "\n".join(part.text for part in result.content if part.type == "text")
            raise raised((result.meta or {}).get("hud-mcp/error"), text)
        return dict(result.structured_content or {})

    async def close(self) -> None:
        """Disconnect, and stop a server that was started for this. It may be called twice."""
        self._leaving.set()
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_STOP_S)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1.0)

    async def _hold(self) -> None:
        try:
            # The SDK's task groups must be left by the task that entered them: this one owns them.
            async with self._opening() as client:
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._leaving.wait()
        except asyncio.CancelledError:
            self._ready.cancel()
            raise
        except Exception as exc:  # noqa: BLE001  # raised where the connection was asked for
            if not self._ready.done():
                self._ready.set_exception(exc)
                self._ready.exception()  # marked as seen: who asked may have gone

    def _broken(self, exc: BaseException) -> EnvironmentFailed:
        return EnvironmentFailed(
            f"{self._place} did not answer: {type(exc).__name__}: {exc}. The record keeps the "
            "steps so far."
        )


def over_stdio(source: str, *, token: str, store: str | None) -> Open:
    """Return an opener that starts a server; only this child knows the operator's token."""

    @asynccontextmanager
    async def connect() -> "AsyncGenerator[sdk.Client]":
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            # Not by the environment: others of this user read it in /proc while the server runs.
            secret = make_secret_file(Path(folder, "operator"), token)
            limits = [part for limit in _LIMITS for part in ("--limit", limit)]
            with Path(folder, "log").open("w+", encoding="utf-8") as log:  # noqa: ASYNC230  # a local file
                server = OwnServer(
                    ["serve", source, "--operator-token-file", str(secret), *limits],
                    log,
                    {STORE_VARIABLE: store} if store else {},
                )
                async with stdio_client(server) as client:
                    secret.unlink()  # it was read as the server started
                    yield client

    return connect


def new_token() -> str:
    """Return a new token for one server."""
    return secrets.token_hex(32)

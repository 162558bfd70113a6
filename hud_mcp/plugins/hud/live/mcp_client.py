"""Sessions of an MCP server for live environments: a new server over stdio, or a running one."""

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed, SessionEnded, sole_cause
from hud_mcp.plugins.hud.live.client import Client, raised, refused
from hud_mcp.record.place import STORE_VARIABLE
from hud_mcp.session.caller import CREDENTIAL, OPERATOR_TOKEN

if TYPE_CHECKING:
    from mcp.client import client as sdk

__all__ = ["McpClient", "new_token", "over_http", "over_stdio"]

_START_S = 60.0
"""Seconds until a server must answer."""
_CALL_S = 900.0
"""Seconds for one call; the server's own bounds are lower."""
_STOP_S = 15.0

_LIMITS = ("idle_s=86400", "total_s=604800")
"""The limits of a server with one user, who may think for long."""

Open = Callable[[], "AbstractAsyncContextManager[sdk.Client]"]


class McpClient(Client):
    """One connection to an MCP server, owned by one task. Made by `open`.

    Args:
        opening: Connects, and disconnects at the end.
        token: The operator's token.
        place: The server's name for errors.
    """

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
        """Connect.

        Raises:
            EnvironmentFailed: Nothing answers there.

        If this call is cancelled, no connection and no server stays.
        """
        made = cls(opening, token=token, place=place)
        try:
            await asyncio.shield(made._ready)
        except BaseException:
            await made.close()
            raise
        return made

    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation on the server.

        Raises:
            OperatorRefused: The server refuses the token.
        """
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
    """Return an opener that starts a server.

    Args:
        source: The environment, as `hud-mcp serve` takes it.
        token: The operator's token, which only this child knows.
        store: The store of the server; None for the default store.
    """

    @asynccontextmanager
    async def connect() -> "AsyncGenerator[sdk.Client]":
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            # Not by the environment: others of this user read it in /proc while the server runs.
            secret = _kept(token, folder)
            arguments = ["-P", "-m", "hud_mcp", "serve", source]
            arguments += ["--operator-token-file", str(secret)]
            for limit in _LIMITS:
                arguments += ["--limit", limit]
            kept = {k: v for k, v in os.environ.items() if k != OPERATOR_TOKEN}
            parameters = libraries.StdioServerParameters(
                command=sys.executable,
                args=arguments,
                env={**kept, STORE_VARIABLE: store} if store else kept,
            )
            with Path(folder, "log").open("w+", encoding="utf-8") as log:  # noqa: ASYNC230  # a local file
                client = libraries.Client(
                    libraries.stdio_client(parameters, errlog=log), read_timeout_seconds=_START_S
                )
                try:
                    await client.__aenter__()
                except Exception as exc:
                    log.seek(0)
                    said = log.read()[-2000:].strip()
                    raise EnvironmentFailed(
                        f"The server of {source} did not start: {sole_cause(exc)}.\n{said}"
                    ) from exc
                try:
                    secret.unlink()  # a local file, once
                    yield client
                finally:
                    await client.__aexit__(None, None, None)

    return connect


def _kept(token: str, folder: str) -> Path:
    """Write the token into a file that only this user may read."""
    secret = Path(folder, "operator")
    secret.touch(mode=0o600)
    secret.write_text(token)
    return secret


def over_http(url: str, *, token: str | None, call_s: float = _START_S) -> Open:
    """Return an opener for a running server, over streamable HTTP.

    Args:
        url: The address with its `/mcp`.
        token: The bearer token, such as the operator's; or None.
        call_s: Seconds for one call.
    """

    @asynccontextmanager
    async def connect() -> "AsyncGenerator[sdk.Client]":
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        timeout = libraries.httpx2.Timeout(30, read=None)
        async with libraries.httpx2.AsyncClient(headers=headers, timeout=timeout) as web:
            client = libraries.Client(
                libraries.streamable_http_client(url, http_client=web), read_timeout_seconds=call_s
            )
            try:
                await client.__aenter__()
            except Exception as exc:
                cause = sole_cause(exc)
                raise EnvironmentFailed(
                    f"No server answers at {url}: {type(cause).__name__}: {cause}. Is the address "
                    "that of its /mcp, and the token right?"
                ) from exc
            try:
                yield client
            finally:
                await client.__aexit__(None, None, None)

    return connect


def new_token() -> str:
    """Return a new token for one server."""
    return secrets.token_hex(32)

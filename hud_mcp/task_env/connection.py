"""A connection to a server for programs that wait: its event loop runs on a thread of its own."""

import asyncio
import base64
import os
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.env.mcp_client import over_http
from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.lazy import libraries
from hud_mcp.session.caller import OPERATOR_TOKEN

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["Connection", "Reply", "remote_server", "spawned_server"]

_START_S = 60.0
_CALL_S = 600.0
"""How long one call may take; the server bounds its own work below that."""
_STOP_S = 15.0

OpenClient = Callable[[], "AbstractAsyncContextManager[Client]"]


@dataclass(frozen=True)
class Reply:
    """What a tool gave back."""

    text: str
    image: bytes | None
    is_error: bool
    meta: Mapping[str, Any]
    structured: Mapping[str, Any]


class Connection:
    """Calls the tools of a server, each while its caller waits.

    Its thread does not keep the process alive; a server that was started here ends with it.

    Args:
        open_client: Connects, and disconnects at the end.

    Raises:
        EnvironmentFailed: There is no server; the text says why.
    """

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client
        self._ready: Future[Client] = Future()
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="hud-mcp client", daemon=True)
        self._thread.start()
        self._client = self._ready.result(_START_S + _STOP_S)

    def call(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> Reply:
        """Call a tool.

        Raises:
            EnvironmentFailed: No reply came.
        """
        more: dict[str, Any] = {} if meta is None else {"meta": dict(meta)}
        result = self._wait(self._client.call_tool(name, arguments, **more), name)
        images = [part.data for part in result.content if part.type == "image"]
        return Reply(
            text="\n".join(part.text for part in result.content if part.type == "text"),
            image=base64.b64decode(images[0]) if images else None,
            is_error=bool(result.is_error),
            meta=result.meta or {},
            structured=result.structured_content or {},
        )

    def read(self, uri: str) -> str:
        """Read a resource of text.

        Raises:
            EnvironmentFailed: No reply came, or there is no such resource.
        """
        found = self._wait(self._client.read_resource(uri), uri)
        return "".join(part.text for part in found.contents)

    def close(self) -> None:
        """Disconnect, and stop a server that was started here. Closing twice is no error."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_STOP_S)

    def _wait(self, work: Any, what: str) -> Any:
        if not self._thread.is_alive():
            work.close()
            raise EnvironmentFailed(f"{what}: the connection to the server is closed.")
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, _CALL_S), self._loop)
        try:
            return future.result()
        except Exception as exc:
            cause = sole_cause(exc)
            raise EnvironmentFailed(
                f"{what}: no reply of the server: {type(cause).__name__}: {cause}."
            ) from exc

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        try:
            async with self._open_client() as client:
                self._ready.set_result(client)
                await self._closing.wait()
        except Exception as exc:  # noqa: BLE001  # raised where the connection was asked for
            if not self._ready.done():
                self._ready.set_exception(exc)


def spawned_server(source: str, store: str | None) -> OpenClient:
    """A server in a process of its own, over stdio.

    Args:
        source: The environment, as `hud-mcp serve` takes it.
        store: Where it records; a file that is deleted at the end, by default.
    """

    @asynccontextmanager
    async def connect() -> "AsyncGenerator[Client]":
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            place = store or f"{folder}/store.sqlite3"
            arguments = ["-P", "-m", "hud_mcp", "serve", source, "--store", place]
            arguments += ["--reward", "per_step"]
            kept = {k: v for k, v in os.environ.items() if k != OPERATOR_TOKEN}
            parameters = libraries.StdioServerParameters(
                command=sys.executable, args=arguments, env=kept
            )
            with Path(folder, "log").open("w+", encoding="utf-8") as log:  # noqa: ASYNC230  # this loop has one caller
                client = libraries.Client(
                    libraries.stdio_client(parameters, errlog=log), read_timeout_seconds=_START_S
                )
                try:
                    await client.__aenter__()
                except Exception as exc:
                    log.seek(0)
                    said = log.read()[-2000:].strip()
                    raise EnvironmentFailed(
                        f"The server did not start: {sole_cause(exc)}.\n{said}"
                    ) from exc
                try:
                    yield client
                finally:
                    await client.__aexit__(None, None, None)

    return connect


def remote_server(url: str, token: str | None) -> OpenClient:
    """A server that runs, over streamable HTTP.

    Args:
        url: Where it answers, with its `/mcp`.
        token: What it requires, or None.
    """
    return over_http(url, token=token, call_s=_CALL_S)

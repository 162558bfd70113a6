"""A connection to a server for programs that wait: its event loop runs on a thread of its own."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.plugins.hud.live.mcp_client import over_http
from hud_mcp.values.call import STEP

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["Connection", "Reply", "remote_server"]

_START_S = 60.0
_CALL_S = 600.0
"""How long one call may take; the server bounds its own work below that."""
_STOP_S = 15.0

OpenClient = Callable[[], "AbstractAsyncContextManager[Client]"]


@dataclass(frozen=True)
class Reply:
    """The result of a tool."""

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

    def take(self, session: str, action: Any) -> Reply:
        """Take one step of a world whose actions are values; raises as `call`."""
        given = {"type": "custom", "action": "step", "args": {"action": action}}
        arguments = {"actions": [given], "session": session}
        return self.call(STEP, arguments, {"hud-mcp/values": True})

    def manifest(self, environment: str) -> dict[str, Any]:
        """What an environment is; raises as `read`."""
        return json.loads(self.read(f"hud://environments/{environment}"))

    def close(self) -> None:
        """Disconnect, and stop a server that was started here. It may be called twice."""
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


def remote_server(url: str, token: str | None) -> OpenClient:
    """A server that runs, over streamable HTTP.

    Args:
        url: Where it answers, with its `/mcp`.
        token: What it requires, or None.
    """
    return over_http(url, token=token, call_s=_CALL_S)

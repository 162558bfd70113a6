"""HTTP to a server: at a URL, or in a sandbox through a socket that nobody else has."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import orjson

from hud_mcp.base import libraries as base
from hud_mcp.base.gateway import splice
from hud_mcp.base.text import clip
from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.peer import Json, as_object
from hud_mcp.plugins.servers.wires import LONGEST_BYTES, Receiver
from hud_mcp.sandbox import Sandbox

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpWire", "inside"]

_CONNECT_S = 20.0
_READ_S = 600.0
_CLOSE_S = 2.0
_UNTOLD = "Server returned an error response"  # the words of the client's library for a status
_WAITING = 64
"""The messages that wait for the connection before senders do."""
_POLL_S = 0.05
_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that a request of the newer era repeats in a header."""


class HttpWire:
    """The messages of one client of a server over streamable HTTP.

    Args:
        url: The address. Redirects to another host are not followed.
        headers: More headers of each request.
        sse: Whether it speaks the older HTTP with events of 2024, and not streamable HTTP.
        schemas: The schemas of tools, by name: they mark arguments that headers repeat.
        tunnel: Opens the way to a Unix socket that leads to the server, in place of the network.
        close_input: A function for `close_input`, such as one that ends the server's own input.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        sse: bool = False,
        schemas: dict[str, Any] | None = None,
        tunnel: Callable[[], AbstractAsyncContextManager[str]] | None = None,
        close_input: Callable[[], None] = lambda: None,
    ) -> None:
        self._headers = dict(headers or {})
        self._url, self._sse = url, sse
        self._schemas = schemas if schemas is not None else dict[str, Any]()  # it may grow
        self._tunnel = tunnel
        self._close_input = close_input
        self._waiting: asyncio.Queue[Json] = asyncio.Queue(_WAITING)
        self._leave = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._handshake: object = None  # the id of its request
        self._version = self._refusal = ""

    def start(self, receiver: Receiver) -> None:
        """Begin to connect; the first message tells whether that works."""
        # The task that enters the client's task groups must leave them.
        self._owner = asyncio.get_running_loop().create_task(self._own(receiver))

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; wait only while 64 others wait."""
        orjson.dumps(message)  # ValueError: a TypeError of orjson is one
        if self._owner is not None and not self._owner.done():
            await self._waiting.put(dict(message))

    def close_input(self) -> None:
        """Close the input of a server in a sandbox; a server elsewhere notices nothing."""
        self._close_input()

    def close(self) -> None:
        """End the session on the server, soon."""
        self._leave.set()

    async def wait_closed(self) -> None:
        """Wait until the server was told, or does not answer."""
        if self._owner is not None:
            await asyncio.wait([self._owner], timeout=_CLOSE_S)
            self._owner.cancel()

    async def _own(self, receiver: Receiver) -> None:
        why = "ended its connection"
        try:
            async with AsyncExitStack() as stack:
                tunnel = self._tunnel
                path = await stack.enter_async_context(tunnel()) if tunnel else None
                reading, writing = await self._connect(stack, path)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._write, writing)
                    group.start_soon(self._read, reading, receiver)
                    await self._leave.wait()
                    group.cancel_scope.cancel()
        except Exception as exc:  # noqa: BLE001  # whatever a connection ends with is told
            cause = sole_cause(exc)
            why = f"cannot be reached: {clip(str(cause) or type(cause).__name__, 200)}"
        finally:
            if not self._leave.is_set():
                receiver.ended(why)

    async def _connect(self, stack: AsyncExitStack, path: str | None) -> tuple[Any, Any]:
        client = self._client(path)
        if self._sse:
            made: Any = partial(_given, client)
            how: Any = {"httpx_client_factory": made, "sse_read_timeout": _READ_S}
            return await stack.enter_async_context(base.sse_client(self._url, **how))
        await stack.enter_async_context(client)
        return await stack.enter_async_context(
            base.streamable_http_client(
                self._url, http_client=client, max_sse_event_size=LONGEST_BYTES
            )
        )

    def _client(self, path: str | None) -> "httpx2.AsyncClient":
        async def note(response: "httpx2.Response") -> None:
            if response.is_error:
                self._refusal = f"HTTP {response.status_code} {response.reason_phrase}"

        transport = base.httpx2.AsyncHTTPTransport(uds=path)
        return base.httpx2.AsyncClient(
            headers=self._headers,
            timeout=base.httpx2.Timeout(_CONNECT_S, read=_READ_S),
            trust_env=False,
            transport=transport,
            event_hooks={"response": [note, _bound]},
        )

    async def _write(self, writing: Any) -> None:
        adapter = libraries.jsonrpc_message_adapter
        while True:
            message = await self._waiting.get()
            told = libraries.ClientMessageMetadata(headers=self._routing(message))
            read = adapter.validate_python(message)
            await writing.send(libraries.SessionMessage(read, metadata=told))

    def _routing(self, message: Json) -> dict[str, str]:
        """Return the headers by which a server or a proxy routes a message."""
        method, params = message.get("method"), as_object(message.get("params"))
        if method == "initialize":
            self._handshake = message["id"]
            return {}
        modern = params.get("_meta", {}).get(_VERSION)
        if modern is None:
            return {"mcp-protocol-version": self._version} if self._version else {}
        headers = {"mcp-protocol-version": modern, "mcp-method": str(method)}
        if name := _NAMES.get(str(method)):
            headers["mcp-name"] = libraries.encode_header_value(str(params.get(name)))
        if method == "tools/call":
            marked = libraries.x_mcp_header_map(self._schemas.get(str(params.get("name"))))
            headers |= libraries.mcp_param_headers(marked, as_object(params.get("arguments")))
        return headers

    async def _read(self, reading: AsyncIterator[Any], receiver: Receiver) -> None:
        async for item in reading:
            if isinstance(item, Exception):
                receiver.received_junk(str(item).encode())
                continue
            message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if as_object(message.get("error")).get("message") == _UNTOLD:
                message["error"]["message"] = self._refusal
            if "result" in message and self._handshake is not None:
                self._handshake = None  # the first result is its own
                self._version = str(message["result"].get("protocolVersion") or "")
            size = len(orjson.dumps(message)) if "method" in message else 0
            receiver.received(message, size)
        receiver.ended("ended its connection")


def _given(client: Any, **_options: Any) -> Any:
    return client


async def _bound(response: "httpx2.Response") -> None:
    """Have a body of JSON end the request once it is too long; events have a bound already."""
    if not response.headers.get("content-type", "").startswith("application/json"):
        return
    stream = cast("Any", response.stream)

    class Bounded(base.httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > LONGEST_BYTES:
                    raise base.httpx2.ReadError(f"a message of more than {LONGEST_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()


@asynccontextmanager
async def inside(sandbox: Sandbox, port: int, *, timeout_s: float) -> AsyncGenerator[str]:
    """Yield the path of a socket that leads to a port of a sandbox, once something listens there.

    No port of the machine is opened, and the path is in a folder of this user alone.

    Raises:
        EnvironmentFailed: Nothing listens on the port after `timeout_s`, or the sandbox has ended.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    (await sandbox.connect(port)).close()
                    break
                except OSError:
                    await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise EnvironmentFailed(
            f"Nothing listens on port {port} in the sandbox {timeout_s:g} s after the start."
        ) from None
    folder = Path(tempfile.mkdtemp(prefix="hud-mcp-"))
    path = str(folder / "socket")
    try:
        server = await asyncio.start_unix_server(partial(_carry, sandbox, port), path)
        async with server:
            yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _carry(
    sandbox: Sandbox, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(sock=await sandbox.connect(port))
        try:
            await splice(reader, writer, far_reader, far_writer)
        finally:
            far_writer.close()
    except (OSError, EnvironmentFailed, TimeoutError):
        pass  # the client finds its connection closed
    finally:
        writer.close()

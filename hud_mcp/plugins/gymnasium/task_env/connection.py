"""The ways of a `TaskEnv` to its server: HTTP, or a pipe. Each call waits for its reply."""

import asyncio
import itertools
import json
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson

from hud_mcp.agents.agent import Reply
from hud_mcp.base.process import OwnServer
from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.rollout.link import http_client
from hud_mcp.values.call import LIST_TASKS, STEP

if TYPE_CHECKING:
    from mcp.client.client import Client

_START_S = 60.0
_CALL_S = 600.0
"""The bound of one call; the server bounds its own work below that."""
_STOP_S = 15.0
_WORKER_START_S = 120.0
_CHUNK_BYTES = 1 << 20

OpenClient = Callable[[], "AbstractAsyncContextManager[Client]"]


class Connection:
    """A connection over HTTP, by an event loop on a thread that does not keep the process alive.

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
        """Call a tool, or raise `EnvironmentFailed` if no reply comes."""
        more: dict[str, Any] = {} if meta is None else {"meta": dict(meta)}
        return Reply.of(self._wait(self._client.call_tool(name, arguments, **more), name))

    def read(self, uri: str) -> str:
        """Read a text resource, or raise `EnvironmentFailed` without a reply or a resource."""
        found = self._wait(self._client.read_resource(uri), uri)
        return "".join(part.text for part in found.contents)

    def take(self, session: str, action: Any) -> Reply:
        """Take one step of a world whose actions are values; raise as `call`."""
        row = {"type": "custom", "action": "step", "args": {"action": action}}
        return self.call(STEP, {"actions": [row], "session": session}, {"hud-mcp/values": True})

    def manifest(self, environment: str) -> dict[str, Any]:
        """Return the manifest of an environment; raise as `read`."""
        return json.loads(self.read(f"hud://environments/{environment}"))

    def tools(self) -> list[dict[str, Any]]:
        """Return the entries of the server's tools; raise as `call`."""
        found = self._wait(self._client.list_tools(), "tools/list").tools
        return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in found]

    def close(self) -> None:
        """Disconnect. It may be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_STOP_S)

    def _wait(self, work: Any, called: str) -> Any:
        if not self._thread.is_alive():
            work.close()
            raise EnvironmentFailed(f"{called}: the connection to the server is closed.")
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, _CALL_S), self._loop)
        try:
            return future.result()
        except Exception as exc:
            cause = sole_cause(exc)
            raise EnvironmentFailed(
                f"{called}: no reply of the server: {type(cause).__name__}: {cause}."
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
    """Return a function that connects to the `/mcp` of a running server, with its token."""
    return lambda: http_client(url, token=token, call_s=_CALL_S)


class Pipe:
    """A worker process of its own, which ends with this object; so does its record without `store`.

    Each frame has a number, and so has its reply. A reply that comes after its call was given up,
    by its bound or by an interrupt, is dropped: the next call never reads it as its own.

    Raises:
        EnvironmentFailed: The worker does not start; the text has the end of its log.
    """

    def __init__(self, source: str, store: str | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hud-mcp-", ignore_cleanup_errors=True)
        place = f"scratch:{self._folder.name}/store.sqlite3" if store is None else f"kept:{store}"
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._rest = bytearray()
        self.call_s = _WORKER_START_S
        with Path(self._folder.name, "log").open("wb") as log:
            server = OwnServer(
                [source, place], log, module="hud_mcp.plugins.gymnasium.task_env.worker"
            )
            self._process = server.popen(stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        try:
            self._ask({"tool": LIST_TASKS, "arguments": {}, "meta": None})
        except EnvironmentFailed as exc:
            failure = server.did_not_start(exc)
            self.close()
            raise failure from exc
        self.call_s = _CALL_S

    def call(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> Reply:
        """Call a tool; raise as `Connection.call`."""
        return Reply.of_wire(self._ask({"tool": name, "arguments": arguments, "meta": meta}))

    def take(self, session: str, action: Any) -> Reply:
        """Take one step of a world whose actions are values; raise as `Connection.call`."""
        return Reply.of_wire(self._ask({"take": action, "session": session}))

    def manifest(self, environment: str) -> dict[str, Any]:
        """Return the manifest of an environment; raise as `Connection.call`."""
        return self._ask({"manifest": environment})

    def tools(self) -> list[dict[str, Any]]:
        """Return the entries of the environments' own tools; raise as `Connection.call`."""
        return self._ask({"tools": True})["tools"]

    def close(self) -> None:
        """End the worker. It may be called twice."""
        process = self._process
        # A fork of this process has the object too, and does not end its parent's worker.
        if process.stdin is None or process.stdin.closed or os.getpid() != self._owner:
            return
        process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._folder.cleanup()

    def __del__(self) -> None:
        self.close()

    def _ask(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or stdin.closed:
            raise EnvironmentFailed("The connection to the server is closed.")
        number = b"%d" % next(self._numbers)
        try:
            body = orjson.dumps(frame, option=orjson.OPT_SERIALIZE_NUMPY)
            line = memoryview(b"%b %b\n" % (number, body))
            while line:
                line = line[stdin.write(line) :]
        except OSError as exc:
            raise EnvironmentFailed(f"The server ended: {exc}.") from exc
        until_s = time.monotonic() + self.call_s
        while True:
            of, _, reply = self._line(stdout.fileno(), until_s).partition(b" ")
            if of == number:
                return cast("dict[str, Any]", orjson.loads(reply))

    def _line(self, fd: int, until_s: float) -> bytes:
        while (end := self._rest.find(b"\n")) < 0:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([fd], [], [], left_s)[0]:
                raise EnvironmentFailed(f"No reply of the server within {self.call_s:g} s.")
            data = os.read(fd, _CHUNK_BYTES)
            if not data:
                raise EnvironmentFailed("The server has ended.")
            self._rest += data
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

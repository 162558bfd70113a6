"""The way to a worker process: one pipe each way, and one call at a time."""

import base64
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.gymnasium.task_env.connection import Reply
from hud_mcp.session.caller import OPERATOR_TOKEN

__all__ = ["Pipe"]

_START_S = 120.0
_CALL_S = 600.0
"""How long one call may take; the worker bounds its own work below that."""
_STOP_S = 15.0
_CHUNK_BYTES = 1 << 20


class Pipe:
    """Calls the tools of a worker of its own, which ends with it.

    Args:
        source: The environment, as `hud-mcp serve` takes it.
        store: Where it records; a file that is deleted at the end, by default.

    Raises:
        EnvironmentFailed: The worker does not start; the text has the end of its log.
    """

    def __init__(self, source: str, store: str | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hud-mcp-", ignore_cleanup_errors=True)
        self._log = Path(self._folder.name, "log")
        place = f"scratch:{self._folder.name}/store.sqlite3" if store is None else f"kept:{store}"
        module = "from hud_mcp.plugins.gymnasium.task_env.worker import main; main()"
        kept = {k: v for k, v in os.environ.items() if k != OPERATOR_TOKEN}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  # a command that is made here
                [sys.executable, "-P", "-c", module, source, place],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=kept,
                bufsize=0,
            )
        self._owner = os.getpid()
        self._rest = bytearray()
        try:
            self._ask({"tool": "list_tasks", "arguments": {}, "meta": None}, _START_S)
        except EnvironmentFailed as exc:
            said = self._log.read_text(errors="replace")[-2000:].strip()
            self.close()
            raise EnvironmentFailed(f"The server did not start: {exc}\n{said}") from exc

    def call(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> Reply:
        """Call a tool; raises as `Connection.call`."""
        return _read_reply(self._ask({"tool": name, "arguments": arguments, "meta": meta}))

    def take(self, session: str, action: Any) -> Reply:
        """Take one step of a world whose actions are values; raises as `Connection.call`."""
        return _read_reply(self._ask({"take": action, "session": session}))

    def manifest(self, environment: str) -> dict[str, Any]:
        """What an environment is; raises as `Connection.call`."""
        return self._ask({"manifest": environment})

    def close(self) -> None:
        """End the worker. It may be called twice."""
        process = self._process
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

    def _ask(self, frame: Mapping[str, Any], limit_s: float = _CALL_S) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or stdin.closed:
            raise EnvironmentFailed("The connection to the server is closed.")
        try:
            line = memoryview(orjson.dumps(frame, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
            while line:
                line = line[stdin.write(line) :]
        except OSError as exc:
            raise EnvironmentFailed(f"The server ended: {exc}.") from exc
        return cast("dict[str, Any]", orjson.loads(self._line(stdout.fileno(), limit_s)))

    def _line(self, fd: int, limit_s: float) -> bytes:
        until_s = time.monotonic() + limit_s
        while (end := self._rest.find(b"\n")) < 0:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([fd], [], [], left_s)[0]:
                raise EnvironmentFailed(f"No reply of the server within {limit_s:g} s.")
            data = os.read(fd, _CHUNK_BYTES)
            if not data:
                raise EnvironmentFailed("The server has ended.")
            self._rest += data
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def _read_reply(result: Mapping[str, Any]) -> Reply:
    content = result.get("content", ())
    images = [part["data"] for part in content if part["type"] == "image"]
    return Reply(
        text="\n".join(part["text"] for part in content if part["type"] == "text"),
        image=base64.b64decode(images[0]) if images else None,
        is_error=bool(result.get("isError")),
        meta=result.get("_meta") or {},
        structured=result.get("structuredContent") or {},
    )

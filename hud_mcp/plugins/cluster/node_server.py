"""The actor on a node of a cluster: one server process, which ends with the one that started it."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hud_mcp.base.process import OwnServer
from hud_mcp.plugins import cluster

_STARTED = "HUD_MCP_URL="
_LOG_CHARS = 2000
_STOP_S = 8.0


class NodeServer:
    """One `hud-mcp serve` on a node of a cluster, at its address.

    `arguments` lack the address. `variables` are beside the node's own environment.
    """

    def __init__(
        self, arguments: Sequence[str], variables: Mapping[str, str], host: str | None = None
    ) -> None:
        self._host = host
        self._arguments = list(arguments)
        self._variables = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None
        self._drain: threading.Thread | None = None
        handle, path = tempfile.mkstemp(prefix="hud-mcp-", suffix=".log")
        os.close(handle)
        self._log = Path(path)

    def start(self, token: str) -> tuple[str, str]:
        """Start the server, and return its URL and the node's address.

        Raises:
            RuntimeError: It ended before it answered; the text has the end of its log.
        """
        node = self._host or str(cluster.node_address())
        with self._log.open("w") as log:
            server = OwnServer(
                [
                    *(*self._arguments, "--http", f"{_shown(node)}:0"),
                    *("--end-with-stdin", "--token-from-stdin"),
                ],
                log,
                self._variables,
            )
            # Its standard input closes with this process, and ends the server too.
            self._process = process = server.popen(
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, leads_session=True
            )
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("The server was started without pipes.")
        with suppress(BrokenPipeError):
            stdin.write(f"{token}\n".encode())
            stdin.flush()
        for line in map(bytes.decode, stdout):
            if line.startswith(_STARTED):
                # A full pipe would stop the server.
                self._drain = threading.Thread(target=stdout.read, daemon=True)
                self._drain.start()
                return line.removeprefix(_STARTED).strip(), node
        process.wait()
        raise RuntimeError(f"The server did not start on node {node}.\n{self._log_end()}")

    def wait(self) -> str:
        """Wait until the server ends, and return the end of its log."""
        if self._process is not None:
            self._process.wait()
        return self._log_end()

    def stop(self) -> str:
        """End it in order, or else at once, and return the end of its log."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._drain is not None:
            self._drain.join()
        for pipe in () if process is None else (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        end = self._log_end()
        self._log.unlink(missing_ok=True)
        return end

    def _log_end(self) -> str:
        try:
            return self._log.read_text(errors="replace")[-_LOG_CHARS:].strip()
        except OSError:
            return ""


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address

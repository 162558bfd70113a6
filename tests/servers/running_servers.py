"""Servers of the tests as processes of their own, and our end of their messages."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hud_mcp.plugins.servers.peer import Peer
from hud_mcp.plugins.servers.wires import PipeWire

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "sdk_server.py")]
WritePublishing = Callable[..., str]
"""Writes an environment that publishes the server at an address; returns its path."""
LYING_SERVER = [sys.executable, str(HERE / "lying_server.py")]


@contextmanager
def peer_of(*argv: str, cwd: Path | None = None, **options: Any) -> Iterator[Peer]:
    """Start a server without a sandbox; it is killed after the block."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        wire = PipeWire(os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()))
    peer = Peer(wire, **options)
    try:
        yield peer
    finally:
        peer.close()
        process.kill()
        process.wait()


@contextmanager
def listening(folder: Path, words: Sequence[str], **env: str) -> Iterator[str]:
    """Run a server over HTTP on the machine; yield its address."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env={**os.environ, **env},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().split()[-1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def plain(*words: str) -> list[str]:
    """The words of the plain server over HTTP, on a free port."""
    return [str(HERE / "plain_server.py"), *words, "http", "0"]


def stored_in(folder: Path) -> bytes:
    """Everything in the files of a store."""
    return b"".join(path.read_bytes() for path in folder.rglob("store*") if path.is_file())

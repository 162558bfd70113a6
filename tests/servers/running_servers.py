"""Servers of the tests as processes of their own, and our end of their messages."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hud_mcp.plugins.servers.peer import Peer
from hud_mcp.plugins.servers.wires import PipeWire

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "sdk_server.py")]
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

"""Several servers on one database, each a replica of the others, and nginx before them."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
from peers import ROOT, RawHttp, child_environment, serve_arguments
from waiting import PATIENCE_S, wait_until

__all__ = [
    "ANN",
    "BOB",
    "SECRET",
    "Flock",
    "One",
    "flock",
    "free_ports",
    "nginx",
    "running_nginx",
    "shown_config",
]

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"
SECRET = "5" * 64


@dataclass
class One:
    """One replica, which may be stopped and started again on its port.

    Attributes:
        tag: What marks its replies.
        port: Where it listens.
    """

    flock: "Flock"
    tag: str
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its MCP."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def log(self) -> Path:
        """What its processes wrote to stderr."""
        return self.flock.folder / f"{self.tag}.log"

    def start(self) -> None:
        """Start a process, and return when it answers."""
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *self.flock.arguments(self)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=child_environment(**self.flock.env),
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith("HUD_MCP_URL="), self.log.read_text()

    def kill(self) -> None:
        """End it without a warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Tell it to stop, and wait until it has; its status."""
        return self._end(signal.SIGTERM)

    def tell_to_stop(self) -> None:
        """Tell it to stop, and do not wait."""
        assert self.process is not None
        self.process.terminate()

    def wait(self) -> int:
        """Wait until it has ended by itself; its status."""
        return self._end(None)

    def _end(self, how: signal.Signals | None) -> int:
        assert self.process is not None
        if how is not None:
            self.process.send_signal(how)
        status = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@dataclass
class Flock:
    """Replicas of one server.

    Attributes:
        folder: For their logs.
        store: The URL of their database.
        sources: Their environments.
        options: More for `serve`.
        env: More for their environment.
        all: Every one of them.
    """

    folder: Path
    store: str
    sources: Sequence[str]
    options: Sequence[str]
    env: dict[str, str]
    all: list[One] = field(default_factory=list[One])

    def arguments(self, one: One) -> list[str]:
        """The arguments of a replica's process, after the interpreter."""
        given = ("--http", f"127.0.0.1:{one.port}", "--replica", one.tag, *self.options)
        return serve_arguments(self.sources, self.store, *given)

    def __getitem__(self, place: int) -> One:
        """One of them."""
        return self.all[place]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; below those that the system gives to connections."""
    found: list[int] = []
    port = 12_000 + os.getpid() * 61 % 20_000  # apart from those of processes beside it
    while len(found) < count:
        port += 1
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


@contextmanager
def flock(
    folder: Path,
    store: str,
    sources: Sequence[str],
    *options: str,
    count: int = 2,
    tokens: bool = True,
) -> Iterator[Flock]:
    """Replicas that run; killed at the end."""
    env = {"HUD_MCP_REPLICA_SECRET": SECRET, "XDG_DATA_HOME": str(folder / "data")}
    if tokens:
        (folder / "tokens").write_text(f"ann={ANN}\nbob={BOB}\n")
        (folder / "tokens").chmod(0o600)
        options = ("--token-file", str(folder / "tokens"), *options)
    made = Flock(folder, store, sources, options, env)
    made.all += [One(made, f"r{n + 1}", port) for n, port in enumerate(free_ports(count))]
    try:
        for one in made.all:
            one.start()
        yield made
    finally:
        for one in made.all:
            if one.process is not None and one.process.poll() is None:
                one.kill()


@contextmanager
def nginx(folder: Path, replicas: Flock) -> Iterator[str]:
    """An nginx before three replicas, configured as the page of the docs says; its URL."""
    (port,) = free_ports(1)
    text = shown_config("replicas.md").replace("listen 80;", f"listen 127.0.0.1:{port};")
    for place, one in enumerate(replicas.all):
        text = text.replace(f"10.0.0.{place + 1}:8000", f"127.0.0.1:{one.port}")
    assert "10.0.0." not in text
    with running_nginx(folder, text, port):
        yield f"http://127.0.0.1:{port}/mcp"


def shown_config(name: str) -> str:
    """The configuration of nginx that a page of the docs shows."""
    shown = re.search(r"```nginx\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    assert shown is not None
    return shown[1]


@contextmanager
def running_nginx(folder: Path, text: str, port: int) -> Iterator[None]:
    """An nginx with a configuration, once it listens on the port that it names."""
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\n"
        f"error_log {folder}/nginx.log;\n"
        f"events {{ worker_connections 1024; }}\nhttp {{\n"
        f"log_format sent '$http_hud_mcp_replica $upstream_addr';\n"
        f"access_log {folder}/access.log sent;\n"
        f"{places}{text}\n}}\n"
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([program, "-c", config, "-e", folder / "nginx.log"])
    try:
        wait_until(
            lambda: _listens(port), said=lambda: (folder / "nginx.log").read_text(errors="replace")
        )
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


async def ask(one: One, era: str, tool: str, *, token: str = ANN, **arguments: Any) -> Any:
    """Call a tool of one replica on a connection of its own."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S) as web:
        raw = RawHttp(web, one.url, era)
        await raw.hello()
        return await raw.call(tool, **arguments)


async def in_thread(work: Any) -> Any:
    """Do what waits for a process while the loop goes on."""
    with anyio.fail_after(PATIENCE_S):
        return await anyio.to_thread.run_sync(work)

"""Measure our OpenEnv face beside OpenEnv's own server: the same games, the same clients, one run.

Every server runs from the start. Each round measures each of them, one after the other, so what
drifts on the machine drifts for all. A figure is the median of its rounds, and the ratios hold
where the figures do not. An episode is a question with its answer, and a step pushes a cart.
The clients are OpenEnv's own and a bare WebSocket, which hides less of what a server costs.
OpenEnv's server keeps no record; ours records each step before it replies.

    python benchmarks/openenv_face.py --openenv-python PATH [--rounds 3] [--seconds 0.6] [--json]
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
START_S = 120.0
GAMES = {"letters": "episodes", "pole": "steps"}
KINDS = {"openenv": "OpenEnv's client", "bare": "bare WebSocket"}
CLIENTS = (1, 16)
SERVERS = ("ours", "OpenEnv")
TARGETS = {"ours": 0.8}
OPENENV = "0.10.0"

Cell = tuple[str, str, int]
"""A game, a kind of client, and how many."""


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(server: str, game: str, port: int, folder: Path, python: str) -> list[str]:
    """What starts one of the servers."""
    if server == "OpenEnv":
        return [python, str(HERE / "openenv_peer.py"), game, str(port)]
    source, store = f"{HERE / 'openenv_ours.py'}:{game}", folder / f"{server}-{game}.sqlite3"
    ours = [sys.executable, "-m", "hud_mcp", "serve", source, "--http", f"127.0.0.1:{port}"]
    return [*ours, "--openenv", "--store", str(store), "--log-level", "error"]


@contextmanager
def running(started: list[str], folder: Path) -> Generator[subprocess.Popen[str]]:
    """A program on pipes, away from what is configured here."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    process = subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
        env={**kept, "PYTHONPATH": os.pathsep.join((str(HERE), str(ROOT)))
             if started[0] == sys.executable else str(HERE), "HOME": str(folder)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Wait until a server takes connections.

    Raises:
        RuntimeError: It ended, or takes too long.
    """
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"no server listens to port {port}: {process.args}")


def ask(client: subprocess.Popen[str], asked: dict[str, Any]) -> dict[str, Any]:
    """Have the clients do something.

    Raises:
        RuntimeError: They failed.
    """
    if client.stdin is None or client.stdout is None:
        raise RuntimeError("the clients have no pipes")
    if asked:
        client.stdin.write(json.dumps(asked) + "\n")
        client.stdin.flush()
    reply = client.stdout.readline()
    if not reply:
        raise RuntimeError(f"the clients failed at {asked}")
    return json.loads(reply)


def used_s(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


class Figures:
    """Rates and processor times of each cell and server, a list entry a round."""

    def __init__(self) -> None:
        self.rates: dict[Cell, dict[str, list[float]]] = {}
        self.cpu_ms: dict[Cell, dict[str, list[float]]] = {}

    def add(self, cell: Cell, server: str, found: dict[str, Any], cpu_s: float) -> None:
        """Take note of one measurement."""
        rates = self.rates.setdefault(cell, {name: [] for name in SERVERS})
        cpu_ms = self.cpu_ms.setdefault(cell, {name: [] for name in SERVERS})
        rates[server].append(found["done"] / found["took_s"])
        cpu_ms[server].append(1000 * cpu_s / found["done"])

    def rows(self) -> list[dict[str, Any]]:
        """Medians of the rounds."""
        return [
            {
                "what": GAMES[cell[0]],
                "client": KINDS[cell[1]],
                "clients": cell[2],
                "per_s": {name: median(found) for name, found in rates.items()},
                "cpu_ms": {name: median(found) for name, found in self.cpu_ms[cell].items()},
                "ratio": {
                    name: median(
                        ours / theirs
                        for ours, theirs in zip(rates[name], rates["OpenEnv"], strict=True)
                    )
                    for name in TARGETS
                },
            }
            for cell, rates in self.rates.items()
        ]


def measure(python: str, rounds: int, seconds: float, folder: Path) -> Figures:
    """Start every server, and measure them in turn.

    Raises:
        RuntimeError: It is another version of OpenEnv.
    """
    figures = Figures()
    with ExitStack() as stack:
        started: dict[tuple[str, str], tuple[int, subprocess.Popen[str]]] = {}
        for server in SERVERS:
            for game in GAMES:
                port = free_port()
                line = command(server, game, port, folder, python)
                started[server, game] = port, stack.enter_context(running(line, folder))
        for port, process in started.values():
            wait_for(port, process)
        clients = stack.enter_context(running([python, str(HERE / "openenv_clients.py")], folder))
        if (found := ask(clients, {})["openenv"]) != OPENENV:
            raise RuntimeError(f"OpenEnv is {found}, and {OPENENV} was expected")
        cells = [(game, kind, n) for game in GAMES for kind in KINDS for n in CLIENTS]
        for turn in range(-1, rounds):  # the first round warms up
            for cell in cells:
                game, kind, count = cell
                for server in SERVERS[turn % 2 :] + SERVERS[: turn % 2]:
                    port, process = started[server, game]
                    asked = {"url": f"http://127.0.0.1:{port}", "game": game, "kind": kind}
                    asked |= {"clients": count, "seconds": seconds if turn >= 0 else seconds / 4}
                    before = used_s(process.pid)
                    told = ask(clients, asked)
                    if turn >= 0:
                        figures.add(cell, server, told, used_s(process.pid) - before)
    return figures


def show(rows: list[dict[str, Any]], rounds: int) -> None:
    """Print a table."""
    print(f"OpenEnv {OPENENV}; a second, median of {rounds} rounds; load {os.getloadavg()[0]:.1f}")
    heads = "".join(f"{name:>10}" for name in SERVERS) + "".join(f"{n + ' x':>11}" for n in TARGETS)
    print(f"{'':38}{heads}   server's CPU ms each")
    for row in rows:
        label = f"{row['what']}, {row['clients']} x {row['client']}"
        rates = "".join(f"{row['per_s'][name]:10.0f}" for name in SERVERS)
        ratios = "".join(f"{row['ratio'][name]:11.2f}" for name in TARGETS)
        spent = " ".join(f"{row['cpu_ms'][name]:6.2f}" for name in SERVERS)
        print(f"{label:38}{rates}{ratios}   {spent}")
    targets = ", ".join(f"{name} {least}" for name, least in TARGETS.items())
    print(f"targets of the ratios: {targets}")


def main() -> None:
    """Measure all, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--openenv-python", required=True, help="an interpreter that has openenv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each figure, each round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="openenv-") as place:
        found = measure(options.openenv_python, options.rounds, options.seconds, Path(place))
    if options.json:
        print(json.dumps({"rounds": options.rounds, "figures": found.rows()}))
        return
    show(found.rows(), options.rounds)


if __name__ == "__main__":
    main()

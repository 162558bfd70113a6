"""Measure one trivial tool call over stdio: our transport, the SDK's, and a bare JSON line loop.

Each round starts every server anew, one after the other, so that what drifts on the machine
drifts for all of them; a figure is the median of its rounds, and the ratios hold where the
figures do not. The client is a plain loop over lines, the same for all.

    python benchmarks/stdio.py [--calls 4000] [--in-flight 64] [--rounds 5] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

PEER = Path(__file__).with_name("stdio_peer.py")
SERVERS = ("ours", "sdk", "floor")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Figures:
    """What one server did; the medians of its rounds."""

    server: str
    era: str
    calls_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms_per_call: float


class Client:
    """One server process and its two pipes."""

    def __init__(self, server: str, era: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PEER), server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": str(PEER.parents[1])},
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the server has no pipes")
        self._write = self._process.stdin
        self._read = self._process.stdout
        self._buffer = b""
        self._meta = {"_meta": ENVELOPE} if era == "modern" else {}
        self._next_id = 0
        if era == "legacy":
            self._handshake()
        self.call()

    def call(self) -> float:
        """Make one call; seconds until its reply."""
        frame = self._frame()
        start = time.perf_counter()
        self._write.write(frame)
        self._replies(1)
        return time.perf_counter() - start

    def calls(self, count: int, in_flight: int) -> float:
        """Make many calls with some in flight at any time; calls per second."""
        start = time.perf_counter()
        sent = done = 0
        while done < count:
            batch = min(in_flight - (sent - done), count - sent)
            if batch:
                self._write.write(b"".join(self._frame() for _ in range(batch)))
                sent += batch
            done += self._replies(max(1, min(in_flight // 2, count - done)))
        return count / (time.perf_counter() - start)

    def cpu_s(self) -> float:
        """The processor time that the server has used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def close(self) -> None:
        """End the server, whose own end is not measured and may take long on a busy machine."""
        self._process.kill()
        self._process.wait()
        self._write.close()
        self._read.close()

    def _handshake(self) -> None:
        info = {"name": "benchmark", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self._write.write(self._frame("initialize", params))
        self._replies(1)
        self._write.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def _frame(self, method: str = "tools/call", params: dict[str, Any] | None = None) -> bytes:
        self._next_id += 1
        if params is None:
            params = {"name": "echo", "arguments": {"text": "hello"}, **self._meta}
        request = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        return json.dumps(request).encode() + b"\n"

    def _replies(self, at_least: int) -> int:
        seen = 0
        while seen < at_least:
            chunk = self._read.read(65_536)
            if not chunk:
                raise RuntimeError("the server has gone")
            if b'"error"' in chunk:
                raise RuntimeError(f"the server refused: {chunk[:300]!r}")
            seen += chunk.count(b"\n")
        return seen


def measure(server: str, era: str, *, calls: int, in_flight: int) -> Figures:
    """Measure one server in one round."""
    client = Client(server, era)
    try:
        client.calls(200, in_flight)
        used = client.cpu_s()
        rate = client.calls(calls, in_flight)
        cpu = (client.cpu_s() - used) / calls
        trips = sorted(client.call() for _ in range(max(200, calls // 8)))
    finally:
        client.close()
    p99 = trips[int(len(trips) * 0.99)]
    return Figures(server, era, rate, median(trips) * 1e3, p99 * 1e3, cpu * 1e3)


def summary(rounds: list[Figures]) -> Figures:
    """Take the median of each figure."""
    first = rounds[0]
    return Figures(
        first.server,
        first.era,
        median(figures.calls_per_s for figures in rounds),
        median(figures.p50_ms for figures in rounds),
        median(figures.p99_ms for figures in rounds),
        median(figures.cpu_ms_per_call for figures in rounds),
    )


def table(results: list[Figures]) -> str:
    """Lay the figures out, with their ratios to the SDK's."""
    lines = [
        "| server | era | calls/s | x SDK | p50 ms | x SDK | p99 ms | CPU ms/call |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for figures in results:
        sdk = next(f for f in results if f.server == "sdk" and f.era == figures.era)
        lines.append(
            f"| {figures.server} | {figures.era} | {figures.calls_per_s:,.0f} "
            f"| {figures.calls_per_s / sdk.calls_per_s:.1f} | {figures.p50_ms:.3f} "
            f"| {sdk.p50_ms / figures.p50_ms:.1f} | {figures.p99_ms:.3f} "
            f"| {figures.cpu_ms_per_call:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the rounds and print what they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    kinds = [(server, era) for era in ("modern", "legacy") for server in SERVERS]
    rounds: dict[tuple[str, str], list[Figures]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for server, era in kinds:
            figures = measure(server, era, calls=options.calls, in_flight=options.in_flight)
            rounds[server, era].append(figures)
    results = [summary(figures) for figures in rounds.values()]
    print(json.dumps([asdict(figures) for figures in results]) if options.json else table(results))


if __name__ == "__main__":
    main()

"""What it costs that a call reaches a replica that does not run its session.

Two replicas on one store; the same call is made at the one that runs the session and at the other,
which forwards it, in turn. A server that is no replica answers it too. The ratios are to a call at
the replica that runs the session.

    python benchmarks/replicas.py [--calls 300] [--store postgresql://…]
"""

import argparse
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import orjson

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOKEN = secrets.token_hex(16)


class Server:
    """One server process on a store; a replica where it has a tag."""

    def __init__(self, store: str, secret: str, tag: str | None) -> None:
        replica = [] if tag is None else ["--replica", tag]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "hud_mcp", "serve", "letter_count", "--store", store),
                *("--http", "127.0.0.1:0", *replica),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HUD_MCP_REPLICA_SECRET": secret, "HUD_MCP_TOKEN": TOKEN},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().removeprefix("HUD_MCP_URL=").strip()
        self.web = httpx.Client(timeout=120, headers={"authorization": f"Bearer {TOKEN}"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        reply = self.web.post(self.url, json=body, headers=headers)
        result = orjson.loads(reply.content)["result"]
        if result.get("isError"):
            raise SystemExit(result["content"][0]["text"])
        return result

    def start(self) -> str:
        """Start a task and return its session."""
        arguments = {"word": "lamp", "letter": "a"}
        begun = self.call("start_task", template="count", arguments=arguments)
        return begun["structuredContent"]["session"]

    def timed(self, session: str) -> float:
        """Milliseconds of one look."""
        began = time.perf_counter()
        self.call("step", session=session, actions=[])
        return (time.perf_counter() - began) * 1000

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        self.web.close()


def main() -> None:
    """Print the medians and their ratios."""
    options = argparse.ArgumentParser()
    options.add_argument("--calls", type=int, default=300)
    options.add_argument("--store")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or str(Path(folder) / "store.sqlite3")
        secret = secrets.token_hex(32)
        servers = [Server(store, secret, tag) for tag in ("r1", "r2", None)]
        try:
            owner, other, alone = servers
            session, own = owner.start(), alone.start()
            looks = {
                "at the replica that runs it": lambda: owner.timed(session),
                "forwarded": lambda: other.timed(session),
                "at a server alone": lambda: alone.timed(own),
            }
            taken: dict[str, list[float]] = {name: [] for name in looks}
            for turn in range(given.calls + 20):
                for name, look in looks.items():
                    spent = look()
                    if turn >= 20:  # the first ones open connections
                        taken[name].append(spent)
        finally:
            for server in servers:
                server.end()
    direct = statistics.median(taken["at the replica that runs it"])
    print(f"one look, median of {given.calls}; one-minute load {os.getloadavg()[0]:.1f}")
    for name, spent in taken.items():
        median = statistics.median(spent)
        p95 = sorted(spent)[int(0.95 * len(spent))]
        print(f"{name:30} {median:7.2f} ms  p95 {p95:7.2f} ms  {median / direct:5.2f} x")


if __name__ == "__main__":
    main()

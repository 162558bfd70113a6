"""What a browser session's record costs on disk, and how long it takes to come back.

A server is killed with SIGKILL after 20 steps and started again on the same store; the
time is from the next call of the client to its reply, with the world opened anew and the
steps replayed. Beside it, in the same run: the same 20 steps while they were first made,
and the opening of a new session. Then 100 steps of one session, and what they left on disk.

    python benchmarks/restart.py
"""

import argparse
import os
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
ACTIONS: tuple[dict[str, Any], ...] = (
    {"type": "custom", "action": "goto", "args": {"url": "/"}},
    {"type": "scroll", "scroll_x": 0, "scroll_y": 300},
    {"type": "press", "keys": ["tab"]},
    {"type": "click", "x": 400, "y": 300},
)


class Server:
    """One server process on a store."""

    def __init__(self, folder: Path) -> None:
        arguments = ["serve", "browser", "--store", str(folder / "store.sqlite3")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hud_mcp", *arguments, "--http", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        self.url = line.removeprefix("HUD_MCP_URL=").strip()
        self.web = httpx.Client(timeout=120)

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
        lines = [x for x in reply.text.splitlines() if x.startswith("data: {")]
        message = orjson.loads(lines[-1].removeprefix("data: ") if lines else reply.content)
        result = message["result"]
        if result.get("isError"):
            raise SystemExit(result["content"][0]["text"])
        return result

    def start(self) -> str:
        """Start a task and return its session."""
        begun = self.call("start_task", task="shop-price-lamp")
        return begun["structuredContent"]["session"]

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.wait()
        self.web.close()


def restored(folder: Path, steps: int) -> tuple[float, float, float]:
    """Seconds of the steps, of coming back, and of opening a new session."""
    server = Server(folder)
    server.start()  # the browser itself is started by this one
    session = server.start()
    began = time.perf_counter()
    for i in range(steps):
        server.call("step", session=session, actions=[ACTIONS[i % len(ACTIONS)]])
    made = time.perf_counter() - began
    server.kill()
    server = Server(folder)
    server.start()
    began = time.perf_counter()
    server.start()
    opened = time.perf_counter() - began
    began = time.perf_counter()
    server.call("task_status", session=session)
    back = time.perf_counter() - began
    server.kill()
    return made, back, opened


def size(folder: Path, steps: int) -> tuple[int, int]:
    """Bytes of the database and of the screenshots after one session of so many steps."""
    server = Server(folder)
    session = server.start()
    for i in range(steps):
        server.call("step", session=session, actions=[ACTIONS[i % len(ACTIONS)]])
    server.process.terminate()
    server.process.wait()
    files = [p for p in folder.rglob("*") if p.is_file()]
    pictures = sum(p.stat().st_size for p in files if p.suffix in (".jpg", ".png"))
    return sum(p.stat().st_size for p in files if p.name.startswith("store.")), pictures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    results: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            results.append(restored(Path(folder), 20))
    made, back, opened = (statistics.median(column) for column in zip(*results, strict=True))
    print(f"20 steps, when first made   {made:6.2f} s")
    print(f"back after SIGKILL          {back:6.2f} s   {back / made:.2f} of that")
    print(f"a new session, for scale    {opened:6.2f} s   (medians of {rounds})")
    with tempfile.TemporaryDirectory() as folder:
        database, pictures = size(Path(folder), 100)
    print(
        f"100 steps on disk           {database / 1e6:6.2f} MB of rows, "
        f"{pictures / 1e6:.2f} MB of pictures"
    )


if __name__ == "__main__":
    main()

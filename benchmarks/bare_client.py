"""Our server over stdio, and a client of it that is a bare loop over JSON."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
SEED = 3
SERVED = '''"""What the benchmark serves."""

from hud_mcp import Environment, Gymnasium

env = Environment(
    "steps", world=Gymnasium({id!r}, max_episode_steps={most}, screen=False), reward="per_step"
)


@env.template()
async def take():
    """Take steps."""
    yield "Take steps."
    yield 1.0
'''
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class BareServer:
    """Our server on stdio, and a bare client of it.

    Args:
        folder: For the environment and the store.
        env_id: Which environment of Gymnasium it serves.
        most: How many steps an episode may have.
    """

    def __init__(self, folder: Path, env_id: str, most: int) -> None:
        source = folder / "env.py"
        source.write_text(SERVED.format(id=env_id, most=most))
        command = ["-m", "hud_mcp", "serve", str(source), "--store", str(folder / "store.sqlite3")]
        self._process = subprocess.Popen(
            [sys.executable, *command, "--log-level", "error"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._last = 0
        self._ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def take(self, actions: list[int], *, at_once: int = 1) -> tuple[float, float]:
        """Take steps, so many a call; the seconds that took, and those of the processor."""
        begun = self._call("start_task", {"template": "take", "seed": SEED})
        session = begun["structuredContent"]["session"]
        used_s, began_s = self._used_s(), time.perf_counter()
        for i in range(0, len(actions), at_once):
            some = actions[i : i + at_once]
            args = {"action": some[0]} if at_once == 1 else {"actions": some}
            act = {"type": "custom", "action": "step", "args": args}
            self._call("step", {"actions": [act], "session": session})
        took_s, used_s = time.perf_counter() - began_s, self._used_s() - used_s
        self._call("response", {"answer": "done", "session": session})
        return took_s, used_s

    def close(self) -> None:
        """Stop it."""
        self._process.kill()
        self._process.communicate()

    def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(result["content"])
        return result

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        while True:
            reply = json.loads(self._process.stdout.readline())  # type: ignore[union-attr]
            if reply.get("id") == self._last:
                return reply["result"]

    def _send(self, frame: dict[str, Any]) -> None:
        stdin = self._process.stdin
        if stdin is None:
            raise RuntimeError("the server has no standard input")
        stdin.write(json.dumps(frame).encode() + b"\n")
        stdin.flush()

    def _used_s(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

"""One CartPole step a call: our server over stdio, with both kinds of record, beside OpenEnv's.

Each client is a bare loop over JSON. OpenEnv's server is reached over its WebSocket and keeps no
record; ours records every step. The rounds take turns, so that what drifts on the machine drifts
for all; a figure is the median of its rounds, and the ratios hold where the figures do not.

    python benchmarks/one_step.py --openenv-python PATH [--rounds 5] [--steps 500]

PATH is an interpreter that has `openenv` and `gymnasium`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from stepping import ROOT, SEED, SERVED, pole_actions

PEER = Path(__file__).with_name("one_step_peer.py")
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Ours:
    """Our server on stdio, and a bare client of it.

    Args:
        folder: For the environment and the store.
        record: How its steps are recorded.
        most: How many steps an episode may have.
    """

    def __init__(self, folder: Path, record: str, most: int) -> None:
        source = folder / "env.py"
        source.write_text(SERVED.format(id="CartPole-v1", most=most))
        command = ["-m", "hud_mcp", "serve", str(source), "--store", str(folder / "store.sqlite3")]
        self._process = subprocess.Popen(
            [sys.executable, *command, "--record", record, "--log-level", "error"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._last = 0
        self._ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def take(self, actions: list[int]) -> tuple[float, float]:
        """Take steps, one a call; the seconds that took, and those of the processor."""
        begun = self._call("start_task", {"template": "take", "seed": SEED})
        session = begun["structuredContent"]["session"]
        used_s, began_s = self._used_s(), time.perf_counter()
        for action in actions:
            act = {"type": "custom", "action": "step", "args": {"action": action}}
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


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--openenv-python", required=True, help="it has openenv and gymnasium")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    actions = pole_actions(options.steps)
    peer = [options.openenv_python, str(PEER), json.dumps(actions)]
    theirs: list[float] = []
    ours: dict[str, list[tuple[float, float]]] = {"durable": [], "batched": []}
    with tempfile.TemporaryDirectory() as folder:
        servers: dict[str, Ours] = {}
        for record in ours:
            (Path(folder) / record).mkdir()
            servers[record] = Ours(Path(folder) / record, record, len(actions) + 1)
            servers[record].take(actions[:50])  # what loads with the first ones is not measured
        for _ in range(options.rounds):
            theirs.append(float(subprocess.run(peer, check=True, capture_output=True).stdout))
            for record, server in servers.items():
                ours[record].append(server.take(actions))
        for server in servers.values():
            server.close()
    print("| server | steps/s | of OpenEnv's | CPU ms a step |\n|---|--:|--:|--:|")
    print(f"| OpenEnv | {options.steps / median(theirs):,.0f} | 1.00 | |")
    for record, rounds in ours.items():
        rate = options.steps / median(took for took, _ in rounds)
        share = median(their / took for their, (took, _) in zip(theirs, rounds, strict=True))
        used_ms = 1e3 * median(used for _, used in rounds) / options.steps
        print(f"| ours, {record} | {rate:,.0f} | {share:.2f} | {used_ms:.2f} |")


if __name__ == "__main__":
    main()

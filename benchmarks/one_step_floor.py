"""The least that a durable step takes: a loop over JSON lines, CartPole, and one commit a step.

    python one_step_floor.py '[0, 1, …]'

It takes the actions from the seed on, one a line, through a pipe to a process of its own, and
prints the seconds that took. The process commits one row a step with full synchronisation.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gymnasium

SEED = 3


def serve(path: Path) -> None:
    """Take steps until standard input ends."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=1_000_000)
    env.reset(seed=SEED)
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("PRAGMA journal_mode=WAL")
    store.execute("PRAGMA synchronous=FULL")
    store.execute("CREATE TABLE steps (step INTEGER PRIMARY KEY, row TEXT NOT NULL)")
    for line in sys.stdin:
        action = json.loads(line)["action"]
        seen, reward, terminated, truncated, _info = env.step(action)
        reply = json.dumps({"state": seen.tolist(), "reward": float(reward)})
        store.execute("INSERT INTO steps (row) VALUES (?)", (reply,))
        if terminated or truncated:
            raise RuntimeError("the episode ended")
        sys.stdout.write(f"{reply}\n")
        sys.stdout.flush()


def main() -> None:
    """Start the loop, take the steps, and print how long they took."""
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
        return
    actions = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "serve", str(Path(folder) / "store.sqlite3")]
        loop = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if loop.stdin is None or loop.stdout is None:
            raise RuntimeError("the loop has no pipes")
        began = 0.0
        for i, action in enumerate(actions):
            loop.stdin.write(f"{json.dumps({'action': action})}\n")
            loop.stdin.flush()
            json.loads(loop.stdout.readline())
            began = began if i else time.perf_counter()  # what loads with the first is left out
        print((time.perf_counter() - began) * len(actions) / (len(actions) - 1))
        loop.stdin.close()
        loop.wait()


if __name__ == "__main__":
    main()

"""CartPole through `hud_mcp/Task-v0`, beside the same at an earlier commit, in one run.

A random policy plays whole episodes: a reset, its steps, its grade. The earlier commit is taken
from the repository into a temporary folder, and runs in the same Python. The rounds take turns,
so that what drifts on the machine drifts for both; the ratio is the median of the rounds'.
Beside them the same episodes through the client over HTTP, and through MCP over stdio.

    python benchmarks/task_env.py [--rounds 5] [--seconds 4] [--commit 50de138]
"""

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
PLAY = """
import sys, time
import gymnasium, hud_mcp, hud_mcp.task_env
env = gymnasium.make("hud_mcp/Task-v0", source="gym:CartPole-v1", disable_env_checker=True)
env.action_space.seed(0)
env.reset(seed=0)
print(hud_mcp.__file__, flush=True)
for line in sys.stdin:
    steps = episodes = 0
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < float(line):
        env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            over = terminated or truncated
            steps += 1
        episodes += 1
        info["grade"]
    took_s = time.perf_counter() - began_s
    print(steps / took_s, episodes / took_s, flush=True)
env.close()
"""


WIRES = ("http", "stdio")


class Player:
    """A process that plays when it is told to.

    Args:
        command: What Python is to run.
        tree: The source tree that it imports.
    """

    def __init__(self, command: Sequence[str], tree: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )

    @classmethod
    def of_tree(cls, tree: Path) -> Self:
        """One that plays through `hud_mcp/Task-v0` of a tree."""
        made = cls(["-P", "-c", PLAY], tree)
        if not made._line().startswith(str(tree)):
            raise RuntimeError(f"it does not run {tree}")
        return made

    @classmethod
    def over(cls, wire: str) -> Self:
        """One that plays over a wire, on a server that it starts."""
        return cls([str(ROOT / "benchmarks/episode_players.py"), wire], ROOT)

    def play(self, seconds: float) -> tuple[float, float]:
        """Steps and episodes a second."""
        stdin = self._process.stdin
        if stdin is None:
            raise RuntimeError("it has no standard input")
        stdin.write(f"{seconds}\n")
        stdin.flush()
        steps, episodes = map(float, self._line().split())
        return steps, episodes

    def close(self) -> None:
        """End it, and the server that it started; a busy machine takes its time."""
        self._process.communicate()

    def _line(self) -> str:
        stdout = self._process.stdout
        line = "" if stdout is None else stdout.readline()
        if not line:
            raise RuntimeError("it has ended")
        return line


def extracted(commit: str, folder: Path) -> Path:
    """The tree of a commit, in a folder."""
    made = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--commit", default="50de138")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        players = {
            options.commit: Player.of_tree(extracted(options.commit, Path(folder).resolve())),
            "this tree": Player.of_tree(ROOT),
            **{f"over {wire}": Player.over(wire) for wire in WIRES},
        }
        for player in players.values():
            player.play(1.0)  # what loads with the first episodes is not measured
        found = [
            {name: player.play(options.seconds) for name, player in players.items()}
            for _ in range(options.rounds)
        ]
        for player in players.values():
            player.close()
    print("| played by | steps/s | episodes/s | ratio |\n|---|--:|--:|--:|")
    for name in players:
        steps, episodes = (median(each[name][k] for each in found) for k in (0, 1))
        ratio = median(each[name][0] / each[options.commit][0] for each in found)
        print(f"| {name} | {steps:,.0f} | {episodes:,.1f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()

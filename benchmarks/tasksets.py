"""How long a set of 10,000 rows takes to load, to filter, to split and to be listed.

Prints processor seconds, each beside `json.loads` of the same lines in the same run: how busy the
machine is changes both alike. Two commands are measured whole, less what a start takes.
"""

import json
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
import orjson
from processor import TIMES, least, least_of_runs

from hud_mcp import load_taskset
from hud_mcp.taskset import Taskset

ROWS = 10_000
MOST_RATIO = 15.0
MOST_S = 1.0
"""Processor seconds for all of it: to load the rows, filter them, take a split and list them."""


def main() -> int:
    """Measure, print, and fail where something took too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl"
        path.write_bytes(b"\n".join(map(orjson.dumps, map(row, range(ROWS)))))
        print(f"{ROWS} rows, {path.stat().st_size / 1e6:.1f} MB; the least of {TIMES} times")
        peer = least(lambda: [json.loads(line) for line in path.read_bytes().splitlines()])
        show("json.loads of each line", peer, peer)
        tasks = Taskset.from_file(path)
        parts = {
            "load_taskset": least(lambda: anyio.run(load_taskset, str(path))),
            "filter and split": least(lambda: tasks.filter("row-99").split("test")),
            "list as JSON": least(lambda: [orjson.dumps(t.row) for t in tasks]),
        }
        for what, took in parts.items():
            show(what, took, peer)
        whole = sum(parts.values())
        show("these three", whole, peer)
        start = least_of("--version")
        show("`hud-mcp --version`, which is a start", start, peer)
        commands = (
            ("tasks", str(path), "--json"),
            ("tasks", str(path)),
            ("tasks", str(path), "--filter", "row-99", "--split", "test"),
        )
        worst = 0.0
        for words in commands:
            took = least_of(*words) - start
            shown = " ".join(words).replace(str(path), path.name)
            show(f"`hud-mcp {shown}`, less a start", took, peer)
            worst = max(worst, took / peer)
    print(f"to load, filter, split and list takes {whole:.2f} s of a processor (< {MOST_S:g})")
    print(f"a command is at most {worst:.1f} times json.loads (≤ {MOST_RATIO:g})")
    return int(worst > MOST_RATIO or whole >= MOST_S)


def show(what: str, seconds: float, peer: float) -> None:
    """Print a line."""
    print(f"{what:62} {seconds:6.2f} s {seconds / peer:6.1f}")


def least_of(*words: str) -> float:
    """The least processor seconds of some runs of a command, with all that it starts."""
    command = [sys.executable, "-m", "hud_mcp", *words]
    run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)
    return least_of_runs(run, children)


def children() -> float:
    """The processor seconds of what has been started and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(number: int) -> dict[str, object]:
    """One row, as importers write them."""
    return {
        "id": f"row-{number}",
        "gym": "hud-shell",
        "prompt": f"How many lines has file {number}? Answer with the number alone.",
        "setup": [{"function": "write_file", "args": ["a.txt", "one\ntwo\n" * (number % 7)]}],
        "evaluate": [{"function": "response_is", "args": [str(2 * (number % 7))]}],
        "metadata": {"split": ("train", "test")[number % 2], "parts": [f"p{number % 10}"]},
        "source": f"benchmarks/tasksets.py, row {number}",
    }


if __name__ == "__main__":
    sys.exit(main())

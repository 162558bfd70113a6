"""How long a set of 10,000 rows takes to load, to filter, to split and to be listed.

Prints processor seconds, each beside `json.loads` of the same lines in the same run: how busy the
machine is changes both alike. Two commands are measured whole, less what a start takes.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from hud_mcp.taskset import Taskset

ROWS = 10_000
TIMES = 5
MOST_RATIO = 15.0


def main() -> int:
    """Measure, print, and fail where something took too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl"
        path.write_bytes(b"\n".join(map(orjson.dumps, map(row, range(ROWS)))))
        print(f"{ROWS} rows, {path.stat().st_size / 1e6:.1f} MB; the least of {TIMES} times")
        peer = least(lambda: [json.loads(line) for line in path.read_bytes().splitlines()])
        show("json.loads of each line", peer, peer)
        tasks = Taskset.from_file(path)
        show("load", least(lambda: Taskset.from_file(path)), peer)
        show("filter and split", least(lambda: tasks.filter("row-99").split("test")), peer)
        show("list as JSON", least(lambda: [orjson.dumps(t.row) for t in tasks]), peer)
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
    print(f"a command is at most {worst:.1f} times json.loads (≤ {MOST_RATIO:g})")
    return int(worst > MOST_RATIO)


def show(what: str, seconds: float, peer: float) -> None:
    """Print a line."""
    print(f"{what:62} {seconds:6.2f} s {seconds / peer:6.1f}")


def least(work: Callable[[], object]) -> float:
    """The least processor seconds of some runs of it in this process."""
    found: list[float] = []
    for _ in range(TIMES):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def least_of(*words: str) -> float:
    """The least processor seconds of some runs of a command, with all that it starts."""
    found: list[float] = []
    for _ in range(TIMES):
        begin = children()
        command = [sys.executable, "-m", "hud_mcp", *words]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        found.append(children() - begin)
    return min(found)


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

"""How long a set of 10,000 rows takes to load, to filter, to split and to be listed.

Prints a table of processor seconds; the whole must stay under one on an idle machine.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from hud_mcp.taskset import Taskset

ROWS = 10_000
MOST_S = 1.0


def main() -> int:
    """Measure, print, and fail where it took too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl"
        path.write_bytes(b"\n".join(map(orjson.dumps, map(row, range(ROWS)))))
        whole = measured(path)
        listed = time.perf_counter()
        command = [sys.executable, "-m", "hud_mcp", "tasks", str(path), "--json"]
        out = subprocess.run(command, capture_output=True, check=True).stdout
        print(f"{'`hud-mcp tasks --json`, its own start with it, by the clock':48} "
              f"{time.perf_counter() - listed:6.2f} s")  # fmt: skip
        if out.count(b"\n") != ROWS:
            print(f"{len(out.splitlines())} lines, not {ROWS}.")
            return 1
    print(f"{'load, filter, split and list in one program':48} {whole:6.2f} s (≤ {MOST_S:g})")
    return int(whole > MOST_S)


def measured(path: Path) -> float:
    """The seconds of everything in one program, each part printed."""
    begin = time.process_time()
    tasks = Taskset.from_file(path)
    loaded = time.process_time()
    chosen = tasks.filter("row-99").split("test")
    filtered = time.process_time()
    lines = [orjson.dumps(task.row) for task in tasks]
    ended = time.process_time()
    print(f"{ROWS} rows; {len(chosen)} chosen; {sum(map(len, lines)) / 1e6:.1f} MB")
    for what, seconds in (
        ("load", loaded - begin),
        ("filter and split", filtered - loaded),
        ("list", ended - filtered),
    ):
        print(f"{what:48} {seconds:6.2f} s")
    return ended - begin


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

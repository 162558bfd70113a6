"""Records of very many runs, made by the one generator of the benchmarks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LARGE, FEWER, SMALL = "job-many", "job-fewer", "job-small"


def make_many(store: str, *, trajectories: int, steps: int, pictures: int = 3) -> None:
    """Write a record of a job of so many runs, one of a fourth of its tasks, and a small one."""
    made = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "many_trajectories.py"), store,
         "--trajectories", str(trajectories), "--steps", str(steps), "--pictures", str(pictures)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr

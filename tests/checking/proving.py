"""`hud-mcp check` as people call it, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Start a check in a folder, with a record of its own there."""
    return subprocess.Popen(
        [sys.executable, "-m", "hud_mcp", "check", *words, "--store", "s.sqlite3"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def check(folder: Path, *words: str, status: int) -> str:
    """Check to the end, and return what is printed."""
    process = start(folder, *words)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == status, printed + errors
    return printed


def verdicts(folder: Path, *words: str, status: int) -> dict[str, dict[str, Any]]:
    """Check to the end, and return the verdict on each task by its id."""
    whole = json.loads(check(folder, *words, "--json", status=status))
    assert sum(whole["counts"].values()) == len(whole["tasks"])
    return {each["task"]: each for each in whole["tasks"]}

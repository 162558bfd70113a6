"""The page on tasks is true: its programs run, and its tables hold what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hud_mcp.task import COMBINATIONS, Task

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run something of this checkout's, with a record of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HUD_MCP_STORE": str(folder / "store.sqlite3"),
        "COLUMNS": "200",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0, ""),
        (1, ""),
        (2, "Number of tasks: "),
        (3, "{'task_count': 1, 'avg_reward': 1.0, 'success_rate': 100.0} []"),
        (4, "0.5 {'Paris': [1.0, 1.0], 'Rome': [0.0, 0.0]}"),
    ],
)
def test_a_program_of_the_page_runs_as_it_stands(tmp_path: Path, number: int, printed: str) -> None:
    """And prints what it says."""
    done = run(tmp_path, "-c", PROGRAMS[number])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(printed)


def test_every_program_of_the_page_is_run() -> None:
    """None is added without being tested."""
    assert len(PROGRAMS) == 5


def test_the_error_of_the_page_is_what_is_printed(tmp_path: Path) -> None:
    """Word for word."""
    (tmp_path / "rows.jsonl").write_text(
        '{"id": "good", "prompt": "Which?", "evaluate": ["response_includes", "x"]}\n'
        '{"id": "bad", "prompt": "Which?", "evaluate": ["response_include", "x"]}\n'
    )
    done = run(tmp_path, "-m", "hud_mcp", "eval", "rows.jsonl", "--agent", "nop")
    assert done.returncode == 1
    (shown,) = re.findall(r"^```text\n(.*?)\n```$", TEXT, re.DOTALL | re.MULTILINE)
    assert done.stderr.startswith(f"Error: {shown}")


def test_the_fields_of_the_page_are_those_of_a_task() -> None:
    """And so are the ways to combine rewards."""
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE))))
    assert {"id", "gym", "setup", "evaluate", "config", "target", "metadata"} <= named
    assert named - {"LocalRuntime", "SubprocessRuntime", "Runtime"} <= set(Task.model_fields)
    assert all(f"`{name}`" in TEXT for name in COMBINATIONS)

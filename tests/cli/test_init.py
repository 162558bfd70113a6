"""`hud-mcp init`: what it writes works at once, and it overwrites nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from waiting import PATIENCE_S

from hud_mcp.cli import main
from hud_mcp.loading.source import load_environments
from hud_mcp.taskset import Taskset

ROOT = Path(__file__).resolve().parents[2]
WORLDS = [
    "none",
    pytest.param("browser", marks=pytest.mark.browser),
    pytest.param("shell", marks=pytest.mark.sandbox),
    pytest.param("mcp", marks=pytest.mark.sandbox),
    "gymnasium",
]


def run(folder: Path, *command: str) -> str:
    """What a program says that ends well there."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder, capture_output=True, text=True, timeout=10 * PATIENCE_S, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def write(folder: Path, world: str) -> Taskset:
    """The tasks of a new environment, whose name is its folder's."""
    shown = CliRunner().invoke(main, ["init", str(folder), "--world", world])
    assert shown.exit_code == 0, shown.output
    tasks = Taskset.from_file(folder / "tasks.jsonl")
    assert tasks.environment_names == ("my-first",)
    assert [e.name for e in load_environments([str(folder / "env.py")])] == ["my-first"]
    return tasks


def test_what_is_written_is_proven_at_once(tmp_path: Path) -> None:
    """The check plays the oracle, the nop and the attacks, in a folder with a space in its name."""
    tasks = write(tmp_path / "my first", "none")
    proven = run(tmp_path / "my first", "hud_mcp", "check", "tasks.jsonl", "--strict")
    assert f"{len(tasks)} proven, 0 unproven, 0 failed" in proven


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_written_is_proven_solved_and_tested_at_once(world: str, tmp_path: Path) -> None:
    """The check, its own agent, and its own tests, which play the oracle and the nop."""
    folder = tmp_path / "my first"
    tasks = write(folder, world)
    run(folder, "hud_mcp", "eval", "tasks.jsonl", "--agent", "agent.py:solve")
    told = run(folder, "unittest")
    assert "Ran 2 tests" in told
    proven = run(folder, "hud_mcp", "check", "tasks.jsonl", "--strict")
    assert f"{len(tasks)} proven, 0 unproven, 0 failed" in proven


@pytest.mark.long
@pytest.mark.sandbox
def test_a_written_server_is_compared_with_one_that_has_fewer_tools(tmp_path: Path) -> None:
    """By the command that `init` prints; hosts take all of its tools."""
    shown = CliRunner().invoke(main, ["init", str(tmp_path), "--world", "mcp"])
    assert "Errors: 0. Remarks: 0." in run(tmp_path, "hud_mcp", "lint", "env.py")
    [printed] = [line for line in shown.output.splitlines() if "--against" in line]
    _, compare = printed.split("hud-mcp ")
    rows = (tmp_path / "tasks.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "tasks.jsonl").write_text(rows[2])
    told = run(tmp_path, "hud_mcp", *compare.split())
    assert re.search(r"search_notes +1 call +not listed", told), told
    assert re.search(r"read_note +not called +6 calls", told), told


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A file that is there keeps what it holds, and no other one is written beside it."""
    (tmp_path / "agent.py").write_text("mine")
    shown = CliRunner().invoke(main, ["init", str(tmp_path), "--world", "none"])
    assert shown.exit_code == 1
    assert f"{tmp_path / 'agent.py'} exists already, so nothing was written." in shown.output
    assert [each.name for each in tmp_path.iterdir()] == ["agent.py"]
    assert (tmp_path / "agent.py").read_text() == "mine"


def test_the_name_of_a_shipped_environment_is_left_to_it(tmp_path: Path) -> None:
    """A folder that is called browser holds another environment than the shipped one."""
    folder = tmp_path / "browser"
    assert CliRunner().invoke(main, ["init", str(folder)]).exit_code == 0
    assert Taskset.from_file(folder / "tasks.jsonl").environment_names == ("my-browser",)
    assert 'Environment("my-browser"' in (folder / "env.py").read_text()

"""The page on recording in batches says what is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hud_mcp.cli import main
from hud_mcp.session import writes
from hud_mcp.task import RECORD_MODES

PAGE = (Path(__file__).parents[2] / "docs" / "batched.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_example_of_the_page_runs_in_an_empty_folder(tmp_path: Path) -> None:
    """It makes a session that is recorded as it says, and measures it."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "program.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={"HUD_MCP_STORE": str(tmp_path / "store.sqlite3"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1.0"


@pytest.mark.parametrize("command", [["serve"], ["channel", "serve"], ["eval"]])
def test_each_command_of_the_page_takes_both_modes(command: list[str]) -> None:
    """Their help names them, and another one is refused before anything runs."""
    assert f"hud-mcp {' '.join(command)}" in PAGE
    help_text = CliRunner().invoke(main, [*command, "--help"]).output
    assert f"[{'|'.join(RECORD_MODES)}]" in help_text
    refused = CliRunner().invoke(main, [*command, "x", "--record", "sometimes"])
    assert refused.exit_code == 2
    assert "'durable', 'batched'" in refused.output


def test_the_bounds_of_the_page_are_those_of_the_journal() -> None:
    """How many steps wait at most, and how large they are."""
    most = f"{writes.MOST_WAITING} steps of one session wait, or"
    assert f"{most} {writes.MOST_WAITING_BYTES // 2**20} MB" in PAGE

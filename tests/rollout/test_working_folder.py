"""A folder that a person works in is not a folder of modules to the processes begun there."""

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from hud_mcp.rollout.agent_process import process_command

ROW = '{"id": "one", "env": "letter_count", "template": "count", "args": {"word": "tea"}}\n'


@pytest.mark.long
def test_a_file_named_like_a_module_breaks_no_server(tmp_path: Path) -> None:
    """A person's `enum.py` was imported in place of Python's, by the server of the evaluation."""
    (tmp_path / "enum.py").write_text("raise RuntimeError('this is not the enum of Python')\n")
    (tmp_path / "rows.jsonl").write_text(ROW)
    command = [str(Path(sys.executable).with_name("hud-mcp")), "eval", "rows.jsonl"]
    done = subprocess.run(
        [*command, "--agent", "oracle", "--store", "store.sqlite3"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "RuntimeError" not in done.stdout + done.stderr


@pytest.mark.long
def test_an_agent_of_a_person_s_own_begins_there_too(tmp_path: Path) -> None:
    """What works on a task is begun in the same folder."""
    (tmp_path / "enum.py").write_text("raise RuntimeError('this is not the enum of Python')\n")
    (tmp_path / "agent.py").write_text("async def solve(agent):\n    return 1\n")
    done = subprocess.run(
        [*process_command("agent.py:solve"), "--check"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

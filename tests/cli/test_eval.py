"""`hud-mcp eval`: what is done is kept, however the run ends, and nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]


def evaluate(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start an evaluation in a folder."""
    command = [sys.executable, "-m", "hud_mcp", "eval", "rows.jsonl", *options]
    return subprocess.Popen(
        [*command, "--store", "s.sqlite3", "--report", "report.html"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def wait_for(path: Path) -> None:
    """Wait until another process has made a file."""
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A taskset of three rows of two environments."""
    rows = [
        {"id": "one", "env": "letter_count", "template": "count"},
        {"id": "two", "env": "letter_count", "template": "count", "args": {"word": "pepper"}},
        {"id": "shop", "env": "browser", "template": "shop_price"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_a_filter_may_leave_an_environment_out(folder: Path) -> None:
    """The server loads what the chosen tasks need, and no other task of the file."""
    process = evaluate(folder, "--agent", "oracle", "--filter", "letter_count")
    printed = process.communicate(timeout=60)[0]

    assert process.returncode == 0, printed
    assert "over 2 graded of 2 runs" in printed


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_done_is_shown_when_a_signal_ends_the_run(
    folder: Path, number: signal.Signals, status: int
) -> None:
    """The second command never ends; the first one's end is in the table and the report."""
    (folder / "agent.py").write_text(
        "import os, sys, time\n"
        "if os.environ['HUD_MCP_TASK'] == 'one': sys.exit(0)\n"
        "open('waiting', 'w').close()\n"
        "time.sleep(600)\n"
    )
    options = ("--filter", "letter_count", "--max-concurrent", "1")
    process = evaluate(folder, "--agent-command", f"{sys.executable} agent.py", *options)
    running = psutil.Process(process.pid)
    head = ""
    assert process.stdout is not None
    while "[1/2] one" not in head:  # printed before the second begins
        line = process.stdout.readline()
        assert line, head
        head += line
    wait_for(folder / "waiting")
    children = running.children(recursive=True)
    process.send_signal(number)
    printed = head + process.communicate(timeout=60)[0]

    assert process.returncode == status, printed
    assert "Interrupted: 1 of 2 runs had ended, 1 was under way" in printed
    assert (folder / "report.html").is_file()
    assert psutil.wait_procs(children, timeout=10)[1] == []

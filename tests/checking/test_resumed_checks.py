"""A check is a job of the record: one can interrupt, resume and view it; it has no score."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from proving import ROOT, check, start, verdicts
from waiting import PATIENCE_S


def command(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run another command on the same record."""
    return subprocess.run(
        [sys.executable, "-m", "hud_mcp", *words, "--store", "s.sqlite3"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="not on this machine: signals of POSIX")
def test_an_interrupted_check_goes_on_to_the_same_verdicts(tmp_path: Path) -> None:
    """What had come to its end is not played again, and what was cut off is."""
    process = start(tmp_path, "letter_count", "--max-concurrent", "1")
    assert process.stdout is not None
    head = ""
    while "[3/" not in head:
        line = process.stdout.readline()
        assert line, head
        head += line
    process.send_signal(signal.SIGINT)
    printed = head + process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 130, printed
    [job] = set(re.findall(r"hud-mcp check --resume (job-\w+)", printed))
    assert "probes have not come to their end" in printed

    resumed = check(tmp_path, "--resume", job, status=0)
    assert "2 tasks: 2 proven" in resumed
    again = check(tmp_path, "--resume", job, status=0)
    assert not re.search(r"^\[\d+/\d+\]", again, re.MULTILINE)
    whole = verdicts(tmp_path, "letter_count", status=0)
    taken_up = verdicts(tmp_path, "--resume", job, status=0)
    for name, each in whole.items():
        assert [(p["probe"], p["reward"]) for p in each["probes"]] == [
            (p["probe"], p["reward"]) for p in taken_up[name]["probes"]
        ]
    counts = re.findall(r"^\[\d+/(\d+)\]", printed + resumed, re.MULTILINE)
    every, left = int(counts[0]), int(counts[-1])
    assert 0 < left <= every - 3


@pytest.mark.long
def test_no_statistics_are_made_of_a_check(tmp_path: Path) -> None:
    """No mean in a list or a job, and `eval` does not take it up; nor does `check` take a run."""
    check(tmp_path, "letter_count", "--only", "reverse", status=0)
    [listed] = map(json.loads, command(tmp_path, "jobs", "--json").stdout.splitlines())
    assert listed["mean"] is None
    assert listed["ended"] == listed["wanted"] > 0
    assert listed["planned"] is True

    shown = command(tmp_path, "jobs", listed["id"]).stdout
    assert "no agent's results" in shown
    assert "pass@1" not in shown
    assert re.search(r"^reverse/full-marks-json +0\.000 +graded", shown, re.MULTILINE)
    refused = command(tmp_path, "eval", "--resume", listed["id"])
    assert refused.returncode == 1
    assert f"`hud-mcp check --resume {listed['id']}` continues it" in refused.stderr

    (tmp_path / "rows.jsonl").write_text('{"env": "letter_count", "template": "reverse"}\n')
    report = ("--report", str(tmp_path / "report.html"))
    assert command(tmp_path, "eval", "rows.jsonl", "--agent", "nop", *report).returncode == 0
    newest = json.loads(command(tmp_path, "jobs", "--json").stdout.splitlines()[0])
    assert newest["mean"] == 0
    refused = command(tmp_path, "check", "--resume", newest["id"])
    assert refused.returncode == 1
    assert "is not a job of `hud-mcp check`" in refused.stderr

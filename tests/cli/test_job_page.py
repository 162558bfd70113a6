"""`hud-mcp eval --view`: the job's page, before the job is there and while it runs."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_link_comes_first_and_leads_to_the_job(tmp_path: Path) -> None:
    """It is printed before the job is made; its page waits, and needs a token."""
    row = {"id": "one", "env": "letter_count", "template": "count"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    # The agent waits for a file, so that the run goes on for as long as the page is looked at.
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"
    command = f'{sys.executable} -c "{wait}"'
    process = subprocess.Popen(
        [sys.executable, "-m", "hud_mcp", "eval", "rows.jsonl", "--agent-command", command,
         "--view", "--store", "s.sqlite3", "--report", "report.html"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout
            first = process.stdout.readline()
            found = re.fullmatch(
                r"Watch it: (http://127\.0\.0\.1:\d+/)\?token=(\S+)#job-(\S+)\n", first
            )
            assert found, first
            base, token, job_id = found.groups()
            assert (
                httpx.get(f"{base}api/job", params={"id": job_id}, timeout=PATIENCE_S).status_code
                == 401
            )
            with httpx.Client(base_url=base, follow_redirects=True, timeout=PATIENCE_S) as asking:
                assert asking.get("/", params={"token": token}).status_code == 200
                until_s = time.monotonic() + PATIENCE_S
                data: dict[str, Any] = {"waiting": True}
                while data.get("waiting") or not data["trajectories"]:
                    assert time.monotonic() < until_s
                    data = asking.get("/api/job", params={"id": job_id}).json()
                assert data["trajectories"][0]["outcome"] == "unfinished"
                assert asking.get("/api/job", params={"id": "job-other"}).status_code == 404
        finally:
            (tmp_path / "go").touch()
        rest = process.stdout.read()
    assert f"Job {job_id}." in rest

"""`hud-mcp eval --protocol`: rows run as their authors run them, and what differs is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each_of

from hud_mcp.errors import InvalidTask
from hud_mcp.loading.protocols import PROTOCOLS, Conduct, ProtocolRecord
from hud_mcp.task import Task

ROOT = Path(__file__).resolve().parents[2]


def row(number: int, **more: object) -> Task:
    """A row as the importer of WebVoyager makes it."""
    return Task.model_validate(
        {
            "id": f"Shop--{number}", "gym": "webvoyager", "prompt": "How much?",
            "setup": [["goto", "https://shop.example/"]],
            "evaluate": [["webvoyager_judge", "How much?"]],
            "metadata": {"parts": ["Shop"], **more},
        }
    )  # fmt: skip


WHOLE = [row(number) for number in range(643)]


@each_of(
    ("conduct", "rows", "differences"),
    [
        (Conduct(max_steps=15), WHOLE, ()),
        (Conduct(max_steps=15, judge="gpt-4-vision-preview"), WHOLE, ()),
        (Conduct(max_steps=20), WHOLE, ("--max-steps 20 instead of 15",)),
        (Conduct(max_steps=15, timeout_s=60), WHOLE, ("--timeout 60 instead of no limit",)),
        (Conduct(max_steps=15, contexts="c.jsonl"), WHOLE, ("--contexts c.jsonl",)),
        (Conduct(max_steps=15, judge="eyes"), WHOLE,
         ("judge eyes instead of gpt-4-vision-preview",)),
        (Conduct(max_steps=15, judge_url="http://127.0.0.1:8/v1"), WHOLE,
         ("judge at 127.0.0.1 instead of api.openai.com",)),
        (Conduct(max_steps=15), WHOLE[:2], ("2 of 643 rows",)),
        (Conduct(max_steps=15), [*WHOLE[:-1], row(642, is_local=True)],
         ("copies in place of the sites of 1 row",)),
    ],
)  # fmt: skip
def test_each_difference_from_what_was_published_is_told(
    conduct: Conduct, rows: list[Task], differences: tuple[str, ...]
) -> None:
    """Steps, time, contexts, the judge and its address, rows that are missing, local sites."""
    record = PROTOCOLS["webvoyager"].record(rows, conduct, whole=len(rows))
    assert record.differences == differences
    text = str(record)
    assert text.startswith("official protocol of WebVoyager") is (not differences)
    assert ProtocolRecord.model_validate(record.model_dump(mode="json")) == record


def test_a_row_of_another_set_is_refused() -> None:
    """It is named, and nothing runs under a protocol that is not its own."""
    with pytest.raises(InvalidTask, match=r"rows of GAIA alone, and 'Shop--0' is not one"):
        PROTOCOLS["gaia"].published(row(0), Conduct())


def hud_mcp(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run the command, which has to end so, and return what it printed."""
    kept = {"XDG_CACHE_HOME": str(folder / "cache"), "HUD_MCP_DATASETS": str(folder / "sets")}
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", *arguments], cwd=folder, text=True, timeout=120,
        env={**os.environ, **kept, "PYTHONPATH": str(ROOT)}, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.mark.long
def test_the_report_says_whether_the_protocol_was_the_official_one(tmp_path: Path) -> None:
    """On the terminal, in the job as JSON, and in the report; the wording is the authors'."""
    folder = tmp_path / "sets" / "gaia" / "2023" / "validation"
    folder.mkdir(parents=True)
    rows = [
        {"task_id": f"q{level}", "Question": "What is 1 + 2?", "Level": level,
         "Final answer": "3", "file_name": ""}
        for level in (1, 2, 3)
    ]  # fmt: skip
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    hud_mcp(tmp_path, "taskset", "import", "GAIA", "--gym", "qa", "-o", "rows.jsonl")
    code = "import os; assert 'FINAL ANSWER: [YOUR' in os.environ['HUD_MCP_PROMPT']"
    (tmp_path / "agent.py").write_text(code)
    run = ("eval", "rows.jsonl", "--protocol", "gaia", "--store", "s.sqlite3", "--report", "r.html")
    agent = ("--agent-command", f"{sys.executable} agent.py")
    printed = hud_mcp(tmp_path, *run, *agent, status=1)  # it gives no answer
    assert "agent failed" not in printed
    assert "official protocol of GAIA" in printed
    assert '"protocol":"official protocol of GAIA"' in (tmp_path / "r.html").read_text()
    printed = hud_mcp(tmp_path, *run, "--agent", "nop", "--filter", "q1", "--max-steps", "9")
    told = (
        "protocol of GAIA, but for: --max-steps 9 instead of no limit; 1 of 3 rows; "
        "no rows of level2, level3"
    )
    assert told in printed
    jobs = hud_mcp(tmp_path, "jobs", "--json", "--store", "s.sqlite3").splitlines()
    shown = json.loads(
        hud_mcp(tmp_path, "jobs", json.loads(jobs[0])["id"], "--json", "--store", "s.sqlite3")
    )
    assert shown["job"]["metadata"]["protocol"]["differences"][1] == "1 of 3 rows"
    text = hud_mcp(tmp_path, "jobs", json.loads(jobs[0])["id"], "--store", "s.sqlite3")
    assert told in " ".join(text.split())

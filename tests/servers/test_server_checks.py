"""`hud-mcp check` attacks graders through a server; a missing one is told before a row."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

PLAIN_SERVER = Path(__file__).parent / "plain_server.py"
CHECK_S = 600

MINE = """
from hud_mcp import Agent, Environment, ToolServer, ToolServerWorld, grade_checks

env = Environment(
    "notes",
    world=ToolServer(["/usr/bin/python3", SERVER], without=["hang", "die", "die_once"]),
)


@env.template(id="sound")
async def sound(server: ToolServerWorld):
    yield "Add the note tea."
    left = await server.run(["cat", "notes.txt"])
    yield grade_checks({"noted": left.stdout.split() == ["tea"]})


@env.template(id="weak")
async def weak(server: ToolServerWorld):
    yield "Add the note tea."
    yield grade_checks({"noted": server.calls.called("add")})


@sound.oracle
@weak.oracle
async def _(agent: Agent):
    await agent.call("look", path="none.txt")
    await agent.call("add", note="tea")
    return "done"
"""


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours in a folder, with a record and a cache of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hud_mcp", *words],
        capture_output=True, text=True, check=False, timeout=CHECK_S, cwd=folder,
    )  # fmt: skip


@pytest.mark.long
def test_a_check_attacks_through_the_tools_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grader that any call satisfies is named with the attack; one of the outcome is proven."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    (tmp_path / "env.py").write_text(MINE.replace("SERVER", repr(str(PLAIN_SERVER))))
    done = run(tmp_path, "check", "env.py", "--repeat", "1")
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    assert "attack 'every-tool'" in told
    assert "1 proven, 0 unproven, 1 failed" in told


BESIDE = """
import hud_mcp

box = Environment("box", world=hud_mcp.Shell())


@box.template(id="diary")
async def diary(shell: hud_mcp.ShellWorld, day: str = "2026-07-15"):
    yield "Write into diary.txt: the fifteenth of July."
    left = await shell.run("cat diary.txt")
    yield grade_checks({"written": "fifteenth" in left.output})


@diary.oracle
async def _(agent: Agent, day: str = "2026-07-15"):
    await agent.custom("run", command="echo the fifteenth > diary.txt")
    return "done"
"""


@pytest.mark.long
def test_a_check_takes_no_word_of_another_world_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a default that every schema shows: `step` says "done", and a refusal says the day."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    mine = MINE.replace("SERVER", repr(str(PLAIN_SERVER))).replace("@weak.oracle\n", "")
    (tmp_path / "env.py").write_text(mine + BESIDE)
    done = run(tmp_path, "check", "env.py", "--repeat", "1", "--filter", "*[dy]")
    told = done.stdout + done.stderr
    assert "2 proven, 0 unproven, 0 failed" in told


@pytest.mark.long
def test_rows_without_their_server_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job names them, with the command that installs the server, and runs the others."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    other = MINE.replace("SERVER", repr(str(PLAIN_SERVER)))
    other += 'lost = Environment("lost", world=ToolServer("no-such-server==1.0"))\n'
    (tmp_path / "env.py").write_text(other)
    rows = [
        {"id": "there", "env": "notes", "template": "sound"},
        {"id": "lost", "env": "lost", "prompt": "Go.", "evaluate": [["never_called", "x"]]},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(tmp_path, "eval", "rows.jsonl", "--env", "env.py", "--agent", "nop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "doctor --fix" in done.stdout + done.stderr
    assert "1 graded of 1 run" in done.stdout
    (tmp_path / "lost.jsonl").write_text(json.dumps(rows[1]))
    alone = run(tmp_path, "eval", "lost.jsonl", "--env", "env.py", "--agent", "nop")
    assert alone.returncode != 0
    assert "doctor --fix" in alone.stderr
    checked = run(tmp_path, "check", "rows.jsonl", "--env", "env.py", "--repeat", "1")
    assert "doctor --fix" in checked.stdout, checked.stdout + checked.stderr
    assert "0 failed" in checked.stdout
    found = run(tmp_path, "doctor", "env.py", "--json")
    (finding,) = [
        e for e in json.loads(found.stdout)["findings"] if e["name"].startswith("server ")
    ]
    assert finding["state"] == "failed"

"""Two servers run the same rows: in the same environment with another command, as two jobs."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from programs import make_environment, make_package, write
from tables import each_of
from waiting import PATIENCE_S, wait_until

from hud_mcp.cli import main
from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.loading.source import Source, lasting_source
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.store import opened_store

ROOT = Path(__file__).resolve().parents[2]
PLAIN_SERVER = Path(__file__).parent / "plain_server.py"

MINE = """
from hud_mcp import Agent, Environment, ToolServer, ToolServerWorld, grade_checks

env = Environment("notes", world=ToolServer(["/usr/bin/python3", "server.py"], without=["hang"]))


@env.template(id="note")
async def note(server: ToolServerWorld, text: str = "tea"):
    yield f"Add the note {text!r}."
    left = await server.run(["cat", "notes.txt"])
    yield grade_checks({"noted": text in left.stdout.split()})


@note.oracle
async def _(agent: Agent, text: str = "tea"):
    await agent.call("look", path="none.txt")
    await agent.call("add", note=text)
    return "done"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with a server, another version of it that adds nothing, and two rows."""
    (tmp_path / "mine.py").write_text(MINE)
    shutil.copy(PLAIN_SERVER, tmp_path / "server.py")
    text = PLAIN_SERVER.read_text()
    worse = text.replace("[*notes(), note])", "notes())")
    assert worse != text
    (tmp_path / "worse.py").write_text(worse)
    rows = [{"id": name, "env": "notes", "template": "note"} for name in ("one", "two")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def load(source: str) -> tuple[Environment, ToolServer]:
    """The environment of a source, and its world."""
    (found,) = Source(source).load()
    assert isinstance(found.world, ToolServer)
    return found, found.world


def test_an_environment_takes_another_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its name, its templates and its options; the one of the file is as it was."""
    monkeypatch.chdir(folder)
    other, world = load("mcp:in=mine.py without=die TOKEN=x /usr/bin/python3 worse.py")
    mine, before = load("mine.py")
    assert (other.name, list(other.templates)) == ("notes", ["note"])
    assert world.command == ("/usr/bin/python3", str(folder / "worse.py"))
    assert world.options["without"] == ["hang", "die"]
    assert world.options["env"] == {"TOKEN": "x"}
    assert before.command == ("/usr/bin/python3", "server.py")
    assert mine.digest != other.digest
    kept, left = load("mcp:in=mine.py without=add")
    assert left.command == before.command
    assert kept.folder == mine.folder


def test_a_source_in_a_file_means_the_same_from_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has an absolute path, and so has the other program."""
    monkeypatch.chdir(folder)
    found = lasting_source("mcp:in=mine.py:notes python3 worse.py")
    assert found == f"mcp:in={folder}/mine.py:notes python3 {folder}/worse.py"
    assert lasting_source("mcp:in=mine.py without=add") == f"mcp:in={folder}/mine.py without=add"


@each_of(
    "file, source, told",
    [
        ("env = Environment('a')", "mcp:in=other.py /usr/bin/python3 server.py", "none"),
        (
            "a, b = (Environment(n, world=ToolServer('/usr/bin/true')) for n in 'ab')",
            "mcp:in=other.py /usr/bin/true",
            "in=FILE:NAME",
        ),
        ("", "mcp:in=mine.py name=other /usr/bin/true", "name="),
    ],
)
def test_a_server_is_not_replaced_by_guess(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, source: str, told: str
) -> None:
    """A file without a server, or with several, needs other words."""
    monkeypatch.chdir(folder)
    write(folder / "other.py", f"from hud_mcp import Environment, ToolServer\n{file}\n")
    with pytest.raises(InvalidEnvironment, match=told):
        Source(source).load()


def test_a_clients_secret_is_kept_in_place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another command gets the variables of the entry that it replaces, and no text has them."""
    program = make_package(make_environment(home / "v"), "acme")
    entry = f'{{"command": "{program}", "env": {{"TOKEN": "private value"}}}}'
    write(home / ".cursor/mcp.json", f'{{"mcpServers": {{"mine": {entry}}}}}')
    monkeypatch.setenv("HOME", str(home))
    found, world = load("mcp:in='mcp:cursor/mine' /usr/bin/true")
    assert (found.name, world.command) == ("mine", ("/usr/bin/true",))
    assert world.written.sent == world.written.private == {"TOKEN": "private value"}
    assert "private value" not in found.made_of


def run(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a command in a folder, over its store."""
    return subprocess.Popen(
        [sys.executable, "-m", "hud_mcp", *arguments, "--store", "s.sqlite3"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def evaluate(folder: Path, against: str, *more: str) -> "subprocess.Popen[str]":
    """Start an evaluation against another server."""
    agent = () if "--agent-command" in more else ("--agent", "oracle")
    return run(
        folder, "eval", "rows.jsonl", "--env", "mine.py", *agent, "--against", against, *more
    )


async def jobs_of(folder: Path) -> list[tuple[str, str, list[int | None]]]:
    """Each job's id, its name and the seeds of its runs, the first one first."""
    async with opened_store(str(folder / "s.sqlite3")) as store:
        jobs = list(reversed(await store.list_jobs()))
        found = [(job, (await store.load_job_summary(job.id))[2]) for job in jobs]
    return [(job.id, job.name, sorted(run.seed or 0 for run in runs)) for job, runs in found]


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_two_servers_run_the_same_rows_and_are_compared(folder: Path) -> None:
    """Two jobs with the same seeds; what flipped, and the calls of each tool, are printed."""
    process = evaluate(folder, "worse=mcp:/usr/bin/python3 worse.py")
    printed = process.communicate(timeout=2 * PATIENCE_S)[0]
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    (first, name, seeds), (second, other, same) = await jobs_of(folder)
    assert process.returncode == 0, printed
    assert (other, same) == (f"{name}: worse", seeds)
    assert len(set(seeds)) == 2
    assert any(line.startswith(f"{second} oracle 2 1.000 → 0.000 -1.000") for line in lines)
    assert "one passed 1.000 failed 0.000 down" in lines
    assert any(line.startswith(f"{first} server 9 ") for line in lines), printed
    assert "look 2 calls, 2 failed 2 calls, 2 failed" in lines
    assert any(line.startswith("Listed, and never called:") for line in lines)
    told = run(folder, "jobs", first, second, "--json").communicate(timeout=PATIENCE_S)[0]
    mine, theirs = json.loads(told)["servers"]
    assert (mine["calls"], mine["errors"], mine["runs"]) == (4, 2, 2)
    assert (mine["steps_to_success"], theirs["steps_to_success"]) == (3, None)
    assert "hang" not in mine["servers"][0]["tools"]
    assert mine["servers"][0]["tokens"] > 100


@each_of(
    "words, told",
    [
        (["--env", "mine.py", "--against", "mcp:/usr/bin/no-such-program"], "no-such-program"),
        (["--env", "mine.py", "--against", "other.py"], "notes"),
        (["--env", "other.py", "--against", "mcp:/usr/bin/true"], "others"),
        (["--against", "mcp:/usr/bin/true"], "--env"),
    ],
)
def test_what_cannot_be_compared_leaves_no_job(folder: Path, words: list[str], told: str) -> None:
    """Neither job is recorded unless both can run."""
    write(folder / "other.py", MINE.replace('"notes"', '"others"'))
    command = ["eval", "rows.jsonl", "--agent", "oracle", "--store", "s.sqlite3", *words]
    with chdir(folder):
        result = CliRunner().invoke(main, command)
    assert result.exit_code != 0
    assert told in result.output + str(result.exception)
    assert not (folder / "s.sqlite3").exists() or anyio.run(jobs_of, folder) == []


def test_a_resumed_job_is_compared_afterwards() -> None:
    """Two jobs resume one after the other, and the error names what compares them."""
    result = CliRunner().invoke(main, ["eval", "--resume", "job-1", "--against", "other.py"])
    assert result.exit_code != 0
    assert "FIRST SECOND" in " ".join(result.output.split())


@pytest.mark.anyio
@pytest.mark.sandbox
@pytest.mark.long
@pytest.mark.usefixtures("machine")
async def test_a_signal_leaves_two_jobs_that_resume(folder: Path) -> None:
    """Each is named with the command that resumes it; then they compare."""
    write(folder / "agent.py", "import time\nopen('waiting', 'w').close()\ntime.sleep(600)\n")
    agent = ("--agent-command", f"{sys.executable} agent.py")
    process = evaluate(folder, "mcp:/usr/bin/python3 worse.py", *agent)
    wait_until((folder / "waiting").exists)
    process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 130, printed
    (first, _, _), (second, _, _) = await jobs_of(folder)
    for job in (first, second):
        assert f"hud-mcp eval --resume {job}" in printed
    write(folder / "agent.py", "pass\n")
    for job in (first, second):
        resumed = run(folder, "eval", "--resume", job).communicate(timeout=2 * PATIENCE_S)[0]
        assert "[2/2]" in resumed
        assert "eval --resume" not in resumed  # nothing is left to run
    told = run(folder, "jobs", first, second).communicate(timeout=PATIENCE_S)[0]
    assert "No task flipped." in told


def test_files_are_of_servers_alone(tmp_path: Path) -> None:
    """A source that is no server takes none."""
    process = run(tmp_path, "serve", "letter_count", "--files", ".")
    printed = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode != 0
    assert "mcp:" in printed

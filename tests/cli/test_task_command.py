"""`hud-mcp task`: single tasks, held between commands."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from hud_mcp.plugins.hud.wire.streams import Place

ENVIRONMENT = Path(__file__).resolve().parents[1] / "channel" / "environments" / "talk.py"


def task(*arguments: str, says: str = "", code: int = 0, given: str = "") -> str:
    """Run the command, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "task", *arguments],
        input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """Where tasks are started and held, until the test has ended."""
    store = str(tmp_path / "store.sqlite3")
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield ("--source", str(ENVIRONMENT), "--store", store)
        task("stop", "--store", store)


def test_a_task_is_started_by_one_command_and_graded_by_another(
    source: tuple[str, ...], tmp_path: Path
) -> None:
    """Without a session's id where it is the only one, and once; the reply goes to a file."""
    out = tmp_path / "reply.json"
    assert task("start", "ask", "--args", '{"word":"x"}', *source, says="session: traj-") == (
        "Say x.\n"
    )
    printed = task("grade", "--answer-file", "-", *source, "--out", str(out), given="x")
    assert printed == "1.0\n"
    assert json.loads(out.read_text())["score"] == 1.0
    task("grade", "--answer", "x", *source, code=1, says="no task in progress")


@pytest.mark.long
def test_of_several_a_session_is_named(source: tuple[str, ...]) -> None:
    """And cancelled, after which it is over."""
    one, two = (
        json.loads(task("start", "ask", "-a", f'{{"word":"{w}"}}', *source, "--json"))
        for w in ("one", "two")
    )
    assert one["prompt"] == "Say one."
    task("grade", "--answer", "one", *source, code=1, says="2 sessions are open")
    graded = task("grade", "--answer", "one", "--session", one["session"], *source, "--json")
    assert json.loads(graded)["score"] == 1.0
    assert task("cancel", "--session", two["session"], *source) == "cancelled\n"
    error = json.loads(
        task("grade", "--answer", "x", "--session", two["session"], *source, "--json", code=1)
    )
    assert "cancelled" in error["error"]["message"]


@pytest.mark.long
def test_a_task_that_was_not_started_is_started_and_graded(source: tuple[str, ...]) -> None:
    """As HUD's command does, and it says so; what is held is graded in place of it."""
    fresh = ("grade", "ask", "--args", '{"word":"x"}', *source)
    assert task(*fresh, "--answer", "x", says="No task was held: ask was started") == "1.0\n"
    task("start", "ask", "--args", '{"word":"y"}', *source)
    done = task(*fresh, "--answer", "y", "--json")
    assert json.loads(done)["score"] == 1.0
    task("grade", "nope", "--answer", "x", *source, code=1, says="There is no task 'nope'")


@pytest.mark.long
def test_the_grade_of_a_session_is_printed_again(source: tuple[str, ...]) -> None:
    """For the same answer alone, and nothing is begun in its place."""
    session = json.loads(task("start", "ask", *source, "--json"))["session"]
    named = ("--session", session, *source)
    assert task("grade", "--answer", "tea", *named) == "1.0\n"
    assert task("grade", "--answer", "tea", *named) == "1.0\n"
    task("grade", "--answer", "milk", *named, code=1, says="its grade stands")


@pytest.mark.long
def test_tasks_are_listed(source: tuple[str, ...]) -> None:
    """One a line, or whole."""
    lines = task("list", *source).splitlines()
    assert lines == ["ask\tSay a word", "gated", "rich", "broken"]
    assert json.loads(task("list", *source, "--json"))[2]["args"]["required"] == ["count"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("list", "--url", "tcp://h:1", "--source", "x"), 2, "--url or --source"),
        (("list", "--url", "http://h:1"), 1, "write tcp://host:port"),
        (("list", "--url", "tcp://127.0.0.1:1"), 1, "Nothing answers at tcp://127.0.0.1:1"),
        (("list", "--source", "nowhere.py"), 1, "There is no environment"),
        (("start", "ask", "--args", "{", "--source", "x"), 2, "--args is not JSON"),
        (("start", "ask", "--args", "[]", "--source", "x"), 2, "an object, not list"),
        (("grade", "--source", "x"), 2, "--answer or --answer-file"),
        (("grade", "--answer-file", "/no/such", "--source", "x"), 1, "cannot be read"),
        (("grade", "--answer", "x", "--args", "{}", "--source", "x"), 2, "goes with TASK"),
        (("grade", "ask", "--answer", "x", "--session", "s", "--source", "x"), 2, "leave out TASK"),
        (("cancel", "--url", "tcp://h:1"), 2, "--session"),
    ],
)
def test_what_is_wrong_is_said_with_a_status(
    arguments: tuple[str, ...], code: int, says: str
) -> None:
    """2 for how it was called, 1 for what came of it."""
    task(*arguments, code=code, says=says)


@pytest.mark.long
def test_a_reply_that_cannot_be_written_to_a_file_is_shown(source: tuple[str, ...]) -> None:
    """The task was started: its session's id is not lost with the file."""
    asked = task(
        "start", "ask", *source, "--out", "/no/such/folder/reply", code=1, says="session: traj-"
    )
    assert asked.strip()


def test_a_place_never_shows_its_token() -> None:
    """Neither in an error nor in a log."""
    assert "secret" not in f"{Place('h', 1, 'secret')} {Place('h', 1, 'secret')!r}"

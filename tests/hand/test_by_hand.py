"""Tasks by hand: commands of a shell, and the server in the background that they share."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hud_mcp import __version__
from hud_mcp.cli import main
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hand.client import answers, reached
from hud_mcp.plugins.hand.place import Lock, Notes, Place, place_of

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="not on this machine: it has no Unix sockets"
)

TALK = Path(__file__).resolve().parents[1] / "channel" / "environments" / "talk.py"
PATIENCE_S = 90.0
KEY = "the-answer-that-is-right"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Where the server of a new store is, in a folder with a name short enough for a socket."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield place_of(None)


@pytest.fixture
def stopped(place: Place) -> Iterator[Place]:
    """The same, and whatever serves there at the end is stopped."""
    yield place
    CliRunner().invoke(main, ["task", "stop"])


def task(*arguments: str) -> Result:
    """Run a command of `hud-mcp task` in this process; the server is another one."""
    return CliRunner(env={"COLUMNS": "50"}).invoke(main, ["task", *arguments])


def wait_until_gone(place: Place) -> None:
    """Wait until nothing listens."""
    until_s = time.monotonic() + PATIENCE_S
    while answers(place):
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_a_task_is_worked_on_by_commands_and_its_server_ends_with_it(stopped: Place) -> None:
    """The socket is this user's alone; nothing that is printed or kept beside has the answer."""
    rows = stopped.log.parent / "rows.jsonl"
    rows.write_text(
        json.dumps(
            {
                "id": "say",
                "gym": "qa",
                "prompt": "Say it.",
                "evaluate": ["response_includes", KEY],
                "target": KEY,
                "validation": {"oracle": 1.0},
            }
        )
    )
    begun = task("start", "say", "--source", "qa", "--taskset", str(rows), "--json")
    session = json.loads(begun.stdout)["session"]
    assert stat.S_IMODE(stopped.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(stopped.folder.stat().st_mode) == 0o700
    shown = [begun, *(task(*c) for c in (["step"], ["tools"], ["ps"], ["act", "wait", "time=1"]))]
    assert [each.exit_code for each in shown] == [0] * 5, [each.output for each in shown]
    assert session in shown[3].output, "an id is whole at 50 columns"
    kept = [stopped.log, *stopped.folder.iterdir()]
    for text in (*(e.output for e in shown), *(f.read_text() for f in kept if f.is_file())):
        assert KEY not in text
    graded = task("answer", f"It is {KEY}.", "--session", session[:9])
    assert graded.stdout.startswith("Graded: reward 1.")
    wait_until_gone(stopped)
    assert not stopped.socket.exists()
    left = task("step")
    assert (left.exit_code, "no task in progress" in left.stderr) == (1, True)
    assert session in task("ps", "--all").output


@pytest.mark.long
def test_two_first_commands_share_one_server_and_a_killed_one_is_replaced(stopped: Place) -> None:
    """Its socket stays behind; its sessions go on, the one that nobody asked for as well."""
    command = [sys.executable, "-m", "hud_mcp", "task", "start", "ask", "-s", str(TALK), "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    ids = [json.loads(each.communicate(timeout=PATIENCE_S)[0])["session"] for each in both]
    notes = stopped.notes()
    assert notes is not None
    assert all(each in task("ps").output for each in ids)
    several = task("answer", "tea")
    assert "2 sessions are open" in several.stderr
    os.kill(notes.pid, signal.SIGKILL)
    wait_until_gone(stopped)
    assert stopped.socket.exists()
    assert task("ps").output.count("waiting") == 2
    assert "reward 1" in task("answer", "tea", "--session", ids[0]).output
    wait_until_gone(stopped)
    assert "reward 1" in task("answer", "tea").output, "the other one waits in the record"


@pytest.mark.long
def test_a_server_that_is_stopped_leaves_its_sessions_to_the_next_one(stopped: Place) -> None:
    """Which serves the same sources; another source is refused meanwhile, with what to do."""
    assert task("start", "ask", "-s", str(TALK)).exit_code == 0
    other = task("start", "count", "-s", "letter_count")
    assert (other.exit_code, "or name another --store" in other.stderr) == (1, True)
    assert "Stopped. 1 session waits" in task("stop").output
    assert task("stop").output == "No server is running.\n"
    assert task("grade", "--answer", "tea").stdout == "1.0\n"


def test_a_server_of_another_version_is_named(place: Place) -> None:
    """And how to go on."""
    place.write_notes(Notes(version="0.0.1", pid=1, sources=("x",)))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.socket))
        listener.listen()
        said = rf"version of hud-mcp \(0\.0\.1; this is {__version__}\)\. Stop it with"
        with pytest.raises(HudMcpError, match=said), reached(place, starts=False, report=print):
            pass


def test_a_server_that_cannot_start_says_why(place: Place) -> None:
    """In its own words; nothing stays."""
    done = task("start", "x", "-s", str(place.log.parent / "nowhere.py"))
    assert done.exit_code == 1
    assert "There is no environment at" in done.stderr
    assert not place.socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="not on this machine: only root gives files away")
def test_what_is_another_users_is_not_used(place: Place, tmp_path: Path) -> None:
    """A socket or a folder that somebody put there could read along."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.socket))
    os.chown(place.socket, 12_345, -1)
    with pytest.raises(HudMcpError, match=r"is not a socket of yours \(its owner is user 12345\)"):
        answers(place)
    os.chown(place.folder, 12_345, -1)
    with pytest.raises(HudMcpError, match="belongs to another user"):
        place_of(str(tmp_path / "store.sqlite3"))


def test_a_socket_finds_room_for_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the usual folder is too deep for the 108 bytes, a shorter one is taken."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("deep" * 30)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 30)))
    place = place_of(str(tmp_path / "store.sqlite3"))
    assert len(os.fsencode(place.socket)) <= 100
    (tmp_path / "link").symlink_to(tmp_path)
    assert place_of(str(tmp_path / "link" / "store.sqlite3")).name == place.name


def test_commands_share_a_lock_that_who_starts_a_server_holds_alone(place: Place) -> None:
    """Two together; then nobody else, until it is let go of."""
    one, two = Lock(place.lock), Lock(place.lock)
    assert one.take(alone=False)
    assert two.take(alone=False)
    assert not two.take(alone=True)
    waiter = threading.Thread(target=lambda: two.wait(alone=True, within_s=PATIENCE_S))
    waiter.start()
    one.release()
    waiter.join(PATIENCE_S)
    with pytest.raises(HudMcpError, match="have occupied the server of this store for 0 s"):
        one.wait(alone=False, within_s=0)
    two.close()
    assert one.take(alone=True)
    one.close()


def test_the_skill_names_commands_that_there_are() -> None:
    """It comes with the package, and each of its commands shows its help."""
    text = task("skill").stdout
    assert Path(task("skill", "--path").stdout.strip()).read_text() == text
    assert text.startswith("---\nname: hud-mcp\ndescription: ")
    named = set(re.findall(r"hud-mcp task (\w+)", text))
    assert {"start", "act", "step", "screenshot", "tools", "answer", "ps", "stop"} <= named
    for name in named:
        assert task(name, "--help").exit_code == 0, name

"""`hud-mcp serve` on a terminal: it says what it is, and Ctrl-C ends it without a traceback."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from skips import ELSEWHERE
from terminals import Terminal
from waiting import PATIENCE_S

from hud_mcp.base.process import own_command

if sys.platform != "win32":
    pass

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=ELSEWHERE + "terminals of POSIX")

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = """
import os, signal, socket
from uvicorn.lifespan.on import LifespanOn
from hud_mcp import Environment

env = Environment("quiet")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def interrupting(function):
    def call(*args, **kwargs):
        interrupt()
        return function(*args, **kwargs)
    return call


moment = os.environ["MOMENT"]
if moment == "the source loads":
    interrupt()
elif moment == "the port is taken":
    socket.socket.listen = interrupting(socket.socket.listen)
elif moment == "the app starts":
    LifespanOn.startup = interrupting(LifespanOn.startup)
"""
"""An author's file in whose process Ctrl-C comes at a moment that the test names."""


def pasted(said: str) -> dict[str, object]:
    """The configuration that stands on a terminal."""
    return json.loads(said[said.index("\n{") : said.rindex("}\n") + 1])["mcpServers"]["hud-mcp"]


def test_a_terminal_is_told_what_waits_and_what_to_paste(
    tmp_path: Path, terminals: list[Terminal]
) -> None:
    """The configuration starts the same server from any folder; Ctrl-C ends this one in silence."""
    (tmp_path / "env.py").write_text(
        "from hud_mcp import Environment\nenv = Environment('letters')"
    )
    terminals.append(terminal := Terminal(tmp_path, "serve", "--reward", "hidden"))
    said = terminal.wait_for("Ctrl-C ends it.")
    assert said.startswith("hud-mcp serves letters over standard input and output, and waits")
    entry = pasted(said)
    program, *first = own_command()
    assert entry == {
        "command": program,
        "args": [*first, "serve", "--reward", "hidden", str(tmp_path / "env.py")],
    }
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    assert terminal.said == said


@pytest.mark.long
def test_a_pipe_is_told_nothing_of_it(tmp_path: Path) -> None:
    """A client reads the protocol, and its log has no advice for people."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", "serve", "letter_count"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT),
             "HUD_MCP_STORE": str(tmp_path / "store.sqlite3")}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.long
@pytest.mark.parametrize("moment", ["the app starts", "the source loads", "the port is taken", ""])
def test_ctrl_c_over_http_is_quiet_at_each_moment_of_the_start(
    moment: str, tmp_path: Path, terminals: list[Terminal]
) -> None:
    """No traceback, and the status of an interrupt; also once its configuration is told."""
    (tmp_path / "env.py").write_text(INTERRUPTED)
    terminal = Terminal(tmp_path, "serve", "--http", "127.0.0.1:0", MOMENT=moment)
    terminals.append(terminal)
    if not moment:
        said = terminal.wait_for("Ctrl-C ends it.")
        url = said.splitlines()[0].removeprefix("HUD_MCP_URL=")
        assert pasted(said) == {"type": "http", "url": url}
        terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.said
    assert "Error" not in terminal.said

"""An agent that is a command: what it is called, and how it ends with all that it started."""

import os
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any, NoReturn

import anyio
import psutil
import pytest
from tables import each_of
from waiting import PATIENCE_S, until

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.command import CommandDied, command_name, missing_program, run_agent
from hud_mcp.base.text import mask


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python agent.py --key sk-secret", "python agent.py"),
        ("KEY=sk-secret /opt/bin/python3.11 -u ./agent.py sk-secret", "python3.11 agent.py"),
        ("env KEY=sk-secret python -m my.agent --key sk-secret", "python -m my.agent"),
        ("./solve sk-secret", "solve"),
        ("KEY=sk-secret", "a command"),
        ("solve 'sk-secret", "a command"),
    ],
)
def test_a_command_is_called_by_its_program_and_script(
    tmp_path: Path, command: str, name: str
) -> None:
    """Its other words may be secrets, and its name is in lists, exports and pages."""
    (tmp_path / "agent.py").touch()
    assert command_name(command, tmp_path) == name


@each_of(
    ("command", "missing"),
    [
        ("pyhton agent.py", "pyhton"),
        ("./not-there.sh", "./not-there.sh"),
        ("sh -c 'exit 0'", None),
        ("cd agents && python agent.py", None),
        ("if true; then pyhton; fi", None),
        ("PATH=/elsewhere pyhton agent.py", None),
        ('"$AGENT" --fast', None),
        ("(pyhton)", None),
        ("", None),
    ],
)
def test_a_program_that_is_not_there_is_found_out_before_it_is_run(
    command: str, missing: str | None
) -> None:
    """Only where there is no doubt: what the shell itself makes of a line is its own."""
    assert missing_program(command) == missing


STARTS = """
import os, signal, subprocess, sys, time
from pathlib import Path


def leave(name, **how):
    code = f"import os, signal, time; {how.pop('first', 'pass')}; time.sleep(300)"
    child = subprocess.Popen([sys.executable, "-c", code], **how)
    Path(f"{name}.pid").write_text(str(child.pid))


kind = sys.argv[1]
print("begun", flush=True)
if kind in ("child", "waits"):
    leave("child")
if kind in ("session", "waits"):
    leave("session", start_new_session=True)
if kind == "deaf":
    leave("deaf", start_new_session=True, first="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    time.sleep(0.3)
if kind in ("daemon", "waits") and os.fork() == 0:
    os.setsid()
    leave("daemon", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={})
    os._exit(0)
if kind == "daemon":
    while not Path("daemon.pid").exists() or not Path("daemon.pid").read_text():
        time.sleep(0.01)
if kind == "much":
    for _ in range(40):
        os.write(1, b"x" * 1_000_000 + b"\\n")
if kind == "waits":
    time.sleep(300)
print("done", flush=True)
sys.exit(3 if kind == "fails" else 0)
"""


async def unused(*_args: Any, **_more: Any) -> NoReturn:
    """No tool is called."""
    raise AssertionError


async def run_program(folder: Path, kind: str) -> Agent:
    """Run a program of `STARTS`; return its handle, with what it was heard to say."""
    (folder / "starts.py").write_text(STARTS)
    agent = Agent(unused, session="s", prompt="p")
    command = [sys.executable, "starts.py", kind]
    await run_agent(command, dict(os.environ), agent, folder=folder, title="command")
    return agent


def left_in(folder: Path) -> list[str]:
    """The processes that live on, by the names under which a program left them."""
    return [
        file.stem
        for file in folder.glob("*.pid")
        if psutil.pid_exists(pid := int(file.read_text()))
        and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.anyio
async def test_a_program_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """At once: a child that has its output, in its session or its own, deaf, orphaned."""
    wrong: list[str] = []
    for kind in ("child", "session", "deaf", "daemon"):
        folder = tmp_path / kind
        folder.mkdir()
        began_s = time.monotonic()
        with anyio.fail_after(PATIENCE_S):
            agent = await run_program(folder, kind)
        if not list(folder.glob("*.pid")) or left_in(folder):
            wrong.append(f"{kind}: {left_in(folder)} lives on")
        if agent.lines != ["agent command: exit status 0", "agent: begun", "agent: done"]:
            wrong.append(f"{kind}: {agent.lines}")
        if time.monotonic() - began_s > PATIENCE_S / 2:
            wrong.append(f"{kind}: it was waited for")
    assert not wrong, "\n".join(wrong)


@pytest.mark.anyio
async def test_a_program_that_is_cancelled_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """Its child, one in a session of its own, and an orphan."""
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run_program, tmp_path, "waits")
            await until(lambda: len([*tmp_path.glob("*.pid")]) == 3)
            await until(lambda: all(file.read_text() for file in tmp_path.glob("*.pid")))
            assert len(left_in(tmp_path)) == 3
            group.cancel_scope.cancel()
    assert left_in(tmp_path) == []


@pytest.mark.anyio
async def test_a_program_may_say_more_than_is_kept(tmp_path: Path) -> None:
    """Its first words and its last are; the memory for it has a bound."""
    tracemalloc.start()
    try:
        agent = await run_program(tmp_path, "much")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (agent.lines[1], agent.lines[-1]) == ("agent: begun", "agent: done")
    assert any("bytes left out" in line for line in agent.lines)
    assert peak < 20_000_000


@pytest.mark.anyio
async def test_a_program_that_fails_or_is_not_there_says_so(tmp_path: Path) -> None:
    """Its status is its own, and its last words are told."""
    with pytest.raises(CommandDied, match="exit status 3 and said last: begun / done"):
        await run_program(tmp_path, "fails")
    agent = Agent(unused, session="s", prompt="p")
    with pytest.raises(CommandDied, match="127 and said last: no-such-program: No such file"):
        await run_agent(["no-such-program"], dict(os.environ), agent, folder=None, title="it")


def test_a_short_secret_destroys_no_other_words() -> None:
    """A server without keys is given `x` or `none`; a long secret is masked wherever it stands."""
    said = "This model's maximum context length is 8192 tokens; x is EMPTY, key=sk-12345678abc."
    shown = {
        "x": said.replace("; x ", "; … "),
        "EMPTY": said.replace("EMPTY", "…"),
        "max": said,
        "e": said,
        "": said,
        "sk-12345678": said.replace("sk-12345678", "…"),
    }
    assert {secret: mask(said, secret, "…") for secret in shown} == shown

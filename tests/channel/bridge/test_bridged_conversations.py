"""`hud-mcp serve` of HUD environments, as a real MCP client sees it."""

# processes of others, looked at between calls

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest
from bridging import QUESTIONS, WORKBENCH, HudServer, wait_gone, written
from mcp_types import PromptReference
from peers import (
    PATIENCE_S,
    child_environment,
    http_peer,
    http_server,
    load,
    serve_arguments,
    stdio_peer,
)

pytestmark = pytest.mark.anyio


async def test_a_client_goes_through_tasks_of_a_hud_file(hud_python: Path, tmp_path: Path) -> None:
    """Prompts, completions, a start, errors, a grade, the record; and no child is left."""
    options = ("--python", str(hud_python))
    async with stdio_peer(tmp_path, (f"hud:{QUESTIONS}",), *options) as peer:
        prompts = {p.name: p for p in (await peer.client.list_prompts()).prompts}
        assert set(prompts) == {"add", "anything", "slow", "broken", "typed", "numbers"}
        assert [(a.name, a.required) for a in prompts["add"].arguments or ()][:2] == [
            ("a", True),
            ("b", False),
        ]
        reference = PromptReference(name="add")
        completed = await peer.client.complete(reference, {"name": "style", "value": "f"})
        assert completed.completion.values == ["formal"]
        shown = await peer.client.get_prompt("add", {"a": "3", "style": "formal"})
        assert "What is 3 + 2? Be formal." in shown.messages[0].content.text
        listed = await peer.ok("list_tasks")
        assert "add(a, b, style, tag): Add two numbers [questions]" in listed.text
        task = await peer.start("add", a=4)
        assert task.prompt == "What is 4 + 2? Be plain."
        error = await peer.error("start_task", template="add", arguments={"a": "four"})
        assert "a: expected a whole number" in error
        reply = await peer.ok("response", session=task.session, answer="6")
        assert reply.structured["reward"] == 1.0
        again = await peer.ok("response", session=task.session, answer="6")
        assert again.structured["reward"] == 1.0
        record = await load(peer.store, task.trajectory)
        assert record.receipt is not None
        assert record.receipt.reward == 1.0
        children = _hud_children(os.getpid())
        assert children
    for pid in children:
        wait_gone(pid)


async def test_a_client_uses_tools_of_a_running_hud_server(
    workbench: HudServer, tmp_path: Path
) -> None:
    """Tools with their schemas and `session`, and in words what could not be bridged."""
    async with stdio_peer(tmp_path, (workbench.url,)) as peer:
        assert "'arm' (openpi/0) cannot be bridged" in (peer.client.instructions or "")
        tools = {t.name: t for t in (await peer.client.list_tools()).tools}
        assert tools["calc_multiply"].input_schema["required"] == ["a"]
        assert "session" in tools["calc_say_it"].input_schema["properties"]
        assert "'dead' (mcp/2025-11-25) cannot be bridged" in (await peer.ok("list_tasks")).text
        task = await peer.start("total", a=1, b=2)
        use = {"session": task.session}
        assert (await peer.ok("calc_multiply", a=2, **use)).text.startswith("4")
        assert (await peer.ok("calc_draw", **use)).mime_type == "image/png"
        await peer.ok("write_file", path="sum.txt", content="3", **use)
        assert "sum.txt" in (await peer.ok("step", **use)).text
        assert (await peer.ok("response", answer="", **use)).structured["reward"] == 1.0


async def test_a_hud_file_is_run_again_after_its_server_was_killed(
    hud_python: Path, tmp_path: Path
) -> None:
    """What it held has failed and is not a reward; the next task begins with a new server."""
    options = ("--python", str(hud_python))
    async with stdio_peer(tmp_path, (f"hud:{QUESTIONS}",), *options) as peer:
        task = await peer.start("add", a=4)
        before = _hud_children(os.getpid())
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        for pid in before:
            wait_gone(pid)
        error = await peer.error("response", session=task.session, answer="6")
        assert "The HUD server" in error
        receipt = await peer.ended(task.session)
        assert receipt["outcome"] == "environment_failed"
        assert "reward" not in receipt
        again = await peer.start("add", a=4)
        assert set(_hud_children(os.getpid())).isdisjoint(before)
        reply = await peer.ok("response", session=again.session, answer="6")
        assert reply.structured["reward"] == 1.0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_the_hud_server_ends_with_ours(
    how: signal.Signals, hud_python: Path, tmp_path: Path
) -> None:
    """However our server ends, what it began ends with it."""
    source = f"hud:{QUESTIONS}"
    with http_server(tmp_path, (source,), "--python", str(hud_python)) as running:
        children = _hud_children(running.process.pid)
        assert children
        running.process.send_signal(how)
        running.process.wait(PATIENCE_S)
        for pid in children:
            wait_gone(pid)


SLOW_END = """
import os, subprocess, sys, time
from pathlib import Path
from hud import Environment

env = Environment("slow")
HERE = Path(__file__).parent

@env.initialize
async def up():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (HERE / "pids").write_text(f"{os.getpid()} {child.pid}")

@env.shutdown
async def down():
    for part in range(30):
        print("still ending", part, flush=True)
        time.sleep(0.1)
    (HERE / "down").write_text("whole")

@env.template()
async def ask():
    answer = yield "Say yes."
    yield float(answer == "yes")
"""


async def test_shutdown_hooks_of_a_hud_file_run_to_their_end(
    hud_python: Path, tmp_path: Path
) -> None:
    """Longer than a host waits for us, and printing to nobody; what they left behind has ended."""
    source = tmp_path / "env.py"
    source.write_text(SLOW_END)
    async with stdio_peer(tmp_path, (f"hud:{source}",), "--python", str(hud_python)) as peer:
        await peer.start("ask")
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert not (tmp_path / "down").exists(), "nobody waited for them"
    await written(tmp_path / "down")
    assert (tmp_path / "down").read_text() == "whole"
    for pid in pids:
        wait_gone(pid)


async def test_a_session_is_taken_up_by_the_next_server(
    workbench: HudServer, tmp_path: Path
) -> None:
    """Killed between start and answer, our server is replaced by one that grades the same task."""
    with http_server(tmp_path, (workbench.url,)) as running:
        async with http_peer(running) as peer:
            task = await peer.start("total", a=2, b=2)
            await peer.ok("write_file", path="sum.txt", content="4", session=task.session)
        running.process.kill()
        running.process.wait(PATIENCE_S)
    async with stdio_peer(tmp_path, (workbench.url,)) as peer:
        reply = await peer.ok("response", session=task.session, answer="done")
        assert reply.structured["reward"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tcp://127.0.0.1:9"], "The HUD server cannot be reached"),
        (["tcp://key@127.0.0.1:9"], "Nothing answers at tcp://127.0.0.1:9: "),
        (["tcp://nowhere"], "write tcp://host:port"),
        (["hud:nothing.py"], "There is no HUD environment at 'nothing.py'"),
        ([f"hud:{WORKBENCH}", "--python", sys.executable], "has no `hud`"),
        ([f"hud:{WORKBENCH}", "--python", "/nowhere/python"], "there is no such program"),
    ],
)
async def test_a_source_that_cannot_be_served_is_an_error(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    """Each says what was given and what to do; standard output stays empty."""
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [sys.executable, *serve_arguments(arguments[:1], tmp_path / "s.db", *arguments[1:])],
            check=False,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 1
    assert done.stdout == b""
    assert said in done.stderr.decode()


def _hud_children(pid: int) -> list[int]:
    """The processes below one that are HUD's server."""
    found: list[int] = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(str(QUESTIONS) == part for part in child.cmdline()) and "-c" in child.cmdline():
                found.append(child.pid)
    return found

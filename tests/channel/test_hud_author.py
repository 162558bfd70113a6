"""HUD's own commands and runtimes with authors' files that our channel serves.

The file that HUD reads its rows from and the file that is served differ in what they import.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from author_files import QUIZ, TOOLBOX, write
from wire import ROOT, Process, process, wire

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

DRIVER = Path(__file__).resolve().parent / "agents" / "hud_author.py"
BOUND_S = 150

Hud = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hud(hud_python: Path, tmp_path: Path) -> Hud:
    """Runs HUD's interpreter, without an account and with nothing of ours on its path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    quiet = {"HUD_TELEMETRY_ENABLED": "false", "HUD_TELEMETRY_LOCAL_DIR": str(tmp_path / "spans")}

    def run(*arguments: object, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(hud_python), *map(str, arguments)],
            capture_output=True, text=True, timeout=BOUND_S, check=False, cwd=tmp_path,
            env={**kept, **quiet, "CI": "1", "HOME": str(tmp_path), **more},
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-4000:] + done.stdout[-2000:]
        return done

    return run


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    """What the driver told."""
    line = next(x for x in done.stdout.splitlines() if x.startswith("SEEN "))
    return json.loads(line.removeprefix("SEEN "))


@pytest.fixture
def quiz(tmp_path: Path) -> Iterator[tuple[Process, Path]]:
    """The questions on one of our channels, and the same file for HUD."""
    ours = write(tmp_path / "ours", QUIZ)
    theirs = write(tmp_path / "theirs", QUIZ, "hud")
    with process(tmp_path / "store.sqlite3", source=ours) as running:
        yield running, theirs


def check_quiz(told: Any, group: int) -> None:
    """Every row so often, in groups of its own; only Peru's answer is wrong."""
    assert told["errors"] == []
    assert told["groups"] == 3
    assert len(told["rewards"]) == 3 * group
    bills = [reward for slug, reward in told["rewards"] if slug.startswith("bill")]
    capitals = [reward for slug, reward in told["rewards"] if slug.startswith("capital")]
    assert bills == [1.0] * group
    assert sorted(capitals) == [0.0] * group + [1.0] * group
    kinds = [extra["kinds"] for extra in told["extra"]]
    assert [["user", "text"], ["user", "text"], ["user", "image"]] in kinds
    assert [["user", "text"]] in kinds


def test_a_taskset_of_a_file_runs_in_groups(quiz: tuple[Process, Path], hud: Hud) -> None:
    """`Taskset.from_file(…).run(group=…)`: messages and their parts arrive, grades come back."""
    server, theirs = quiz
    check_quiz(seen(hud(DRIVER, "served", theirs, f"tcp://127.0.0.1:{server.port}")), 3)


def test_a_process_for_each_rollout_is_started_by_hud(tmp_path: Path, hud: Hud) -> None:
    """`SubprocessRuntime`: the command that HUD runs is our module of the same name."""
    ours = write(tmp_path / "ours", QUIZ)
    theirs = write(tmp_path / "theirs", QUIZ, "hud")
    more = {
        "SHIM": str(tmp_path / "python"), "AUTHOR": str(ours), "PYTHONPATH": str(ROOT),
        "HUD_MCP_STORE": str(tmp_path / "store.sqlite3"),
    }  # fmt: skip
    check_quiz(seen(hud(DRIVER, "spawned", theirs, sys.executable, **more)), 2)


def test_an_agent_of_hud_uses_the_tools_of_the_author_s_server(
    fastmcp_python: Path, tmp_path: Path, hud: Hud
) -> None:
    """Through the channel's port, several at once; at the end the hooks that end it have run."""
    ours = write(tmp_path / "ours", TOOLBOX)
    theirs = write(tmp_path / "author-tools", TOOLBOX, "hud")
    with process(tmp_path / "store.sqlite3", source=ours, python=fastmcp_python) as server:
        told = seen(hud(DRIVER, "served", theirs, f"tcp://127.0.0.1:{server.port}"))
        assert server.stop() == 143
    assert (ours.parent / "down").exists()
    assert [reward for _slug, reward in told["rewards"]] == [1.0] * 6
    assert told["errors"] == []
    assert all(extra["tools"] == ["add", "count", "fail"] for extra in told["extra"])


@contextmanager
def chat_server() -> Iterator[str]:
    """A model behind the usual HTTP interface, which knows the answers to the quiz but one."""

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = json.dumps(given["messages"])
            text = '{"amount": 4.0}' if "Add up" in asked else "Paris"
            body = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "stop",
                            "message": {"role": "assistant", "content": text},
                        }
                    ],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_hud_eval_runs_a_file_on_our_channel(quiz: tuple[Process, Path], hud: Hud) -> None:
    """The command line, with a model: all rows, twice each, and its report."""
    server, theirs = quiz
    with chat_server() as model:
        done = hud(
            "-m", "hud.cli", "eval", theirs, "openai_compatible", "--model", "m", "--all",
            "--group", "2", "--yes", "--json", "--runtime", f"tcp://127.0.0.1:{server.port}",
            "-c", f"base_url={model}", "-c", "api_key=none",
        )  # fmt: skip
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["run_count"] == 6
    assert report["error_count"] == 0
    assert report["mean_reward"] == pytest.approx(4 / 6)
    assert {run["reward"] for run in report["runs"]} == {0.0, 1.0}


async def test_hud_task_lists_starts_and_grades(quiz: tuple[Process, Path], hud: Hud) -> None:
    """By the slugs of the author's file; a task that was not started is begun afresh."""
    server, theirs = quiz
    url = f"tcp://127.0.0.1:{server.port}"

    async def task(*arguments: object, code: int = 0) -> str:
        done = await anyio.to_thread.run_sync(
            lambda: hud("-m", "hud.cli", "task", *arguments, code=code)
        )
        return done.stdout.strip() if code == 0 else done.stdout + done.stderr

    with anyio.fail_after(BOUND_S):
        slugs = (await task("list", "--source", theirs, "--quiet")).splitlines()
        bill = next(slug for slug in slugs if slug.startswith("bill"))
        placed = ("--source", theirs, "--url", url)
        prompt = json.loads(await task("start", bill, *placed))
        assert prompt[0] == {"role": "system", "content": "Be brief."}
        assert [part["type"] for part in prompt[1]["content"]] == ["text", "image"]
        answer = ("--answer", '{"amount": 4}')
        assert await task("grade", bill, *placed, *answer) == "1.0"
        assert await task("grade", bill, *placed, *answer) == "1.0", "begun afresh"
        said = await task("start", "nope", "--url", url, code=1)
        assert "-32602" in said
        assert "unknown task: 'nope'" in said
        async with wire(server.port) as one, wire(server.port) as two:
            await one.start("capital")
            await two.start("capital")
        said = await task("grade", bill, *placed, *answer, code=1)
        assert "2 parked sessions" in said

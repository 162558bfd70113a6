"""Rows whose `setup` and `evaluate` name functions, as an agent meets them over MCP."""

import json
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from peers import HttpServer, Peer, http_peer, http_server, load, load_all
from runs import finish

pytestmark = [pytest.mark.anyio]

FORM = "<h1>Tea</h1><input id='who'><button id='send' onclick='this.remove()'>Send</button>"


@pytest.fixture
def site() -> Iterator[int]:
    """The port of a site of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = FORM.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def rows(folder: Path, *tasks: dict[str, Any]) -> str:
    """Write a taskset, and return its path."""
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    return str(path)


def row(name: str, gym: str, setup: Any, evaluate: Any, **more: Any) -> dict[str, Any]:
    """One row."""
    asked = {"id": name, "prompt": f"Do {name}.", "gym": gym}
    return {**asked, "setup": setup, "evaluate": evaluate, **more}


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_files_and_commands_prepare_a_shell_and_grade_it(tmp_path: Path) -> None:
    """A setup writes and runs, a check looks at what the agent left; a setup that fails says so."""
    ready = [["write_file", "in.txt", "b\na\n"], ["run", "mkdir out && test -f in.txt"]]
    checks = [
        ["file_exists", "out/sorted.txt", "/workspace/in.txt"],
        ["file_contains", "out/sorted.txt", ["a\nb"]],
        ["run", "sort -c out/sorted.txt"],
    ]
    taskset = rows(
        tmp_path,
        row("sort", "hud-shell", ready, checks),
        row("broken", "hud-shell", [["run", "echo no luck; exit 3"]], checks),
    )
    with http_server(tmp_path, ("hud-shell",), "--taskset", taskset) as server:
        async with http_peer(server) as peer:
            begun = (await peer.ok("start_task", task="sort")).structured["session"]
            await peer.ok("run_command", session=begun, command="sort in.txt > out/sorted.txt")
            graded = await peer.ok("response", session=begun, answer="")
            assert graded.structured["reward"] == 1.0
            # A link that leads out is the agent's doing, and counts as its result.
            for command in ("true", "ln -s /etc/passwd out/sorted.txt", "mkdir out/sorted.txt"):
                begun = (await peer.ok("start_task", task="sort")).structured["session"]
                await peer.ok("run_command", session=begun, command=command)
                graded = await peer.ok("response", session=begun, answer="")
                assert graded.structured["reward"] == 0.0, command
            told = await peer.error("start_task", task="broken")
            assert "did not exit 0: no luck" in told


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("replays", [True, pytest.param(False, marks=pytest.mark.stress)])
async def test_what_an_agent_hit_is_known_after_its_server_was_killed(
    tmp_path: Path, site: int, *, replays: bool
) -> None:
    """The session comes back by replay, or from a snapshot where its row opens a host."""
    setup = [["load_html", FORM]] if replays else [["goto", f"http://127.0.0.1:{site}/"]]
    checks = [
        ["selector_history", "#send", -1],
        ["verify_type_action", "#who", "Ann"],
        ["history_length", 3],
        ["raw_last_action_is", {"type": "wait"}],
        ["page_contains", "tea"],
    ]
    options = ("--taskset", rows(tmp_path, row("send", "hud-browser", setup, checks)))
    with http_server(tmp_path, ("hud-browser",), *options) as server:
        async with http_peer(server) as peer:
            task = await begin(peer, "send")
            acts = {"type": "type", "selector": "#who", "text": "Ann"}
            await peer.ok("act", session=task, **acts)
            await peer.ok("act", session=task, type="click", selector="#send")
        kill(server)
    with http_server(tmp_path, ("hud-browser",), *options) as server:
        async with http_peer(server) as peer:
            await peer.ok("act", session=task, type="wait", time=1)
            graded = await peer.ok("response", session=task, answer="")
            assert graded.structured["reward"] == 1.0, graded.structured
            record = await load(server.store, graded.structured["trajectory"])
    log = record.logs or ""
    assert "brought back after 2 steps" in log
    assert record.task.prompt == "Do send."


@pytest.mark.long
@pytest.mark.browser
async def test_an_imported_row_opens_this_machine_only_with_allow(
    tmp_path: Path, site: int
) -> None:
    """Without it, the task does not start, and the text says how it could; a user's own row may."""
    setup, checks = [["goto", f"http://127.0.0.1:{site}/"]], [["page_contains", "Tea"]]
    taskset = rows(
        tmp_path,
        row("mine", "hud-browser", setup, checks),
        row("theirs", "hud-browser", setup, checks, source="https://example.com/rows.jsonl"),
    )
    for allow, starts in (((), False), (("--allow", f"127.0.0.1:{site}"), True)):
        options = ("--taskset", taskset, *allow)
        with http_server(tmp_path, ("hud-browser",), *options) as server:
            async with http_peer(server) as peer:
                for name in ("mine", "theirs") if starts else ("mine",):
                    task = await begin(peer, name)
                    graded = await peer.ok("response", session=task, answer="")
                    assert graded.structured["reward"] == 1.0
                if not starts:
                    told = await peer.error("start_task", task="theirs")
                    assert f"Start with --allow 127.0.0.1:{site} if it may" in told


@pytest.mark.long
@pytest.mark.browser
async def test_an_evaluation_plays_rows_with_calls_and_hands_allow_on(
    tmp_path: Path, site: int
) -> None:
    """Of two imported rows, both are graded with `--allow`; the environment is found by its gym."""
    setup = [["goto", f"http://127.0.0.1:{site}/"]]
    more = {"source": "elsewhere", "validation": {"oracle": None, "nop": 1.0}}
    tasks = [
        row("shown", "hud-browser", setup, [["page_contains", "Tea"]], **more),
        row("there", "hud-browser", setup, [["element_exists", "#send"]], **more),
    ]
    options = ("--agent", "nop", "--allow", f"127.0.0.1:{site}")
    status, printed = await finish(tmp_path, tasks, *options)
    assert status == 0, printed
    records = await load_all(tmp_path / "store.sqlite3")
    assert {r.task.id: r.reward for r in records} == {"shown": 1, "there": 1}


async def begin(peer: Peer, task: str) -> str:
    """Start a task, and return its session's id."""
    return str((await peer.ok("start_task", task=task)).structured["session"])


def kill(server: HttpServer) -> None:
    """End a server at once, as a crash does."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)

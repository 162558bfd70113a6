"""HUD's own SDK against our server, and our client against HUD's own server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from wire import ROOT, TALK, Gate, Process, process, wire

from hud_mcp.channel.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import ChannelRefused
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

DRIVER = Path(__file__).resolve().parent / "agents" / "hud_peer.py"
BENCH = Path(__file__).resolve().parent / "environments" / "bench.py"
THEIRS = Path(__file__).resolve().parent / "environments" / "hud_env.py"
BOUND_S = 150


def hud_environment(folder: Path, **more: str) -> dict[str, str]:
    """HUD's SDK without an account, and with nothing of ours on its path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    quiet = {"HUD_TELEMETRY_ENABLED": "false", "HUD_TELEMETRY_LOCAL_DIR": str(folder), "CI": "1"}
    return {**kept, **quiet, "HOME": str(folder), **more}


@pytest.fixture
def hud(hud_python: Path, tmp_path: Path) -> Callable[..., Any]:
    """Runs HUD's client, and returns what it saw."""

    def run(what: str, target: object, **more: str) -> Any:
        done = subprocess.run(
            [str(hud_python), str(DRIVER), what, str(target)],
            capture_output=True, text=True, timeout=BOUND_S, check=False,
            env=hud_environment(tmp_path, **more), cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        line = next(x for x in done.stdout.splitlines() if x.startswith("SEEN "))
        return json.loads(line.removeprefix("SEEN "))

    return run


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One of our servers."""
    with process(tmp_path_factory.mktemp("ours") / "store.sqlite3") as running:
        yield running


def test_the_client_of_hud_goes_through_everything(ours: Process, hud: Callable[..., Any]) -> None:
    """List, start, grade, cancel, resume, a stream, and each way to be refused."""
    seen = hud("converse", ours.port)
    assert seen["hud"].startswith("0.6.")
    assert seen["env"] == ["talk", "1.2.3"]
    assert seen["tasks"] == ["ask", "gated", "rich", "broken"]
    assert seen["unknown"][0] == -32602
    assert seen["unknown"][1].startswith("unknown task: 'nope'")
    assert seen["wrong"][0] == -32602
    assert seen["early"] == seen["cancelled"] == [-32600, "no task in progress"]
    assert seen["prompt"] == "Say one."
    assert seen["grade"]["score"] == 1.0
    assert seen["rich"]["hint"] == 3
    assert seen["rich_grade"]["info"] == {"got": [1]}
    assert seen["broken"][0] == -32000
    assert seen["stream"] == "pingend"
    assert seen["stranger"][0] == -32600
    assert seen["resumed"] == 1.0


def test_a_taskset_of_hud_runs_on_our_server(ours: Process, hud: Callable[..., Any]) -> None:
    """Several at once; what fails is an error there and no reward; parts of a grade arrive."""
    seen = hud("run", ours.port)
    words = {k: v for k, v in seen["rewards"].items() if k not in ("rich", "broken")}
    assert words == dict.fromkeys(["tea", "milk", "salt", "oats", "rice"], 1.0)
    assert seen["errors"] == ["broken"]
    assert seen["rewards"]["rich"] == 0.75
    assert seen["info"]["got"]
    assert [s["name"] for s in seen["subscores"]] == ["a", "b"]


@pytest.mark.peers
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_agents_of_hud_work_in_workspaces_of_their_own(
    hud: Callable[..., Any], tmp_path: Path
) -> None:
    """Several at once over its `ssh/2` client, and each grader sees its own agent's files."""
    with process(tmp_path / "store.sqlite3", source=BENCH) as server:
        seen = await anyio.to_thread.run_sync(lambda: hud("work", server.port))
    assert seen["rewards"] == {"tea": 1.0, "milk": 1.0, "salt": 1.0}
    for word, answer in seen["answers"].items():
        assert answer == [word, 4, ["given", "more.txt", "out"], f"given to {word}\n"]
    assert seen["binding"] == ["shell", "/workspace", "bwrap"]
    assert seen["early"][0] == 255
    assert "start one with tasks.start" in seen["early"][1]


@pytest.mark.peers
async def test_a_rollout_of_hud_that_takes_too_long_is_cancelled(
    hud: Callable[..., Any], tmp_path: Path
) -> None:
    """Its cancel arrives in the middle of the setup, and that is recorded."""
    store = tmp_path / "store.sqlite3"
    never = str(tmp_path / "never")
    with process(store) as server:
        seen = await anyio.to_thread.run_sync(lambda: hud("abandon", server.port, GATE=never))
        assert seen["errors"] == [True]
        await Gate(never).reached()
        assert server.stop() == 143
    reader = Store(store)
    assert [row.outcome for row in await reader.list_trajectories()] == ["cancelled"]
    await reader.close()


def test_hud_spawns_our_server_as_its_own(hud: Callable[..., Any], tmp_path: Path) -> None:
    """With the arguments and the announcement that its runtime for child processes knows."""
    shim = str(tmp_path / "python")
    store = str(tmp_path / "store.sqlite3")
    more = {"SHIM": shim, "OURS": sys.executable, "PYTHONPATH": str(ROOT), "HUD_MCP_STORE": store}
    assert hud("spawn", TALK, **more)["rewards"] == {"tea": 1.0, "milk": 1.0}


@pytest.mark.peers
async def test_hud_starts_in_one_process_and_grades_in_another(
    hud_python: Path, tmp_path: Path
) -> None:
    """Its command line names no session: the only parked one is meant; of two, none."""

    def task(*arguments: str, says: str = "") -> str:
        done = subprocess.run(
            [str(hud_python), "-m", "hud.cli", "task", *arguments],
            capture_output=True, text=True, timeout=BOUND_S, check=False,
            env=hud_environment(tmp_path), cwd=tmp_path,
        )  # fmt: skip
        assert says in done.stderr + done.stdout
        assert (done.returncode != 0) == bool(says), done.stderr[-2000:]
        return done.stdout.strip()

    with process(tmp_path / "store.sqlite3") as server:
        url = f"tcp://127.0.0.1:{server.port}"
        start = ("start", "ask", "--url", url, "--args", '{"word":"x"}')
        grade = ("grade", "ask", "--url", url, "--answer", "x")
        with anyio.fail_after(BOUND_S):
            assert await anyio.to_thread.run_sync(lambda: task(*start)) == "Say x."
            assert await anyio.to_thread.run_sync(lambda: task(*grade)) == "1.0"
            async with wire(server.port) as one, wire(server.port) as two:
                await one.start("ask")
                await two.start("ask")
            await anyio.to_thread.run_sync(lambda: task(*grade, says="2 parked sessions"))


@contextmanager
def hud_server(python: Path, folder: Path) -> Iterator[int]:
    """HUD's own server, on a free port."""
    log = folder / "hud.log"
    with log.open("wb") as errors:
        popen = subprocess.Popen(
            [str(python), "-m", "hud.environment.server", str(THEIRS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            env=hud_environment(folder), cwd=folder,
        )  # fmt: skip
    try:
        assert popen.stdout is not None
        for line in popen.stdout:
            if line.startswith(b"HUD_SERVE_PORT="):
                yield int(line.removeprefix(b"HUD_SERVE_PORT="))
                break
        else:
            raise AssertionError(log.read_text())
    finally:
        popen.kill()
        popen.wait()
        popen.stdout.close()


async def test_our_client_drives_the_server_of_hud(hud_python: Path, tmp_path: Path) -> None:
    """Start, resume in another connection, grade, cancel, and what its server refuses."""
    with hud_server(hud_python, tmp_path) as port, anyio.fail_after(BOUND_S):
        url = f"tcp://127.0.0.1:{port}"
        async with ChannelClient.connect(url) as client:
            assert client.environment["name"] == "theirs"
            assert [t["id"] for t in await client.list_tasks()] == ["ask"]
            assert (await client.start("ask", {"word": "x"}))["prompt"] == "Say x."
            session = client.session_id
            with pytest.raises(ChannelRefused, match="unknown task"):
                await client.start("nope")
        while True:
            try:
                async with ChannelClient.connect(url, session_id=session) as client:
                    assert (await client.grade("x"))["score"] == 1.0
                break
            except ChannelRefused as exc:  # HUD has not seen yet that the first one has left
                assert "live connection" in exc.message  # noqa: PT017
        async with ChannelClient.connect(url) as client:
            await client.start("ask")
            await client.cancel()
            with pytest.raises(ChannelRefused) as refused:
                await client.grade("x")
            assert refused.value.code == -32600
            await client.bye()
        command = [sys.executable, "-m", "hud_mcp", "task"]
        started = ["start", "ask", "--json", "--url", url]
        done = await anyio.run_process([*command, *started], check=False)
        session = json.loads(done.stdout)["session"]
        for arguments, printed in (
            (["list"], "ask\tSay a word\n"),
            (["cancel", "--session", session], "cancelled\n"),
            (["start", "ask", "--args", '{"word": "y"}'], "Say y.\n"),
            (["grade", "--answer", "y"], "1.0\n"),
        ):
            done = await anyio.run_process([*command, *arguments, "--url", url], check=False)
            assert done.stdout.decode() == printed, done.stderr.decode()

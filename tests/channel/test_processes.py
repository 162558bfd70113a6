"""Servers in processes of their own: killed, stopped, and filled."""

# ruff: noqa: ASYNC220  # starting a process takes no time

import asyncio
import contextlib
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import anyio
import anyio.from_thread
import psutil
import pytest
from waiting import PATIENCE_S, until
from wire import TALK, Gate, Process, child_environment, process, wire

from hud_mcp.cli.process import raise_file_limit

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What the servers of a test share."""
    return tmp_path / "store.sqlite3"


async def test_a_task_is_graded_by_the_next_server(store: Path) -> None:
    """Its server is killed between the start and the grade; the session's id opens it again."""
    with process(store) as first:
        async with wire(first.port) as peer:
            await peer.start("ask", word="one")
            await peer.grade("one")
            await peer.start("ask", word="two")
            first.kill()
    with process(store) as second:
        async with wire(second.port, session_id=peer.session) as again:
            assert again.session == peer.session
            assert (await again.grade("two"))["score"] == 1.0
            await again.start("ask", word="three")
            assert (await again.grade("three"))["score"] == 1.0


@pytest.mark.long
async def test_a_task_is_graded_blindly_by_the_next_server(store: Path) -> None:
    """Where one is parked; where two are, that is said, and the id of none."""
    with process(store) as first, contextlib.suppress(ConnectionError):
        async with wire(first.port) as peer:
            await peer.start("ask", word="one")
            first.kill()
    with process(store) as second:
        async with wire(second.port) as blind:
            assert (await blind.grade("one"))["score"] == 1.0
        async with wire(second.port) as one, wire(second.port) as two:
            await one.start("ask", word="one")
            await two.start("ask", word="two")
            second.kill()
    with process(store) as third:
        async with wire(third.port) as blind:
            refused = await blind.refused("tasks.grade", answer="one")
            assert (refused.code, refused.text[:17]) == (-32600, "2 parked sessions")
            assert "sess-" not in refused.text
        for peer, word in ((two, "two"), (one, "one")):
            async with wire(third.port, session_id=peer.session) as again:
                assert (await again.grade(word))["score"] == 1.0


@pytest.mark.long
async def test_a_server_that_is_killed_while_it_grades_loses_no_answer(
    store: Path, gate: Gates, tmp_path: Path
) -> None:
    """The next one grades it once, whether or not anybody asks; another answer is refused."""
    grading, tally = gate("grading"), tmp_path / "tally"
    with process(store) as first:
        async with wire(first.port) as peer:
            await peer.start("gated", grading=grading.path, tally=str(tally))
            peer.ask("tasks.grade", answer="x")
            await grading.reached()
            first.kill()
    assert not tally.exists()
    grading.open()
    with process(store) as second:
        async with wire(second.port, session_id=peer.session) as again:
            refused = await again.refused("tasks.grade", answer="y")
            assert refused.code == -32000
            grade = await again.grade("x")
            assert grade["score"] == 0.5
            assert await again.grade("x") == grade
    with process(store) as third:
        async with wire(third.port, hello=False) as again:
            refused = await again.refused("hello", session_id=peer.session)
            assert refused.code == -32600
            assert refused.data["grade"] == grade
    assert tally.read_text() == "x\n"


@pytest.mark.long
async def test_a_server_that_is_asked_to_stop_parks_what_is_held(store: Path, gate: Gates) -> None:
    """Its status is 143, it answers what is under way, and no child of it is left."""
    setup = gate("setup")
    with process(store) as first:
        async with wire(first.port) as held, wire(first.port) as starting:
            await held.start("ask", word="held")
            call = starting.ask("tasks.start", id="gated", args={"setup": setup.path})
            await setup.reached()
            children = psutil.Process(first.popen.pid).children(recursive=True)
            with anyio.fail_after(PATIENCE_S):
                code = await anyio.to_thread.run_sync(first.stop)
            assert code == 143
            assert (await starting.reply(call))["error"]["code"] == -32000
            assert not psutil.wait_procs(children, timeout=0)[1]
        assert "Traceback" not in first.logged()
    with process(store) as second:
        async with wire(second.port, session_id=held.session) as again:
            assert (await again.grade("held"))["score"] == 1.0
        assert second.stop() == 143


def memory(server: Process) -> int:
    """Resident bytes of a server's process."""
    return psutil.Process(server.popen.pid).memory_info().rss


@pytest.fixture
def many_files() -> Iterator[None]:
    """Lets this process have thousands of connections open too."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_file_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.long
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_sessions_are_held_at_once(store: Path) -> None:
    """Each on a connection of its own, and each is graded on its own answer; 64 KB each at most."""
    count = 1000
    with process(store) as server:
        async with contextlib.AsyncExitStack() as stack:
            warm = await stack.enter_async_context(wire(server.port))
            await warm.start("ask")
            before = memory(server)
            peers = [await stack.enter_async_context(wire(server.port)) for _ in range(count)]
            with anyio.fail_after(120):
                starts = [
                    p.ask("tasks.start", id="ask", args={"word": f"w{i}"})
                    for i, p in enumerate(peers)
                ]
                for i, (peer, start) in enumerate(zip(peers, starts, strict=True)):
                    assert (await peer.result(start))["prompt"] == f"Say w{i}."
                held = memory(server)
                grades = [p.ask("tasks.grade", answer=f"w{i}") for i, p in enumerate(peers)]
                for peer, grade in zip(peers, grades, strict=True):
                    assert (await peer.result(grade))["score"] == 1.0
            assert (held - before) / count < 64 * 1024
            assert (await warm.grade("tea"))["score"] == 1.0


@pytest.mark.long
async def test_slow_and_hostile_peers_cost_a_bounded_amount(store: Path) -> None:
    """Halves of long frames, a byte at a time, and nothing: what others do goes on, in time."""
    with process(store) as server:
        async with contextlib.AsyncExitStack() as stack:
            peer = await stack.enter_async_context(wire(server.port))
            await peer.start("ask")
            before = memory(server)
            hostile = [
                await stack.enter_async_context(wire(server.port, hello=False)) for _ in range(120)
            ]
            half = b'{"id":1,"method":"tasks.list","params":{"a":"' + b"x" * 2_000_000
            for one in hostile[:60]:
                one.send(half)  # 120 MB that never end
            with anyio.fail_after(PATIENCE_S):
                for _ in range(20):
                    for one in hostile[60:90]:
                        one.send(b'{"id":1}'[_ % 8 : _ % 8 + 1])
                    assert (await peer.call("tasks.list"))["tasks"]
            assert memory(server) - before < 160 * 2**20
            assert (await peer.grade("tea"))["score"] == 1.0


@pytest.mark.long
async def test_serving_is_at_home_on_a_worker_thread(tmp_path: Path) -> None:
    """What owns the main thread, such as a simulator's window, keeps it, and ends the serving."""
    from hud_mcp.channel import serve  # noqa: PLC0415
    from hud_mcp.loading.source import load_environments  # noqa: PLC0415
    from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS  # noqa: PLC0415
    from hud_mcp.session.registry import Sessions  # noqa: PLC0415
    from hud_mcp.store import Store  # noqa: PLC0415

    environment = load_environments([str(TALK)])[0]
    port: Future[int] = Future()

    async def run() -> None:
        assert threading.current_thread() is not threading.main_thread()
        sessions = Sessions([environment], store=Store(tmp_path / "s.db"), limits=CHANNEL_LIMITS)
        await serve(environment, announce=port.set_result, sessions=sessions, closes_sessions=True)

    def own_the_main_thread() -> None:
        with anyio.from_thread.start_blocking_portal() as portal:
            serving = portal.start_task_soon(run)
            bound = port.result(20)
            done = subprocess.run(
                [sys.executable, *f"-m hud_mcp task start ask -u tcp://127.0.0.1:{bound}".split()],
                capture_output=True, text=True, timeout=PATIENCE_S,
                env=child_environment(), check=False,
            )  # fmt: skip
            assert done.stdout == "Say tea.\n", done.stderr
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                serving.exception(20)

    own_the_main_thread()


@pytest.mark.long
async def test_a_signal_during_the_hooks_ends_the_server(tmp_path: Path, gate: Gates) -> None:
    """Also one that waits for something that never comes."""
    never = gate("never")
    source = tmp_path / "stuck.py"
    source.write_text(
        "import asyncio\nfrom pathlib import Path\nfrom hud_mcp import Environment\n"
        "env = Environment('stuck')\n"
        "@env.initialize\nasync def wait():\n"
        f"    Path({never.path + '.reached'!r}).touch()\n    await asyncio.Event().wait()\n"
        "@env.template()\nasync def ask():\n    answer = yield 'Go.'\n    yield 1.0\n"
    )
    popen = subprocess.Popen(
        [sys.executable, "-m", "hud_mcp.channel", str(source), "--store", str(tmp_path / "s.db")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment(),
    )  # fmt: skip
    try:
        await never.reached()
        popen.send_signal(signal.SIGTERM)
        out, _ = await anyio.to_thread.run_sync(popen.communicate)
        assert popen.returncode == 143
        assert out == b""
    finally:
        popen.kill()
        popen.wait()


@pytest.mark.long
async def test_one_process_serves_both_protocols(store: Path) -> None:
    """Over the same store and sessions; each announces its address on standard output."""
    command = ("-m", "hud_mcp", "serve", str(TALK), "--http", "127.0.0.1:0", "--store", str(store))
    popen = subprocess.Popen(
        [sys.executable, *command, "--channel", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment(),
    )  # fmt: skip
    try:
        assert popen.stdout is not None
        lines = [popen.stdout.readline().decode() for _ in range(2)]
        assert lines[0].startswith("HUD_MCP_URL=http://127.0.0.1:")
        port = int(lines[1].removeprefix("HUD_SERVE_PORT="))
        async with wire(port) as peer:
            await peer.start("ask")
            assert (await peer.grade("tea"))["score"] == 1.0
            await peer.start("ask", word="parked")
        popen.send_signal(signal.SIGTERM)
        with anyio.fail_after(PATIENCE_S):
            assert await anyio.to_thread.run_sync(popen.wait) == 143
    finally:
        popen.kill()
        popen.wait()
        popen.stdout.close()
    with process(store) as server:
        async with wire(server.port, session_id=peer.session) as again:
            assert (await again.grade("parked"))["score"] == 1.0


@pytest.mark.long
async def test_both_ends_of_a_parked_session_expire(store: Path) -> None:
    """One that no server runs is ended by the next one, once its time is over."""
    with process(store) as first:
        async with wire(first.port) as peer:
            await peer.start("ask")
            first.kill()
    with process(store, "--limit", "idle_s=0.1") as second:
        async with wire(second.port) as other:
            await until(lambda: "nobody went on with it" in second.logged())
            refused = await other.refused("tasks.grade", answer="tea")
            assert refused.text == "no task in progress"
        async with wire(second.port, hello=False) as again:
            refused = await again.refused("hello", session_id=peer.session)
            assert ": it expired at" in refused.text

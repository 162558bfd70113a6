"""A session's workspace over ssh, as the channel publishes it: through its port, with its keys."""

# what is waited for happens in another process

import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import asyncssh
import psutil
import pytest
from ssh_peer import PATIENCE_S, published, run, ssh
from waiting import stays, until
from wire import Gate, Served, child_environment, process, served, wire

from hud_mcp import Capability, Environment, Trajectory
from hud_mcp.channel.client import ChannelClient
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.wire.streams import ChannelRefused
from hud_mcp.record.transcript import transcript_text
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

BENCH = Path(__file__).resolve().parent / "environments" / "bench.py"
Gates = Callable[[str], Gate]


@pytest.fixture
def bench() -> Environment:
    """The environment, loaded anew."""
    return load_environments([str(BENCH)])[0]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What the servers of a test share."""
    return tmp_path / "store.sqlite3"


@pytest.fixture
async def here(bench: Environment, store: Path) -> AsyncIterator[Served]:
    """It, served in this process."""
    async with served(bench, store) as running:
        yield running


def channel(port: int, **options: Any) -> Any:
    """A client of a channel."""
    return ChannelClient.connect(f"tcp://127.0.0.1:{port}", **options)


async def recorded(store: Path) -> Trajectory:
    """The newest record."""
    reader = Store(store)
    newest = (await reader.list_trajectories())[0]
    found = await reader.load_trajectory(newest.id)
    await reader.close()
    return found


async def test_a_grader_sees_what_was_done_over_ssh(here: Served, store: Path) -> None:
    """Commands, a terminal and files reach the task's own folder, and the record has them all."""
    async with channel(here.port) as client:
        binding = published(client.bindings)
        assert (binding["name"], binding["params"]["cwd"]) == ("shell", "/workspace")
        assert binding["params"]["isolation"] == "bwrap"
        await client.start("write", {"name": "tea"})
        async with ssh(client) as agent:
            done = await run(agent, "cat given; echo oops >&2; printf te > out; exit 3")
            assert (done.stdout, done.stderr, done.exit_status) == ("given to tea\n", "oops\n", 3)
            async with agent.create_process(term_type="xterm", stderr=asyncssh.STDOUT) as terminal:
                with anyio.fail_after(PATIENCE_S):
                    terminal.stdin.write("tty; printf a >> out; exit\n")
                    assert "/dev/pts/" in await terminal.stdout.read()
            async with agent.start_sftp_client() as sftp:
                async with sftp.open("notes", "w") as file:
                    await file.write("n" * 100_000)
                async with sftp.open("out") as file:
                    assert await file.read() == "tea"
            killed = await run(agent, "kill -9 $$")
            assert (killed.exit_signal or ("",))[0] == "KILL", "as ssh says it"
            await run(agent, "chmod 0 /workspace")
            astray = await run(agent, "pwd; chmod 755 /workspace")
            assert (astray.stdout, astray.exit_status) == ("/\n", 0)
            assert "Permission denied; this begins in /" in str(astray.stderr)
        grade = await client.grade("done")
    assert (grade["score"], grade["content"]) == (1.0, "tea")
    kept = await recorded(store)
    direct = [step for step in kept.steps if step.kind == "direct"]
    assert [step.actions[0]["tool"] for step in direct] == ["ssh/2"] * 6
    assert direct[0].actions[0]["args"]["command"].startswith("cat given")
    assert direct[0].observation_text == "given to tea\noops\n"
    assert direct[0].info == {"exit_code": 3}
    assert direct[1].actions[0]["args"] == {"terminal": "xterm"}
    assert direct[2].observation_text == "write notes"
    assert direct[3].info == {"exit_code": 137}, "as shells say it"
    assert "its agent used its world directly over ssh/2, 6 times" in (kept.logs or "")
    assert 'ssh/2 {"command": "cat given' in transcript_text(kept)


async def test_a_key_opens_its_own_sessions_sandbox_alone(here: Served) -> None:
    """Each HUD session has a key of its own; another's name or key with it is refused."""
    async with channel(here.port) as one, channel(here.port) as two:
        mine, theirs = published(one.bindings), published(two.bindings)
        assert mine["url"] == theirs["url"], "one port for all"
        assert mine["params"]["client_key"] != theirs["params"]["client_key"]
        await one.start("write", {"name": "one"})
        await two.start("write", {"name": "two"})
        for name, client in (("one", one), ("two", two)):
            async with ssh(client) as agent:
                assert (await run(agent, "cat given")).stdout == f"given to {name}\n"
                await run(agent, f"echo {name} > out")
        for changes in (
            {"username": theirs["params"]["user"]},
            {"client_keys": [asyncssh.import_private_key(theirs["params"]["client_key"])]},
        ):
            with pytest.raises(asyncssh.PermissionDenied):
                async with ssh(one, mine, **changes):
                    pass
        assert (await two.grade(""))["score"] == (await one.grade(""))["score"] == 1.0


@pytest.mark.long
async def test_a_command_is_told_where_no_task_is_in_progress(here: Served, gate: Gates) -> None:
    """Before a start, during setup and grading, after a grade and after a cancel."""
    setup, grading = gate("setup"), gate("grading")

    async def told(agent: asyncssh.SSHClientConnection) -> str:
        done = await run(agent, "touch out")
        assert done.exit_status == 255
        with pytest.raises(asyncssh.SFTPFailure) as refused:
            async with agent.start_sftp_client() as sftp:
                await sftp.mkdir("d")
        assert refused.value.reason == done.stderr.strip()
        return done.stderr

    async with (
        channel(here.port) as client,
        ssh(client) as agent,
        anyio.create_task_group() as group,
    ):
        assert "start one with tasks.start" in await told(agent)

        async def start_and_grade() -> None:
            args = {"setup": setup.path, "grading": grading.path}
            await client.start("write", args)
            assert (await client.grade(""))["score"] == 0.0, "nothing was let in meanwhile"

        group.start_soon(start_and_grade)
        await setup.reached()
        assert "is being started; wait for its prompt" in await told(agent)
        setup.open()
        await grading.reached()
        assert "is being graded" in await told(agent)
        grading.open()
        await until(lambda: not here.sessions.here(client.session_id, _caller()).is_busy)
        assert "was graded at" in await told(agent)
        await client.start("write", {"name": "x"})
        assert (await run(agent, "cat given")).stdout == "given to x\n", "the same key, a new task"
        await client.cancel()
        assert "No task is in progress" in await told(agent)


def _caller() -> Any:
    from hud_mcp.plugins.hud.wire.hud_session import PRINCIPAL  # noqa: PLC0415
    from hud_mcp.session.caller import Caller  # noqa: PLC0415

    return Caller(principal=PRINCIPAL)


@pytest.mark.long
async def test_a_session_that_said_bye_lets_nobody_in(here: Served) -> None:
    """Its connections are dropped, its key opens nothing, and its sandbox is gone."""
    async with channel(here.port) as other, channel(here.port) as client:
        binding = published(client.bindings)
        await client.start("write")
        async with ssh(client) as agent:
            running = await agent.create_process("echo up; sleep 60")
            with anyio.fail_after(PATIENCE_S):
                assert await running.stdout.readline() == "up\n"
                await client.bye()
                await agent.wait_closed()
        with pytest.raises(asyncssh.PermissionDenied):
            async with ssh(other, binding):
                pass
    await until(lambda: not sandboxes(psutil.Process()))


def sandboxes(server: psutil.Process) -> list[psutil.Process]:
    """The sandboxes that a server has open."""
    return [child for child in server.children() if child.name() == "bwrap"]


@pytest.mark.long
async def test_a_session_is_resumed_with_its_way_in(here: Served) -> None:
    """On a new connection its key still opens it; the connection that was open goes on."""
    async with channel(here.port) as client:
        await client.start("write", {"name": "on"})
        first, session = published(client.bindings), client.session_id
    async with channel(here.port, session_id=session) as client:
        assert published(client.bindings) == first
        async with ssh(client) as agent:
            await run(agent, "echo on > out")
        assert (await client.grade(""))["score"] == 1.0


@pytest.mark.long
async def test_a_session_comes_back_with_its_files_after_its_server_was_killed(
    store: Path,
) -> None:
    """What a command was told the end of is there; a hello gives new keys, which open it."""
    with process(store, source=BENCH) as first:
        async with channel(first.port) as client:
            await client.start("write", {"name": "on"})
            session, old = client.session_id, published(client.bindings)
            async with ssh(client) as agent:
                await run(agent, "printf o > out")
                async with agent.start_sftp_client() as sftp, sftp.open("more", "w") as file:
                    await file.write("more")
                await run(agent, "printf n >> out")
                first.kill()
    with process(store, source=BENCH) as second:
        async with channel(second.port, session_id=session) as client:
            new = published(client.bindings)
            assert new["params"]["client_key"] != old["params"]["client_key"]
            async with ssh(client) as agent:
                assert (await run(agent, "cat out more given")).stdout == "onmoregiven to on\n"
            assert (await client.grade(""))["score"] == 1.0


@pytest.mark.long
async def test_work_that_no_snapshot_has_is_not_graded(store: Path) -> None:
    """A server that is killed while a command runs has lost what that did: no reward, not 0."""
    with process(store, source=BENCH) as first:
        async with channel(first.port) as client:
            await client.start("write", {"name": "on"})
            session = client.session_id
            async with ssh(client) as agent:
                await run(agent, "echo on > out")
                running = await agent.create_process("echo off > out; echo done; sleep 60")
                with anyio.fail_after(PATIENCE_S):
                    assert await running.stdout.readline() == "done\n"
                first.kill()
    with process(store, source=BENCH) as second:
        async with channel(second.port, session_id=session) as client:
            async with ssh(client) as agent:
                done = await run(agent, "ls")
                assert "used its world directly" in done.stderr
            with pytest.raises(ChannelRefused, match=r"was lost .* last\. tasks.start begins"):
                await client.grade("")
        assert second.stop() == 143
    kept = await recorded(store)
    assert (kept.outcome, kept.reward) == ("lost", None)


@pytest.mark.long
async def test_an_answer_is_graded_on_what_was_there_when_it_came(store: Path, gate: Gates) -> None:
    """A server that is killed while it grades, with a terminal open, loses neither."""
    grading = gate("grading")
    with process(store, source=BENCH) as first:
        async with channel(first.port) as client, anyio.create_task_group() as group:
            await client.start("write", {"name": "on", "grading": grading.path})
            session = client.session_id
            async with ssh(client) as agent:
                await agent.create_process("sleep 60")
                running = await agent.create_process("echo on > out; echo done; sleep 60")
                assert await running.stdout.readline() == "done\n"

                async def grade() -> None:
                    with suppress(Exception):  # it is cut off
                        await client.grade("x")

                group.start_soon(grade)
                await grading.reached()
                first.kill()
    grading.open()
    with process(store, source=BENCH) as second:
        async with channel(second.port, session_id=session) as client:
            assert (await client.grade("x"))["score"] == 1.0


@pytest.mark.long
async def test_a_server_that_is_asked_to_stop_leaves_no_process_and_loses_no_work(
    store: Path,
) -> None:
    """With a terminal open: its shell ends, its files are kept, and the next server has them."""
    with process(store, source=BENCH) as first:
        async with channel(first.port) as client:
            await client.start("write", {"name": "on"})
            session = client.session_id
            async with ssh(client) as agent:
                terminal = await agent.create_process(term_type="xterm")
                terminal.stdin.write("echo on > out; echo d''one\n")
                with anyio.fail_after(PATIENCE_S):
                    await terminal.stdout.readuntil("done\r\n")
                children = psutil.Process(first.popen.pid).children(recursive=True)
                assert children
                with anyio.fail_after(PATIENCE_S):
                    assert await anyio.to_thread.run_sync(first.stop) == 143
                assert not psutil.wait_procs(children, timeout=PATIENCE_S)[1]
        assert "Traceback" not in first.logged(), first.logged()
    with process(store, source=BENCH) as second:
        async with channel(second.port, session_id=session) as client:
            assert (await client.grade(""))["score"] == 1.0


@pytest.mark.long
async def test_a_session_is_not_idle_while_a_command_runs(bench: Environment, store: Path) -> None:
    """It outlives its idle time over ssh alone, and expires after it."""
    from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS  # noqa: PLC0415

    limits = CHANNEL_LIMITS.model_copy(update={"idle_s": 1.0})
    async with served(bench, store, limits=limits) as here, channel(here.port) as parked:
        await parked.start("write")
        session = here.sessions.here(parked.session_id, _caller())
        async with ssh(parked) as agent:
            running = await agent.create_process("echo up; read line")
            assert await running.stdout.readline() == "up\n"
            await parked.close()
            await stays(lambda: session.state.shown == "open", for_s=3.5)
            running.stdin.write_eof()
            await until(lambda: session.state.shown == "ended")
    assert (await recorded(store)).outcome == "expired"


async def test_an_environment_without_a_workspace_publishes_nothing_of_its_own(
    talk: Environment, tmp_path: Path
) -> None:
    """And what an author publishes under the workspace's name takes its place."""
    async with served(talk, tmp_path / "store.sqlite3") as here, channel(here.port) as client:
        assert [each["name"] for each in client.bindings] == ["echo"]
    env = Environment("own")
    env.workspace(name="box")
    env.add_capability(Capability(name="box", protocol="mcp", url="http://127.0.0.1:9/x"))
    async with served(env, tmp_path / "own.sqlite3") as here, channel(here.port) as client:
        assert [(b["name"], b["protocol"]) for b in client.bindings] == [("box", "mcp")]


async def test_the_name_of_a_workspace_is_the_capabilitys(tmp_path: Path) -> None:
    """Another one by `name=`, and a stream by any other is refused with the names there are."""
    env = Environment("named")
    env.workspace(name="box", isolation="none")
    async with served(env, tmp_path / "store.sqlite3") as here, wire(here.port) as peer:
        async with wire(here.port, hello=False) as other:
            refused = await other.refused("tunnel.open", capability="shell")
            assert "there are: box" in refused.text
        binding = published((await peer.hello(session_id=peer.session))["bindings"])
        assert binding["name"] == "box"
        assert binding["params"]["isolation"] == "none"
        assert "cwd" not in binding["params"], "each task has another folder"


@pytest.mark.long
def test_a_server_without_asyncssh_says_what_to_install(tmp_path: Path) -> None:
    """Before it listens, and not at the first hello."""
    program = f"""
        import sys
        sys.modules["asyncssh"] = None
        sys.argv = ["serve", {str(BENCH)!r}, "--store", {str(tmp_path / "s.sqlite3")!r}]
        from hud_mcp.plugins.hud.wire.command import serve_command
        serve_command()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=PATIENCE_S, env=child_environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'hud-mcp[ssh]'" in done.stderr
    assert done.stdout == ""

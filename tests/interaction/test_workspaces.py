"""Conversations about a workspace whose template looks at its root itself."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from peers import ROOT, Peer, Way, child_environment, http_peer, http_server, stdio_peer
from phoenix import Phoenix, phoenix
from waiting import until

import hud_mcp.graders

AUTHORED = ROOT / "tests" / "plugins" / "hud" / "template_process" / "authored"
ROOMS, REPAIRS = str(AUTHORED / "rooms.py"), str(AUTHORED / "repairs.py")
BOUND_S = 120

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root for servers that tests start."""
    root = tmp_path / "work"
    for name in ("ROOMS_ROOT", "REPAIR_ROOT"):
        monkeypatch.setenv(name, str(root))
    monkeypatch.setenv("ROOMS_STARTED", str(tmp_path / "started"))
    return root


@pytest.mark.long
async def test_what_an_agent_writes_is_what_its_template_reads(
    way: Way, tmp_path: Path, place: Path
) -> None:
    """Over every transport; what the template prints is in the record, and nowhere else."""
    with anyio.fail_after(BOUND_S):
        if way.transport == "stdio":
            async with stdio_peer(tmp_path, (ROOMS,), era=way.era) as peer:
                await converse(peer, place)
        else:
            with http_server(tmp_path, (ROOMS,)) as server:
                async with http_peer(server, era=way.era) as peer:
                    await converse(peer, place)
    assert not written(place)


async def converse(peer: Peer, root: Path) -> None:
    """Two sessions side by side: one does what it is asked, one does not."""
    first, second = await peer.start("write", word="milk"), await peer.start("write", word="salt")
    assert first.prompt.startswith(f"Write milk into {root}/out.txt.")
    for task in (first, second):
        await peer.ok("write_file", session=task.session, path=f"{root}/out.txt", content="milk\n")
    for task, reward in ((first, 1.0), (second, 0.0)):
        graded = await peer.ok("response", session=task.session, answer="")
        assert graded.structured["reward"] == reward
        record = await peer.record(task)
        assert "found milk" in (record.logs or "")


@pytest.mark.long
async def test_a_session_goes_on_in_another_server_after_a_kill(
    tmp_path: Path, place: Path
) -> None:
    """Its folder is at the root of the new template's process, as the agent left it."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (ROOMS,)) as bird:
            session = await start(bird, "write", word="tea")
            line = "echo tea > out.txt; mkdir -p deep; echo kept > deep/more; rm sub/given.txt"
            await bird.call("run_command", session=session, command=line)
            before = bird.children()
            await bird.kill_and_start()
            await until(lambda: none_runs(before))
            seen = await bird.call("run_command", session=session, command="cat deep/more; ls sub")
            assert "kept" in str(seen)
            assert "given.txt" not in str(seen)
            graded = await bird.call("response", session=session, answer="")
            assert graded["structuredContent"]["reward"] == 1.0
    assert not written(place)


@pytest.mark.long
async def test_nothing_is_left_of_a_server_that_is_killed(tmp_path: Path, place: Path) -> None:
    """Neither its templates' processes nor what they have started."""
    del place
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (ROOMS,)) as bird:
            marker = str(tmp_path / "marker")
            await start(bird, "blocks", marker=marker, phase="waits")
            before = bird.children()
            assert sum("workspace.runner" in str(p.cmdline()) for p in before) >= 2
            assert [p for p in before if marker in p.cmdline()]
            bird.kill()
            await until(lambda: none_runs(before))
            await bird.start()


@pytest.mark.long
def test_a_file_that_starts_sessions_when_it_is_loaded_is_told(tmp_path: Path) -> None:
    """It would start them in each of its templates' processes, and those theirs."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio\n"
        "from hud_mcp import Environment, Store, Task\n"
        "from hud_mcp.session.caller import Caller\n"
        "from hud_mcp.session.registry import Sessions\n"
        "env = Environment('eager')\n"
        "env.workspace('work')\n"
        "@env.template()\n"
        "async def ask():\n"
        "    yield '?'\n"
        "    yield 1.0\n"
        "async def main():\n"
        "    sessions = Sessions([env], store=Store('store.sqlite3'))\n"
        "    try:\n"
        "        await sessions.start(ask(), caller=Caller())\n"
        "    finally:\n"
        "        await sessions.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=child_environment(),
        capture_output=True, text=True, timeout=BOUND_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Put that code under `if __name__ == '__main__':`" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(
    not hasattr(hud_mcp.graders, "BashGrader"), reason="BashGrader comes with another change"
)
async def test_the_repair_of_a_hud_author_runs_over_stdio(tmp_path: Path, place: Path) -> None:
    """The file as HUD's documentation has it, but for its import: 1.0 repaired, little if not."""
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (REPAIRS,)) as peer:
            for line, reward in (("sed -i 's/ - 1//' total.py", 1.0), ("cat total.py", 0.25)):
                task = await peer.start("fix")
                assert f"{place}/total.py" in task.prompt
                await peer.ok("run_command", session=task.session, command=line)
                graded = await peer.ok("response", session=task.session, answer="")
                assert graded.structured["reward"] == reward


def written(root: Path) -> list[Path]:
    """What lies in the root itself, which is never written."""
    return list(root.iterdir())


async def start(bird: Phoenix, template: str, **arguments: Any) -> str:
    """Start a session, and return its id."""
    reply = await bird.call("start_task", template=template, arguments=arguments)
    assert not reply.get("isError"), reply
    return str(reply["structuredContent"]["session"])


def none_runs(processes: list[psutil.Process]) -> bool:
    """Whether all of them have ended."""
    return not psutil.wait_procs(processes, timeout=0)[1]

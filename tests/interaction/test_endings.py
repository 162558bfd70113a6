"""How a server ends: in two seconds, with its exit status, no child and no traceback."""

# what is waited for happens in another process

import signal
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from peers import (
    BOARD,
    FAULTY,
    LEGACY,
    MODERN,
    Gate,
    RawHttp,
    http_server,
    load,
    load_all,
    raw_http,
    raw_stdio,
    stdio_peer,
)
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "status"), [("eof", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=str
)
async def test_a_stdio_server_ends_in_order_whatever_it_is_doing(
    tmp_path: Path, gates: Gates, how: str | signal.Signals, status: int
) -> None:
    """A step, a start and a grading under way are answered and recorded, and nothing is left."""
    holds, starts, grades = gates("step"), gates("start"), gates("grade")
    gradings = str(tmp_path / "gradings")
    async with raw_stdio(tmp_path, (BOARD,)) as raw:
        await raw.hello()
        idle = await raw.call("start_task", template="collect")
        held = await raw.call("start_task", template="collect")
        graded = await raw.call(
            "start_task",
            template="gated",
            arguments={"entered": grades.entered, "gate": grades.path, "gradings": gradings},
        )
        done = await raw.call("start_task", template="total")
        sessions = [r["structuredContent"]["session"] for r in (idle, held, graded, done)]
        await raw.call("response", session=sessions[3], answer="5")
        child = {"type": "custom", "action": "spawn"}
        spawned = await raw.call("act", session=sessions[0], **child)
        pid = int(spawned["content"][0]["text"].split()[1])
        assert psutil.pid_exists(pid)
        waiting = [
            await raw.post("step", {"session": sessions[1], "actions": [holds.hold()]}),
            await raw.post("response", {"session": sessions[2], "answer": "right"}),
            await raw.post(
                "start_task",
                {
                    "template": "gated_start",
                    "arguments": {"entered": starts.entered, "gate": starts.path},
                },
            ),
        ]
        for gate in (holds, starts, grades):
            await gate.arrived()
        if isinstance(how, signal.Signals):
            raw.process.send_signal(how)
        else:
            await raw.close_stdin()
        assert await raw.exit_status() == status
        await raw.eof.wait()
        for request in waiting:
            assert raw.answers[request]["error"]["code"] == -32000
    log = raw.log.read_text()
    assert "Traceback" not in log
    assert "never awaited" not in log
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    ends = {}
    for reply in (idle, held, graded, done):
        trajectory = reply["_meta"]["hud-mcp/start"]["trajectory"]
        ends[trajectory] = await load(raw.store, trajectory)
    assert [r.outcome for r in ends.values()] == [None, None, None, "graded"], "others go on"
    assert [r.reward for r in ends.values()] == [None, None, None, 1.0]
    assert [s.error for s in list(ends.values())[1].steps] == ["stopped after 0 of 1 actions"]
    begun = next(r for r in await load_all(raw.store) if r.task.template == "gated_start")
    assert begun.outcome == "cancelled"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
async def test_an_http_server_ends_in_order_whatever_it_is_doing(
    tmp_path: Path, gates: Gates, number: signal.Signals
) -> None:
    """With a stream open and a call under way in each era, it ends in time and records all."""
    with http_server(tmp_path, (BOARD,)) as server:
        async with raw_http(server.url, LEGACY) as old, raw_http(server.url, MODERN) as new:
            trajectories: list[str] = []
            told: list[str] = []

            async def hold(raw: RawHttp, session: str, gate: Gate) -> None:
                held = await raw.call("step", session=session, actions=[gate.hold()])
                told.append(held["content"][0]["text"])

            async with anyio.create_task_group() as group:
                for raw in (old, new):
                    begun = await raw.call("start_task", template="collect")
                    trajectories.append(begun["_meta"]["hud-mcp/start"]["trajectory"])
                    gate = gates(raw.era)
                    group.start_soon(hold, raw, begun["structuredContent"]["session"], gate)
                    await gate.arrived()
                headers = {"accept": "text/event-stream", "mcp-session-id": old.session_id or ""}
                async with old.web.stream("GET", server.url, headers=headers) as listening:
                    assert listening.status_code == 200
                    server.process.send_signal(number)
                    with anyio.fail_after(PATIENCE_S):
                        status = await anyio.to_thread.run_sync(server.process.wait)
        assert status == 128 + number
        assert len(told) == 2, "what is under way is still answered"
        assert all("call again with its id" in text for text in told)
        log = server.logged()
        assert "Traceback" not in log
        for trajectory in trajectories:
            record = await load(server.store, trajectory)
            assert record.outcome is None, "it waits for the next server"
            assert [s.error for s in record.steps] == ["stopped after 0 of 1 actions"]


@pytest.mark.long
async def test_a_server_without_work_ends_at_once(tmp_path: Path) -> None:
    """A host that only looks at the tools pays for nothing else.

    What waits at the end does so each time, so that one quick end is enough on a busy machine.
    """
    took: list[float] = []
    while len(took) < 20 and min(took, default=1.0) >= 1.0:
        async with raw_stdio(tmp_path, (FAULTY,)) as raw:
            await raw.hello()
            await raw.request("tools/list", {})
            began = time.monotonic()
            await raw.close_stdin()
            assert await raw.exit_status() == 0
            took.append(time.monotonic() - began)
        assert not raw.store.exists(), "nothing was started, so nothing is stored"
    assert min(took) < 1.0, took


@pytest.mark.long
async def test_a_session_of_a_server_that_is_gone_says_so(tmp_path: Path, gates: Gates) -> None:
    """After a restart, an ended session gives its receipt; one that cannot come back is lost."""
    gate = gates("restart")
    gate.open()
    gradings = {"gradings": str(tmp_path / "gradings"), "entered": gate.entered, "gate": gate.path}
    async with stdio_peer(tmp_path, (BOARD, FAULTY), era=MODERN) as peer:
        graded = await peer.start("gated", **gradings)
        await peer.ok("response", session=graded.session, answer="right")
        failed = await peer.start("raises_in_grading")
        await peer.error("response", session=failed.session, answer="x")
        lost = await peer.start("collect", marker="lost")
        await peer.ok("send_note", session=lost.session)
    async with stdio_peer(tmp_path, (BOARD, FAULTY), era=MODERN) as peer:
        again = await peer.ok("response", session=graded.session, answer="right")
        assert again.structured["reward"] == 1.0
        assert "was graded at" in await peer.error(
            "response", session=graded.session, answer="other"
        )
        assert (await peer.status(graded.session))["receipt"]["reward"] == 1.0
        for tool, more in (("step", {}), ("response", {"answer": "x"})):
            told = await peer.error(tool, session=failed.session, **more)
            assert "because grading failed" in told
            assert "THE-EXPECTED-ANSWER" not in told
            assert "faulty.py" not in told
        told = await peer.error("act", session=lost.session, type="type", text="y")
        assert told.startswith("This session was lost at ")
        assert (await peer.status(lost.session))["receipt"]["outcome"] == "lost"
    assert (tmp_path / "gradings").read_text() == "right\n"

"""What a Ctrl-C, or a command that does not even begin, leaves in a job: nothing of the agent."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from peers import ENVIRONMENTS
from runs import evaluation, finish, query
from waiting import wait_until

from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

posix = pytest.mark.skipif(os.name == "nt", reason="not on this machine: signals of POSIX")
PHASES = ("setup", "agent", "step", "grading")
SOURCE = str(ENVIRONMENTS / "phases.py")
ORACLE = ("--agent", "oracle", "--env", SOURCE, "--max-concurrent", "1")


def rows(folder: Path, phase: str) -> list[dict[str, Any]]:
    """Three tasks, of which the second waits in a phase and the oracle fails the third."""
    return [
        {
            "id": f"sum-{i}",
            "env": "phases",
            "template": "sum_up",
            "args": {
                "a": (3, 2, 0)[i],
                "b": i,
                "phase": phase if i == 1 else "none",
                "folder": str(folder),
            },
        }
        for i in range(3)
    ]


async def figures(store: Path) -> JobStatistics:
    """What the one job of a store amounts to."""
    ((job_id,),) = query(store, "SELECT id FROM jobs")
    opened = Store(str(store))
    try:
        job, tasks, runs = await opened.load_job_summary(job_id)
        return job_statistics([t.id for t in tasks], runs, group=job.group)
    finally:
        await opened.close()


def told(found: JobStatistics) -> dict[str, Any]:
    """The figures without ids and without tries that do not count."""
    dumped = found.model_dump(mode="json", exclude={"earlier_tries", "tasks"})
    counted = [(row.task, row.mean, row.graded, row.scored, row.passed) for row in found.tasks]
    return {**dumped, "counted": counted}


def interrupt_when_begun(folder: Path, phase: str, sent: signal.Signals) -> tuple[int, str]:
    """Run until the second task waits, then send a signal; return the status and what was said."""
    with evaluation(folder, rows(folder, phase), *ORACLE) as running:
        wait_until(lambda: running.process.poll() is not None or (folder / "begun").exists())
        assert running.process.poll() is None, running.printed
        running.process.send_signal(sent)
        printed = running.printed + running.process.communicate()[0]
        return running.process.returncode, printed


@pytest.mark.long
@posix
@pytest.mark.parametrize(
    "phase", [pytest.param(p, marks=[pytest.mark.stress] * (p != "setup")) for p in PHASES]
)
async def test_a_run_that_is_interrupted_and_resumed_is_as_one_that_was_not(
    tmp_path: Path, phase: str
) -> None:
    """In whatever phase: nothing stands against the agent, and the resumed job is the same."""
    interrupted, whole = tmp_path / "interrupted", tmp_path / "whole"
    interrupted.mkdir()
    whole.mkdir()
    with anyio.fail_after(170):
        status, printed = await anyio.to_thread.run_sync(
            interrupt_when_begun, interrupted, phase, signal.SIGINT, abandon_on_cancel=True
        )
        assert status == 130, printed
        found = await figures(interrupted / "store.sqlite3")
        assert found.outcomes["cancelled"] == found.outcomes["expired"] == 0, printed
        assert found.passes[0].pass_at_k is not None
        assert found.passes[0].pass_at_k.value == 1.0, "the first one passed, nothing else counts"
        (interrupted / "go").touch()
        ((job,),) = query(interrupted / "store.sqlite3", "SELECT id FROM jobs")
        status, printed = await finish(interrupted, None, "--resume", job)
        assert "graded" in printed
        (whole / "go").touch()
        status_of_whole, _ = await finish(whole, rows(whole, phase), *ORACLE)
        assert status == status_of_whole
    resumed = await figures(interrupted / "store.sqlite3")
    assert told(resumed) == told(await figures(whole / "store.sqlite3"))
    assert resumed.outcomes["graded"] == 3


def dying(folder: Path, *lines: str) -> tuple[str, str]:
    """An agent's command that does what the lines say."""
    (folder / "agent.py").write_text("\n".join(("import os, sys", *lines)))
    return "--agent-command", f"{sys.executable} agent.py"


def letters(number: int) -> list[dict[str, Any]]:
    """Tasks without a world."""
    return [{"id": f"word-{i}", "env": "letter_count", "template": "count"} for i in range(number)]


async def receipts(store: Path) -> Sequence[dict[str, Any]]:
    """The receipts of a store, in the order of their start."""
    found = query(store, "SELECT receipt FROM sessions ORDER BY started_at")
    return [json.loads(receipt) for (receipt,) in found]


@pytest.mark.long
async def test_a_command_that_dies_says_so_where_people_look(tmp_path: Path) -> None:
    """Its status and its last words: on the console, in the row, in the receipt."""
    agent = dying(
        tmp_path,
        "import json, urllib.request",
        "print('an early line')",
        "sys.stderr.write('KeyError: no model of that name\\n')",
        "sys.exit(7)",
    )
    status, printed = await finish(tmp_path, letters(1), *agent)
    assert status == 1
    said = "Its command ended with exit status 7 and said last: "
    assert printed.count(said) == 1, "as it ended; the table does not repeat it"
    assert "KeyError: no model of that name" in printed
    (receipt,) = await receipts(tmp_path / "store.sqlite3")
    assert "exit status 7" in receipt["error"]
    assert "KeyError: no model of that name" in receipt["error"]
    assert (receipt["outcome"], receipt["cause"]) == ("cancelled", "operator")
    assert "1 of 1 say nothing of the agent" in printed


CALLS = """
import json, os, urllib.request

HEADERS = {
    "Authorization": f"Bearer {os.environ['HUD_MCP_TOKEN']}",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def send(method, params, **beside):
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **beside}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(os.environ["HUD_MCP_URL"], body, HEADERS)
    ) as reply:
        HEADERS["mcp-session-id"] = reply.headers.get("mcp-session-id") or ""
        return reply.read()


def call(tool, arguments):
    client = {"name": "test", "version": "1"}
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    send("initialize", begin, id=1)
    known = HEADERS["mcp-session-id"]
    send("notifications/initialized", {})
    HEADERS["mcp-session-id"] = known
    print(send("tools/call", {"name": tool, "arguments": arguments}, id=2))
"""


async def test_a_command_that_has_seen_its_task_has_ended_its_own_run(tmp_path: Path) -> None:
    """Whatever it called, and however it was answered: in the first run of a job as in any."""
    calls = ["task_status", "step", "no_such_tool", "response"]
    (tmp_path / "calls.py").write_text(CALLS)
    agent = dying(
        tmp_path,
        "from calls import call",
        f"call({calls}[int(os.environ['HUD_MCP_TASK'][5:])], {{'nonsense': [1]}})",
        "sys.exit('I give up')",
    )
    status, printed = await finish(tmp_path, letters(len(calls)), *agent, "--max-concurrent", "1")
    assert status == 1
    assert "The job was stopped" not in printed, printed
    found = await receipts(tmp_path / "store.sqlite3")
    assert [(r["outcome"], r["cause"]) for r in found] == [("cancelled", "agent")] * len(calls)


@pytest.mark.stress
async def test_a_job_whose_first_runs_all_die_stops(tmp_path: Path) -> None:
    """Before it has used up its tasks; what died stands against nobody, and is run again."""
    agent = dying(tmp_path, "if not os.path.exists('mended'): sys.exit('no API key')")
    status, printed = await finish(tmp_path, letters(8), *agent, "--max-concurrent", "1")
    assert status == 1
    assert "The job was stopped: the agent's command died in each of its first 3 runs" in printed
    assert "no API key" in printed
    assert [r["cause"] for r in await receipts(tmp_path / "store.sqlite3")] == ["operator"] * 3
    (tmp_path / "mended").touch()
    ((job,),) = query(tmp_path / "store.sqlite3", "SELECT id FROM jobs")
    _, printed = await finish(tmp_path, None, "--resume", job)
    assert "The job was stopped" not in printed
    found = await figures(tmp_path / "store.sqlite3")
    assert (found.outcomes["cancelled"], found.outcomes["interrupted"]) == (8, 0)


@pytest.mark.stress
async def test_a_command_that_dies_once_it_has_lived_has_failed_its_task(tmp_path: Path) -> None:
    """From the first run that ended in order: the next deaths are the agent's result."""
    agent = dying(tmp_path, "if os.environ['HUD_MCP_TASK'] != 'word-0': os.kill(os.getpid(), 9)")
    status, printed = await finish(tmp_path, letters(5), *agent, "--max-concurrent", "1")
    assert status == 1
    assert "exit status 137" in printed
    found = await figures(tmp_path / "store.sqlite3")
    assert (found.outcomes["cancelled"], found.outcomes["interrupted"]) == (5, 0)
    assert [r["cause"] for r in await receipts(tmp_path / "store.sqlite3")] == ["agent"] * 5

"""Runs of a group share what the setup of their task made, and nothing that a run does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hud_mcp import evaluate
from hud_mcp.agents.agent import Agent
from hud_mcp.errors import SnapshotFailed
from hud_mcp.worlds.shell.world import ShellWorld

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

ENV = """
from hud_mcp import Environment
from hud_mcp.worlds.shell import Shell

env = Environment("bench", world=Shell({options}))


@env.function(use="setup")
async def stamp():
    \"\"\"Counts a call where no snapshot of a world has it.\"\"\"
    with open({count!r}, "a") as file:
        file.write("x")
"""

SLOW = "sleep 0.2; cat /proc/sys/kernel/random/uuid > stamp; mkdir d; ln -s ../stamp d/l"
"""A setup that is worth a snapshot, and makes something else each time that it runs."""

RESTORED = "setup was restored from the snapshot that traj-"
KEPT = "a snapshot after it is kept"
OWN = "setup is run by each run of the group"


async def writes_once(agent: Agent) -> str:
    """Tells what it found, and leaves a file; it fails where an earlier run has left one."""
    found = await agent.tool("run_command", command="ls -A; cat d/l; stat -c %a:%Y d; ls /tmp")
    await agent.tool(
        "run_command", command="test ! -e mine && echo honey > mine; echo changed > stamp"
    )
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an environment, and a store of its own."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


async def run_group(folder: Path, setup: Sequence[Any], *, options: str = "", **how: Any) -> Any:
    """Run a group of four on one task, and return the records of its runs."""
    (folder / "env.py").write_text(ENV.format(options=options, count=str(folder / "count")))
    row = {
        "id": "t",
        "env": "bench",
        "prompt": "Leave a file.",
        "setup": setup,
        "evaluate": [["file_contains", "mine", "honey"]],
    }
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    job = await evaluate(str(path), writes_once, **{"group": 4, "in_process": True} | how)
    return await job.load_trajectories()


def found(run: Any) -> str:
    """What the agent of a run saw before it did anything."""
    return next(str(step.actions[0]["text"]) for step in run.steps if step.kind == "response")


def told(runs: Sequence[Any], what: str) -> int:
    """How many of the runs' logs say something."""
    return sum(what in (run.logs or "") for run in runs)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [{"max_concurrent": 1}, {"max_concurrent": 4}])
async def test_setup_runs_once_for_a_group(folder: Path, how: dict[str, Any]) -> None:
    """Each run finds the one stamp, none finds a file of another, and each is graded on its own."""
    runs = await run_group(folder, [["run", SLOW]], **how)

    assert [run.reward for run in runs] == [1.0] * 4
    assert len({found(run) for run in runs}) == 1
    assert "stamp" in found(runs[0])
    assert "mine" not in found(runs[0])
    assert (told(runs, KEPT), told(runs, RESTORED)) == (1, 3)


@pytest.mark.long
async def test_setup_is_shared_in_a_server_of_its_own_too(folder: Path) -> None:
    """The server that a job starts keeps the snapshot, whatever seeds the runs have."""
    runs = await run_group(folder, [["run", SLOW]], in_process=False, seed=3)

    assert [run.reward for run in runs] == [1.0] * 4
    assert len({run.seed for run in runs}) == 4
    assert len({found(run) for run in runs}) == 1
    assert told(runs, RESTORED) == 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("setup", "options"),
    [
        ([["stamp"], ["run", SLOW]], ""),
        ([["run", SLOW]], "allow=['example.com']"),
        ([["run", SLOW]], "readonly={'/more': '/usr/share'}"),
    ],
    ids=["a function of the author's", "hosts", "more of the machine"],
)
async def test_setup_that_may_reach_further_runs_each_time(
    folder: Path, setup: list[Any], options: str
) -> None:
    """Where calls may change more than the world, each run makes them itself."""
    runs = await run_group(folder, setup, options=options, group=2)

    assert [run.reward for run in runs] == [1.0] * 2
    assert len({found(run) for run in runs}) == 2
    assert told(runs, RESTORED) == told(runs, KEPT) == 0
    if setup[0] == ["stamp"]:
        assert (folder / "count").read_text() == "xx"


@pytest.mark.long
@pytest.mark.parametrize(
    ("left", "why"),
    [("touch /tmp/more", "1 file outside of it"), ("(sleep 600 &)", "1 process that ran")],
)
async def test_setup_that_a_snapshot_lacks_a_part_of_runs_each_time(
    folder: Path, left: str, why: str
) -> None:
    """Files outside of the folder and processes are in no snapshot, so none is used."""
    runs = await run_group(folder, [["run", f"{SLOW}; {left}"]], group=2)

    assert [run.reward for run in runs] == [1.0] * 2
    assert len({found(run) for run in runs}) == 2
    assert told(runs, OWN) == told(runs, why) == 1
    assert told(runs, RESTORED) == 0


@pytest.mark.long
async def test_quick_setup_is_run_again(folder: Path) -> None:
    """A setup that takes as long as a restore is not worth a snapshot."""
    runs = await run_group(folder, [["write_file", "stamp", "here"]], group=2)

    assert [run.reward for run in runs] == [1.0] * 2
    assert told(runs, RESTORED) == 0


@pytest.mark.long
async def test_snapshot_that_cannot_be_taken_falls_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run runs the setup then, and the first one's log says why."""

    async def fail(_world: ShellWorld) -> bytes:
        raise SnapshotFailed("The disk is tired.")

    monkeypatch.setattr(ShellWorld, "snapshot_setup", fail)
    runs = await run_group(folder, [["run", SLOW]])

    assert [run.reward for run in runs] == [1.0] * 4
    assert len({found(run) for run in runs}) == 4
    assert told(runs, "The disk is tired.") == 1


@pytest.mark.long
async def test_snapshot_that_cannot_be_restored_falls_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged one costs a run its world, so another world is opened and set up."""
    take = ShellWorld.snapshot_setup

    async def damage(world: ShellWorld) -> bytes:
        return (await take(world))[:-9]

    monkeypatch.setattr(ShellWorld, "snapshot_setup", damage)
    runs = await run_group(folder, [["run", SLOW]])

    assert [run.reward for run in runs] == [1.0] * 4
    assert len({found(run) for run in runs}) == 4
    assert told(runs, "setup was not restored, so it is run: This snapshot") == 3


async def test_setup_that_fails_fails_each_run(folder: Path) -> None:
    """No run of a group is graded on a world that was not set up."""
    runs = await run_group(folder, [["run", f"{SLOW}; exit 3"]], group=2)

    assert [run.receipt.outcome for run in runs] == ["environment_failed"] * 2
    assert all("did not exit 0" in run.receipt.error for run in runs)

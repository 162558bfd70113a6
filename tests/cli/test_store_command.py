"""`hud-mcp store` tells what a store holds, and removes nothing without being told so."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from hud_mcp.cli import main
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

AT = datetime.now(UTC) - timedelta(days=100)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A store with one graded run of a job, 100 days old."""
    place = str(tmp_path / "store.sqlite3")
    anyio.run(_record, place)
    return place


async def _record(place: str) -> None:
    store = Store(place)
    task = Task(id="a", env="e", template="t")
    await store.add_job(Job(id="job-1", name="old", created_at=AT), [task])
    run = Trajectory(
        id="traj-1", job_id="job-1", environment="e", task=task, prompt="Do it.", started_at=AT
    )
    await store.add_session(run, secret_digest="s", principal=None)
    step = TrajectoryStep(index=0, kind="step", started_at=AT, ended_at=AT)
    await store.add_step("traj-1", step)
    end = Receipt(
        trajectory="traj-1",
        environment="e",
        task="a",
        template="t",
        outcome=Outcome.GRADED,
        reward=0.5,
        started_at=AT,
        ended_at=AT,
        reward_policy="hidden",
        package_version="0",
        task_digest=task.digest,
        environment_digest="0",
    )
    await store.end_session("traj-1", end)
    await store.close()


def call(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, arguments)


def test_info_says_the_same_in_words_and_as_json(place: str) -> None:
    """Counts, space, and who uses the store."""
    said = call("store", "info", "--store", place).output
    assert "sessions      1: 1 graded" in said
    assert "servers       0 alive" in said
    told = json.loads(call("store", "info", "--json", "--store", place).output)
    assert (told["jobs"], told["steps"], told["sessions"]) == (1, 1, {"graded": 1})


def test_nothing_is_removed_where_nobody_can_be_asked(place: str) -> None:
    """The error says how much it would be, and what to give."""
    told = call("store", "prune", "--older-than", "90d", "--store", place)
    assert told.exit_code == 2
    assert "would remove 1 step, 0 turns, 0 log lines of 1 trajectory" in told.output
    assert "--yes" in told.output
    assert "step 1" in call("trace", "traj-1", "--store", place).output


def test_commands_show_the_marker(place: str) -> None:
    """`trace`, `jobs` and exports; figures stay where grades are kept."""
    keep = ("--keep-grades", "--yes", "--store", place)
    told = call("store", "prune", "--older-than", "90d", *keep)
    assert told.exit_code == 0
    assert "Removed 1 step, 0 turns, 0 log lines of 1 trajectory" in told.output
    assert (
        "(older than 90d): 1 step; the grade stays"
        in call("trace", "traj-1", "--store", place).output
    )
    said = call("jobs", "job-1", "--store", place).output
    assert "mean reward  0.500" in said
    assert "of 1 runs were pruned on" in said
    told = call("jobs", "job-1", "--json", "--store", place)
    assert json.loads(told.output)["tasks"][0]["runs"][0]["pruned"]["rule"] == "older than 90d"
    out = Path(place).with_name("run.jsonl")
    assert (
        call("export", "job-1", "--to", "jsonl", "--out", str(out), "--store", place).exit_code == 0
    )
    assert json.loads(out.read_text())["pruned"]["steps"] == 1
    again = call("store", "prune", "--older-than", "90d", *keep)
    assert again.output == "Nothing ended so long ago, or is left to remove.\n"


def test_a_job_without_grades_says_so(place: str) -> None:
    """It stays in the list, with its name."""
    call("store", "prune", "--older-than", "12w", "--yes", "--store", place)
    assert "old" in call("jobs", "--store", place).output
    said = call("jobs", "job-1", "--store", place).output
    assert "The job was pruned on" in said
    assert "graded, pruned, not counted" in said
    told = call("regrade", "job-1", "--store", place)
    assert told.exit_code == 1
    assert "has no runs" in told.output


@pytest.mark.parametrize("age", ["90", "d", "-1d", "90 days", "9999999d"])
def test_an_age_needs_a_unit(place: str, age: str) -> None:
    """The error names what was given."""
    told = call("store", "prune", "--older-than", age, "--yes", "--store", place)
    assert told.exit_code == 2
    assert f"{age!r} is no age; give hours, days or weeks, as in 90d" in told.output


@pytest.mark.parametrize("command", ["info", "vacuum", "prune"])
def test_no_store_is_made_by_looking_after_it(tmp_path: Path, command: str) -> None:
    """The error names the place."""
    place = tmp_path / "none.sqlite3"
    options = ("--older-than", "1d", "--yes") if command == "prune" else ()
    told = call("store", command, *options, "--store", str(place))
    assert told.exit_code == 1
    assert "There is no store at" in told.output
    assert not place.exists()

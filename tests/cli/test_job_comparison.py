"""`hud-mcp jobs JOB JOB` compares jobs with the first one, task by task."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, End, record_job

from hud_mcp.cli import main
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

NAMES = ("lamp", "rug", "mug", "vase", "chair", "desk")
TASKS = [Task(id=name, env="shop", template="price") for name in NAMES]
HOSTILE = "[red]x[/red] \x1b]0;t\x07"
SMALL = Job(id="job-aa0001", name="a", agent="small", taskset="shop", created_at=AT)
LARGE = Job(id="job-bb0002", name="b", agent=HOSTILE, taskset="shop", created_at=AT)
TWICE = Job(id="job-cc0003", name="c", agent="twice", taskset="shop", created_at=AT, group=2)
PROOF = Job(id="job-dd0004", name="d", agent="check", metadata={"check": {}}, created_at=AT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two jobs of six tasks, one of two runs each, and a proof of tasks."""
    path = tmp_path / "store.sqlite3"
    small: list[End] = [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]
    large: list[End] = [1.0, 1.0, 0.0, 1.0, 0.0, Outcome.LOST]
    record_job(path, SMALL, TASKS, {n: [e] for n, e in zip(NAMES, small, strict=True)})
    record_job(path, LARGE, TASKS, {n: [e] for n, e in zip(NAMES, large, strict=True)})
    changed = [TASKS[0], TASKS[1].model_copy(update={"args": {"word": "rug"}})]
    record_job(path, TWICE, changed, {"lamp": [1.0, 0.0], "rug": [1.0, 1.0]})
    record_job(path, PROOF, TASKS[:1], {"lamp": [1.0]})
    return path


def run(path: Path, *arguments: str, columns: int = 180) -> Result:
    """Run the command in this process."""
    env = {"COLUMNS": str(columns)}
    return CliRunner(env=env).invoke(main, ["jobs", *arguments, "--store", str(path)])


def lines(result: Result) -> list[str]:
    """What was printed, with single spaces."""
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.output.splitlines()]


def test_a_job_is_compared_with_the_first_one(path: Path) -> None:
    """Over the five tasks that both have scored; names of others are obeyed nowhere."""
    shown = lines(run(path, "job-aa", "job-bb"))
    assert shown[0] == "job agent tasks pass rate difference interval up down p"
    assert shown[1] == "job-aa0001 small 6 0.500"
    assert shown[2].startswith(r"job-bb0002 [red]x[/red] \x1b]0;t\x07 5 0.400 → 0.600 +0.200 -0.")
    assert shown[2].endswith(" 2 1 1.000")
    assert shown[3].startswith("job-bb0002: mean reward 0.500 → 0.600, +0.100 (-0.")
    assert shown[3].endswith("over 5 tasks")


def test_the_tasks_that_flipped_are_named(path: Path) -> None:
    """From failed to passed and back, each with its reward; what stayed as it was is not."""
    shown = lines(run(path, "job-aa", "job-bb"))
    start = next(i for i, line in enumerate(shown) if line.startswith("task 1. small 2."))
    assert shown[start + 1 :] == [
        "lamp failed 0.000 passed 1.000 up",
        "rug failed 0.500 passed 1.000 up",
        "mug passed 1.000 failed 0.000 down",
    ]


def test_several_jobs_are_each_compared_with_the_first(path: Path) -> None:
    """Repeated runs of a task are one task, and a task that differs is in no difference."""
    shown = lines(run(path, SMALL.id, TWICE.id, LARGE.id))
    assert shown[2].startswith("job-cc0003 twice 1 0.000 → 0.500 +0.500 none: one side has 1 task")
    assert "lamp failed 0.000 1 of 2 passed up passed 1.000 up" in shown
    assert shown[-1] == "1 task differs between these jobs, so no difference counts it."


def test_json_has_every_task(path: Path) -> None:
    """Its results in order, and the figures unrounded."""
    found = json.loads(run(path, SMALL.id, LARGE.id, "--json").output)
    assert [job["id"] for job in found["jobs"]] == [SMALL.id, LARGE.id]
    assert found["jobs"][0]["difference"] is None
    assert found["jobs"][1]["difference"]["up"] == ["lamp", "rug"]
    assert [task["id"] for task in found["tasks"]] == list(NAMES)
    assert [each["passed"] for each in found["tasks"][0]["results"]] == [0, 1]
    assert found["tasks"][5]["results"][1]["outcomes"] == {"lost": 1}


def test_a_threshold_decides_what_flips(path: Path) -> None:
    """A reward of 0.5 is a pass from there on."""
    found = json.loads(run(path, SMALL.id, LARGE.id, "--json", "--threshold", "0.5").output)
    assert found["jobs"][1]["difference"]["up"] == ["lamp"]


def test_jobs_that_are_alike_have_no_flips(path: Path, tmp_path: Path) -> None:
    """That is said."""
    same = Job(id="job-ee0005", name="e", agent="same", created_at=AT)
    other = tmp_path / "other.sqlite3"
    for job in (SMALL, same):
        record_job(other, job, TASKS[:1], {"lamp": [1.0]})
    assert "No task flipped." in lines(run(other, SMALL.id, same.id))
    assert path.exists()


def test_what_cannot_be_compared_is_refused(path: Path) -> None:
    """A job twice, a proof of tasks, a job that is not there, and groups of two jobs."""
    for arguments, text in (
        ([SMALL.id, SMALL.id], "named twice"),
        ([SMALL.id, PROOF.id], "prove tasks"),
        ([SMALL.id, "job-none"], "job-none"),
        ([SMALL.id, LARGE.id, "--by", "set"], "--by needs one job"),
    ):
        result = run(path, *arguments)
        assert result.exit_code != 0
        assert text in result.output + str(result.exception), arguments


def test_a_narrow_terminal_breaks_no_id(path: Path) -> None:
    """A table that fits stays one; of another one, each row is an id and a line for the rest."""
    shown = run(path, SMALL.id, LARGE.id, columns=50)
    assert shown.exit_code == 0
    assert f"{LARGE.id}\n" in shown.output
    assert "\nlamp  failed 0.000" in shown.output
    assert "lamp\n  1. small " in run(path, SMALL.id, LARGE.id, columns=24).output

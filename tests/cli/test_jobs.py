"""`hud-mcp jobs` lists what was run, and shows what the runs of one job amount to."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, record_job, record_run

from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.cli import main
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

TASKS = [Task(id=i, env="shop", template="price") for i in ("lamp", "rug", "mug", "chair")]
OLD = Job(id="job-aaaa11", name="the old one", agent="nop", created_at=AT)
NEW = Job(
    id="job-aabb22",
    name="the new one",
    agent="oracle",
    taskset="shop",
    metadata={"model": "m-1", "large": 2**80},
    group=2,
    created_at=AT + timedelta(days=1),
)
HEADINGS = ["task", "reward", "outcome", "steps", "seconds", "trajectory"]
HOSTILE = "[red]x[/red] \x1b]0;t\x07 \u202e :smile: [/]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two jobs, of which one was resumed and is not whole."""
    path = tmp_path / "store.sqlite3"
    record_job(path, OLD, TASKS[:1], {"lamp": [0.5]})
    ends = {
        "lamp": [1.0, 0.25],
        "rug": [Outcome.LOST, 1.0, Outcome.CANCELLED],
        "mug": [Outcome.ENVIRONMENT_FAILED, None],
    }
    record_job(path, NEW, TASKS, ends)
    return path


def run(path: Path, *arguments: str, columns: int | None = 120) -> Result:
    """Run the command in this process; without columns, as in a pipe."""
    env = {"COLUMNS": None if columns is None else str(columns)}
    return CliRunner(env=env).invoke(main, ["jobs", *arguments, "--store", str(path)])


def words(result: Result) -> list[list[str]]:
    """What each line says."""
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.output.splitlines()]


def test_jobs_are_listed_with_the_newest_first(path: Path) -> None:
    """Each with its agent, its time, how far it is, its mean, and what failed beside it."""
    rows = words(run(path))
    assert rows[0] == ["job", "name", "agent", "begun", "(UTC)", "done", "mean", "infra"]
    assert rows[1] == [
        "job-aabb22",
        "the",
        "new",
        "one",
        "oracle",
        "2026-01-03",
        "03:04",
        "5/8,",
        "unplanned",
        "0.750",
        "1",
    ]
    assert rows[2] == [
        "job-aaaa11",
        "the",
        "old",
        "one",
        "nop",
        "2026-01-02",
        "03:04",
        "1/1,",
        "unplanned",
        "0.500",
    ]


def test_a_long_list_says_that_there_is_more(path: Path) -> None:
    """As many as were asked for."""
    shown = run(path, "--limit", "1").output
    assert "job-aabb22" in shown
    assert "job-aaaa11" not in shown
    assert "These are the newest 1; --limit shows more." in shown
    assert "--limit" not in run(path, "--limit", "2").output


def test_the_list_as_json_is_a_line_for_each_job(path: Path) -> None:
    """With the same figures, as numbers."""
    result = run(path, "--json")
    new, old = (json.loads(line) for line in result.output.splitlines())
    assert (new["id"], new["wanted"], new["ended"], new["group"]) == ("job-aabb22", 8, 5, 2)
    assert (new["mean"], new["infrastructure"], new["earlier_tries"]) == (0.75, 1, 1)
    assert new["outcomes"]["not_begun"] == 2
    assert (old["id"], old["mean"], old["damaged"]) == ("job-aaaa11", 0.5, 0)


def test_a_job_is_shown_with_its_figures_and_a_row_for_each_task(path: Path) -> None:
    """What counts, what is missing, and the earlier tries; by how its id begins."""
    result = run(path, "job-aab")
    rows = words(result)
    assert rows[0] == ["the", "new", "one"]
    assert "job-aabb22  agent oracle  shop  2026-01-03 03:04:05 UTC" in result.output
    assert "model: m-1" in result.output
    assert "over 3 graded of 8 runs (2 x 4 tasks)" in result.output
    assert ["environment_failed", "1", "infrastructure:"] in [row[:3] for row in rows]
    table = rows[rows.index(HEADINGS) + 1 :]
    assert [" ".join(row) for row in table[:9]] == [
        "lamp 1.000 graded 0 2.0 traj-aabb22-lamp-0",
        "0.250 graded 0 2.0 traj-aabb22-lamp-1",
        "rug 1.000 graded 0 2.0 traj-aabb22-rug-1",
        "cancelled 0 2.0 traj-aabb22-rug-2",
        "lost, an earlier try 0 2.0 traj-aabb22-rug-0",
        "mug environment_failed 0 2.0 traj-aabb22-mug-0",
        "unfinished 0 traj-aabb22-mug-1",
        "chair not_begun, 2 runs",
        f"`hud-mcp trace TRAJECTORY --store {path}` shows one.",
    ]


def test_a_job_as_json_has_the_figures_and_every_run(path: Path) -> None:
    """The statistics are read back as the values that they are."""
    result = run(path, "job-aabb22", "--json")
    (line,) = result.output.splitlines()
    whole = json.loads(line)
    assert Job.model_validate(whole["job"]) == NEW
    figures = JobStatistics.model_validate({**whole["statistics"], "tasks": []})
    assert figures.mean is not None
    assert (figures.mean.value, figures.mean.runs) == (0.75, 3)
    lamp, rug, _, chair = whole["tasks"]
    assert [r["reward"] for r in lamp["runs"]] == [1.0, 0.25]
    assert [r["outcome"] for r in rug["runs"]] == ["graded", "cancelled"]
    (earlier,) = rug["earlier"]
    assert (earlier["id"], earlier["outcome"], earlier["reward"]) == (
        "traj-aabb22-rug-0",
        "lost",
        None,
    )
    assert earlier["error"] == "lost, and this is why"
    assert (chair["runs"], chair["not_begun"]) == ([], 2)


def test_the_threshold_of_a_pass_can_be_chosen(path: Path) -> None:
    """For rewards that are fractions."""
    assert "pass@1       0.000" in run(path, "job-aaaa").output
    assert "pass@1       1.000" in run(path, "job-aaaa", "--threshold", "0.5").output


@pytest.mark.parametrize("threshold", ["nan", "inf"])
def test_a_threshold_that_nothing_reaches_is_refused(path: Path, threshold: str) -> None:
    """Every run would be shown as failed."""
    result = run(path, "job-aaaa11", "--threshold", threshold)
    assert result.exit_code == 2
    assert f"{threshold} is not a finite number." in result.stderr


def test_in_a_pipe_no_line_is_folded(path: Path) -> None:
    """So that it can be searched, also where names are long."""
    job = Job(id="job-long", name="long " * 60, created_at=AT)
    record_job(path, job, [Task(id="t" * 200, env="e", template="t")], {})
    listed = run(path, columns=None)
    (line,) = (li for li in listed.output.splitlines() if "job-long" in li)
    assert line.count("long") == 61
    assert "t" * 200 in run(path, "job-long", columns=None).output
    assert "t" * 200 not in run(path, "job-long", columns=80).output


def test_texts_of_others_are_shown_as_they_are(tmp_path: Path) -> None:
    """No markup, no escape and no emoji code in a name is obeyed."""
    path = tmp_path / "store.sqlite3"
    job = Job(id="job-1", name=HOSTILE, agent=HOSTILE, taskset=HOSTILE, metadata={HOSTILE: HOSTILE})
    record_job(path, job, [Task(id=HOSTILE, env="e", template="t")], {})
    for arguments in ([], ["job-1"]):
        shown = run(path, *arguments, columns=None).output
        assert "[red]x[/red] \\x1b]0;t\\x07 \\u202e :smile: [/]" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_damaged_row_is_named_and_hides_no_other(path: Path) -> None:
    """In the list by its job, in the job by itself."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET receipt = '{oh' WHERE id = 'traj-aabb22-lamp-1'")
        connection.commit()
    listed = run(path).output
    which = f"`hud-mcp jobs job-aabb22 --store {path}` says which."
    assert f"job-aabb22: 1 damaged row; {which}" in " ".join(listed.split())
    assert "0.500" in listed
    shown = run(path, "job-aabb22").output
    assert "The record is damaged: session traj-aabb22-lamp-1: receipt" in shown
    assert "over 2 graded of 8 runs" in shown


@pytest.mark.parametrize(
    ("row", "what"),
    [("'{oh'", "'{oh' is not JSON"), ("json_remove(row, '$.env')", "env: Field required")],
)
def test_a_damaged_row_of_a_task_is_named_and_hides_no_run(path: Path, row: str, what: str) -> None:
    """What was run is shown with its figures; a task whose id can be read still counts."""
    before = run(path, "job-aabb22").output
    assert "over 3 graded of 8 runs" in before
    with closing(sqlite3.connect(path)) as connection:
        of_job = "job_id = 'job-aabb22' AND position IN (2, 3)"
        connection.execute(f"UPDATE job_tasks SET row = {row} WHERE {of_job}")
        connection.commit()
    shown = run(path, "job-aabb22", columns=500)
    assert shown.exit_code == 0
    said = f"The record is damaged: task 2 of job-aabb22: {what}."
    assert said in shown.output
    assert shown.output.endswith("1 more of its tasks is damaged too.\n")
    assert ("over 3 graded of 8 runs" in shown.output) == ("env" in what)
    assert json.loads(run(path, "job-aabb22", "--json").output)["job"]["damage"].startswith(said)


def test_a_damaged_row_of_a_job_hides_no_run(path: Path) -> None:
    """Its runs are shown as far as it can be told without it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE jobs SET row = '{oh' WHERE id = 'job-aabb22'")
        connection.commit()
    shown = run(path, "job-aabb22").output
    assert "The record is damaged: job job-aabb22: '{oh' is not JSON." in shown
    assert "traj-aabb22-lamp-1" in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job-aaab11", "The store has no job 'job-aaab11'. Did you mean 'job-aaaa11'? `hud-mcp jo"),
        ("job-", "'job-' begins the ids of 2 jobs: job-aabb22, job-aaaa11. Give more characters."),
        ("zzz", "The store has no job 'zzz'. `hud-mcp jobs` lists them."),
    ],
)
def test_an_unknown_id_is_one_line_on_stderr_and_a_status(path: Path, text: str, said: str) -> None:
    """It names what is close, and how to see what there is."""
    result = run(path, text)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {said}")
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_where_nothing_was_recorded_nothing_is_made(tmp_path: Path) -> None:
    """A store that was named is not there; the user's own one is not there yet."""
    path = tmp_path / "none.sqlite3"
    for options in ([], ["--json"], ["job-1"]):
        result = run(path, *options)
        assert (result.exit_code, "There is no store at" in result.stderr) == (1, True)
        assert result.stdout == ""
    assert not path.exists()
    unnamed = {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "HUD_MCP_STORE": ""}
    for command in ("jobs", "trace"):
        done = CliRunner(env=unnamed).invoke(main, [command])
        assert (done.exit_code, "There are no" in done.output) == (0, True)


@pytest.mark.parametrize(
    ("statement", "lacks"),
    [
        ("DROP TABLE steps", "no table steps"),
        ("ALTER TABLE sessions DROP COLUMN owner", "no column sessions.owner"),
        ("DELETE FROM versions", "no version"),
    ],
)
def test_a_damaged_store_is_one_line_on_stderr_and_a_status(
    path: Path, statement: str, lacks: str
) -> None:
    """It says what is missing, and what to do."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP INDEX sessions_going_on")
        connection.execute(statement)
    result = run(path)
    assert result.exit_code == 1
    assert f"The store is damaged: it has {lacks}. Restore it from a copy" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_a_store_without_jobs_says_so(tmp_path: Path) -> None:
    """Sessions alone are no job."""
    record_run(tmp_path / "store.sqlite3", "traj-1", TASKS[0], 1.0)
    assert "There are no jobs; `hud-mcp eval` runs one." in run(tmp_path / "store.sqlite3").output


def test_the_command_says_what_it_does() -> None:
    """`--help` names the argument and every option."""
    shown = CliRunner().invoke(main, ["jobs", "--help"]).output
    for word in ("[JOB]", "--limit", "--threshold", "--by", "--json", "--store", "List jobs"):
        assert word in shown

"""`hud-mcp jobs JOB --by` shows a job's figures by set, difficulty and skill."""

import json
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, record_job

from hud_mcp.analysis.groups import Grouping
from hud_mcp.cli import main
from hud_mcp.record.job import Job, load_job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

HOSTILE = "[red]x[/red] \x1b]0;t\x07"


def row(name: str, difficulty: str, *skills: str) -> Task:
    """A row and what it says of itself."""
    metadata = {"difficulty": difficulty, "skills": list(skills)}
    return Task(id=name, env="shop", template="price", metadata=metadata)


TASKS = [
    row("rug", "hard", "sort"),
    row("lamp", "easy", "search", "sort"),
    row("mug", "easy", HOSTILE),
    row("vase", "hard"),
]
JOB = Job(id="job-aabb22", name="the new one", taskset="shop", created_at=AT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a job of four tasks, of which one was never started."""
    path = tmp_path / "store.sqlite3"
    record_job(path, JOB, TASKS, {"lamp": [1.0], "rug": [0.25], "mug": [Outcome.EXPIRED]})
    return path


def run(path: Path, *arguments: str, columns: int = 160) -> Result:
    """Run the command in this process."""
    env = {"COLUMNS": str(columns)}
    return CliRunner(env=env).invoke(main, ["jobs", *arguments, "--store", str(path)])


def table(result: Result, by: str) -> list[str]:
    """The lines of one table, below its head."""
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    start = lines.index(f"{by} tasks graded mean interval pass@1 others")
    return lines[start + 1 : lines.index("", start)]


def test_each_group_has_a_row_with_its_figures(path: Path) -> None:
    """From easy to hard; below the job's own figures, in place of its tasks."""
    shown = run(path, "job-aabb22", "--by", "difficulty")
    assert table(shown, "difficulty") == [
        "easy 2 1/2 1.000 0.025 to 1.000 0.500 1 expired",
        "hard 2 1/2 0.250 0.006 to 0.982 0.000 1 not_begun",
    ]
    assert "mean reward  0.625" in shown.output
    assert "traj-" not in shown.output


def test_several_groupings_are_shown_one_below_the_other(path: Path) -> None:
    """A run counts in each of its skills, and that is said; nobody's text is obeyed."""
    shown = run(path, "job-aabb22", "--by", "skill", "--by", "set", "--by", "split")
    assert table(shown, "skill") == [
        "sort 2 2/2 0.625 0.079 to 0.991 0.500",
        r"[red]x[/red] \x1b]0;t\x07 1 0/1 0.000 1 expired",
        "search 1 1/1 1.000 0.025 to 1.000 1.000",
        "no skill 1 0/1 1 not_begun",
        "A run counts in each skill that its task has.",
    ]
    assert table(shown, "set") == ["shop 4 2/4 0.625 0.079 to 0.991 0.333 1 expired, 1 not_begun"]
    assert "No row says its split." in shown.output
    assert "sort\n  tasks 2  graded 2/2" in run(path, JOB.id, "--by", "skill", columns=60).output


def test_json_and_python_have_the_same_numbers(path: Path) -> None:
    """The groupings are values, which `Job.statistics_by` computes too."""
    whole = json.loads(run(path, JOB.id, "--by", "skill", "--by", "difficulty", "--json").output)
    skill, difficulty = (Grouping.model_validate(each) for each in whole["by"])
    assert [group.name for group in difficulty.groups] == ["easy", "hard"]
    assert [row["task"] for row in whole["tasks"]] == ["rug", "lamp", "mug", "vase"]
    assert "by" not in json.loads(run(path, JOB.id, "--json").output)

    async def compute() -> Grouping:
        job = await load_job(JOB.id, store=path)
        return await job.statistics_by("skill")

    assert anyio.run(compute) == skill
    assert "A run counts in each skill that its task has." in str(skill)


def test_a_list_of_jobs_has_no_groups(path: Path) -> None:
    """The command says how it is meant."""
    result = run(path, "--by", "set")
    assert result.exit_code == 2
    assert "--by needs one job: name it, as in `hud-mcp jobs JOB --by set`." in result.stderr

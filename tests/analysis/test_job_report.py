"""One report of a job has the figures that each place shows of it."""

from test_groups import row, run

from hud_mcp.analysis.report import JobReport
from hud_mcp.plugins.view.web.jobs import job_data
from hud_mcp.plugins.view.web.trajectory import trajectory_row
from hud_mcp.record.job import Job

TASKS = [row("a", difficulty="easy"), row("b", difficulty="hard")]


A, B = TASKS
RUNS = [run(A, 0.0), run(A, 1.0), run(B, 0.5), run(B, 1.0, foreign=True)]
"""One task was tried twice, and the other has a foreign run too."""


def job(**fields: object) -> Job:
    """A job with a plan."""
    return Job.model_validate({"name": "A job", "planned": True, **fields})


def test_the_rows_are_the_figures_of_the_statistics() -> None:
    """Each estimate with its interval, then the counts that stand beside them."""
    found = JobReport(job(metadata={"agent_in_process": True}), TASKS, RUNS)
    rows = {each.name: each for each in found.rows}
    assert list(rows) == [
        "mean reward",
        "pass@1",
        "earlier tries, not counted",
        "foreign to the plan, not counted",
        "agent in the evaluation's own process",
    ]
    assert rows["mean reward"].estimate == found.statistics.mean
    assert rows["mean reward"].value == 0.75
    assert rows["foreign to the plan, not counted"].value == 1
    assert f"mean reward  {found.statistics.mean_text}\n" in str(found.statistics)


def test_the_page_has_the_rows_of_the_report() -> None:
    """In its order; its mean, outcomes and groups are those of the report too."""
    shown = job()
    found = JobReport(shown, TASKS, RUNS)
    rows = [trajectory_row(each, each.step_count) for each in RUNS]
    head = job_data(shown, TASKS, RUNS, rows)
    assert [each["name"] for each in head["statistics"]] == [each.name for each in found.rows]
    assert head["mean"] == rows[1]["reward"] * 0.75
    (by_difficulty,) = (each for each in head["groupings"] if each["by"] == "difficulty")
    (wanted,) = found.groupings(["difficulty"])
    assert [each["graded"] for each in by_difficulty["groups"]] == [
        each.graded for each in wanted.groups
    ]


def test_no_mean_is_made_of_probes() -> None:
    """A job of `hud-mcp check` has its statistics, and no rows that show them."""
    found = JobReport(job(agent="check", metadata={"check": {}}), TASKS, RUNS)
    assert (found.mean, found.rows) == (None, [])
    assert found.statistics.mean is not None

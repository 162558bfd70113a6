"""Which runs a job still needs, and with which seeds."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from tables import each_of

from hud_mcp.errors import HudMcpError
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.run import PlannedRun, derived_seed, plan_runs
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

A, B = (Task(id=name, env="e", template="t") for name in "ab")
FIXED = Task(id="fixed", env="e", template="t", seed=5)
NOW = utc_now()


def run(
    task: Task,
    outcome: Outcome | None = Outcome.GRADED,
    *,
    seed: int | None = None,
    number: int = 0,
) -> TrajectorySummary:
    """A run of a task that has begun."""
    receipt = outcome and Receipt(
        trajectory=f"traj-{task.id}-{number}",
        environment="e",
        task=task.id,
        template="t",
        outcome=outcome,
        reward=1.0 if outcome is Outcome.GRADED else None,
        started_at=NOW,
        ended_at=NOW,
        reward_policy="on_submit",
        package_version="0",
        task_digest="",
        environment_digest="",
    )
    return TrajectorySummary(
        id=f"traj-{task.id}-{number}", environment="e", task=task, seed=seed, receipt=receipt,
        started_at=NOW + timedelta(seconds=number),
    )  # fmt: skip


def names(planned: Sequence[PlannedRun]) -> list[tuple[str, int]]:
    """The task and the place of each."""
    return [(p.task.id, p.place) for p in planned]


def test_a_new_job_has_one_run_of_each_task_before_the_next_of_any() -> None:
    """What is cut short has seen every task."""
    planned = plan_runs([A, B], [], group=2, seed=None)
    assert names(planned) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert {p.seed for p in planned} == {None}


def test_seeds_follow_from_the_jobs_seed_the_task_and_the_place() -> None:
    """The same job again has the same seeds; every run has another one, of 32 bits."""
    planned = plan_runs([A, B, FIXED], [], group=3, seed=7)
    seeds = {(p.task.id, p.place): p.seed for p in planned}
    assert plan_runs([A, B, FIXED], [], group=3, seed=7) == planned
    assert seeds["a", 1] == derived_seed(7, "a", 1)
    own = [seed for (task, _), seed in seeds.items() if task != "fixed"]
    assert len(set(own)) == 6
    assert all(seed is not None and 0 <= seed < 2**32 for seed in own)
    assert {seeds["fixed", i] for i in range(3)} == {None}, "the row's own seed stays"
    assert plan_runs([A], [], group=1, seed=8)[0].seed != seeds["a", 0]


@each_of("outcome", [Outcome.LOST, Outcome.ENVIRONMENT_FAILED, None])
def test_what_infrastructure_failed_runs_again_and_what_an_agent_ended_does_not(
    outcome: Outcome | None,
) -> None:
    """Cancelled and expired runs say something of the agent; a failed grading may be its doing."""
    done = [run(A, Outcome.CANCELLED), run(B, outcome)]
    assert names(plan_runs([A, B], done, group=1, seed=None)) == [("b", 0)]
    for ended in (Outcome.EXPIRED, Outcome.GRADING_FAILED):
        assert plan_runs([A], [run(A, ended)], group=1, seed=None) == []


def test_the_very_runs_of_a_group_that_are_missing_run_again() -> None:
    """With a seed, a run is known by its own; so the group ends up as if nothing had failed."""
    seeds = [derived_seed(7, "a", place) for place in range(3)]
    begun = [
        run(A, seed=seeds[0], number=0),
        run(A, Outcome.LOST, seed=seeds[1], number=1),
        run(A, seed=seeds[2], number=2),
    ]
    planned = plan_runs([A], begun, group=3, seed=7)
    assert [(p.place, p.seed) for p in planned] == [(1, seeds[1])]


def test_without_a_seed_only_the_number_counts() -> None:
    """Runs that nothing tells apart stand for each other."""
    begun = [run(A, number=0), run(A, Outcome.LOST, number=1)]
    assert len(plan_runs([A], begun, group=3, seed=None)) == 2


def test_how_a_job_was_run_is_read_from_its_record() -> None:
    """Of a job that something else has recorded, the error says what can be resumed."""
    how = RunOptions(agent="nop", sources=("letter_count",), folder="/", seed=3)
    job = Job(name="j", metadata={"options": how.model_dump(mode="json")})
    assert RunOptions.of(job) == how
    with pytest.raises(HudMcpError, match=r"cannot be resumed.*Only jobs of `hud-mcp eval`"):
        RunOptions.of(Job(name="other"))

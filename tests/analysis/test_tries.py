"""Which tries of a task count, and which runs are still to be made."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tables import each_of
from tried import AT, BROKEN, End, Try, ids, tries

from hud_mcp.analysis.tries import choose_runs, is_infrastructure, outcome_class, plan
from hud_mcp.values.outcome import INTERRUPTED, Cause, Counts, Outcome, outcome_classes


@each_of("broken", BROKEN)
def test_a_newer_failure_of_infrastructure_does_not_replace_a_scored_run(
    broken: Outcome | None,
) -> None:
    """What says something of the agent counts, whenever it was."""
    runs = tries("a", 0.5, broken)
    assert choose_runs(runs, 1) == (runs[:1], runs[1:])


@each_of("ended", [0.0, 1.0, Outcome.CANCELLED, Outcome.EXPIRED])
def test_the_newest_runs_that_are_not_infrastructure_s_count(ended: End) -> None:
    """A wrong answer, a run given up and one out of time are the agent's own."""
    counted, earlier = choose_runs(tries("a", 1.0, Outcome.LOST, 0.0, ended, None), 2)
    assert (ids(counted), ids(earlier)) == (["a-2", "a-3"], ["a-0", "a-1", "a-4"])


def test_failures_of_infrastructure_fill_up_what_is_too_few() -> None:
    """The newest ones; they are evidence until a scored run stands in for them."""
    counted, earlier = choose_runs(tries("a", Outcome.LOST, 1.0, Outcome.LOST, None), 3)
    assert (ids(counted), ids(earlier)) == (["a-1", "a-2", "a-3"], ["a-0"])


def test_the_order_in_which_runs_are_given_does_not_matter() -> None:
    """Not even where two began at the same instant."""
    twins = [*tries("a", 0.0, 1.0), *tries("b", 0.5)]
    same = [Try(f"x{i}", "a", t.outcome, t.reward, AT) for i, t in enumerate(twins)]
    assert choose_runs(same, 2) == choose_runs(same[::-1], 2)
    assert ids(choose_runs(same, 2)[0]) == ["x1", "x2"]


@given(
    st.lists(st.sampled_from([0.0, 1.0, *Outcome, None]).filter(lambda e: e != "graded")),
    st.integers(1, 5),
)
def test_every_run_either_counts_or_is_an_earlier_try(ends: list[End], group: int) -> None:
    """None is lost and none is twice; no failure counts while a scored run does not."""
    runs = tries("a", *ends)
    counted, earlier = choose_runs(runs, group)
    assert sorted(ids([*counted, *earlier])) == sorted(ids(runs))
    assert len(counted) == min(group, len(runs))
    if any(is_infrastructure(run) for run in counted):
        assert all(is_infrastructure(run) for run in earlier)


def test_a_plan_is_what_is_missing_and_what_failed_for_infrastructure() -> None:
    """In the tasks' order; what is whole is left out, and so are runs of other tasks."""
    runs = [
        *tries("whole", 0.0, Outcome.CANCELLED),
        *tries("half", 1.0, Outcome.LOST, None),
        *tries("more", 1.0, 1.0, 1.0),
        *tries("other", 1.0),
    ]
    assert plan(["never", "whole", "half", "more"], runs, 2) == {"never": 2, "half": 1}
    assert plan(["whole"], runs, 2) == {}


@given(
    st.lists(st.sampled_from([0.0, 1.0, *Outcome, None]).filter(lambda e: e != "graded")),
    st.integers(1, 4),
)
def test_a_job_is_whole_once_its_plan_was_carried_out(ends: list[End], group: int) -> None:
    """The runs that a plan asks for leave none among those that count that is tried again."""
    runs = tries("a", *ends)
    missing = plan(["a"], runs, group).get("a", 0)
    runs += tries("a", *[0.5] * missing, first=len(runs))
    assert plan(["a"], runs, group) == {}
    assert not any(outcome_class(run).tried_again for run in choose_runs(runs, group)[0])


def test_infrastructure_is_what_says_nothing_of_the_agent() -> None:
    """Five classes of runs that have begun; what an agent causes is none of them."""
    assert {each for each in outcome_classes() if each.counts is Counts.NOWHERE} == {
        "environment_failed",
        "grading_failed",
        "lost",
        "interrupted",
        "unfinished",
        "not_begun",
    }


def test_what_says_nothing_of_the_agent_is_tried_again() -> None:
    """By retries and by a resumed job; but what an agent left is graded again, not made again."""
    again = {each for each in outcome_classes() if each.tried_again}
    assert again == {e for e in outcome_classes() if e.counts is Counts.NOWHERE} - {
        "grading_failed"
    }


@each_of("outcome", [Outcome.CANCELLED, Outcome.EXPIRED])
@each_of("cause", [Cause.OPERATOR, Cause.MACHINE])
def test_what_the_agent_did_not_end_is_not_held_against_it(outcome: Outcome, cause: Cause) -> None:
    """It is interrupted: in no rate, and the plan has it again; the agent's own counts."""
    (run,) = tries("a", outcome)
    stopped = replace(run, named=cause)
    assert (outcome_class(stopped), outcome_class(run)) == (INTERRUPTED, outcome.value)
    assert plan(["a"], [stopped], 1) == {"a": 1}
    assert plan(["a"], [run], 1) == {}

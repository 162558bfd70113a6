"""Reward by context: bins, splits, the gap, and how sure each is."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hud_mcp.analysis.generalisation import TRAIN, FeatureRewards, Generalisation, generalisation
from hud_mcp.analysis.statistics import job_statistics
from hud_mcp.loading.provenance import UnusedContexts
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.values import Receipt
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome

START = datetime(2026, 3, 1, tzinfo=UTC)


def run(
    context: dict[str, Any],
    reward: float | None,
    *,
    split: str | None = None,
    base: str | None = None,
    task: str | None = None,
    at: int = 0,
) -> TrajectorySummary:
    """One run in short; without a reward it was lost."""
    metadata = {k: v for k, v in (("split", split), ("base_task", base)) if v is not None}
    number = next(_NUMBERS)
    row = Task(id=task or f"task-{number}", env="e", template="t", metadata=metadata)
    receipt = Receipt(
        trajectory=f"tr-{number}", environment="e", task=row.id, template="t",
        outcome=Outcome.LOST if reward is None else Outcome.GRADED, reward=reward,
        reward_policy="on_submit", package_version="0", task_digest="0" * 64,
        environment_digest="0" * 64, started_at=START, ended_at=START,
    )  # fmt: skip
    return TrajectorySummary(
        id=f"tr-{number}", environment="e", task=row, context=context, receipt=receipt,
        started_at=START + timedelta(seconds=at), ended_at=START,
    )  # fmt: skip


_NUMBERS = iter(range(1_000_000))


def computed(runs: Sequence[TrajectorySummary], **options: Any) -> Generalisation:
    """What there is to say of some runs."""
    found = generalisation(runs, **options)
    assert found is not None
    return found


def bins(feature: FeatureRewards) -> list[tuple[str, bool, float | None, float | None]]:
    """Each bin's label, whether it is outside, and the means of training and of what was not."""
    found: list[tuple[str, bool, float | None, float | None]] = []
    for b in feature.bins:
        held = [split for split in b.rewards if split not in (TRAIN, "")]
        assert len(held) <= 1
        means = (b.rewards.get(TRAIN), b.rewards[held[0]] if held else None)
        train, held_out = (m and m.value for m in means)
        found.append((b.label, b.outside, train, held_out))
    return found


def plain(feature: FeatureRewards) -> list[tuple[str, bool, float]]:
    """The same where no row names a split."""
    return [(b.label, b.outside, b.rewards[""].value) for b in feature.bins]


def test_there_is_nothing_to_say_where_no_context_varies() -> None:
    """The default context alone makes no table."""
    assert generalisation([]) is None
    assert generalisation([run({"gravity": 9.8}, 1.0), run({"gravity": 9.8}, 0.0)]) is None


def test_text_and_flags_are_binned_by_value_and_constants_left_out() -> None:
    """True is not 1, and a feature that never varies has no table."""
    found = computed(
        [
            run({"locale": "de", "dark": True, "sides": 1, "gravity": 9.8}, 1.0),
            run({"locale": "en", "dark": False, "sides": 1, "gravity": 9.8}, 0.5),
            run({"locale": "de", "dark": False, "sides": 1, "gravity": 9.8}, 0.0),
        ]
    )
    assert [f.feature for f in found.features] == ["locale", "dark"]
    locale, dark = found.features
    assert plain(locale) == [("de", False, 0.5), ("en", False, 0.5)]
    assert plain(dark) == [("false", False, 0.25), ("true", False, 1.0)]
    assert found.gaps == ()


def test_few_numbers_have_bins_of_their_own_and_many_share_equal_widths() -> None:
    """Every run is in exactly one bin, and bins are in order."""
    few = computed([run({"width": w}, 1.0) for w in (390, 800, 1280)]).features[0]
    assert [b.label for b in few.bins] == ["390", "800", "1280"]
    source = random.Random(5)
    values = [source.uniform(0, 10) for _ in range(200)]
    many = computed([run({"x": v}, v / 10) for v in values]).features[0]
    assert len(many.bins) == 6
    means = [b.rewards[""] for b in many.bins]
    assert sum(mean.runs for mean in means) == 200
    edges = [(b.low, b.high) for b in many.bins]
    assert edges == sorted(edges)
    assert all(b.low <= b.at <= b.high for b in many.bins)  # type: ignore[operator]
    assert [mean.value for mean in means] == sorted(mean.value for mean in means)


def test_the_train_range_and_what_is_outside_of_it_are_apart() -> None:
    """A bin never mixes values inside the range with values outside, on either side."""
    found = computed(
        [
            *(run({"length": v}, 1.0, split="train") for v in (0.4, 0.5, 0.6)),
            run({"length": 0.5}, 0.8, split="test"),
            run({"length": 0.1}, 0.2, split="test-outside"),
            run({"length": 0.9}, 0.4, split="test-outside"),
        ]
    )
    (length,) = found.features
    assert (length.train_low, length.train_high) == (0.4, 0.6)
    assert bins(length) == [
        ("0.1", True, None, 0.2),
        ("0.4", False, 1.0, None),
        ("0.5", False, 1.0, 0.8),
        ("0.6", False, 1.0, None),
        ("0.9", True, None, 0.4),
    ]
    assert [s.split for s in found.splits] == ["train", "test", "test-outside"]
    assert {g.split: round(g.value, 9) for g in found.gaps} == {
        "test": 0.2,
        "test-outside": 0.7,
    }


def test_a_value_that_was_not_trained_on_is_outside() -> None:
    """Of text, whatever no training run has; those stand last."""
    found = computed(
        [
            run({"locale": "en"}, 1.0, split="train"),
            run({"locale": "ar"}, 0.0, split="test"),
            run({"locale": "en"}, 0.5, split="test"),
        ]
    )
    assert bins(found.features[0]) == [("en", False, 1.0, 0.5), ("ar", True, None, 0.0)]


def test_runs_without_a_reward_are_in_no_mean_and_are_counted() -> None:
    """A failure is never a reward of 0."""
    found = computed(
        [
            run({"x": 1}, 1.0, split="train"),
            run({"x": 2}, None, split="train"),
            run({"x": 2}, None, split="test"),
        ]
    )
    train, test = found.splits
    assert (train.mean and train.mean.value, train.ungraded) == (1.0, 1)
    assert (test.mean, test.ungraded) == (None, 1)
    assert found.gaps == ()
    assert bins(found.features[0]) == [("1", False, 1.0, None), ("2", False, None, None)]
    assert "none graded; 1 without a reward" in str(found)


def test_only_the_runs_that_count_are_used() -> None:
    """A run that was tried again is not counted twice; a group of two counts two."""
    runs = [
        run({"x": 1}, 0.0, task="a", at=1),
        run({"x": 1}, 1.0, task="a", at=2),
        run({"x": 2}, 1.0, task="b"),
    ]
    assert [mean for *_, mean in plain(computed(runs).features[0])] == [1.0, 1.0]
    assert [mean for *_, mean in plain(computed(runs, group=2).features[0])] == [0.5, 1]


def test_tasks_of_one_row_are_drawn_as_one() -> None:
    """Many contexts of few tasks do not make a figure surer than those tasks do."""
    source = random.Random(1)

    def spread_over(tasks: int, contexts: int, *, own: bool) -> float:
        runs: list[TrajectorySummary] = []
        for t in range(tasks):
            level = source.random()
            for c in range(contexts):
                base = None if own else f"t{t}"
                runs += [run({"x": c}, level, split="train", base=base)]
                runs += [run({"x": c}, level, split="test", base=base)]
        found = computed(runs)
        mean = found.splits[0].mean
        assert mean
        assert mean.low is not None
        assert mean.high is not None
        return mean.high - mean.low

    clustered = spread_over(8, 12, own=False)
    alone = spread_over(8, 12, own=True)
    assert clustered > 2 * alone
    assert clustered > 0.4


def test_contexts_of_one_task_are_drawn_each() -> None:
    """A set that varies nothing but the context is as sure as its contexts are many."""
    source = random.Random(4)

    def over(contexts: int) -> Generalisation:
        return computed(
            [
                run({"x": c}, level + source.uniform(-0.1, 0.1), split=split, base="pole")
                for split, level in (("train", 0.9), ("test", 0.5))
                for c in range(contexts)
            ]
        )

    widths: list[float] = []
    for contexts in (8, 80):
        found = over(contexts)
        (gap,) = found.gaps
        assert gap.low is not None
        assert gap.high is not None
        assert 0 < gap.low < gap.value < gap.high < 0.6
        assert gap.tasks == 2 * contexts
        assert found.splits[0].mean
        assert found.splits[0].mean.tasks == contexts
        widths.append(gap.high - gap.low)
    assert widths[0] > 2 * widths[1]


def test_the_gap_is_surer_than_its_means_where_the_same_tasks_are_in_both() -> None:
    """Drawn together, what makes a task hard cancels out."""
    source = random.Random(2)
    runs: list[TrajectorySummary] = []
    for t in range(60):
        level = source.uniform(0.2, 0.9)
        runs += [run({"x": 1}, level, split="train", base=f"t{t}")]
        runs += [run({"x": 2}, level - 0.1 + source.uniform(-0.02, 0.02), split="test",
                     base=f"t{t}")]  # fmt: skip
    found = computed(runs)
    (gap,) = found.gaps
    assert gap.value == pytest.approx(0.1, abs=0.01)
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < gap.value < gap.high
    # Less than where other tasks had been on the other side.
    apart = computed(
        [*(r for r in runs if r.task.metadata["split"] == "train"),
         *(run({"x": 2}, r.reward, split="test") for r in runs
           if r.task.metadata["split"] == "test")]
    ).gaps[0]  # fmt: skip
    assert apart.value == pytest.approx(gap.value)
    assert apart.low is not None
    assert apart.high is not None
    assert gap.high - gap.low < 0.7 * (apart.high - apart.low)
    assert (gap.tasks, apart.tasks) == (60, 120)


def test_it_is_the_same_again_and_survives_json() -> None:
    """To the last bit, and whole."""
    source = random.Random(3)
    runs = [
        run({"x": source.random(), "l": source.choice("ab")}, source.random(),
            split=source.choice(["train", "test"]))
        for _ in range(60)
    ]  # fmt: skip
    found = computed(runs)
    assert computed(runs) == found
    assert Generalisation.model_validate_json(found.model_dump_json()) == found


def test_values_that_no_axis_has_are_text() -> None:
    """A record may hold anything; a table of it is made all the same."""
    wild = [float("inf"), float("nan"), 10**400, "x" * 3]
    found = computed([run({"x": v, "y": [1], "z": i}, 1.0) for i, v in enumerate(wild)])
    assert [f.feature for f in found.features] == ["x", "z"]
    assert not found.features[0].numeric
    assert len(str(found).splitlines()) > 5


def test_more_texts_than_can_be_shown_are_counted() -> None:
    """The ones with the most runs are kept."""
    runs = [run({"id": f"v{i}"}, 1.0) for i in range(40)] + [run({"id": "v39"}, 1.0)]
    (feature,) = computed(runs).features
    assert len(feature.bins) == 24
    assert feature.left_out == 16
    assert "v39" in {b.label for b in feature.bins}


def test_the_text_says_the_range_the_gap_and_each_bin() -> None:
    """As a terminal shows it."""
    runs = [run({"length": v}, v, split="train", base="a") for v in (0.4, 0.6)]
    runs += [run({"length": v}, v, split="train", base="b") for v in (0.5, 0.6)]
    runs += [run({"length": 0.9}, 0.1, split="test", base=b) for b in "ab"]
    text = str(computed(runs)).splitlines()
    assert text[0] == "train                 0.525 (95%: 0.082 to 0.925) over 4 graded"
    assert text[1] == "test                  0.100 (95%: 0.015 to 0.858) over 2 graded"
    few = "no interval: one side has 2 tasks; 5 are needed"
    assert text[2] == f"gap to test           +0.425 ({few})"
    assert text[4] == "length, trained on 0.4 to 0.6"
    assert " ".join(text[5].split()) == "0.4 train 0.400 [0.01 to 0.99] n=1 test -"
    assert text[-1].endswith("outside")
    one = [run({"length": v}, v, split=s) for v, s in ((0.5, "train"), (0.9, "test"))]
    assert "length, trained on 0.5" in str(computed(one)).splitlines()


# Runs that were given up, splits that are kept apart, contexts that nothing used.


def ended(outcome: Outcome, split: str, *, context: int = 1, cause: Cause | None = None) -> Any:
    """A run that came to its end without a reward."""
    found = run({"x": context}, 0.0, split=split)
    assert found.receipt
    changes = {"outcome": outcome, "reward": None, "cause": cause}
    return found.model_copy(update={"receipt": found.receipt.model_copy(update=changes)})


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.EXPIRED])
def test_a_run_that_the_agent_gave_up_is_not_left_out_of_the_gap(outcome: Outcome) -> None:
    """Half of what was held out is given up: the gap is a half, not none at all."""
    runs = [run({"x": i}, 1.0, split="train") for i in range(6)]
    runs += [run({"x": 9}, 1.0, split="test") for _ in range(3)]
    runs += [ended(outcome, "test", context=9) for _ in range(3)]
    found = computed(runs)
    (gap,) = found.gaps
    test = found.splits[1]
    assert gap.value == 0.5
    assert gap.low is not None
    assert gap.low <= 0.5
    assert test.mean
    assert (test.mean.value, test.mean.runs, test.given_up, test.ungraded) == (0.5, 6, 3, 0)
    assert found.features[0].bins[-1].rewards["test"].value == 0.5
    assert "over 3 graded and 3 given up, as 0" in str(found).splitlines()[1]
    # As in pass@1 of the same runs.
    held = [r for r in runs if r.task.metadata["split"] == "test"]
    pass_at_1 = job_statistics([], held).passes[0].pass_at_k
    assert pass_at_1
    assert (pass_at_1.value, pass_at_1.low, pass_at_1.high) == pytest.approx(
        (test.mean.value, test.mean.low, test.mean.high)
    )


@pytest.mark.parametrize("cause", [Cause.OPERATOR, Cause.MACHINE])
def test_a_run_that_others_ended_is_in_no_gap(cause: Cause) -> None:
    """It says nothing of the agent, and is counted as without a reward."""
    runs = [run({"x": i}, 1.0, split=s) for i in range(6) for s in ("train", "test")]
    runs += [ended(Outcome.CANCELLED, "test", cause=cause) for _ in range(3)]
    found = computed(runs)
    assert found.gaps[0].value == 0
    assert (found.splits[1].given_up, found.splits[1].ungraded) == (0, 3)


def test_without_a_least_reward_a_gap_with_runs_given_up_is_not_given() -> None:
    """Of rewards such as -200, 0 would be the best one; the gap is none, and says why."""
    runs = [run({"x": i}, -200.0 + i, split=s) for i in range(6) for s in ("train", "test")]
    assert computed(runs).gaps[0].reason == "rewards lie outside 0 to 1"
    found = computed([*runs, ended(Outcome.CANCELLED, "test")])
    (gap,) = found.gaps
    assert (gap.value, gap.low, gap.high) == (None, None, None)
    why = "none: 1 run was given up, and no reward is known as the least"
    assert f"gap to test           {why}" in str(found).splitlines()
    assert (found.splits[1].given_up, found.splits[1].ungraded) == (0, 1)


def test_no_two_splits_share_a_mean() -> None:
    """What was tested inside is never put together with what was tested outside."""
    runs = [
        *(run({"x": x}, 1.0, split="train") for x in (1, 2, 3)),
        *(run({"x": 2}, r, split="test") for r in (0.8, 1.0)),
        run({"x": 2}, 0.0, split="test-outside"),
        run({"x": 2}, 0.5),
    ]
    found = computed(runs)
    means = {split: e.value for split, e in found.features[0].bins[1].rewards.items()}
    assert means == {"train": 1.0, "test": 0.9, "test-outside": 0.0, "": 0.5}
    assert [gap.split for gap in found.gaps] == ["test", "test-outside"]
    (row,) = (line for line in str(found).splitlines() if line.strip().startswith("2 "))
    names = ("train 1.000", "test 0.900", "test-outside 0.000", "no split 0.500")
    assert all(name in row for name in names)
    # The same where nothing was trained on.
    untrained = [r for r in runs if r.task.metadata.get("split") != "train"]
    alone = computed([*untrained, run({"x": 7}, 0.25, split="test")])
    means = {split: e.value for split, e in alone.features[0].bins[0].rewards.items()}
    assert means == {"test": 0.9, "test-outside": 0.0, "": 0.5}
    assert alone.gaps == ()


def test_a_gap_against_one_run_has_no_interval() -> None:
    """However many runs the other side has."""
    runs = [run({"x": i}, 1.0, split="train") for i in range(50)]
    (gap,) = computed([*runs, run({"x": 1}, 0.0, split="test")]).gaps
    assert (gap.value, gap.low, gap.high) == (1.0, None, None)
    assert gap.reason == "one side has 1 task; 5 are needed"


def test_contexts_that_no_run_used_are_named() -> None:
    """Those that no row got, and those of rows that never began."""

    def row(name: str) -> Task:
        return Task(id=f"t@{name}", env="e", template="t",
                    metadata={"context": name, "base_task": "t"})  # fmt: skip

    began = run({"x": 1}, 1.0, task="t@a")
    began = began.model_copy(update={"task": row("a")})
    assert generalisation([began], tasks=[row("a")]) is None
    rest = UnusedContexts(count=40, names=tuple(f"c{i}" for i in range(40)))
    found = generalisation([began], tasks=[row("a"), row("b")], unused=rest)
    assert found
    assert (found.unused[:2], found.unused_count) == (("b", "c0"), 41)
    (line,) = (text for text in str(found).splitlines() if text.startswith("contexts that"))
    assert line.startswith("contexts that no run used: b, c0, c1, ")
    assert line.endswith(" and 29 more")
    assert Generalisation.model_validate_json(found.model_dump_json()) == found

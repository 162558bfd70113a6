"""Parts are waited for at once, and one that fails ends the others."""

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import GraderFailed
from hud_mcp.graders import (
    BashGrader,
    EvaluationResult,
    Grader,
    SubScore,
    combine,
    combine_all,
    combine_any,
)

pytestmark = pytest.mark.anyio


class Length(Grader):
    """An author's grader."""

    name = "length"

    @classmethod
    async def compute_score(cls, answer: str = "", target: int = 3, **kwargs: Any) -> SubScore:
        """Whether an answer is long enough."""
        value = float(len(answer) >= target)
        return SubScore(name=cls.name, value=value, info={"chars": len(answer)})


class Plain(Grader):
    """One that returns what HUD's older graders did."""

    gives: Any = 0.25

    @classmethod
    async def compute_score(cls, **kwargs: Any) -> Any:
        """Whatever the test wants."""
        return cls.gives


async def test_a_grader_of_an_author_s_own_gives_a_part() -> None:
    """Its name and weight are the caller's, its info has what it was called with."""
    part = await Length.grade(weight=0.5, answer="abcd", target=4)
    assert (part.name, part.value, part.weight) == ("length", 1.0, 0.5)
    assert part.info == {"chars": 4, "_parameters": {"answer": "abcd", "target": 4}}
    assert (await Length.grade(weight=1, name="long", answer="")).name == "long"


@pytest.mark.parametrize(
    ("gives", "value", "info"),
    [(1, 1.0, {}), (True, 1.0, {}), (0.25, 0.25, {}), ((0.5, {"a": 1}), 0.5, {"a": 1})],
)
async def test_a_grader_may_return_a_number_or_a_pair(
    monkeypatch: pytest.MonkeyPatch, gives: Any, value: float, info: dict[str, Any]
) -> None:
    """As HUD coerces them."""
    monkeypatch.setattr(Plain, "gives", gives)
    part = await Plain.grade(weight=1)
    assert (part.value, part.info) == (value, {**info, "_parameters": {}})


@pytest.mark.parametrize("gives", [None, "1", (1, 2, 3), (1, "info"), {"value": 1}])
async def test_what_is_no_score_is_refused(monkeypatch: pytest.MonkeyPatch, gives: Any) -> None:
    """It is not taken for 0."""
    monkeypatch.setattr(Plain, "gives", gives)
    with pytest.raises(TypeError, match="returned no score; return a SubScore"):
        await Plain.grade(weight=1)


async def test_a_value_above_1_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is a share."""
    monkeypatch.setattr(Plain, "gives", 1.5)
    with pytest.raises(ValueError, match="less than or equal to 1"):
        await Plain.grade(weight=1)


async def test_a_long_parameter_is_cut_and_an_odd_one_is_shown() -> None:
    """A record does not grow with the answer, and nothing that is not JSON breaks it."""
    part = await Length.grade(weight=1, answer="x" * 5_000, other=object(), bad=b"\xff")
    kept = part.info["_parameters"]
    assert len(kept["answer"]) < 2_100
    assert "object object" in kept["other"]


async def test_all_parts_right_are_exactly_1() -> None:
    """No binary fraction keeps a perfect run below full success."""
    for weights in ([0.1] * 3, [0.3, 0.3, 0.4], [1 / 3] * 3, [0.7, 0.1, 0.2]):
        parts = [SubScore(name=str(i), value=1, weight=w) for i, w in enumerate(weights)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert (await combine(*parts)).reward == 1.0


async def test_an_author_is_told_of_weights_that_do_not_sum_to_1() -> None:
    """They are scaled, and that may not be what was meant."""
    parts = [SubScore(name=n, value=1, weight=0.6) for n in "ab"]
    with pytest.warns(UserWarning, match=r"weights sum to 1\.2, not to 1"):
        result = await combine(*parts)
    assert [p.weight for p in result.subscores or ()] == [0.5, 0.5]


async def test_parts_are_waited_for_at_once() -> None:
    """Each waits for the other, so that one after the other would never end."""
    here, there = anyio.Event(), anyio.Event()

    async def one() -> SubScore:
        here.set()
        await there.wait()
        return SubScore(name="one", value=1, weight=0.5)

    async def other() -> SubScore:
        there.set()
        await here.wait()
        return SubScore(name="other", value=0, weight=0.5)

    with anyio.fail_after(PATIENCE_S):
        result = await combine(one(), other())
    assert [p.name for p in result.subscores or ()] == ["one", "other"]
    assert result.reward == 0.5


async def test_a_tree_keeps_its_branches() -> None:
    """A combination of combinations has them as children, in order, with names of their own."""
    a, b = SubScore(name="a", value=1), SubScore(name="a", value=0)
    tree = combine_all(0.5, [combine_any(1, [a, b]), SubScore(name="c", value=0.5)])
    result = await combine(tree, SubScore(name="d", value=1, weight=0.5))
    assert result.reward == 0.75
    assert result.subscores is not None
    inner = result.subscores[0].children
    assert [c.name for c in inner] == ["any", "c"]
    assert [c.name for c in inner[0].children] == ["a-1", "a-2"]


@pytest.mark.parametrize("failure", [KeyError("x"), SystemExit(3), GraderFailed("no bash")])
async def test_a_part_that_raises_ends_the_others_and_is_raised_itself(
    failure: BaseException,
) -> None:
    """No group around it, and nothing of the others goes on."""
    ended = anyio.Event()
    began = anyio.Event()

    async def slow() -> SubScore:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async def fail() -> SubScore:
        await began.wait()
        raise failure

    with anyio.fail_after(PATIENCE_S), pytest.raises(type(failure)):
        await combine(slow(), fail())
    assert ended.is_set()


async def test_a_part_that_was_never_begun_is_closed() -> None:
    """Python would warn of it, in the middle of somebody else's run."""

    async def part() -> SubScore:
        return SubScore(name="a", value=1)

    async def fail() -> SubScore:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await combine(fail(), part(), part())
    wrong: Any = 0.5
    with pytest.raises(TypeError, match=r"takes subscores and awaitables of them, got 0\.5"):
        await combine(part(), wrong)
    forgotten: Any = part()
    with pytest.raises(TypeError, match="got coroutine; await graders first"):
        combine_all(1, [forgotten])


async def test_a_part_that_gives_no_part_is_refused() -> None:
    """A number that was awaited is no measurement with a name."""

    async def number() -> Any:
        return 1.0

    with pytest.raises(TypeError, match=r"gave 1\.0; a grader gives a SubScore"):
        await combine(number())


async def test_a_part_that_something_else_cancels_has_no_score() -> None:
    """It is neither 0 nor the end of the caller."""

    async def cancelled() -> SubScore:
        raise asyncio.CancelledError

    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(GraderFailed, match="cancelled from outside"),
    ):
        await combine(cancelled(), SubScore(name="a", value=1))


async def test_a_combination_that_is_cancelled_ends_its_parts() -> None:
    """A bound on grading holds for everything that grades."""
    ended = anyio.Event()

    async def slow() -> SubScore:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    with anyio.move_on_after(0.05):
        await combine(slow())
    assert ended.is_set()


def test_an_interpreter_ends_although_a_grader_failed_beside_a_command(tmp_path: Any) -> None:
    """HUD's hangs at its exit then; here the command is killed and the process ends."""
    program = """
import asyncio
from hud_mcp.graders import BashGrader, combine
async def fail():
    raise KeyError("the failure")
async def main():
    await combine(*(BashGrader.grade(command="sleep 300") for _ in range(5)), fail())
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip().endswith("KeyError: 'the failure'")
    assert "never awaited" not in done.stderr
    assert "ResourceWarning" not in done.stderr


@pytest.mark.long
async def test_many_combinations_with_commands_go_on_side_by_side() -> None:
    """Thirty at once, each with its own output."""

    async def one(number: int) -> float:
        command = f"test $(echo {number}) -eq {number} && test {number} -lt 15"
        parts: list[Awaitable[SubScore]] = [BashGrader.grade(weight=1.0, command=command)]
        return (await combine(*parts)).reward

    with anyio.fail_after(PATIENCE_S):
        rewards = await asyncio.gather(*(one(i) for i in range(30)))
    assert rewards == [1.0] * 15 + [0.0] * 15


def test_a_result_is_built_and_changed_as_hud_s_is() -> None:
    """Its fields have HUD's defaults, it may be changed, and keeps what it does not know."""
    result = EvaluationResult.from_float(0.5)
    assert (result.reward, result.done, result.isError, result.subscores) == (
        0.5,
        True,
        False,
        None,
    )
    result.content, result.info["seen"] = "Half.", 1
    more = EvaluationResult.model_validate({"reward": 1, "is_error": True, "extra": 2})
    assert more.is_error
    assert more.model_extra == {"extra": 2}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([("a", 0.5, 2.0)], "sum to 2, not to 1"),
        ([("a", 1, 0.5), ("a", 1, 0.5)], "named 'a'"),
        ([("a", 0, 1.0)], "sum to 0, and the reward is 1"),
    ],
)
def test_an_author_is_told_of_a_result_that_does_not_add_up(parts: list[Any], said: str) -> None:
    """As HUD warns of it."""
    scores = [SubScore(name=n, value=v, weight=w) for n, v, w in parts]
    with pytest.warns(UserWarning, match=said):
        EvaluationResult(reward=1.0, subscores=scores)

"""reasoning-gym's generators draw rows by a seed, and its verifiers score in their own process."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from hud_mcp import ReasoningGymGrader, load_taskset
from hud_mcp.errors import GraderFailed, InvalidTask, NotInstalled

pytestmark = pytest.mark.anyio

HERE = find_spec("reasoning_gym") is not None


class WithoutIt:
    """Finds what is installed, but for reasoning-gym."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _: object = None
    ) -> ModuleSpec | None:
        """As Python's own finder does."""
        return None if name == "reasoning_gym" else PathFinder.find_spec(name, path)


@pytest.mark.long
async def test_without_the_package_one_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the extra's name."""
    finders = [WithoutIt if each is PathFinder else each for each in sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.delitem(sys.modules, "reasoning_gym", raising=False)
    with pytest.raises(NotInstalled, match=r"pip install 'hud-mcp\[reasoning\]'"):
        await load_taskset("ReasoningGym-leg_counting")


@pytest.mark.skipif(not HERE, reason="reasoning-gym is not installed")
@pytest.mark.parametrize("name", ["leg_counting", "word_ladder"])
async def test_a_question_is_the_same_each_time_and_its_reference_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also of a generator that follows the order of sets, which is pinned."""
    monkeypatch.chdir(tmp_path)
    with anyio.fail_after(300):
        first = await load_taskset(f"ReasoningGym-{name}", seed=7, size=3)
        again = await load_taskset(f"reasoninggym-{name}", seed=7, size=3)
        assert [task.prompt for task in again] == [task.prompt for task in first]
        other = await load_taskset(f"ReasoningGym-{name}", seed=8, size=3)
        assert other[0].prompt != first[0].prompt
        question, drawn = first[1].evaluate[0].args
        gold = first[1].metadata["gold"]["answer"]
        right = await ReasoningGymGrader.grade(answer=gold, question=question, drawn=drawn)
        wrong = await ReasoningGymGrader.grade(answer="no", question=question, drawn=drawn)
        assert right.value == 1.0
        assert wrong.value < 0.1
        with pytest.raises(GraderFailed, match="draws another question now"):
            await ReasoningGymGrader.grade(answer=gold, question="Other?", drawn=drawn)


@pytest.mark.skipif(not HERE, reason="reasoning-gym is not installed")
async def test_an_answer_that_the_verifier_cannot_read_is_wrong_and_no_failure() -> None:
    """Where it reads its own reference; a generator that is not there is named."""
    with anyio.fail_after(300):
        (task,) = await load_taskset("ReasoningGym-prime_factorization", size=1)
        question, drawn = task.evaluate[0].args
        junk = await ReasoningGymGrader.grade(answer="banana", question=question, drawn=drawn)
        assert junk.value == 0.0
        with pytest.raises(InvalidTask, match=r"no generator 'leg_cuonting'.*leg_counting"):
            await load_taskset("ReasoningGym-leg_cuonting")

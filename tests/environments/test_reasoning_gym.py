"""reasoning-gym's generators draw rows by a seed, and its verifiers score in their own process."""

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import ReasoningGymGrader, load_taskset
from hud_mcp.errors import GraderFailed, InvalidTask, NotInstalled
from hud_mcp.plugins.sets.reasoning import (
    FORMULAS,
    LITERALS,
    NO_REFERENCE,
    PINNED,
    REFUSED,
    is_program,
    process_command,
    process_environment,
)

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


@pytest.mark.long
@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
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
        with pytest.raises(GraderFailed, match="generates another question"):
            await ReasoningGymGrader.grade(answer=gold, question="Other?", drawn=drawn)


TAKES = "__import__('os').system('touch {0}')"
PROGRAMS = (
    TAKES, "[" + TAKES + "]", "(24, " + TAKES + ")", "1+" + TAKES, "[x for x in [" + TAKES + "]]",
    "x if " + TAKES + " else y", "{1: " + TAKES + "}", "(lambda: " + TAKES + ")()",
)  # fmt: skip


@each_of("dataset", sorted(LITERALS | FORMULAS))
@each_of("program", PROGRAMS)
def test_a_program_is_seen_before_a_verifier_would_run_it(dataset: str, program: str) -> None:
    """Also where it stands in a list, a condition or a call of a call."""
    assert is_program(dataset, program.replace("{0}", "x"))


@each_of(
    ("dataset", "answer", "program"),
    [
        ("countdown", "(3 + 4) * 5 - 2/1", False),
        ("countdown", "eval (x)", True),
        ("countdown", "(eval)(x)", True),
        ("countdown", "x.__class__", True),
        ("countdown", "x . real", True),
        ("countdown", "x['a']", True),
        ("countdown", "\uff45val(1)", True),
        ("countdown", "1.5 + 2.", False),
        ("intermediate_integration", "-x**2*cos(3*x)/3 + log(x + 1) + C", False),
        ("polynomial_multiplication", "2*x**3 - 4*x^2 + 1", False),
        ("spiral_matrix", "1 2 3", False),
        ("spiral_matrix", "[1, -2, 3]", False),
        ("spiral_matrix", "1 -2", False),
        ("spiral_matrix", "[0] * 10**12", True),
        ("string_insertion", "ABCDE", False),
        ("string_insertion", "['A', 'B']", False),
        ("string_insertion", "''.join('AB')", True),
        ("n_queens", "_ Q\nQ _", False),
        ("leg_counting", "f(x)", False),
    ],
)
def test_what_is_an_answer_is_no_program(dataset: str, answer: str, *, program: bool) -> None:
    """Formulas, lists and texts as verifiers read them; other verifiers evaluate nothing."""
    assert is_program(dataset, answer) is program


@pytest.mark.long
@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
async def test_no_answer_runs_on_the_graders_machine(tmp_path: Path) -> None:
    """A verifier that evaluates answers is not handed a program: it gets 0, and touches nothing."""
    made = tmp_path / "made"
    with anyio.fail_after(300):
        (task,) = await load_taskset("ReasoningGym-countdown", size=1)
        question, drawn = task.evaluate[0].args
        gold = task.metadata["gold"]["answer"]
        graded = await ReasoningGymGrader.grade(
            answer=TAKES.format(made), question=question, drawn=drawn
        )
        right = await ReasoningGymGrader.grade(answer=gold, question=question, drawn=drawn)
    assert (graded.value, right.value) == (0.0, 1.0)
    assert not made.exists()


@pytest.mark.long
@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
async def test_an_answer_that_takes_too_long_is_wrong_and_no_failure() -> None:
    """The verifier reads its own reference in that time, so that the answer is what takes it."""
    with anyio.fail_after(300):
        (task,) = await load_taskset("ReasoningGym-countdown", size=1)
        question, drawn = task.evaluate[0].args
        slow = await ReasoningGymGrader.grade(
            answer="9**9**9**9", question=question, drawn=drawn, timeout_seconds=8
        )
        assert slow.value < 0.1


@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
async def test_a_generator_that_draws_nothing_is_refused() -> None:
    """The text says what to name in its place."""
    with anyio.fail_after(PATIENCE_S), pytest.raises(InvalidTask, match="made of other generators"):
        await load_taskset("ReasoningGym-composite")


@pytest.mark.long
@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
def test_a_pinned_generator_would_not_repeat_by_itself() -> None:
    """One of the table: another order of sets draws other questions."""
    assert drawn_by("word_ladder", "0") == drawn_by("word_ladder", "0")
    assert drawn_by("word_ladder", "0") != drawn_by("word_ladder", "1")


def drawn_by(name: str, order: str, *, size: int = 3) -> Any:
    """What a generator draws in a process with an order of sets; None where it draws nothing."""
    request = {"want": "questions", "dataset": name, "seed": 7, "size": size}
    done = subprocess.run(
        process_command(), input=json.dumps(request), capture_output=True, text=True, check=False,
        timeout=600, env={**process_environment(), "PYTHONHASHSEED": order},
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.prove
@pytest.mark.timeout(7200)
async def test_every_generator_is_as_the_tables_say(tmp_path: Path) -> None:
    """Drawn in three processes, two orders of sets; its reference is right, and no program."""
    factory = importlib.import_module("reasoning_gym.factory")
    limiter = anyio.CapacityLimiter(2)
    found: dict[str, set[str]] = {"pinned": set(), "refused": set(), "none": set(), "ran": set()}

    async def look(name: str) -> None:
        first, again, other = [
            await anyio.to_thread.run_sync(drawn_by, name, order, limiter=limiter)
            for order in ("0", "0", "1")
        ]
        if first is None:
            found["refused"].add(name)
            return
        assert again == first, name
        if other != first:
            found["pinned"].add(name)
        gold = first[0]["answer"]
        drawn = {"dataset": name, "seed": 7, "size": 3, "index": 0}
        question = first[0]["question"]
        if gold is None:
            found["none"].add(name)
        else:
            assert not is_program(name, gold), name
            right = await ReasoningGymGrader.grade(answer=gold, question=question, drawn=drawn)
            assert right.value == 1.0, name
        empty = await ReasoningGymGrader.grade(answer="", question=question, drawn=drawn)
        assert empty.value < 0.1, name
        made = tmp_path / name
        program = {**drawn, "want": "score", "answer": f"open({str(made)!r}, 'w')"}
        await anyio.to_thread.run_sync(
            partial(
                subprocess.run, process_command(), input=json.dumps(program), capture_output=True,
                text=True, check=False, timeout=600, env=process_environment(),
            ),
            limiter=limiter,
        )  # fmt: skip
        if made.exists():
            found["ran"].add(name)

    async with anyio.create_task_group() as group:
        for name in sorted(factory.DATASETS):
            group.start_soon(look, name)
    assert found["pinned"] == PINNED
    assert found["refused"] == set(REFUSED)
    assert found["none"] == NO_REFERENCE
    assert found["ran"] == LITERALS | FORMULAS


@pytest.mark.long
@pytest.mark.skipif(not HERE, reason="not on this machine: reasoning-gym")
async def test_an_answer_that_the_verifier_cannot_read_is_wrong_and_no_failure() -> None:
    """Where it reads its own reference; a generator that is not there is named."""
    with anyio.fail_after(300):
        (task,) = await load_taskset("ReasoningGym-prime_factorization", size=1)
        question, drawn = task.evaluate[0].args
        junk = await ReasoningGymGrader.grade(answer="banana", question=question, drawn=drawn)
        assert junk.value == 0.0
        with pytest.raises(InvalidTask, match=r"no generator 'leg_cuonting'.*leg_counting"):
            await load_taskset("ReasoningGym-leg_cuonting")

"""reasoning-gym: questions that its generators draw by a seed, scored by its own verifiers."""

import ast
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio

from hud_mcp.environment.task import Task
from hud_mcp.errors import GraderFailed, InvalidTask, NotInstalled, name_known
from hud_mcp.graders.combination import Grader
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.imports import ImportedSet, row, row_id
from hud_mcp.values.grade import SubScore

__all__ = ["ReasoningGymGrader"]

_GYM = "reasoning-gym"
_DRAW_S = 300.0
_ASKED = "Answer with nothing but the answer."
_SHOWN_CHARS = 400
_SOUND_S = 120.0
"""The most seconds of a verifier with its own reference, once an answer took too long."""

PINNED = frozenset(
    {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
)
"""The generators that follow the order of sets. Their process fixes it, so that they repeat."""

REFUSED = {"composite": "it is made of other generators; name one of these"}
"""The generators that draw nothing by themselves, and the reasons."""

NO_REFERENCE = frozenset(
    {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
)
"""The generators with a verifier, and without an answer of their own."""

LITERALS = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
"""The generators whose verifiers evaluate an answer as Python, to read a list."""

FORMULAS = frozenset({
    "countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24",
    "simple_integration",
})  # fmt: skip
"""The generators whose verifiers let SymPy read an answer, which evaluates it as Python."""

_MATHS = {
    *("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "exp", "log", "ln", "sqrt", "cbrt", "abs", "Abs"),
}
_FORMULA = re.compile(r"[A-Za-z0-9_+\-*/^().,!\s]*")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_HIDDEN = re.compile(r"__|\)\s*\(|\.\s*[A-Za-z_]|\n")
_PLAIN = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Name, ast.Load),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Sub),
)
"""The nodes of a list of numbers and letters; `1 -2` is a difference, and harmless."""


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every reader has both
    """Return the questions of one generator.

    Raises:
        InvalidTask: No generator is named, or none has that name. Or it cannot draw, or draws
            other questions in another process.
        NotInstalled: The package is not there.
    """
    if find_spec("reasoning_gym") is None:
        raise NotInstalled("ReasoningGym needs reasoning-gym: pip install 'hud-mcp[reasoning]'.")
    names = cast("list[str]", _ask({"want": "names"}))
    name = choice.part or ""
    if name not in names:
        raise InvalidTask(
            f"reasoning-gym has no generator {name!r}.{name_known(name, names, what='It has')} "
            f"Name one, as in ReasoningGym-{names[0]}."
        )
    if name in REFUSED:
        raise InvalidTask(f"The generator {name!r} draws nothing by itself: {REFUSED[name]}.")
    wanted = {"want": "questions", "dataset": name, "seed": choice.seed, "size": choice.size}
    drawn = cast("list[dict[str, Any]]", _ask(wanted))
    if _ask(wanted) != drawn:
        raise InvalidTask(
            f"The generator {name!r} draws different questions in each process, so its verifier "
            "would grade another question. Choose another generator."
        )
    return [_task(name, choice, index, raw) for index, raw in enumerate(drawn)]


def process_command() -> list[str]:
    """Return the command that draws and scores."""
    return [sys.executable, str(Path(__file__).with_name("reasoning_process.py"))]


def process_environment() -> dict[str, str]:
    """Return the process's environment, in which the order of sets is the same each time."""
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _ask(request: Mapping[str, Any]) -> Any:
    """Ask a process of its own; raise InvalidTask, with its last words, if it fails."""
    try:
        done = subprocess.run(  # noqa: S603  # a script of this package
            process_command(),
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=_DRAW_S,
            check=False,
            env=process_environment(),
        )
    except subprocess.TimeoutExpired:
        raise InvalidTask(
            f"reasoning-gym took longer than {_DRAW_S:g} s; ask for fewer questions."
        ) from None
    if done.returncode != 0:
        raise InvalidTask(f"reasoning-gym failed: {done.stderr.strip()[-_SHOWN_CHARS:]}")
    return json.loads(done.stdout)


def _task(name: str, choice: Choice, index: int, raw: Mapping[str, Any]) -> Task:
    return row(
        row_id("reasoning", name, choice.seed, index),
        _GYM,
        f"{raw['question']}\n\n{_ASKED}",
        parts=[name],
        split="test",
        source=f"reasoning-gym (Apache-2.0), {name}, seed {choice.seed}, question {index}",
        evaluate=[
            [
                "reasoning_score",
                raw["question"],
                {"dataset": name, "seed": choice.seed, "size": choice.size, "index": index},
            ]
        ],
        metadata={"gold": {"answer": raw["answer"]}} if raw["answer"] is not None else {},
    )


SET = ImportedSet("ReasoningGym", read)


class ReasoningGymGrader(Grader):
    """The score of an answer by reasoning-gym's verifier, which generates the question again."""

    name: ClassVar[str] = "ReasoningGymGrader"

    @classmethod
    async def compute_score(  # pyright: ignore[reportIncompatibleMethodOverride]  # each grader has parameters of its own
        cls,
        answer: str = "",
        question: str = "",
        drawn: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float = 120,
    ) -> SubScore:
        """Score one answer.

        Args:
            answer: What was submitted.
            question: The task's question, which must equal the generated one.
            drawn: How to generate it: the generator as `dataset`, its `seed`, the number of
                questions as `size`, and the question's `index`, from 0.
            timeout_seconds: The time limit.

        Returns:
            From 0 to 1. An answer that the verifier cannot read in time is 0.0, with the reason, if
            it can read its own reference. An answer that is a program, which the verifier would
            run, is 0.0 too.

        Raises:
            GraderFailed: The verifier cannot run, or the question has changed.

        If this call is cancelled, it kills the process.
        """
        dataset = str((drawn or {}).get("dataset"))
        if is_program(dataset, answer):
            reason = "It is a program, which the verifier would run."
            return SubScore(name=cls.name, value=0.0, info={"reason": reason})
        request = {**(drawn or {}), "want": "score", "answer": answer.strip()}
        if (done := await cls._run(request, timeout_seconds)) is not None:
            return cls._scored(done.returncode, done.stdout, done.stderr, question)
        reason = f"reasoning-gym's verifier took longer than {timeout_seconds:g} s"
        sound = await cls._run({**request, "want": "sound"}, max(timeout_seconds, _SOUND_S))
        if sound is None or sound.returncode or not json.loads(sound.stdout)["sound"]:
            raise GraderFailed(f"{reason}.")
        return SubScore(name=cls.name, value=0.0, info={"reason": f"{reason} on this answer."})

    @classmethod
    async def _run(
        cls, request: Mapping[str, Any], within_s: float
    ) -> "subprocess.CompletedProcess[bytes] | None":
        with anyio.move_on_after(within_s):
            return await anyio.run_process(
                process_command(),
                input=json.dumps(request).encode(),
                check=False,
                stderr=subprocess.PIPE,
                env=process_environment(),
            )
        return None

    @classmethod
    def _scored(cls, code: int, out: bytes, errors: bytes, question: str) -> SubScore:
        if code != 0:
            said = errors.decode("utf-8", "replace").strip()[-_SHOWN_CHARS:]
            raise GraderFailed(f"reasoning-gym's verifier failed: {said}")
        reply: dict[str, Any] = json.loads(out)
        if reply["question"] != question:
            raise GraderFailed(
                "reasoning-gym generates another question than in the row, because its version "
                "changed. Import the set again."
            )
        if "score" in reply:
            return SubScore(name=cls.name, value=max(0.0, min(1.0, reply["score"])))
        if not reply["sound"]:
            raise GraderFailed(f"reasoning-gym's verifier fails by itself: {reply['why']}")
        return SubScore(name=cls.name, value=0.0, info={"reason": reply["why"]})


def is_program(dataset: str, answer: str) -> bool:
    """Whether a verifier that evaluates answers would run what an answer has in it.

    Such an answer never reaches the verifier: it would run as the server's user, and could write
    its own score.
    """
    answer = answer.strip()
    if dataset in FORMULAS:
        names = set(_CALLED.findall(answer))
        return not _FORMULA.fullmatch(answer) or bool(_HIDDEN.search(answer)) or not names <= _MATHS
    if dataset not in LITERALS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how an answer is written
            tree = ast.parse(answer, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False  # nor does the verifier evaluate it
    return not all(isinstance(node, _PLAIN) for node in ast.walk(tree))

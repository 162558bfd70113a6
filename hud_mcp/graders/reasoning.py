"""Answers to reasoning-gym's questions, scored by its own verifiers in a process of their own."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, ClassVar

import anyio

from hud_mcp.errors import GraderFailed
from hud_mcp.graders.grader import Grader
from hud_mcp.plugins.sets.reasoning import process_command, process_environment
from hud_mcp.plugins.sets.reasoning_known import is_program
from hud_mcp.values.grade import SubScore

__all__ = ["ReasoningGymGrader"]

_SHOWN_CHARS = 400
_SOUND_S = 120.0
"""How long a verifier may take with its own reference, once an answer took too long."""


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
        """What its process makes of a request; None where that took too long."""
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

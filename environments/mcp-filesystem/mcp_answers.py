"""The files of rows, and the graders of answers: MCP-Universe's evaluators, MCP-Atlas's claims.

The rules are those of `mcpuniverse/evaluator/functions.py` in github.com/SalesforceAIResearch/
MCP-Universe, and of `services/scoring/score_claims.py` in github.com/scaleapi/mcp-atlas.
"""

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread

from hud_mcp import (
    Answer,
    Environment,
    Grade,
    LLMJudgeGrader,
    SubScore,
    ToolServerWorld,
    dataset_file,
)

__all__ = ["COMPARISONS", "JUDGE", "declare", "passes"]

ARCHIVE = ".hud-mcp-dataset.tar"
JUDGE = ".llm_as_a_judge"
SAME = "The response answers the question, and its answer means the same as: {}"
CLAIM = "The response states this claim, or what comes to the same: {}"
COVERED = 0.75
"""The share of its claims from which on the benchmark counts an answer as right."""


async def dataset_folder(server: ToolServerWorld, sha256: str) -> None:
    """Put a folder of the imported set into the session's, by the digest of its archive."""
    packed = dataset_file(sha256)
    await server.shell.write(ARCHIVE, await anyio.to_thread.run_sync(packed.read_bytes))
    done = await server.shell.run(f"tar -xf {ARCHIVE} && rm {ARCHIVE}")
    if done.exit_code:
        raise RuntimeError(f"The files of the set cannot be unpacked: {done}")


def equal(found: Any, value: Any) -> bool:
    """Whether two values of JSON are the same; true is no number."""
    return found == value and isinstance(found, bool) == isinstance(value, bool)


def unequal(found: Any, value: Any) -> bool:
    """Whether there is a value, and another one."""
    return found is not None and not equal(found, value)


def is_in(found: Any, value: list[Any] | str) -> bool:
    """Whether a list or a text has a value; an empty text is in nothing."""
    return found in value and found != ""


def contains(found: Any, value: Any) -> bool:
    """Whether a list or a text of the answer has a value."""
    return isinstance(found, str | list) and value in found


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": equal,
    "!=": unequal,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": is_in,
    "contain": contains,
}


def taken(step: str, value: Any) -> list[Any]:
    """Return the values that a step of a chain makes of one; raise TypeError for another kind."""
    match step:
        case "json":
            text = value.strip().strip("`").strip().removeprefix("json")
            return [json.loads(text, parse_constant=str)]  # no number is above an infinite one
        case "raw":
            return [value]
        case "list":
            return [[value]]
        case "len" if isinstance(value, list):
            return [len(value)]
        case "foreach" if isinstance(value, list):
            return value
        case _ if step.startswith("get(") and isinstance(value, dict):
            return [value.get(step[4:-1].strip())]
    raise TypeError(f"{step} of {value!r:.80}")


def passes(answer: str, evaluator: dict[str, Any]) -> bool:
    """Whether all values at the end of a chain fit, of which there are some."""
    op, wanted = evaluator.get("op") or "", evaluator.get("value")
    fits = COMPARISONS[op] if op else None
    if fits is not None:
        fits(wanted, wanted)  # a row that compares nothing is no result of the agent's
    steps = [step for part in evaluator["func"].split("->") if (step := part.strip())]
    values: list[Any] = [answer]
    try:
        for step in steps:
            values = [one for value in values for one in taken(step, value)]
        return bool(values) and all(fits is None or fits(value, wanted) for value in values)
    except (ValueError, TypeError, RecursionError):  # an answer of another form
        return False


async def mcp_universe(
    answer: Answer[str], evaluators: list[dict[str, Any]], question: str
) -> Grade:
    """1.0 where each evaluator of the row passes; a model is asked after all others have."""
    judged = [each for each in evaluators if (each.get("op") or "").endswith(JUDGE)]
    parts = [
        SubScore(name=f"evaluator {number}", value=float(passes(answer.raw, each)))
        for number, each in enumerate(evaluators, 1)
        if each not in judged
    ]
    whole = float(bool(answer.raw.strip()) and all(part.value for part in parts))
    if whole and judged:
        meant = [SAME.format(each["op_args"]["correct_answer"]) for each in judged]
        parts.append(await asked(answer.raw, meant, question))
        whole = float(parts[-1].value == 1.0)
    return Grade(reward=whole, subscores=tuple(parts))


async def mcp_atlas(answer: Answer[str], claims: list[str], question: str) -> Grade:
    """1.0 where a model finds three quarters of the row's claims in the answer."""
    if not answer.raw.strip():
        return Grade(reward=0.0)
    found = await asked(answer.raw, [CLAIM.format(claim) for claim in claims], question)
    return Grade(reward=float(found.value >= COVERED), subscores=(found,))


async def asked(answer: str, criteria: Sequence[str], question: str) -> SubScore:
    """Return the share of criteria that the model judge finds met."""
    return await LLMJudgeGrader.grade(answer=answer, criteria=criteria, question=question)


def declare(env: Environment) -> None:
    """Let an environment's tasks name its files and the graders."""
    env.function(dataset_folder, use="setup")
    env.function(mcp_universe, use="evaluate", weak="An answer that lists much contains much.")
    env.function(mcp_atlas, use="evaluate", weak="Text can persuade a model.")

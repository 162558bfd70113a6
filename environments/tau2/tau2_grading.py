"""The grade of a conversation: the product of what a row's `reward_basis` names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tau2_desk import DeskWorld
from tau2_rows import Case

from hud_mcp import Grade, LLMJudgeGrader, SubScore

__all__ = ["PARTS", "grade", "has_called"]

Talk = Sequence[tuple[str, str]]
"""Each message: `assistant` or `user`, and its words."""

PARTS = ("DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION")


async def grade(desk: DeskWorld, case: Case, talk: Talk, *, by_limit: bool) -> Grade:
    """Grade a conversation. One that a limit ended has a reward of 0, as the benchmark's own.

    Raises:
        GraderFailed: The row has assertions in words, and no judge is there.
        ValueError: The row is graded by something unknown.
    """
    unknown = sorted(case.basis - set(PARTS))
    if unknown:
        raise ValueError(f"tau2 row {case.raw['id']}: unknown reward_basis {unknown[0]!r}.")
    if by_limit:
        return Grade(reward=0.0, content="A limit ended the conversation.")
    names = [name for name in PARTS if name in case.basis]
    parts = [await _part(name, desk, case, talk) for name in names]
    return Grade(reward=float(all(part.value == 1.0 for part in parts)), subscores=tuple(parts))


async def _part(name: str, desk: DeskWorld, case: Case, talk: Talk) -> SubScore:
    books, said = desk.books, [text for role, text in talk if role == "assistant"]
    if books is None:
        raise ValueError("no task was started")
    if name == "DB":
        wanted, _ = case.reference()
        # Without reference actions and assertions there is nothing to compare with.
        is_open = case.criteria.get("actions") is None and not case.criteria.get("env_assertions")
        met = is_open or books.digests == wanted.digests
        return SubScore(name=name, value=float(met), info={"database": books.digests[0]})
    if name == "ENV_ASSERTION":
        met = all(books.holds(each) for each in case.criteria.get("env_assertions") or ())
    elif name == "ACTION":
        calls = [(call, arguments) for _, call, arguments in desk.calls]
        met = all(has_called(calls, each) for each in case.actions)
    elif name == "COMMUNICATE":
        met = all(_is_told(said, info) for info in case.criteria.get("communicate_info") or ())
    else:
        return await _in_words(case.criteria.get("nl_assertions") or (), talk)
    return SubScore(name=name, value=float(met))


def has_called(calls: Iterable[tuple[str, Mapping[str, Any]]], action: Mapping[str, Any]) -> bool:
    """Whether one of the calls is a reference action: in `compare_args`, else in all it gives."""
    for name, arguments in calls:
        names = action.get("compare_args")
        names = arguments if names is None else names
        wanted = action["arguments"]
        if name == action["name"] and {n: arguments[n] for n in names if n in arguments} == {
            n: wanted[n] for n in names if n in wanted
        }:
            return True
    return False


def _is_told(said: Iterable[str], info: str) -> bool:
    return any(info.lower() in text.lower().replace(",", "") for text in said)


async def _in_words(assertions: Sequence[str], talk: Talk) -> SubScore:
    name = "NL_ASSERTION"
    if not assertions:
        return SubScore(name=name, value=1.0)
    # Each message is one line, so that nobody writes a line of the other's.
    lines = [f"{role}: {' '.join(text.split())}" for role, text in talk]
    found = await LLMJudgeGrader.grade(answer="\n".join(lines), criteria=list(assertions))
    return found.model_copy(update={"name": name, "weight": 1.0})

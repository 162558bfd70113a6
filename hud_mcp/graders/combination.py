"""Several measurements as one: a weighted mean with penalties, all of them, any of them."""

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from hud_mcp.base.gathering import drop, gather
from hud_mcp.graders.results import EvaluationResult
from hud_mcp.graders.text import Compat
from hud_mcp.values.grade import SubScore

__all__ = ["combine", "combine_all", "combine_any", "named_apart"]

_CLOSE = 0.01


async def combine(
    *items: SubScore | Awaitable[SubScore], compat: Compat = "strict"
) -> EvaluationResult:
    """Wait for all parts at once, and combine them into a result that a template may yield.

    It scales positive weights to sum to 1; a negative weight is a penalty, and stays as it is. It
    numbers parts of the same name. Penalties lower the reward to 0 at most; `info` then has the
    unlimited value as `reward_before_floor`.

    Args:
        *items: Subscores, or awaitables of them, such as `BashGrader.grade(…)`.
        compat: `hud` lets penalties take the reward below 0.

    Raises:
        TypeError: An item is neither, or gives something else. Nothing was awaited, or the others
            were cancelled.
        ValueError: There is no item, or none with a positive weight.
        Exception: The first exception of a part; the others were cancelled and have ended.

    If this call is cancelled, it cancels all parts and waits for their end.
    """
    parts = await _resolved(items)
    total = math.fsum(part.weight for part in parts if part.weight > 0)
    if total <= 0:
        raise ValueError("combine() needs at least one part with a positive weight")
    if abs(total - 1) > _CLOSE:
        warnings.warn(
            f"The positive weights sum to {total:.4g}, not to 1; each is divided by that. "
            "Make them sum to 1 to silence this.",
            stacklevel=2,
        )
    scaled = [
        part.model_copy(update={"weight": part.weight / total}) if part.weight > 0 else part
        for part in named_apart(parts)
    ]
    # Divided at the end, so that all of everything is 1 and not just below it.
    reward = math.fsum(part.value * part.weight for part in parts if part.weight > 0) / total
    reward = math.fsum([reward, *(part.value * part.weight for part in parts if part.weight < 0)])
    info: dict[str, Any] = {}
    if reward < 0 and compat == "strict":
        info, reward = {"reward_before_floor": reward}, 0.0
    # The weights are right now, and a floor is meant: nothing here for an author to be warned of.
    return EvaluationResult.model_construct(
        reward=reward, done=True, content=None, info=info, isError=False, subscores=scaled
    )


def combine_any(weight: float, subscores: Sequence[SubScore], *, name: str = "any") -> SubScore:
    """One part with the highest value of several; they are its children.

    Raises:
        ValueError: There are none.
    """
    return _folded("combine_any", weight, subscores, name, max)


def combine_all(weight: float, subscores: Sequence[SubScore], *, name: str = "all") -> SubScore:
    """One part with the lowest value of several; they are its children.

    Raises:
        ValueError: There are none.
    """
    return _folded("combine_all", weight, subscores, name, min)


def _folded(called: str, weight: float, given: Iterable[Any], name: str, of: Any) -> SubScore:
    parts = list(given)
    for part in parts:
        if not isinstance(part, SubScore):
            drop(parts)
            raise TypeError(
                f"{called}() takes subscores, got {type(part).__name__}; await graders first."
            )
    if not parts:
        raise ValueError(f"{called}() needs at least one subscore")
    value = of(part.value for part in parts)
    return SubScore(name=name, value=value, weight=weight, children=tuple(named_apart(parts)))


async def _resolved(items: Sequence[Any]) -> list[SubScore]:
    """The parts, in order, once all are there."""
    if not items:
        raise ValueError("combine() needs at least one part")
    for item in items:
        if not isinstance(item, SubScore) and not inspect.isawaitable(item):
            drop(items)
            raise TypeError(f"combine() takes subscores and awaitables of them, got {item!r:.80}")
    try:
        waited = iter(await gather([_part(i) for i in items if not isinstance(i, SubScore)]))
    finally:
        drop(items)
    return [item if isinstance(item, SubScore) else next(waited) for item in items]


async def _part(item: Awaitable[Any]) -> SubScore:
    given = await item
    if not isinstance(given, SubScore):
        raise TypeError(f"A part of combine() gave {given!r:.80}; a grader gives a SubScore.")
    return given


def named_apart(parts: Sequence[SubScore]) -> list[SubScore]:
    """The parts, where those that share a name are numbered: `a-1`, `a-2`."""
    counts = Counter(part.name for part in parts)
    used = set(counts)
    numbers: Counter[str] = Counter()
    found: list[SubScore] = []
    for part in parts:
        name = part.name
        if counts[name] > 1:
            while name in used:
                numbers[part.name] += 1
                name = f"{part.name}-{numbers[part.name]}"
            used.add(name)
        found.append(part.model_copy(update={"name": name}))
    return found

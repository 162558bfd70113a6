"""Deaths of a session's world, as its record has them, and whose doing they are.

A call in whose course the world died is a step that is undone: no replay repeats it, and it says
so in the record, where every server that resumes the session counts it. One death may be
anybody's. The same again after the world was resumed is the agent's.
"""

from collections.abc import Sequence

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.record.values import UNDONE, TrajectoryStep
from hud_mcp.values.grade import Cause

__all__ = [
    "DiedAgain",
    "standing",
    "trail",
    "whose_doing",
]

_MOST_IN_A_ROW = 3
"""So many calls in a row whose world died, whatever they were, are the agent's doing too."""


class DiedAgain(EnvironmentFailed):
    """A world died as the last action of its record was repeated."""


def standing(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The steps that stand: those that no death of the world has undone."""
    return [step for step in steps if not step.undone]


def trail(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The calls since the last one that stands, each of which met a dead world."""
    found: list[TrajectoryStep] = []
    for step in reversed(steps):
        if not step.undone:
            break
        found.insert(0, step)
    return found


def whose_doing(deaths: Sequence[TrajectoryStep], *, has_acted: bool) -> Cause | None:
    """Whose doing the newest of the deaths since the last step that stands is.

    One that had happened before its call began, as of a browser that was killed between two
    calls, is held against nobody, and neither is what a world dies of that is only looked at.

    Args:
        deaths: What `trail` gives.
        has_acted: Whether anything was done in the world before.

    Returns:
        None where the world may come back, and nobody is to blame.
    """
    during = [step for step in deaths if step.info.get(UNDONE) == "during"]
    if not during or deaths[-1] is not during[-1]:
        return None
    again = len(deaths) > 1 and _is_same(deaths[-1], deaths[-2])
    if not again and len(during) < _MOST_IN_A_ROW:
        return None
    acted = has_acted or any(step.actions for step in during)
    return Cause.AGENT if acted else Cause.MACHINE


def _is_same(one: TrajectoryStep, other: TrajectoryStep) -> bool:
    """Whether two calls were the same, and both had a world that lived when they began."""
    return (one.kind, one.actions) == (other.kind, other.actions) and one.info.get(
        UNDONE
    ) == other.info.get(UNDONE) == "during"

"""What has happened in an environment since its last reset."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Episode"]


@dataclass
class Episode:
    """What has happened since the last reset.

    Attributes:
        seen: The last observation, as the environment returned it.
        info: The last info.
        rewards: The reward of each step.
        terminated: Whether the episode reached its end.
        truncated: Whether it was cut off by a limit.
        over: Whether it has ended, either way.
    """

    seen: Any
    info: dict[str, Any]
    rewards: list[float] = field(default_factory=list[float])
    terminated: bool = False
    truncated: bool = False
    over: bool = False

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return: the sum of the rewards."""
        return sum(self.rewards)

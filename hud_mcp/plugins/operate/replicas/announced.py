"""The row of a server that others can call."""

from dataclasses import dataclass

__all__ = ["Announced"]


@dataclass(frozen=True, slots=True)
class Announced:
    """What a replica tells the others of itself.

    Attributes:
        advertised: The address at which they reach it.
        tag: What its replies are marked with.
        is_draining: Whether it begins no sessions any more.
    """

    advertised: str
    tag: str
    is_draining: bool = False

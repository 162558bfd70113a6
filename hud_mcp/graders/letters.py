"""What Inspect's data sets and its scorers both know: letters of choices, and places of a match."""

from typing import Literal, get_args

__all__ = ["LOCATIONS", "Location", "letter_of"]

Location = Literal["begin", "end", "any", "exact"]
LOCATIONS: tuple[Location, ...] = get_args(Location)

_LETTERS = 26


def letter_of(index: int) -> str:
    """What stands before a choice: letters, then numbers from 1."""
    return chr(ord("A") + index) if index < _LETTERS else str(index - _LETTERS + 1)

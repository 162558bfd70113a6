"""What a session is doing, what callers are told of that, and what a call of theirs meets."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

__all__ = ["SHOWN", "Meets", "Phase", "SessionState"]

SessionState = Literal["starting", "resuming", "open", "grading", "parked", "ended"]
"""What callers are told of a phase."""


class Phase(StrEnum):
    """What a session is doing."""

    STARTING = "starting"
    """Its world is opened, and its template runs to the prompt."""
    RESUMING = "resuming"
    """The same, and then its world is brought to the last recorded step."""
    OPEN = "open"
    """It is acted on."""
    GRADING = "grading"
    """Its template has the answer, or has ended the wait for one."""
    LAID_DOWN = "laid down"
    """Its world died. What is left of it is closed, before it is resumed."""
    EXAMINING = "examining"
    """Its grader could not use the world. Somebody looks whether that is dead."""
    ENDING = "ending"
    """How it ends is decided; its template cleans up, and the end is written."""
    PARKED = "parked"
    """It is over here, and waits in its record, or another server process has it."""
    ENDED = "ended"
    """It is over."""


class Meets(StrEnum):
    """What a call meets that would reach a session's world."""

    WORLD = "world"
    """The world: it is done, in its turn."""
    START = "start"
    """A start that is not over."""
    RESUMING = "resuming"
    """A world that is not yet what the record says."""
    ANSWER = "answer"
    """An answer that was submitted before, or a template that has ended the wait for one."""
    END = "end"
    """The end of the session."""


SHOWN: Mapping[Phase, SessionState] = {
    Phase.STARTING: "starting",
    Phase.RESUMING: "resuming",
    Phase.OPEN: "open",
    Phase.GRADING: "grading",
    Phase.LAID_DOWN: "starting",
    Phase.EXAMINING: "grading",
    Phase.ENDING: "open",
    Phase.PARKED: "parked",
    Phase.ENDED: "ended",
}
"""What callers are told, where nothing else is known of it."""

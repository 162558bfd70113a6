"""The ends of sessions, and their meaning in every text, count and retry.

Figures, pages, commands and the rollout ask this module, and have no list of their own.
`Outcome.add` adds an author's own outcome.
"""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

__all__ = [
    "INTERRUPTED",
    "NOT_BEGUN",
    "OUTCOMES",
    "UNFINISHED",
    "Cause",
    "Counts",
    "Outcome",
    "OutcomeClass",
    "Tone",
    "cause_of",
    "class_of",
    "is_try",
    "outcome_classes",
]


class Cause(StrEnum):
    """The cause of a session's end.

    An end by the agent is its result, and is not repeated. An end by the machine or the operator is
    nobody's result, and no mean and no rate contains it.
    """

    AGENT = "agent"
    MACHINE = "machine"
    OPERATOR = "operator"


class Counts(StrEnum):
    """Which figures count a run."""

    MEAN = "mean"
    """In the mean reward and in the pass rates."""

    RATES = "rates"
    """Only in the pass rates, as a run that did not pass."""

    NOWHERE = "nowhere"
    """In none, because it says nothing about the agent."""


Tone = Literal["good", "warning", "bad", "open"]


class OutcomeClass(str):
    """A class of runs, which is its own name, such as ``interrupted``.

    Attributes:
        words: Its name for people.
        letter: Its letter for places without room for a word.
        counts: The figures that count its runs.
        tried_again: Whether a retry or a resumed job runs them again.
        note: The note of a table beside their number.
        tone: Its look: `good`, `warning`, `bad`, or `open` before an end.
        is_rare: Whether a page shows it only if it occurred.
    """

    __slots__ = ("counts", "is_rare", "letter", "note", "tone", "tried_again", "words")

    counts: Counts
    is_rare: bool
    letter: str
    note: str
    tone: Tone
    tried_again: bool
    words: str

    @property
    def value(self) -> str:
        """Its name as plain text."""
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)

    @classmethod
    def define(
        cls,
        name: str,
        *,
        words: str | None = None,
        letter: str | None = None,
        counts: Counts = Counts.NOWHERE,
        tried_again: bool | None = None,
        note: str = "infrastructure: in no mean and in no pass rate",
        tone: Tone = "bad",
        is_rare: bool = False,
    ) -> Self:
        """Make a class; arguments that are left out follow from its name and its `counts`."""
        made = str.__new__(cls, name)
        made.words = name.replace("_", " ") if words is None else words
        made.letter = name[:1].upper() if letter is None else letter
        made.counts = counts
        made.tried_again = counts is Counts.NOWHERE if tried_again is None else tried_again
        made.note = note
        made.tone = tone
        made.is_rare = is_rare
        return made


OUTCOMES: dict[str, "Outcome"] = {}
"""Every outcome by its name, in the order in which they are shown."""


class _Outcomes(type):
    """The questions to all outcomes together: ``list(Outcome)``, ``name in Outcome``."""

    def __iter__(cls) -> Iterator["Outcome"]:
        return iter(OUTCOMES.values())

    def __len__(cls) -> int:
        return len(OUTCOMES)

    def __contains__(cls, name: object) -> bool:
        return isinstance(name, str) and name in OUTCOMES


class Outcome(OutcomeClass, metaclass=_Outcomes):
    """The outcome of a session; ``Outcome("lost")`` finds one by its name.

    Attributes:
        cause: The default cause.
        ended: The rest of a sentence about a session, with ``{at}`` for the time.
        counts_unused: Whether a session with this end before its first step was a try of its task.
    """

    __slots__ = ("cause", "counts_unused", "ended")

    cause: Cause
    counts_unused: bool
    ended: str

    GRADED: ClassVar["Outcome"]
    CANCELLED: ClassVar["Outcome"]
    EXPIRED: ClassVar["Outcome"]
    ENVIRONMENT_FAILED: ClassVar["Outcome"]
    GRADING_FAILED: ClassVar["Outcome"]
    LOST: ClassVar["Outcome"]

    def __new__(cls, name: str) -> "Outcome":  # noqa: PYI034  # there is no subclass of it
        """Find an outcome by its name; raise ValueError if none has it."""
        found = OUTCOMES.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # a record's
        if found is None:
            raise ValueError(f"{name!r} is not an outcome; there are {', '.join(OUTCOMES)}")
        return found

    @classmethod
    def add(
        cls,
        name: str,
        *,
        ended: str | None = None,
        cause: Cause = Cause.MACHINE,
        counts_unused: bool = True,
        is_rare: bool = True,
        **told: Any,
    ) -> "Outcome":
        """Add an outcome; texts, statistics and pages then treat it as the others.

        Args:
            name: The stored name.
            ended: The rest of a sentence about a session, with ``{at}`` for the time.
            cause: The default cause.
            counts_unused: Whether a session with this end before its first step was a try.
            is_rare: Whether a page shows it only if it occurred.
            **told: Any other attribute of an `OutcomeClass`.

        Raises:
            ValueError: An outcome, or a class of runs, has that name.
        """
        if name in map(str, outcome_classes()):
            raise ValueError(f"there is an outcome {name!r} already; choose another name")
        made = cls.define(name, is_rare=is_rare, **told)
        made.cause = cause
        made.ended = f"ended {{at}}: {made.words}" if ended is None else ended
        made.counts_unused = counts_unused
        OUTCOMES[name] = made
        return made

    def __repr__(self) -> str:
        return f"<Outcome {self.value!r}>"

    def __reduce__(self) -> tuple[type["Outcome"], tuple[str]]:
        return (Outcome, (self.value,))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read an outcome from its name, and write the name."""
        return core_schema.no_info_plain_validator_function(
            cls,
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe an outcome as one of the names."""
        return {"type": "string", "enum": [outcome.value for outcome in cls]}


UNFINISHED = OutcomeClass.define(
    "unfinished", tone="open", note="no end yet: in no mean and in no pass rate"
)
"""The class of a run that has begun and has no end."""

NOT_BEGUN = OutcomeClass.define(
    "not_begun", tone="warning", note="never started: in no mean and in no pass rate", is_rare=True
)
"""The class of a run in the job's plan that was never started."""

INTERRUPTED = OutcomeClass.define(
    "interrupted",
    tone="warning",
    note="ended by its operator or the machine: in no mean and in no pass rate",
    is_rare=True,
)
"""The class of a run that its operator or the machine ended before the agent had finished."""


def outcome_classes() -> tuple[OutcomeClass, ...]:
    """Return every class of runs, in the order in which they are shown."""
    return (*Outcome, INTERRUPTED, UNFINISHED, NOT_BEGUN)


Outcome.GRADED = Outcome.add(
    "graded",
    ended="was graded {at}; its grade stands",
    cause=Cause.AGENT,
    counts=Counts.MEAN,
    note="in the mean",
    tone="good",
    is_rare=False,
)
Outcome.CANCELLED = Outcome.add(
    "cancelled",
    ended="was cancelled {at}",
    cause=Cause.AGENT,
    counts=Counts.RATES,
    note="not passed; not in the mean",
    tone="warning",
    is_rare=False,
)
Outcome.EXPIRED = Outcome.add(
    "expired",
    letter="X",
    ended="expired {at}",
    cause=Cause.AGENT,
    counts=Counts.RATES,
    counts_unused=False,
    note="not passed; not in the mean",
    tone="warning",
    is_rare=False,
)
Outcome.ENVIRONMENT_FAILED = Outcome.add(
    "environment_failed", ended="ended {at}, because its environment failed", is_rare=False
)
Outcome.GRADING_FAILED = Outcome.add(
    "grading_failed",
    ended="ended {at} without a grade, because grading failed",
    # The session grades the same answer twice. Another run would give an agent another chance.
    tried_again=False,
    is_rare=False,
)
Outcome.LOST = Outcome.add("lost", ended="was lost {at}", is_rare=False)


def cause_of(outcome: Outcome, named: Cause | None = None) -> Cause:
    """Return the cause of an end: the receipt's, or the default in one older than causes."""
    return outcome.cause if named is None else named


def class_of(outcome: Outcome | None, cause: Cause | None, reward: float | None) -> OutcomeClass:
    """Return the class of a run: its outcome, `INTERRUPTED` or `UNFINISHED`.

    A graded record without a finite reward counts as `grading_failed`: it has no number to count.
    """
    if outcome is None:
        return UNFINISHED
    if outcome.counts is Counts.MEAN and (reward is None or not math.isfinite(reward)):
        return Outcome.GRADING_FAILED
    if outcome.counts is Counts.RATES and cause is not Cause.AGENT:
        return INTERRUPTED
    return outcome


def is_try(outcome: Outcome, cause: Cause | None, *, used: bool) -> bool:
    """Whether a session with this end, with or without a step, was one of its task's tries."""
    return cause_of(outcome, cause) is Cause.AGENT and (used or outcome.counts_unused)

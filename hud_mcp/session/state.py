"""The whole truth of a session: what it is now, and what happens to it next.

`decide` is a table without I/O, clock or event loop: a state and what has happened give the next
state, and what is to be done. Nothing else changes a session. Facts that only I/O knows, such as
whether a world is dead, come inside the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self, TypeAlias

from hud_mcp.grade import Cause, Grade, Outcome
from hud_mcp.record.trajectory import Receipt

__all__ = [
    "Abort",
    "Answered",
    "Asked",
    "Begun",
    "Broke",
    "CloseWorld",
    "Closed",
    "CutOff",
    "Dismiss",
    "Effect",
    "EndWanted",
    "EndedItself",
    "Ending",
    "Event",
    "Examine",
    "Examined",
    "Finished",
    "GetReady",
    "Meets",
    "NotBack",
    "Note",
    "Phase",
    "Record",
    "Recorded",
    "RefuseWaiting",
    "Resume",
    "Resumed",
    "StartCommands",
    "StartDriver",
    "State",
    "StopCommands",
    "Submit",
    "TakenOver",
    "Tell",
    "Touched",
    "Verdict",
    "WriteLog",
    "decide",
]


@dataclass(frozen=True)
class Ending:
    """How a session ends.

    Attributes:
        outcome: Its class.
        grade: What the template yielded; only for `graded`.
        error: For the record: everything that is known, with file and line.
        told: For the agent: nothing that an author wrote.
        parked: Whether it only ends here, and goes on in another server process.
        cause: Whose doing it is; None for what its outcome is by itself, as `cause_of` has it.
    """

    outcome: Outcome
    grade: Grade | None = None
    error: str | None = None
    told: str | None = None
    parked: bool = False
    cause: Cause | None = None

    @classmethod
    def by_agent(cls, reason: str, *, error: str | None = None, told: str | None = None) -> Self:
        """How it ends where the agent's own doing has made it impossible to look.

        Args:
            reason: A sentence that explains the grade.
            error: For the record, where more is known.
            told: What the agent is told, where it has not answered.
        """
        grade = Grade(reward=0.0, content=reason)
        return cls(Outcome.GRADED, grade=grade, error=error or reason, told=told, cause=Cause.AGENT)

    @classmethod
    def left_to_record(cls, told: str | None = None) -> Self:
        """How it ends here where it waits in its record for another server process."""
        return cls(Outcome.LOST, told=told, parked=True)


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
    """Its world died. What is left of it is closed, before it is brought back."""
    ENDING = "ending"
    """How it ends is decided; its template cleans up, and the end is written."""
    PARKED = "parked"
    """It is over here, and waits in its record, or another server process has it."""
    ENDED = "ended"
    """It is over."""


class Verdict(StrEnum):
    """What follows from the death of a world in a call."""

    COMES_BACK = "comes back"
    """Nobody is to blame: it is brought back from its record."""
    OF_AGENT = "of agent"
    """It is the agent's doing: that is its result."""
    OF_MACHINE = "of machine"
    """It is not, and the world cannot come back."""


class Meets(StrEnum):
    """What a call meets that would reach a session's world."""

    WORLD = "world"
    """The world: it is done, in its turn."""
    START = "start"
    """A start that is not over."""
    RESUMING = "resuming"
    """A world that is not yet what the record says."""
    ANSWER = "answer"
    """An answer that was submitted before."""
    OWN_END = "own end"
    """A template that ended the wait for an answer by itself."""
    END = "end"
    """The end of the session."""


@dataclass(frozen=True, slots=True)
class State:
    """What a session is.

    Attributes:
        phase: What it is doing.
        life: How many worlds it had before this one: what an older one reports is of no account.
        is_driven: Whether its template was started in this life.
        provisional: Whether nobody has acted on it, so that it expires early.
        answer: What was submitted; None before.
        answered_at: When; None too where the template ended the wait by itself.
        wanted: How somebody has it end; None while nobody does.
        ending: How it ends, once that is decided.
        died: What its world died of, until it is back.
        was_recorded: Whether another server process began it: its first life is a resumed one.
        died_in_grading: Whether its world died before under its grader.
        taken: Whether another server process has it: nothing is written here any more.
        receipt: How it ended, once that is written.
    """

    phase: Phase = Phase.STARTING
    life: int = 0
    is_driven: bool = False
    provisional: bool = False
    answer: str | None = None
    answered_at: datetime | None = None
    wanted: Ending | None = None
    ending: Ending | None = None
    died: str | None = None
    was_recorded: bool = False
    died_in_grading: bool = False
    taken: bool = False
    receipt: Receipt | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it here any more."""
        return self.phase in (Phase.ENDED, Phase.PARKED)

    @property
    def is_let_go(self) -> bool:
        """Whether it goes on without this process: in its record, or in another server's hands."""
        leaves = self.phase is Phase.ENDING and self.ending is not None and self.ending.parked
        return self.phase is Phase.PARKED or self.taken or leaves

    @property
    def is_coming_back(self) -> bool:
        """Whether its world died here and is being brought back: callers wait for that."""
        return self.died is not None and self.phase in (Phase.LAID_DOWN, Phase.RESUMING)

    @property
    def is_graded_now(self) -> bool:
        """Whether its template grades, or will, whatever becomes of its world meanwhile."""
        return self.phase is Phase.GRADING or (self.answer is not None and not self.is_over)

    @property
    def told(self) -> str | None:
        """What is told of its end, or of what is wanted to end it."""
        ending = self.ending or self.wanted
        return ending.told if ending is not None else None

    def meets(self) -> Meets:
        """What a call meets now that would reach the world."""
        if self.is_over:
            return Meets.END
        if self.phase is Phase.RESUMING:
            return Meets.RESUMING
        if self.answer is not None:
            return Meets.ANSWER
        if self.phase is Phase.GRADING:
            return Meets.OWN_END
        return Meets.START if self.phase in (Phase.STARTING, Phase.LAID_DOWN) else Meets.WORLD

    def may_be_taken(self, *, is_prompted: bool, is_behind: bool, can_come_back: bool) -> bool:
        """Whether another server process could go on with it.

        Args:
            is_prompted: Whether its template has asked.
            is_behind: Whether its world was used directly, and no snapshot has that.
            can_come_back: Whether its world can be brought back from what is recorded.
        """
        return is_prompted and not self.provisional and not is_behind and can_come_back


# What happens to a session.


@dataclass(frozen=True, slots=True)
class Begun:
    """Its template is to be started."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Its prompt is durable."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Somebody acts on it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A step that submits the answer is durable.

    Attributes:
        life: In which life.
        answer: What was submitted.
        at: When.
        died: What the world had died of by then; None where it lives.
        comes_back: Whether it can be brought back from its record.
    """

    life: int
    answer: str
    at: datetime
    died: str | None = None
    comes_back: bool = False


@dataclass(frozen=True, slots=True)
class EndedItself:
    """The template's own deadline ended the wait for an answer."""

    life: int


@dataclass(frozen=True, slots=True)
class EndWanted:
    """Somebody has it end: a caller, a limit, or the server that stops.

    Attributes:
        ending: How.
        abort: Whether that is at once, also where it is being graded.
    """

    ending: Ending
    abort: bool = False


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A write was refused: another server process has it."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Its world died in a call.

    Attributes:
        life: In which life.
        reason: What it died of.
        verdict: What follows.
        ending: How it ends, where it does not come back.
    """

    life: int
    reason: str
    verdict: Verdict
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """Its template has run out.

    Attributes:
        life: In which life.
        ending: How it ends by itself; None where it was told to end, and has.
    """

    life: int
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class Examined:
    """Somebody has looked whether the world lives that a grader could not use.

    Attributes:
        life: In which life.
        dead: What it died of; None where it lives.
        died_before: Whether it had died under a grader in another server process.
        has_changed: Whether anything was done in it.
        comes_back: Whether it can be brought back from its record.
        again: How the session ends where the same happened before, or cannot be made good.
    """

    life: int
    dead: str | None
    died_before: bool
    has_changed: bool
    comes_back: bool
    again: Ending


@dataclass(frozen=True, slots=True)
class Recorded:
    """Its end is written, or is owed.

    Attributes:
        receipt: How it ended; None where there is no record of its beginning either.
        taken: Whether another server process had it by then.
    """

    receipt: Receipt | None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """What was left of a life is closed, and its log is written."""

    life: int


@dataclass(frozen=True, slots=True)
class NotBack:
    """It could not be brought back.

    Attributes:
        life: Which life that was.
        ending: How it ends by that.
    """

    life: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Resumed:
    """Its world is what its record says.

    Attributes:
        life: Which life that is.
        answer: The answer that its record has, to be graded again; None without one.
        at: When it was submitted.
    """

    life: int
    answer: str | None = None
    at: datetime | None = None


Event: TypeAlias = (
    Begun
    | Asked
    | Touched
    | Answered
    | EndedItself
    | EndWanted
    | TakenOver
    | Broke
    | Finished
    | Examined
    | Recorded
    | Closed
    | NotBack
    | Resumed
)


# What is to be done.


@dataclass(frozen=True, slots=True)
class StartDriver:
    """Run the template to its prompt.

    Attributes:
        ready: Whether it may grade once it has asked; else with `GetReady`.
    """

    ready: bool


@dataclass(frozen=True, slots=True)
class GetReady:
    """Let the template grade from now on."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Resume the template with the answer."""

    answer: str


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Throw into the template that waits for an answer: there will be none."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Abort:
    """Cancel the template, whatever it does."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class StartCommands:
    """Perform the calls that wait, and those that come."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Cut the running call off, and wait for nothing."""


@dataclass(frozen=True, slots=True)
class StopCommands:
    """Cut the running call off, let it let go of the world, and end direct access to it."""


@dataclass(frozen=True, slots=True)
class Examine:
    """Look whether the world lives that a grader could not use."""

    by_agent: bool


@dataclass(frozen=True, slots=True)
class Note:
    """Add a line to the session's log."""

    line: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write the end."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell everybody who waits for the end."""


@dataclass(frozen=True, slots=True)
class RefuseWaiting:
    """Refuse the calls that wait.

    Attributes:
        died: What the world died of that comes back; None where the session is over.
    """

    died: str | None = None


@dataclass(frozen=True, slots=True)
class CloseWorld:
    """Close the world."""


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write what was logged since the last step, which closes this life.

    Attributes:
        release: Whether another server process may have the session then.
    """

    release: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Make the next life of the world, and bring it to the last recorded step."""


Effect: TypeAlias = (
    StartDriver
    | GetReady
    | Submit
    | Dismiss
    | Abort
    | StartCommands
    | CutOff
    | StopCommands
    | Examine
    | Note
    | Record
    | Tell
    | RefuseWaiting
    | CloseWorld
    | WriteLog
    | Resume
)

Decision: TypeAlias = tuple[State, tuple[Effect, ...]]


STOPPED = "its server was stopped, and the session waits in its record"
"""The line of a log where the server of a session was stopped; where it is not, it died."""
DIED_IN_GRADING = "its world died before it had a grade; it is brought back, and graded again"
"""The line of a log by which such deaths are counted."""


def decide(state: State, event: Event) -> Decision:
    """What a session is after an event, and what is to be done.

    Args:
        state: What it is.
        event: What has happened to it. One of an older life, or after the end, is of no account.

    Returns:
        The next state, and the effects in their order.
    """
    if state.is_over or getattr(event, "life", state.life) != state.life:
        return state, ()
    return _RULES[type(event)](state, event)


def _begun(state: State, _: Begun) -> Decision:
    if state.is_driven or state.phase not in (Phase.STARTING, Phase.RESUMING):
        return state, ()
    return replace(state, is_driven=True), (StartDriver(ready=state.phase is Phase.STARTING),)


def _asked(state: State, _: Asked) -> Decision:
    if state.phase is not Phase.STARTING:
        return state, ()
    return replace(state, phase=Phase.OPEN), (StartCommands(),)


def _touched(state: State, _: Touched) -> Decision:
    return replace(state, provisional=False), ()


def _answered(state: State, event: Answered) -> Decision:
    if state.phase is not Phase.OPEN:  # it came too late, and the record has it
        return state, ()
    state = replace(state, answer=event.answer, answered_at=event.at)
    if event.died is not None and event.comes_back:
        return _lay_down(state, event.died)
    return replace(state, phase=Phase.GRADING), (Submit(event.answer),)


def _ended_itself(state: State, _: EndedItself) -> Decision:
    if state.phase is Phase.STARTING:
        return replace(state, phase=Phase.GRADING), ()
    if state.phase is Phase.OPEN:
        return replace(state, phase=Phase.GRADING), (CutOff(),)
    return state, ()


def _end_wanted(state: State, event: EndWanted) -> Decision:
    ending, hurry = event.ending, (Abort(event.ending),) if event.abort else ()
    match state.phase:
        case Phase.STARTING | Phase.RESUMING:
            return _abort(state, ending)
        case Phase.OPEN:
            state = replace(state, phase=Phase.ENDING, ending=ending)
            last = Abort(ending) if event.abort else Dismiss(ending)
            return state, (StopCommands(), last)
        case Phase.GRADING if not event.abort:
            return state, ()
        case Phase.GRADING:
            return replace(state, wanted=state.wanted or ending), (CutOff(), *hurry)
        case Phase.LAID_DOWN:
            return replace(state, wanted=state.wanted or ending), hurry
        case _:
            wanted = (state.wanted or ending) if event.abort else state.wanted
            return replace(state, wanted=wanted), hurry


def _taken_over(state: State, _: TakenOver) -> Decision:
    return _end_wanted(replace(state, taken=True), EndWanted(Ending.left_to_record(), abort=True))


def _broke(state: State, event: Broke) -> Decision:
    if state.phase is not Phase.OPEN:
        return state, ()
    if event.verdict is Verdict.COMES_BACK:
        return _lay_down(state, event.reason)
    text = event.reason
    ending = event.ending or Ending(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    return replace(state, phase=Phase.ENDING, ending=ending), (StopCommands(), Dismiss(ending))


def _finished(state: State, event: Finished) -> Decision:
    state = replace(state, is_driven=False)
    if state.phase is Phase.LAID_DOWN:
        return state, (StopCommands(), *_close_life(state))
    ending, graded = event.ending, state.phase is Phase.GRADING
    if state.phase is Phase.ENDING:
        ending = state.ending
    elif graded and state.wanted is not None and not _is_graded(ending):
        ending, graded = state.wanted, False
    elif state.phase is Phase.RESUMING and ending is not None and ending.cause is None:
        ending = not_back(state, ending.error)
    ending = ending or Ending(Outcome.LOST, error="cancelled", told="It was interrupted.")
    after = replace(state, phase=Phase.ENDING, ending=ending)
    if graded and ending.outcome is Outcome.ENVIRONMENT_FAILED:
        examine = Examine(by_agent=ending.cause is Cause.AGENT)
        return replace(after, ending=replace(ending, cause=None)), (StopCommands(), examine)
    return after, (StopCommands(), *_record(state, ending))


def _examined(state: State, event: Examined) -> Decision:
    ending = state.ending
    if state.phase is not Phase.ENDING or ending is None:
        return state, ()
    if state.wanted is not None:
        ending = state.wanted
    elif event.dead is None:
        pass
    elif state.died_in_grading or event.died_before:
        ending = event.again if event.has_changed else ending
    elif state.answer is not None and event.comes_back:
        state = replace(
            state, phase=Phase.LAID_DOWN, died=event.dead, died_in_grading=True, ending=None
        )
        notes = (Note(DIED_IN_GRADING), Note(f"its world died: {event.dead}"))
        return state, (*notes, *_close_life(state))
    return replace(state, ending=ending), _record(state, ending)


def _recorded(state: State, event: Recorded) -> Decision:
    ending = state.ending
    if state.phase is not Phase.ENDING or ending is None:
        return state, ()
    parked = event.taken or state.taken or ending.parked
    state = replace(
        state,
        phase=Phase.PARKED if parked else Phase.ENDED,
        receipt=None if parked else event.receipt,
        taken=state.taken or event.taken,
    )
    release = parked and not state.taken
    return state, (Tell(), RefuseWaiting(), CloseWorld(), WriteLog(release=release))


def _closed(state: State, _: Closed) -> Decision:
    if state.phase is not Phase.LAID_DOWN:
        return state, ()
    if state.wanted is not None:
        ending = state.wanted
        return replace(state, phase=Phase.ENDING, ending=ending), _record(state, ending)
    return replace(state, phase=Phase.RESUMING, life=state.life + 1), (Resume(),)


def _not_back(state: State, event: NotBack) -> Decision:
    return (state, ()) if state.phase is not Phase.RESUMING else _abort(state, event.ending)


def _resumed(state: State, event: Resumed) -> Decision:
    if state.phase is not Phase.RESUMING:
        return state, ()
    state = replace(state, died=None)
    answer = state.answer if state.answer is not None else event.answer
    if answer is None:
        return replace(state, phase=Phase.OPEN), (GetReady(),)
    at = event.at if event.at is not None else state.answered_at
    state = replace(state, phase=Phase.GRADING, answer=answer, answered_at=at)
    return state, (GetReady(), Submit(answer))


def _lay_down(state: State, reason: str) -> Decision:
    """Have what is left of the world closed, before it is brought back."""
    after = replace(state, phase=Phase.LAID_DOWN, died=reason)
    return after, (Note(f"its world died: {reason}"), Dismiss(Ending.left_to_record()))


def _abort(state: State, ending: Ending) -> Decision:
    """End what is being started or resumed."""
    after = replace(state, phase=Phase.ENDING, ending=ending)
    if state.is_driven:
        return after, (CutOff(), Abort(ending))
    return after, (StopCommands(), *_record(state, ending))


def _record(state: State, ending: Ending) -> tuple[Effect, ...]:
    """Have the end written; one that waits in its record says so, unless it was not back."""
    is_left = ending.parked and state.phase is not Phase.RESUMING and not state.taken
    return (*((Note(STOPPED),) if is_left else ()), Record(ending))


def _close_life(state: State) -> tuple[Effect, ...]:
    return RefuseWaiting(died=state.died or ""), CloseWorld(), WriteLog()


def not_back(state: State, why: str | None) -> Ending:
    """How a session ends that could not be brought back."""
    if state.died is not None:
        text = f"Its world died ({state.died}), and it could not be brought back: {why}"
        return Ending(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    text = f"Its server ended, and it could not be brought back: {why}"
    return Ending(Outcome.LOST, error=text, told=text)


def _is_graded(ending: Ending | None) -> bool:
    return ending is not None and ending.outcome is Outcome.GRADED


_RULES: Mapping[type, Callable[[State, Any], Decision]] = {
    Begun: _begun,
    Asked: _asked,
    Touched: _touched,
    Answered: _answered,
    EndedItself: _ended_itself,
    EndWanted: _end_wanted,
    TakenOver: _taken_over,
    Broke: _broke,
    Finished: _finished,
    Examined: _examined,
    Recorded: _recorded,
    Closed: _closed,
    NotBack: _not_back,
    Resumed: _resumed,
}
"""What each kind of event makes of a session that is not over."""

"""The whole truth of a session: what it is now, and what happens to it next.

`decide` is a table without I/O, clock or event loop: a state and what has happened give the next
state, and what is to be done. Nothing else changes a session. Facts that only I/O knows, such as
whether a world is dead, come inside the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from hud_mcp.record.trajectory import Receipt
from hud_mcp.session import events as ev
from hud_mcp.session.events import SHOWN, Meets, Phase, SessionState
from hud_mcp.session.session_end import SessionEnd, died_again, not_back
from hud_mcp.values.grade import Outcome

__all__ = ["Decision", "State", "decide"]


class State(NamedTuple):
    """What a session is.

    Attributes:
        phase: What it is doing.
        life: How many worlds it had before this one: what an older one reports is of no account.
        is_driven: Whether its template runs in this life.
        is_back: Whether its world is what its record says, or will be as it is started.
        is_prompted: Whether it was asked: its prompt is durable.
        provisional: Whether nobody has acted on it, so that it expires early.
        has_ended_wait: Whether its template's own deadline has ended the wait for an answer.
        answer: What was submitted; None before.
        answered_at: When; None where nothing was.
        wanted: How somebody has it end; None while nobody does.
        end: How it ends, once that is decided.
        died: What its world died of, until it is back.
        died_in_grading: Whether its world died before under its grader.
        failed: How its grading failed that is made again, from the same answer; None before.
        taken: Whether another server process has it: nothing is written here any more.
        receipt: How it ended, once that is written.
        is_closed: Whether its last world is closed, and its log is written.
    """

    phase: Phase = Phase.STARTING
    life: int = 0
    is_driven: bool = False
    is_back: bool = True
    is_prompted: bool = False
    provisional: bool = False
    has_ended_wait: bool = False
    answer: str | None = None
    answered_at: datetime | None = None
    wanted: SessionEnd | None = None
    end: SessionEnd | None = None
    died: str | None = None
    died_in_grading: bool = False
    failed: SessionEnd | None = None
    taken: bool = False
    receipt: Receipt | None = None
    is_closed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it here any more."""
        return self.phase in (Phase.ENDED, Phase.PARKED)

    @property
    def is_leaving(self) -> bool:
        """Whether it ends here alone, and goes on in its record, as far as is known by now."""
        decided = self.end or self.wanted
        return self.phase is not Phase.ENDED and decided is not None and decided.parked

    @property
    def is_let_go(self) -> bool:
        """Whether it goes on without this process: in its record, or in another server's hands."""
        return self.phase is Phase.PARKED or self.taken or self.is_leaving

    @property
    def is_coming_back(self) -> bool:
        """Whether its world is resumed here, having died or to be graded: callers wait for it."""
        again = self.died is not None or self.failed is not None
        return again and self.phase in (Phase.LAID_DOWN, Phase.RESUMING)

    @property
    def is_graded(self) -> bool:
        """Whether its template grades, or will, whatever becomes of its world meanwhile."""
        waits = self.answered_at is None and not self.has_ended_wait
        return self.phase is Phase.GRADING or not (waits or self.is_over)

    @property
    def is_at_work(self) -> bool:
        """Whether something goes on in it by itself, which no call waits for."""
        ends = self.phase in (Phase.GRADING, Phase.EXAMINING, Phase.ENDING)
        return ends or self.is_coming_back

    @property
    def told(self) -> str | None:
        """What is told of its end, or of what is wanted to end it."""
        decided = self.end or self.wanted
        return None if decided is None else decided.told

    @property
    def shown(self) -> SessionState:
        """What callers are told of what it is doing."""
        if self.is_graded and (self.phase is not Phase.RESUMING or self.failed is not None):
            return "grading"
        if self.phase is Phase.ENDING and not (self.is_back and self.is_prompted):
            return "starting" if self.is_back else "resuming"
        return SHOWN[self.phase]

    @property
    def meets(self) -> Meets:
        """What a call meets now that would reach the world."""
        if self.phase is Phase.OPEN:  # the most frequent: an open one has no answer
            return Meets.WORLD
        if self.is_over:
            return Meets.END
        if self.phase is Phase.RESUMING:
            return Meets.RESUMING
        if self.is_graded:
            return Meets.ANSWER
        return Meets.START if self.phase in (Phase.STARTING, Phase.LAID_DOWN) else Meets.WORLD

    def may_be_taken(self, *, is_behind: bool, can_resume: bool) -> bool:
        """Whether another server process could resume it.

        Args:
            is_behind: Whether its world was used directly, and no snapshot has that.
            can_resume: Whether its world can be resumed from what is recorded.
        """
        return self.is_prompted and not self.provisional and not is_behind and can_resume


Decision: TypeAlias = tuple[State, tuple[ev.Effect, ...]]


def decide(state: State, event: ev.Event) -> Decision:
    """What a session is after an event, and what is to be done.

    Args:
        state: What it is.
        event: What has happened to it. One of an older life, or after the end, is of no account.

    Returns:
        The next state, and the effects in their order.
    """
    if getattr(event, "life", state.life) != state.life:
        return state, ()
    if state.is_over:
        return _after_the_end(state, event), ()
    return _RULES[type(event)](state, event)


def _after_the_end(state: State, event: ev.Event) -> State:
    """An end is final; its world is closed afterwards, and its record may be another's."""
    match event:
        case ev.Closed():
            return state._replace(is_closed=True)
        case ev.TakenOver():
            return state._replace(taken=True)
        case ev.Recorded() if state.receipt is not None and event.receipt is not None:
            return state._replace(receipt=event.receipt)  # what stood in the record before
        case _:
            return state


def _staged(state: State, _: ev.Staged) -> Decision:
    if state.is_driven or state.phase not in (Phase.STARTING, Phase.RESUMING):
        return state, ()
    return state._replace(is_driven=True), (ev.StartDriver(),)


def _prompted(state: State, _: ev.Prompted) -> Decision:
    state = state._replace(is_prompted=True)
    if state.phase is not Phase.STARTING or not state.is_driven:  # it may be graded by now
        return state, ()
    return state._replace(phase=Phase.OPEN), (ev.StartCommands(),)


def _claimed(state: State, _: ev.Claimed) -> Decision:
    begins = state.phase is Phase.RESUMING and not state.is_driven and state.died is None
    return state, (ev.Resume(),) if begins else ()


def _touched(state: State, _: ev.Touched) -> Decision:
    return state._replace(provisional=False), ()


def _answered(state: State, event: ev.Answered) -> Decision:
    if state.answer is not None or state.phase in (Phase.STARTING, Phase.RESUMING):
        return state, ()
    state = state._replace(answer=event.answer, answered_at=event.at)
    if state.phase is not Phase.OPEN:  # it came too late, and the record has it
        return state, ()
    if event.died is not None and event.can_resume:
        return _lay_down(state, event.died)
    return state._replace(phase=Phase.GRADING), (ev.Submit(event.answer),)


def _ended_itself(state: State, _: ev.EndedItself) -> Decision:
    match state.phase:
        case _ if not state.is_driven:
            return state, ()
        case Phase.STARTING:
            return state._replace(phase=Phase.GRADING, has_ended_wait=True), (ev.Proceed(),)
        case Phase.OPEN:
            state = state._replace(phase=Phase.GRADING, has_ended_wait=True)
            return state, (ev.CutOff(), ev.Proceed())
        case Phase.RESUMING:  # it may grade once its world is back
            return state._replace(has_ended_wait=True), ()
        case _:
            return state, ()


def _end_wanted(state: State, event: ev.EndWanted) -> Decision:
    end, at_once = event.end, (ev.Abort(event.end),) if event.abort else ()
    if state.is_graded and not event.abort:  # it ends with its grade
        return state, ()
    match state.phase:
        case Phase.STARTING | Phase.RESUMING:
            return _abort(state, end)
        case Phase.OPEN:
            answer = state.answer if event.answer is None else event.answer
            state = state._replace(phase=Phase.ENDING, end=end, answer=answer)
            return state, (ev.StopCommands(), *(at_once or (ev.Dismiss(end),)))
        case Phase.GRADING:
            return state._replace(wanted=state.wanted or end), (ev.CutOff(), *at_once)
        case Phase.LAID_DOWN:
            return state._replace(wanted=state.wanted or end), at_once
        case _:
            wanted = state.wanted or (end if event.abort else None)
            return state._replace(wanted=wanted), at_once


def _taken_over(state: State, _: ev.TakenOver) -> Decision:
    left = ev.EndWanted(SessionEnd.left_to_record(), abort=True)
    return _end_wanted(state._replace(taken=True), left)


def _broke(state: State, event: ev.Broke) -> Decision:
    if state.phase is not Phase.OPEN:
        return state, ()
    if event.end is None:
        return _lay_down(state, event.reason)
    state = state._replace(phase=Phase.ENDING, end=event.end)
    return state, (ev.StopCommands(), ev.Dismiss(event.end))


def _rested(state: State, _: ev.Rested) -> Decision:
    return state, (ev.CatchUp(),) if state.phase is Phase.OPEN else ()


def _finished(state: State, event: ev.Finished) -> Decision:
    if not state.is_driven:
        return state, ()
    state = state._replace(is_driven=False)
    if state.phase is Phase.LAID_DOWN:
        return state, (ev.StopCommands(), *_close_life(state))
    end, graded = event.end, state.phase is Phase.GRADING
    has_grade = end is not None and end.outcome is Outcome.GRADED
    if state.phase is Phase.ENDING and not state.taken:
        end = state.end
    elif state.wanted is not None and not has_grade:
        end, graded = state.wanted, False
    elif not graded and has_grade:  # nothing was to be graded
        end = None
    end = end or SessionEnd(Outcome.LOST, error="cancelled", told="It was interrupted.")
    end = _as_it_is(state, end)
    after = state._replace(phase=Phase.ENDING, end=end)
    if graded and end.outcome in (Outcome.ENVIRONMENT_FAILED, Outcome.GRADING_FAILED):
        examine = ev.Examine(end.told)
        after = after._replace(phase=Phase.EXAMINING, end=replace(end, cause=None))
        return after, (ev.StopCommands(), examine)
    return after, (ev.StopCommands(), _record(state, end))


def _examined(state: State, event: ev.Examined) -> Decision:
    end = state.wanted or state.end
    if state.phase is not Phase.EXAMINING or end is None:
        return state, ()
    can_grade_again = state.answered_at is not None and event.can_resume
    if state.wanted is not None:
        pass
    elif event.died is None or end.outcome is Outcome.GRADING_FAILED:
        if can_grade_again and state.failed is None and not event.failed_before:
            return _grade_again(state, end)
        # Never another run of the agent: what it left may be what its grader cannot look at.
        end = replace(end, outcome=Outcome.GRADING_FAILED)
    elif state.died_in_grading or event.died_before:
        end = died_again(event.died) if event.has_changed else end
    elif can_grade_again:
        state = state._replace(phase=Phase.LAID_DOWN, died=event.died, end=None)
        state = state._replace(died_in_grading=True)
        told = "its world died before it had a grade; it is brought back, and graded again"
        notes = (ev.Mark("died_in_grading"), ev.LogLine(told))
        died = ev.LogLine(f"its world died: {event.died}")
        return state, (*notes, died, *_close_life(state))
    end = _as_it_is(state, end)
    return state._replace(phase=Phase.ENDING, end=end), (_record(state, end),)


def _grade_again(state: State, end: SessionEnd) -> Decision:
    """Grade the same answer once more, in the same world as its record has it."""
    state = state._replace(phase=Phase.LAID_DOWN, failed=end, end=None)
    told = f"its grading failed, and the same answer is graded again: {end.error or end.told}"
    notes = (ev.Mark("failed_in_grading"), ev.LogLine(told))
    return state, (*notes, *_close_life(state))


def _recorded(state: State, event: ev.Recorded) -> Decision:
    end = state.end
    if state.phase is not Phase.ENDING or state.is_driven or end is None:
        return state, ()
    taken = state.taken or event.taken
    parked = taken or end.parked
    state = state._replace(
        phase=Phase.PARKED if parked else Phase.ENDED,
        receipt=None if parked else event.receipt,
        taken=taken,
    )
    return state, (
        ev.Tell(),
        ev.RefuseWaiting(),
        ev.CloseWorld(),
        ev.WriteLog(release=parked and not taken),
    )


def _closed(state: State, _: ev.Closed) -> Decision:
    if state.phase is not Phase.LAID_DOWN or state.is_driven:
        return state, ()
    if state.wanted is not None:
        end = _as_it_is(state, state.wanted)
        return state._replace(phase=Phase.ENDING, end=end), (_record(state, end),)
    state = state._replace(phase=Phase.RESUMING, life=state.life + 1, is_back=False)
    return state._replace(has_ended_wait=False), (ev.Resume(),)


def _not_back(state: State, event: ev.NotBack) -> Decision:
    return (state, ()) if state.phase is not Phase.RESUMING else _abort(state, event.end)


def _resumed(state: State, event: ev.Resumed) -> Decision:
    if state.phase is not Phase.RESUMING or not state.is_driven:
        return state, ()
    state = state._replace(died=None, is_back=True, is_prompted=True)
    answer = event.answer if state.answer is None else state.answer
    if answer is not None:
        at = state.answered_at if event.at is None else event.at
        state = state._replace(phase=Phase.GRADING, answer=answer, answered_at=at)
        return state, (ev.Submit(answer),)
    if state.has_ended_wait:
        return state._replace(phase=Phase.GRADING), (ev.Proceed(),)
    return state._replace(phase=Phase.OPEN), ()


def _lay_down(state: State, reason: str) -> Decision:
    """Have what is left of the world closed, before it is resumed."""
    left = ev.Dismiss(SessionEnd.left_to_record())
    after = state._replace(phase=Phase.LAID_DOWN, died=reason)
    return after, (ev.LogLine(f"its world died: {reason}"), ev.StopCommands(), left)


def _abort(state: State, end: SessionEnd) -> Decision:
    """End what is being started or resumed."""
    end = _as_it_is(state, end)
    after = state._replace(phase=Phase.ENDING, end=end)
    if state.is_driven:
        return after, (ev.CutOff(), ev.Abort(end))
    return after, (ev.StopCommands(), _record(state, end))


def _as_it_is(state: State, end: SessionEnd) -> SessionEnd:
    """An end by itself while the world is resumed is the end of that; another's, no end."""
    if state.taken:
        return SessionEnd.left_to_record()
    by_itself = not end.parked and end.cause is None and state.end is None
    if by_itself and not state.is_back and state.failed is not None:
        return state.failed  # it stands, as nothing is there to be graded again
    return not_back(state.died, end.error) if by_itself and not state.is_back else end


def _record(state: State, end: SessionEnd) -> ev.Record:
    """Have the end written; a record that is left as it was says nothing of that."""
    says = end.parked and state.is_back and not state.taken
    return ev.Record(end, was_stopped=says)


def _close_life(state: State) -> tuple[ev.Effect, ...]:
    return ev.RefuseWaiting(died=state.died), ev.CloseWorld(), ev.WriteLog()


_RULES: Mapping[type, Callable[[State, Any], Decision]] = {
    ev.Staged: _staged,
    ev.Prompted: _prompted,
    ev.Claimed: _claimed,
    ev.Touched: _touched,
    ev.Answered: _answered,
    ev.EndedItself: _ended_itself,
    ev.EndWanted: _end_wanted,
    ev.TakenOver: _taken_over,
    ev.Broke: _broke,
    ev.Rested: _rested,
    ev.Finished: _finished,
    ev.Examined: _examined,
    ev.Recorded: _recorded,
    ev.Closed: _closed,
    ev.NotBack: _not_back,
    ev.Resumed: _resumed,
}
"""What each kind of event makes of a session that is not over."""

"""The state of a session, and the one table that changes it, without I/O, clock or event loop."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from hud_mcp.record.values import Receipt
from hud_mcp.session import events as ev
from hud_mcp.session.events import SHOWN, Meets, Phase, SessionState
from hud_mcp.session.session_end import SessionEnd, died_again, not_back
from hud_mcp.values.grade import Outcome


class State(NamedTuple):
    """The state of a session.

    Attributes:
        phase: The phase.
        life: The number of worlds before this one. Events of an older world are ignored.
        is_driven: Whether the template runs in this life.
        is_back: Whether the world is at its last recorded step, or begins there.
        is_prompted: Whether the prompt is durable.
        provisional: Whether nobody has acted on the session, so that it expires early.
        has_ended_wait: Whether the template's own deadline has ended the wait for an answer.
        answer: The submitted answer; None before.
        answered_at: The time of the submission; None before.
        by_message: Whether the answer is a message to a user, after which the template graded.
        wanted: The end that a caller, a limit or the server wants; None without one.
        end: The end, once decided.
        died: The cause of the world's death, until it is back.
        died_in_grading: Whether the world died before under its grader.
        failed: The failure of a grading that is made again from the same answer; else None.
        taken: Whether another server process has the session: nothing is written here then.
        receipt: The receipt, once written.
        is_closed: Whether the last world is closed, and the log is written.
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
    by_message: bool = False
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
        """Whether the session is over here."""
        return self.phase in (Phase.ENDED, Phase.PARKED)

    @property
    def is_leaving(self) -> bool:
        """Whether the session ends only here, and goes on in its record, as far as known."""
        decided = self.end or self.wanted
        return self.phase is not Phase.ENDED and decided is not None and decided.parked

    @property
    def is_let_go(self) -> bool:
        """Whether the session goes on without this process, in its record or in another server."""
        return self.phase is Phase.PARKED or self.taken or self.is_leaving

    @property
    def is_coming_back(self) -> bool:
        """Whether the world is being resumed here, after a death or for a grade: callers wait."""
        # A failed grading counts too: its world is opened again for the same answer.
        again = self.died is not None or self.failed is not None
        return again and self.phase in (Phase.LAID_DOWN, Phase.RESUMING)

    @property
    def is_graded(self) -> bool:
        """Whether the template grades, or will grade even if its world dies meanwhile."""
        waits = self.answered_at is None and not self.has_ended_wait
        return self.phase is Phase.GRADING or not (waits or self.is_over)

    @property
    def is_at_work(self) -> bool:
        """Whether the session works by itself, without a call that waits."""
        ends = self.phase in (Phase.GRADING, Phase.EXAMINING, Phase.ENDING)
        return ends or self.is_coming_back

    @property
    def told(self) -> str | None:
        """The text of the end, or of the wanted end."""
        decided = self.end or self.wanted
        return None if decided is None else decided.told

    @property
    def shown(self) -> SessionState:
        """The phase's name for callers."""
        # A resumption for another grading is still a grading to callers; any other one is shown.
        if self.is_graded and (self.phase is not Phase.RESUMING or self.failed is not None):
            return "grading"
        if self.phase is Phase.ENDING and not (self.is_back and self.is_prompted):
            return "starting" if self.is_back else "resuming"
        return SHOWN[self.phase]

    @property
    def meets(self) -> Meets:
        """The obstacle that a call for the world meets."""
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
        """Whether another server could resume it; `is_behind` after an unrecorded direct use."""
        return self.is_prompted and not self.provisional and not is_behind and can_resume


Decision: TypeAlias = tuple[State, tuple[ev.Effect, ...]]


def decide(state: State, event: ev.Event) -> Decision:
    """Return the next state, and the effects in their order; late events change nothing."""
    # A late report of an older world must not change the life that has replaced it.
    if getattr(event, "life", state.life) != state.life:
        return state, ()
    if state.is_over:
        return _after_the_end(state, event), ()
    return _RULES[type(event)](state, event)


def _after_the_end(state: State, event: ev.Event) -> State:
    """Note late facts. An end is final, but its world closes later, and its record may move."""
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
    # A start that was ended while its world was prepared must not run its template.
    if state.is_driven or state.phase not in (Phase.STARTING, Phase.RESUMING):
        return state, ()
    return state._replace(is_driven=True), (ev.StartDriver(),)


def _prompted(state: State, _: ev.Prompted) -> Decision:
    state = state._replace(is_prompted=True)
    if state.phase is not Phase.STARTING or not state.is_driven:  # it may be graded by now
        return state, ()
    return state._replace(phase=Phase.OPEN), (ev.StartCommands(),)


def _claimed(state: State, _: ev.Claimed) -> Decision:
    # After a death here, `Closed` has begun the resumption already.
    begins = state.phase is Phase.RESUMING and not state.is_driven and state.died is None
    return state, (ev.Resume(),) if begins else ()


def _touched(state: State, _: ev.Touched) -> Decision:
    return state._replace(provisional=False), ()


def _answered(state: State, event: ev.Answered) -> Decision:
    # The first answer counts, and a world that is not at its record takes none.
    if state.answer is not None or state.phase in (Phase.STARTING, Phase.RESUMING):
        return state, ()
    state = state._replace(answer=event.answer, answered_at=event.at, by_message=event.by_message)
    if state.phase is not Phase.OPEN:  # it came too late, and the record has it
        return state, ()
    # The grader needs a living world: it is resumed first, and the answer submitted then.
    if event.died is not None and event.can_resume:
        return _lay_down(state, event.died)
    return state._replace(phase=Phase.GRADING), (ev.Submit(event.answer),)


def _ended_itself(state: State, _: ev.EndedItself) -> Decision:
    match state.phase:
        case _ if not state.is_driven:
            return state, ()
        case Phase.STARTING:
            # The prompt may not be durable yet; the template's deadline ends the wait all the same.
            return state._replace(phase=Phase.GRADING, has_ended_wait=True), (ev.Proceed(),)
        case Phase.OPEN:
            state = state._replace(phase=Phase.GRADING, has_ended_wait=True)
            # No call may act on the world while it is graded.
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
            # A waiting template is told of the end and may clean up; an abort cancels it.
            return state, (ev.StopCommands(), *(at_once or (ev.Dismiss(end),)))
        case Phase.GRADING:
            # The grade may still come first. Then it counts: see `_finished`.
            return state._replace(wanted=state.wanted or end), (ev.CutOff(), *at_once)
        case Phase.LAID_DOWN:
            return state._replace(wanted=state.wanted or end), at_once
        case _:
            wanted = state.wanted or (end if event.abort else None)
            return state._replace(wanted=wanted), at_once


def _taken_over(state: State, _: ev.TakenOver) -> Decision:
    # The other server goes on with the session, so this one must write nothing and end.
    left = ev.EndWanted(SessionEnd.left_to_record(), abort=True)
    return _end_wanted(state._replace(taken=True), left)


def _broke(state: State, event: ev.Broke) -> Decision:
    # In any other phase a grader or the template meets the broken world, and reports it.
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
    # An earlier decision stands, whatever the template did while it cleaned up.
    if state.phase is Phase.ENDING and not state.taken:
        end = state.end
    # The wanted end has waited for the grade, which did not come.
    elif state.wanted is not None and not has_grade:
        end, graded = state.wanted, False
    elif not graded and has_grade:  # nothing was to be graded
        end = None
    end = end or SessionEnd(Outcome.LOST, error="cancelled", told="It was interrupted.")
    end = _as_it_is(state, end)
    after = state._replace(phase=Phase.ENDING, end=end)
    # A failed grader may have met a dead world, which can be resumed and graded again.
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
    # One death under a grader may be chance; a second one is the agent's, if it has acted.
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
    # Recorded, so that a server that resumes the session makes no third grading.
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
    # Callers hear of the end first, because closing a world may take a while.
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
    # A new number, so that late reports of the dead world are ignored.
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
        by_message = state.by_message or event.by_message
        state = state._replace(
            phase=Phase.GRADING, answer=answer, answered_at=at, by_message=by_message
        )
        return state, (ev.Submit(answer),)
    if state.has_ended_wait:
        return state._replace(phase=Phase.GRADING), (ev.Proceed(),)
    return state._replace(phase=Phase.OPEN), ()


def _lay_down(state: State, reason: str) -> Decision:
    """Have the remains of a dead world closed, before it is resumed."""
    # Parked, so that the template learns that its session goes on.
    left = ev.Dismiss(SessionEnd.left_to_record())
    after = state._replace(phase=Phase.LAID_DOWN, died=reason)
    return after, (ev.LogLine(f"its world died: {reason}"), ev.StopCommands(), left)


def _abort(state: State, end: SessionEnd) -> Decision:
    """End a session that is being started or resumed."""
    end = _as_it_is(state, end)
    after = state._replace(phase=Phase.ENDING, end=end)
    if state.is_driven:
        return after, (ev.CutOff(), ev.Abort(end))
    return after, (ev.StopCommands(), _record(state, end))


def _as_it_is(state: State, end: SessionEnd) -> SessionEnd:
    """Return the end that counts.

    An end of the template's own, while its world is resumed, is the resumption's failure. The end
    of a session that another server has is no end.
    """
    # The other server decides on the end; one from here would contradict it.
    if state.taken:
        return SessionEnd.left_to_record()
    by_itself = not end.parked and end.cause is None and state.end is None
    if by_itself and not state.is_back and state.failed is not None:
        return state.failed  # it stands, as nothing is there to be graded again
    return not_back(state.died, end.error) if by_itself and not state.is_back else end


def _record(state: State, end: SessionEnd) -> ev.Record:
    """Have the end written; a record that is left to another server says nothing of it."""
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
"""The rule of each kind of event, for a session that is not over."""

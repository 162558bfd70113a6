"""The table of a session's life: every event in every state, and what holds whatever happens."""

from dataclasses import replace
from typing import Any

from states import AT, BROKEN, CANCELLED, GRADED, LEFT, MADE, STORED, UNGRADED, receipt_of
from tables import each_of

from hud_mcp.session import events as do
from hud_mcp.session import events as ev
from hud_mcp.session.events import Meets, Phase
from hud_mcp.session.state import State, decide

STARTING = State(is_driven=True)
OPEN = State(Phase.OPEN, is_driven=True, is_prompted=True)
GRADING = OPEN._replace(phase=Phase.GRADING, answer="4", answered_at=AT)
LAID_DOWN = OPEN._replace(phase=Phase.LAID_DOWN, died="gone")
ENDING = OPEN._replace(phase=Phase.ENDING, end=CANCELLED)
EXAMINED = GRADING._replace(phase=Phase.EXAMINING, end=BROKEN, is_driven=False)
STATES: dict[str, State] = {
    "made": MADE,
    "starting": STARTING,
    "open": OPEN,
    "grading": GRADING,
    "own end": OPEN._replace(phase=Phase.GRADING, has_ended_wait=True),
    "grading, aborted": GRADING._replace(wanted=CANCELLED),
    "laid down": LAID_DOWN,
    "laid down, ended": LAID_DOWN._replace(wanted=CANCELLED),
    "laid down, answered": LAID_DOWN._replace(answer="4", answered_at=AT),
    "stored": STORED,
    "resuming": STORED._replace(is_driven=True),
    "resuming, own end": STORED._replace(is_driven=True, has_ended_wait=True),
    "reviving": OPEN._replace(phase=Phase.RESUMING, life=1, is_back=False, died="gone"),
    "reviving, answered": GRADING._replace(phase=Phase.RESUMING, life=1, is_back=False, died="x"),
    "ending": ENDING,
    "leaving": ENDING._replace(end=LEFT),
    "leaving, not back": STORED._replace(phase=Phase.ENDING, is_driven=True, end=LEFT),
    "left": ENDING._replace(is_driven=False, end=LEFT),
    "left, taken": ENDING._replace(is_driven=False, end=LEFT, taken=True),
    "graded": GRADING._replace(phase=Phase.ENDING, end=GRADED, is_driven=False),
    "laid down, closed": LAID_DOWN._replace(is_driven=False),
    "laid down, ended, closed": LAID_DOWN._replace(is_driven=False, wanted=CANCELLED),
    "examined": EXAMINED,
    "examined, stopped": EXAMINED._replace(wanted=LEFT),
    "examined again": EXAMINED._replace(died_in_grading=True),
    "failed": EXAMINED._replace(end=UNGRADED),
    "failed, its own end": EXAMINED._replace(end=UNGRADED, answered_at=None, has_ended_wait=True),
    "failed again": EXAMINED._replace(end=UNGRADED, failed=UNGRADED),
    "laid down, failed": GRADING._replace(phase=Phase.LAID_DOWN, failed=UNGRADED, is_driven=False),
    "reviving, failed": GRADING._replace(
        phase=Phase.RESUMING, life=1, is_back=False, failed=UNGRADED
    ),
    "parked": State(Phase.PARKED, end=LEFT),
    "ended": State(Phase.ENDED, end=CANCELLED, receipt=receipt_of(CANCELLED)),
}
LIFE = -1
"""Stands for the life of the state that the event meets."""
EVENTS: dict[str, Any] = {
    "staged": ev.Staged(LIFE),
    "prompted": ev.Prompted(),
    "claimed": ev.Claimed(),
    "touched": ev.Touched(),
    "answered": ev.Answered(LIFE, "4", AT),
    "answered, dead": ev.Answered(LIFE, "4", AT, died="gone", can_resume=True),
    "answered, dead for good": ev.Answered(LIFE, "4", AT, died="gone", can_resume=False),
    "ended itself": ev.EndedItself(LIFE),
    "cancelled": ev.EndWanted(CANCELLED),
    "aborted": ev.EndWanted(CANCELLED, abort=True),
    "stopped": ev.EndWanted(LEFT, abort=True),
    "taken": ev.TakenOver(),
    "died": ev.Broke(LIFE, "gone", None),
    "broke": ev.Broke(LIFE, "it broke", BROKEN),
    "rested": ev.Rested(LIFE),
    "graded": ev.Finished(LIFE, GRADED),
    "not graded": ev.Finished(LIFE, UNGRADED),
    "failed": ev.Finished(LIFE, BROKEN),
    "ran out": ev.Finished(LIFE, None),
    "found dead": ev.Examined(LIFE, "gone", False, False, True, True),
    "found dead for good": ev.Examined(LIFE, "gone", False, False, True, False),
    "found dead again": ev.Examined(LIFE, "gone", True, False, True, True),
    "found alive": ev.Examined(LIFE, None, False, False, True, True),
    "found alive for good": ev.Examined(LIFE, None, False, False, True, False),
    "found alive again": ev.Examined(LIFE, None, False, True, True, True),
    "recorded": ev.Recorded(receipt_of(CANCELLED)),
    "recorded elsewhere": ev.Recorded(None, taken=True),
    "closed": ev.Closed(LIFE),
    "not back": ev.NotBack(LIFE, BROKEN),
    "left": ev.NotBack(LIFE, LEFT),
    "back": ev.Resumed(LIFE),
    "back, answered": ev.Resumed(LIFE, "4", AT),
}


def at_life(event: Any, life: int) -> Any:
    """An event as it comes from a life."""
    return replace(event, life=life) if hasattr(event, "life") else event


def told(before: State, event: Any) -> str:
    """What becomes of a state, in words: the phase and the end if they change, the effects."""
    state, effects = decide(before, at_life(event, before.life))
    names = " ".join(_name(effect) for effect in effects)
    phase = "" if state.phase is before.phase else state.phase.value
    end = state.end if state.end != before.end else None
    how = "" if end is None else f" ({'parked' if end.parked else end.outcome.value})"
    same = "=" if state == before else "~"
    return f"{phase}{how}: {names}" if phase or how or names else same


def _name(effect: Any) -> str:
    end = getattr(effect, "end", None)
    if isinstance(effect, do.RefuseWaiting):
        return "RefuseWaiting" if effect.died is None else "RefuseWaiting(died)"
    if isinstance(effect, do.WriteLog):
        return "WriteLog(release)" if effect.release else "WriteLog"
    name = type(effect).__name__
    if end is None:
        return name
    stopped = "+stopped" if getattr(effect, "was_stopped", False) else ""
    return f"{name}({'parked' if end.parked else end.outcome.value}{stopped})"


EXPECTED = """
staged
    : StartDriver
        made | stored
prompted
    ~
        made | stored | resuming | resuming, own end | leaving, not back
    open: StartCommands
        starting
claimed
    : Resume
        stored
answered
    grading: Submit
        open
    ~
        own end | laid down | laid down, ended | ending | leaving | leaving, not back | left
        | left, taken | laid down, closed | laid down, ended, closed
answered, dead
    laid down: LogLine StopCommands Dismiss(parked)
        open
    ~
        own end | laid down | laid down, ended | ending | leaving | leaving, not back | left
        | left, taken | laid down, closed | laid down, ended, closed
answered, dead for good
    grading: Submit
        open
    ~
        own end | laid down | laid down, ended | ending | leaving | leaving, not back | left
        | left, taken | laid down, closed | laid down, ended, closed
ended itself
    grading: Proceed
        starting
    grading: CutOff Proceed
        open
    ~
        resuming | reviving | reviving, answered | reviving, failed
cancelled
    ending (cancelled): StopCommands Record(cancelled)
        made | stored
    ending (cancelled): CutOff Abort(cancelled)
        starting | resuming | reviving
    ending (cancelled): StopCommands Dismiss(cancelled)
        open
    ~
        laid down | laid down, closed
aborted
    ending (cancelled): StopCommands Record(cancelled)
        made | stored
    ending (cancelled): CutOff Abort(cancelled)
        starting | resuming | resuming, own end | reviving | reviving, answered | reviving,
        failed
    ending (cancelled): StopCommands Abort(cancelled)
        open
    : CutOff Abort(cancelled)
        grading | own end | grading, aborted
    : Abort(cancelled)
        laid down | laid down, ended | laid down, answered | ending | leaving | leaving, not
        back | left | left, taken | graded | laid down, closed | laid down, ended, closed |
        examined | examined, stopped | examined again | failed | failed, its own end |
        failed again | laid down, failed
stopped
    ending (parked): StopCommands Record(parked+stopped)
        made
    ending (parked): CutOff Abort(parked)
        starting | resuming | resuming, own end | reviving | reviving, answered | reviving,
        failed
    ending (parked): StopCommands Abort(parked)
        open
    : CutOff Abort(parked)
        grading | own end | grading, aborted
    : Abort(parked)
        laid down | laid down, ended | laid down, answered | ending | leaving | leaving, not
        back | left | left, taken | graded | laid down, closed | laid down, ended, closed |
        examined | examined, stopped | examined again | failed | failed, its own end |
        failed again | laid down, failed
    ending (parked): StopCommands Record(parked)
        stored
taken
    ending (parked): StopCommands Record(parked)
        made | stored
    ending (parked): CutOff Abort(parked)
        starting | resuming | resuming, own end | reviving | reviving, answered | reviving,
        failed
    ending (parked): StopCommands Abort(parked)
        open
    : CutOff Abort(parked)
        grading | own end | grading, aborted
    : Abort(parked)
        laid down | laid down, ended | laid down, answered | ending | leaving | leaving, not
        back | left | left, taken | graded | laid down, closed | laid down, ended, closed |
        examined | examined, stopped | examined again | failed | failed, its own end |
        failed again | laid down, failed
    ~
        parked | ended
died
    laid down: LogLine StopCommands Dismiss(parked)
        open
broke
    ending (environment_failed): StopCommands Dismiss(environment_failed)
        open
rested
    : CatchUp
        open
graded
    ending (lost): StopCommands Record(lost)
        starting | open | resuming | resuming, own end
    ending (graded): StopCommands Record(graded)
        grading | own end | grading, aborted
    : StopCommands RefuseWaiting(died) CloseWorld WriteLog
        laid down | laid down, ended | laid down, answered
    ending (environment_failed): StopCommands Record(environment_failed)
        reviving | reviving, answered
    : StopCommands Record(cancelled)
        ending
    : StopCommands Record(parked+stopped)
        leaving
    : StopCommands Record(parked)
        leaving, not back
    ending (grading_failed): StopCommands Record(grading_failed)
        reviving, failed
not graded
    ending (grading_failed): StopCommands Record(grading_failed)
        starting | open | reviving, failed
    ending (cancelled): StopCommands Record(cancelled)
        grading, aborted
    : StopCommands RefuseWaiting(died) CloseWorld WriteLog
        laid down | laid down, ended | laid down, answered
    ending (lost): StopCommands Record(lost)
        resuming | resuming, own end
    ending (environment_failed): StopCommands Record(environment_failed)
        reviving | reviving, answered
    : StopCommands Record(cancelled)
        ending
    : StopCommands Record(parked+stopped)
        leaving
    : StopCommands Record(parked)
        leaving, not back
    examining (grading_failed): StopCommands Examine
        grading | own end
failed
    ending (environment_failed): StopCommands Record(environment_failed)
        starting | open | reviving | reviving, answered
    examining (environment_failed): StopCommands Examine
        grading | own end
    ending (cancelled): StopCommands Record(cancelled)
        grading, aborted
    : StopCommands RefuseWaiting(died) CloseWorld WriteLog
        laid down | laid down, ended | laid down, answered
    ending (lost): StopCommands Record(lost)
        resuming | resuming, own end
    : StopCommands Record(cancelled)
        ending
    : StopCommands Record(parked+stopped)
        leaving
    : StopCommands Record(parked)
        leaving, not back
    ending (grading_failed): StopCommands Record(grading_failed)
        reviving, failed
ran out
    ending (lost): StopCommands Record(lost)
        starting | open | grading | own end | resuming | resuming, own end
    ending (cancelled): StopCommands Record(cancelled)
        grading, aborted
    : StopCommands RefuseWaiting(died) CloseWorld WriteLog
        laid down | laid down, ended | laid down, answered
    ending (environment_failed): StopCommands Record(environment_failed)
        reviving | reviving, answered
    : StopCommands Record(cancelled)
        ending
    : StopCommands Record(parked+stopped)
        leaving
    : StopCommands Record(parked)
        leaving, not back
    ending (grading_failed): StopCommands Record(grading_failed)
        reviving, failed
found dead
    ending (parked): Record(parked+stopped)
        examined, stopped
    ending (graded): Record(graded)
        examined again
    laid down: Mark LogLine LogLine RefuseWaiting(died) CloseWorld WriteLog
        examined
    laid down: Mark LogLine RefuseWaiting CloseWorld WriteLog
        failed
    ending: Record(grading_failed)
        failed, its own end | failed again
found dead for good
    ending: Record(environment_failed)
        examined
    ending (parked): Record(parked+stopped)
        examined, stopped
    ending (graded): Record(graded)
        examined again
    ending: Record(grading_failed)
        failed | failed, its own end | failed again
found dead again
    ending (graded): Record(graded)
        examined | examined again
    ending (parked): Record(parked+stopped)
        examined, stopped
    laid down: Mark LogLine RefuseWaiting CloseWorld WriteLog
        failed
    ending: Record(grading_failed)
        failed, its own end | failed again
found alive
    ending (parked): Record(parked+stopped)
        examined, stopped
    laid down: Mark LogLine RefuseWaiting CloseWorld WriteLog
        examined | examined again | failed
    ending: Record(grading_failed)
        failed, its own end | failed again
found alive for good
    ending (grading_failed): Record(grading_failed)
        examined | examined again
    ending (parked): Record(parked+stopped)
        examined, stopped
    ending: Record(grading_failed)
        failed | failed, its own end | failed again
found alive again
    ending (grading_failed): Record(grading_failed)
        examined | examined again
    ending (parked): Record(parked+stopped)
        examined, stopped
    ending: Record(grading_failed)
        failed | failed, its own end | failed again
recorded
    parked: Tell RefuseWaiting CloseWorld WriteLog(release)
        left
    parked: Tell RefuseWaiting CloseWorld WriteLog
        left, taken
    ended: Tell RefuseWaiting CloseWorld WriteLog
        graded
recorded elsewhere
    parked: Tell RefuseWaiting CloseWorld WriteLog
        left | left, taken | graded
closed
    resuming: Resume
        laid down, closed | laid down, failed
    ending (cancelled): Record(cancelled)
        laid down, ended, closed
    ~
        parked | ended
not back
    ending (lost): StopCommands Record(lost)
        stored
    ending (lost): CutOff Abort(lost)
        resuming | resuming, own end
    ending (environment_failed): CutOff Abort(environment_failed)
        reviving | reviving, answered
    ending (grading_failed): CutOff Abort(grading_failed)
        reviving, failed
left
    ending (parked): StopCommands Record(parked)
        stored
    ending (parked): CutOff Abort(parked)
        resuming | resuming, own end | reviving | reviving, answered | reviving, failed
back
    open:
        resuming | reviving
    grading: Proceed
        resuming, own end
    grading: Submit
        reviving, answered | reviving, failed
back, answered
    grading: Submit
        resuming | resuming, own end | reviving | reviving, answered | reviving, failed
"""
"""What each event makes of each state: the phase, the end and the effects where they change.

A `~` stands for a change of nothing but what is known; a state that is not named stays as it is,
and nothing is done.
"""


def read_table(text: str) -> dict[tuple[str, str], str]:
    """What is expected, by event and state."""
    rows: list[list[str]] = []
    event = ""
    for line in text.strip().splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        if depth == 0:
            event = line
        elif depth == 1:
            rows.append([event, line.strip(), ""])
        else:
            rows[-1][2] += f" {line.strip()}"
    expected = [((event, s.strip()), what) for event, what, ss in rows for s in ss.split("|")]
    assert len(expected) == len(dict(expected))
    return dict(expected)


def test_the_table_names_what_there_is() -> None:
    """Each row is of an event and a state, and every kind of event and every phase is in it."""
    table = read_table(EXPECTED)
    assert {event for event, _ in table} <= set(EVENTS)
    assert {state for _, state in table} <= set(STATES)
    assert {type(event) for event in EVENTS.values()} == set(ev.Event.__args__)
    assert {state.phase for state in STATES.values()} == set(Phase)


@each_of("event", EVENTS)
@each_of("state", STATES)
def test_each_event_makes_of_each_state_what_the_table_says(state: str, event: str) -> None:
    """Where the table says nothing, nothing changes and nothing is done."""
    expected = read_table(EXPECTED).get((event, state), "=")
    assert told(STATES[state], EVENTS[event]).strip() == expected


@each_of("event", [name for name, each in EVENTS.items() if hasattr(each, "life")])
@each_of("state", STATES)
def test_an_event_of_an_older_life_changes_nothing(state: str, event: str) -> None:
    """What is told of a world that is gone is of no account, whatever it is."""
    before = STATES[state]._replace(life=3)
    assert decide(before, at_life(EVENTS[event], 2)) == (before, ())


@each_of(
    ("state", "meets", "shown"),
    [
        ("made", Meets.START, "starting"),
        ("starting", Meets.START, "starting"),
        ("open", Meets.WORLD, "open"),
        ("grading", Meets.ANSWER, "grading"),
        ("own end", Meets.ANSWER, "grading"),
        ("laid down", Meets.START, "starting"),
        ("laid down, answered", Meets.ANSWER, "grading"),
        ("resuming", Meets.RESUMING, "resuming"),
        ("reviving", Meets.RESUMING, "resuming"),
        ("reviving, answered", Meets.RESUMING, "resuming"),
        ("reviving, failed", Meets.RESUMING, "grading"),
        ("laid down, failed", Meets.ANSWER, "grading"),
        ("examined", Meets.ANSWER, "grading"),
        ("ending", Meets.WORLD, "open"),
        ("leaving, not back", Meets.WORLD, "resuming"),
        ("graded", Meets.ANSWER, "grading"),
        ("parked", Meets.END, "parked"),
        ("ended", Meets.END, "ended"),
    ],
)
def test_a_state_has_one_answer_to_each_question(state: str, meets: Meets, shown: str) -> None:
    """What a call meets and what a caller is told follow from the state alone."""
    assert (STATES[state].meets, STATES[state].shown) == (meets, shown)


@each_of("lacks", ["is_prompted", "provisional", "behind", "replay"])
def test_another_server_may_take_only_what_it_can_go_on_with(lacks: str) -> None:
    """It was asked and acted on, its record is not behind, and its world can come back."""
    state = OPEN._replace(is_prompted=lacks != "is_prompted", provisional=lacks == "provisional")
    assert OPEN.may_be_taken(is_behind=False, can_resume=True)
    assert not state.may_be_taken(is_behind=lacks == "behind", can_resume=lacks != "replay")

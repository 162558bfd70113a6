"""What holds of a session's state after any sequence of events."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from states import AT, BROKEN, CANCELLED, GRADED, LEFT, MADE, STORED, UNGRADED, receipt_of

from hud_mcp.session import events as do
from hud_mcp.session import events as ev
from hud_mcp.session.events import Phase
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.state import State, decide
from hud_mcp.values.grade import Cause, Outcome

AGAIN = SessionEnd.by_agent("Its world died a second time of the same: gone.")


class Parts:
    """What carries the effects out, in no time: a driver, and a queue of what is done in turn."""

    IN_TURN = (
        do.StopCommands,
        do.Examine,
        do.Record,
        do.CloseWorld,
        do.WriteLog,
        do.Resume,
    )

    def __init__(self, state: State) -> None:
        self.state = state
        self.driver: str | None = None
        self.performs = False
        self.queue: list[Any] = []
        self.done: list[Any] = []

    def post(self, event: Any) -> None:
        """Decide, and carry out what overtakes the queue; what holds always is seen to hold."""
        before = self.state
        self.state, effects = decide(before, event)
        self._check(before, event, effects)
        for i, effect in enumerate(effects):
            if isinstance(effect, self.IN_TURN):
                self.queue += effects[i:]
                return
            self._do(effect)

    def _check(self, before: State, event: Any, effects: tuple[Any, ...]) -> None:
        after = self.state
        if before.answer is not None:
            assert after.answer == before.answer
        if before.is_over:
            assert (after.phase, effects) == (before.phase, ())
        assert after.receipt is None or after.phase is Phase.ENDED
        for effect in effects:
            if before.taken:  # nothing is written any more
                assert not isinstance(effect, do.LogLine)
                assert not isinstance(effect, do.Record) or effect == do.Record(LEFT)
                assert effect != do.WriteLog(release=True)
            if isinstance(effect, do.Record) and effect.end.outcome is Outcome.GRADED:
                grades = isinstance(event, ev.Finished) and event.end == GRADED
                assert grades or effect.end.cause is Cause.AGENT

    def _do(self, effect: Any) -> None:
        self.done.append(effect)
        match effect:
            case do.StartDriver():
                assert self.driver is None, "one template runs at a time"
                self.driver = "setup"
            case do.Submit() | do.Proceed():
                assert self.driver == "asked", "it is graded once, and where it waits for that"
                self.driver = "grading"
            case do.Dismiss():
                self.driver = self.driver and "dismissed"
            case do.Abort():
                self.driver = self.driver and "aborted"
            case do.StartCommands():
                self.performs = True
            case do.CutOff() | do.StopCommands():
                self.performs = False

    def next(self, given: st.DataObject | None) -> None:
        """Carry out what is first in turn."""
        effect = self.queue.pop(0)
        life, draw = self.state.life, given.draw if given is not None else lambda each: None
        self._do(effect)
        match effect:
            case do.Examine():
                died = draw(st.sampled_from([None, "gone"]))
                facts = draw(st.tuples(*[st.booleans()] * 4)) or (False,) * 4
                self.post(ev.Examined(life, died, *facts))
            case do.Record(end=end):
                assert self.driver is None, "the template ran out before its end is written"
                taken = bool(draw(st.booleans())) or self.state.taken
                self.post(ev.Recorded(receipt_of(end), taken=taken))
            case do.WriteLog():
                self.post(ev.Closed(life))
            case do.Resume():
                self.post(ev.Staged(life))
                self.queue.insert(0, "bring back")
            case "bring back" if self.driver == "setup":
                self.driver = "asked"
                self.performs = True
                found = [ev.Resumed(life), ev.Resumed(life, "4", AT), *self.failing(life)]
                self.post(draw(st.sampled_from(found)) or found[0])

    def failing(self, life: int) -> list[Any]:
        """How resuming may fail."""
        return [ev.NotBack(life, LEFT), ev.NotBack(life, BROKEN)]

    def by_template(self) -> list[Any]:
        """What its template may do next."""
        life = self.state.life
        failed = [ev.Finished(life, UNGRADED), ev.Finished(life, BROKEN)]
        return {
            None: [],
            "setup": [ev.Finished(life, BROKEN)],
            "asked": [ev.EndedItself(life)],
            "grading": [ev.Finished(life, GRADED), *failed],
            "dismissed": [ev.Finished(life, None)],
            "aborted": [ev.Finished(life, None), *failed],
        }[self.driver]

    def by_callers(self) -> list[Any]:
        """What callers, calls and servers may do now."""
        life = self.state.life
        calls = [
            ev.Touched(),
            ev.Answered(life, "4", AT),
            ev.Answered(life, "5", AT, died="gone", can_resume=True),
            ev.Broke(life, "gone", None),
            ev.Broke(life, "gone", AGAIN),
            ev.Rested(life),
        ]
        anybody = [ev.EndWanted(CANCELLED), ev.EndWanted(LEFT, abort=True), ev.TakenOver()]
        return [*anybody, *(calls if self.performs else [])]

    def step(self, data: st.DataObject) -> None:
        """Let one of the things happen that can."""
        moves = ["turn"] if self.queue else []
        start = self.driver == "setup" and self.state.phase is Phase.STARTING
        moves += ["begin"] if self.state == MADE else []
        moves += ["claim"] if self.state == STORED else []
        moves += ["ask"] if start else []
        move = data.draw(st.sampled_from([*moves, *self.by_template(), *self.by_callers()]))
        match move:
            case "turn":
                self.next(data)
            case "begin":
                self.post(ev.Staged(self.state.life))
            case "claim":
                self.post(ev.Claimed())
            case "ask":
                self.driver = "asked"
                self.post(ev.Prompted())
            case _:
                if isinstance(move, ev.Finished):
                    self.driver = None
                self.post(move)


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_whatever_happens_one_end_stands_and_is_reached(data: st.DataObject) -> None:
    """In whatever order things happen: graded once, no answer lost, and a stop always ends it."""
    parts = Parts(data.draw(st.sampled_from([MADE, STORED])))
    for _ in range(data.draw(st.integers(0, 25))):
        parts.step(data)
    parts.post(ev.EndWanted(LEFT, abort=True))
    for _ in range(100):
        if parts.driver is not None:
            ended = parts.by_template()[0]
            parts.driver = None
            parts.post(ended if isinstance(ended, ev.Finished) else ev.Finished(ended.life, None))
        elif parts.queue:
            parts.next(None)
    assert parts.state.is_over
    assert parts.state.is_closed
    assert parts.queue == []
    assert [type(each) for each in parts.done].count(do.Tell) == 1
    assert [type(each) for each in parts.done].count(do.Record) == 1


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_an_accepted_answer_ends_as_itself_or_in_its_record(data: st.DataObject) -> None:
    """Nobody's wish but an abort ends what is being graded: its grade does, or what failed it."""
    parts = Parts(MADE)
    parts.post(ev.Staged(0))
    parts.driver = "asked"
    parts.post(ev.Prompted())
    parts.post(data.draw(st.sampled_from([each for each in parts.by_callers() if _answers(each)])))
    for i in range(120):
        moves = parts.by_template()
        if parts.queue and (i > 40 or not moves or data.draw(st.booleans())):
            parts.next(data)
        elif moves:
            move = data.draw(st.sampled_from(moves))
            if isinstance(move, ev.Finished):
                parts.driver = None
            parts.post(move)
        parts.post(ev.EndWanted(CANCELLED))
    assert parts.state.is_over
    receipt = parts.state.receipt
    assert receipt is None or receipt.outcome is not Outcome.CANCELLED
    assert receipt is None or parts.state.answer in ("4", "5")


def _answers(event: Any) -> bool:
    return isinstance(event, ev.Answered)

"""The next life of a session: its world is opened anew, and brought to the last recorded step."""

import time
from functools import partial
from typing import Protocol

from hud_mcp.base import telemetry
from hud_mcp.environment.template import Prompt
from hud_mcp.errors import HudMcpError, SessionTaken, StoreFailed
from hud_mcp.session.deaths import DiedAgain
from hud_mcp.session.events import Event, NotBack, Phase, Resumed, Staged
from hud_mcp.session.journal import Journal
from hud_mcp.session.life import Life
from hud_mcp.session.replay import WorldLost, submitted_answer
from hud_mcp.session.session_end import SessionEnd, died_again
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.state import State
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.store.texts import storable

__all__ = ["resume_life"]


class _NewLife(Protocol):
    """A session whose life is new, and not yet begun."""

    spec: SessionSpec
    state: State
    life: Life
    journal: Journal
    prompt: Prompt | None
    failure: HudMcpError | None

    def stage(self) -> None:
        """Make what the world is opened with."""
        ...

    def touch(self) -> None:
        """Note that somebody attends to it."""
        ...

    def post(self, event: Event) -> State:
        """Say that something has happened."""
        ...


async def resume_life(session: _NewLife, stored: StoredSession) -> None:
    """Run the template to its prompt, and repeat or restore what the record has.

    Whether that succeeds or fails, the session is told how.
    """
    number = session.state.life
    began_s = time.monotonic()
    try:
        session.stage()
        if session.post(Staged(number)).is_driven:
            await _repeat_record(session, stored, began_s)
    except (StoreFailed, SessionTaken) as exc:
        session.failure = exc
        session.post(NotBack(number, SessionEnd.left_to_record()))
    except DiedAgain as exc:
        again = died_again(session.life.world.died or str(exc))
        lost = SessionEnd.lost(exc)
        session.post(NotBack(number, lost if session.state.died is None else again))
    except HudMcpError as exc:
        session.post(NotBack(number, SessionEnd.lost(exc)))
    except BaseException:
        session.post(NotBack(number, SessionEnd.left_to_record()))
        raise


async def _repeat_record(session: _NewLife, stored: StoredSession, began_s: float) -> None:
    life, journal, steps = session.life, session.journal, stored.trajectory.steps
    prompt = await life.driver.wait_for_prompt()
    if prompt is None:  # it has its end
        return
    if stored.trajectory.prompt is None:  # nobody was told of it yet
        await journal.save_prompt(prompt.text)
    elif storable(prompt.text) != stored.trajectory.prompt:
        raise WorldLost("its template now yields another prompt")
    session.prompt = prompt
    if session.state.phase is not Phase.RESUMING:
        return
    life.turn.open()
    took_s = sum((s.ended_at - s.started_at).total_seconds() for s in steps)
    bound_s = session.spec.limits.setup_s + 2 * max(0.0, took_s)
    await life.turn.take(partial(_repeat_steps, session, stored), bound_s)
    took_s = time.monotonic() - began_s
    journal.log(f"brought back after {len(steps)} steps in {took_s:.1f} s")
    journal.mark(was_stopped=False)
    answer = submitted_answer(steps)
    if answer is not None:
        if not session.state.is_coming_back:
            journal.mark(lost_gradings=stored.facts.lost_gradings + 1)
            journal.log("its answer is graded again, as its server ended before it had a grade")
        # Before: it is how gradings that end it are counted, and whose it is to grade.
        await journal.flush()
    session.touch()
    telemetry.add("resumed", environment=session.spec.environment.name)
    session.post(Resumed(life.number, answer, steps[-1].ended_at if answer is not None else None))


async def _repeat_steps(session: _NewLife, stored: StoredSession) -> None:
    await session.life.world.resume(stored)
    session.life.measuring.restore(stored.trajectory.steps)
    session.journal.restore(stored.snapshot_step if stored.snapshot is not None else None)

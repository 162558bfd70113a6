"""The effects of a session's events: one function carries out each of them."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hud_mcp.base import telemetry
from hud_mcp.base.lines import storable
from hud_mcp.errors import (
    HudMcpError,
    LimitReached,
    SessionBusy,
    SessionTaken,
    StoreFailed,
    WorldDied,
)
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.session import events as ev
from hud_mcp.session.events import NotBack, Phase, Resumed, Staged
from hud_mcp.session.held_task import HeldTask, Rest
from hud_mcp.session.history import DiedAgain
from hud_mcp.session.log import take_rest
from hud_mcp.session.messages import repeater
from hud_mcp.session.receipts import died_text, make_receipt
from hud_mcp.session.replay import WorldLost, submitted_answer
from hud_mcp.session.session_end import SessionEnd, died_again, unread
from hud_mcp.session.turn import in_patience
from hud_mcp.store.stored_session import SessionFacts, StoredSession

logger = logging.getLogger(__name__)


_RETRY_S = 1.0
"""The wait before an end is written again that could not be written."""


# The template.


def _start_driver(task: HeldTask, _: ev.StartDriver) -> None:
    if task.opening is None:
        raise ValueError("its world was started before it was prepared")
    opening, task.opening = task.opening, None  # the driver alone has a use for it
    recorded = () if task.stored is None else task.stored.trajectory.steps
    task.life.driver.start(opening, recorded)


# The calls on the world.


def _cut_off(task: HeldTask, _: ev.CutOff) -> None:
    task.life.turn.cut_off()


def _refuse_waiting(task: HeldTask, effect: ev.RefuseWaiting) -> None:
    died = effect.died
    why = None if died is None else WorldDied(died_text(died, was_dead=True))
    task.life.turn.refuse_waiting(why)


def _catch_up(task: HeldTask, _: ev.CatchUp) -> None:
    direct = task.life.direct
    if direct.is_behind:
        try:
            task.life.turn.begin(direct.try_to_catch_up, 2 * direct.limit_s)
        except SessionBusy as exc:  # the next direct access takes it
            task.journal.log(f"no snapshot: {exc}")


def _stop_calls(task: HeldTask, _: ev.StopCommands) -> Rest | None:
    life = task.life
    freed = life.turn.cut_off()
    if freed is None:
        life.direct.close()
        return None

    async def let_go() -> None:
        await life.turn.let_go(freed)
        life.direct.close()

    return let_go


def _close_world(task: HeldTask, _: ev.CloseWorld) -> Rest | None:
    world = task.life.world
    # Nothing is open, so no task is made to close it.
    if world.drop():
        return None
    return partial(in_patience, world.close, "closing the world", task.journal.log)


async def _look_whether_dead(task: HeldTask, reason: str | None) -> None:
    life, died = task.life, None
    facts = task.stored.facts if task.stored is not None else SessionFacts()
    try:
        if await life.world.is_dead():
            died = life.world.died or reason or "It cannot be used."
    finally:
        # In any case: without this event the session would stay in its examination.
        task.post(
            ev.Examined(
                life.number,
                died,
                died_before=facts.died_in_grading,
                failed_before=facts.failed_in_grading,
                has_changed=task.journal.changed > 0,
                can_resume=life.can_resume,
            )
        )


async def _record_end(task: HeldTask, effect: ev.Record) -> None:
    """Write the end of a session. Whatever fails, every waiting caller hears of the end."""
    receipt, end = None, effect.end
    try:
        if (rest := take_rest(task.journal.log)) is not None:
            task.journal.log(rest)  # what it has printed since its last line's end
        if effect.was_stopped:
            task.journal.mark(was_stopped=True)
            task.journal.log("its server was stopped, and the session waits in its record")
        if not end.parked:
            receipt = await _write_end(task, end)
    finally:
        # Callers have the receipt already; the record gets it as soon as it can be written.
        if task.journal.has_pending_end:
            _retry_later(task)
        task.post(ev.Recorded(receipt, taken=task.journal.taken))


async def _write_end(task: HeldTask, end: SessionEnd) -> Receipt | None:
    """Write a session's receipt, now or later; return the one that stands.

    None if its beginning cannot be recorded: no caller knows of it then, so nothing has to end.
    """
    spec, journal, answer = task.spec, task.journal, task.state.answer
    try:
        if task.stored is None:  # else its beginning is written for sure
            await journal.begin(spec)
    except (StoreFailed, LimitReached) as exc:
        logger.info("%s", exc)  # whoever starts it is told
        return None
    talk = task.life.driver.talk
    receipt = make_receipt(
        end,
        trajectory=spec.trajectory_id,
        environment=spec.environment.name,
        environment_digest=spec.environment.digest,
        task=spec.task,
        answer=None if task.state.by_message else answer,
        reward_policy=spec.reward_policy,
        started_at=spec.started_at,
        ended_at=utc_now(),
        attempt=journal.attempt,
        notes=(*journal.snapshots.notes(), *task.strain.notes()),
        strain=task.strain,
        user=None if talk is None else talk.conversation.use,
    )
    if end.error:
        logger.warning("%s: %s", end.outcome, end.error)
    try:
        return await journal.end(receipt) or receipt
    except (StoreFailed, SessionTaken) as exc:
        logger.error("%s", exc)  # noqa: TRY400  # its text says everything
    return receipt


def _retry_later(task: HeldTask) -> None:
    """Try to write a missing end again in a moment."""
    loop = asyncio.get_running_loop()
    task.retry = loop.call_later(
        _RETRY_S, lambda: loop.create_task(_flush_again(task), name="flush an end")
    )


async def _flush_again(task: HeldTask) -> None:
    try:
        await task.flush_end()
    except (StoreFailed, SessionTaken) as exc:
        logger.debug("%s", exc)
    if task.journal.has_pending_end:
        _retry_later(task)


def _write_log(task: HeldTask, effect: ev.WriteLog) -> Rest | None:
    # Nothing is left to write, so no task is made for it.
    if task.journal.is_written and not effect.release:
        _has_closed(task)
        return None
    return partial(_leave_record, task, release=effect.release)


async def _leave_record(task: HeldTask, *, release: bool) -> None:
    async def leave() -> None:
        await task.journal.leave()
        if release:
            await task.journal.release()

    try:
        await in_patience(leave, "writing the end of the log", task.journal.log)
    finally:
        _has_closed(task)


def _has_closed(task: HeldTask) -> None:
    life = task.life
    life.driver.note_closed()
    if task.post(ev.Closed(task.state.life)).is_closed:
        life.forget()
        task.stored = None


# The end, and another life.


def _tell(task: HeldTask, _: ev.Tell) -> None:
    task.tell_change()
    task.on_over(task)
    # A timer would wake an idle server for nothing.
    if task.expiry is not None:
        task.expiry.cancel()
    receipt = task.state.receipt
    if receipt is not None and telemetry.listeners:
        telemetry.add(
            "ended",
            environment=task.spec.environment.name,
            outcome=receipt.outcome.value,
            cause=receipt.cause.value if receipt.cause is not None else "",
        )


async def _resume_life(task: HeldTask) -> None:
    """Open the world anew, and bring it to the last recorded step."""
    number = task.state.life
    try:
        if number > task.life.number:
            await task.journal.flush()  # the next read must have everything pending
            task.stored = await task.store.load_session(task.spec.trajectory_id)
            task.life = task.new_life(number)
    except HudMcpError as exc:
        task.post(ev.NotBack(number, unread(exc)))
        return
    if task.stored is not None:
        await _resume_from(task, task.stored)


async def _resume_from(session: HeldTask, stored: StoredSession) -> None:
    """Bring a new life to the record; an event tells the session of success or failure."""
    number = session.state.life
    began_s = time.monotonic()
    try:
        session.stage()
        if session.post(Staged(number)).is_driven:
            await _repeat_record(session, stored, began_s)
    except (StoreFailed, SessionTaken) as exc:
        # The record could not be used. It waits there as it was, for another try.
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


async def _repeat_record(session: HeldTask, stored: StoredSession, began_s: float) -> None:
    life, journal, steps = session.life, session.journal, stored.trajectory.steps
    prompt = await life.driver.wait_for_prompt()
    if prompt is None:  # it has its end
        return
    if stored.trajectory.prompt is None:  # nobody was told of it yet
        await journal.save_prompt(prompt.text)
    # Another prompt would ask for something else than the agent was told.
    elif storable(prompt.text) != stored.trajectory.prompt:
        raise WorldLost("its template now yields another prompt")
    session.prompt = prompt
    if session.state.phase is not Phase.RESUMING:
        return
    life.turn.open()
    took_s = sum((s.ended_at - s.started_at).total_seconds() for s in steps)
    bound_s = session.spec.limits.setup_s + 2 * max(0.0, took_s)
    await life.turn.call(partial(_repeat_steps, session, stored), bound_s)
    took_s = time.monotonic() - began_s
    journal.log(f"brought back after {len(steps)} steps in {took_s:.1f} s")
    journal.mark(was_stopped=False)
    answer = submitted_answer(steps)
    if answer is not None:
        if not session.state.is_coming_back:
            # Counted, because a grading that ends its server again and again must end itself.
            journal.mark(lost_gradings=stored.facts.lost_gradings + 1)
            journal.log("its answer is graded again, as its server ended before it had a grade")
        # Before: it is how gradings that end it are counted, and whose it is to grade.
        await journal.flush()
    session.touch()
    telemetry.add("resumed", environment=session.spec.environment.name)
    at = steps[-1].ended_at if answer is not None else None
    by_message = answer is not None and steps[-1].kind == "message"
    session.post(Resumed(life.number, answer, at, by_message=by_message))
    if life.driver.talk is not None and life.driver.talk.is_spent:
        session.post(ev.EndedItself(life.number))


async def _repeat_steps(session: HeldTask, stored: StoredSession) -> None:
    await session.life.world.resume(stored, repeater(session.life.driver))
    session.life.measuring.restore(stored.trajectory.steps)
    session.journal.restore(stored.snapshot_step if stored.snapshot is not None else None)


EFFECTS: Mapping[type, Callable[[HeldTask, Any], Rest | None]] = {
    ev.StartDriver: _start_driver,
    ev.Submit: lambda task, effect: task.life.driver.submit(effect.answer),
    ev.Proceed: lambda task, _: task.life.driver.proceed(),
    ev.Dismiss: lambda task, effect: task.life.driver.dismiss(effect.end),
    ev.Abort: lambda task, effect: task.life.driver.abort(effect.end),
    ev.StartCommands: lambda task, _: task.life.turn.open(),
    ev.CutOff: _cut_off,
    ev.StopCommands: _stop_calls,
    ev.CatchUp: _catch_up,
    ev.Examine: lambda task, effect: partial(_look_whether_dead, task, effect.reason),
    ev.Mark: lambda task, effect: task.journal.mark(**{effect.fact: True}),
    ev.LogLine: lambda task, effect: task.journal.log(effect.line),
    ev.Record: lambda task, effect: partial(_record_end, task, effect),
    ev.Tell: _tell,
    ev.RefuseWaiting: _refuse_waiting,
    ev.CloseWorld: _close_world,
    ev.WriteLog: _write_log,
    ev.Resume: lambda task, _: partial(_resume_life, task),
}
"""The function of each effect. It does at once what can be done, and returns the rest, or None."""

"""The submission of an answer: recorded with a look at the world, and only then handed over."""

from hud_mcp.errors import EnvironmentFailed, LimitReached, StoreFailed
from hud_mcp.record.values import utc_now
from hud_mcp.session.draft import Draft, why
from hud_mcp.session.events import Answered
from hud_mcp.session.history import FINAL_RESPONSE
from hud_mcp.session.life import Life
from hud_mcp.session.spec import within
from hud_mcp.values.observation import Look

_LOOK_S = 5.0
"""The longest look at a world as it is answered; the answer waits no longer."""
_KEEP_S = 20.0
"""The longest snapshot as a world is answered; the grade does not need it."""


def check_answer(life: Life, answer: str, max_bytes: int | None = None) -> None:
    """Raise LimitReached for an answer above `max_bytes`, by default those of arguments."""
    most = life.spec.limits.argument_bytes if max_bytes is None else max_bytes
    if (size := len(answer.encode())) > most:
        raise LimitReached(
            f"The answer has {size} bytes; the limit is {most}. Nothing was submitted."
        )


async def respond(life: Life, answer: str) -> None:
    """Submit an answer, together with a look at the world if it shows itself.

    Raises:
        StoreFailed, SessionTaken: It could not be recorded, and was not submitted.
    """
    look = Look()
    draft = life.begin("response", [{"type": "response", "text": answer}], look)
    died = await look_at_answer(life, draft, look, deliver_image=False)
    await _submit(life, answer, draft, died=died)


async def look_at_answer(life: Life, draft: Draft, look: Look, *, deliver_image: bool) -> bool:
    """Look at the world as it is answered; return whether it is dead. Neither may stop the answer.

    Raises:
        EnvironmentFailed: The world died of what this call did before the answer, and undoing the
            call is better than answering.
    """
    world = life.world
    # No world can hang here, so no bound and no snapshot are needed.
    if world.opens_nothing:
        draft.observation = await world.observe(look, deliver_image=deliver_image)
        return False
    step_s = life.spec.limits.step_s
    try:
        observing = world.observe(look, deliver_image=deliver_image)
        draft.observation = await within(min(_LOOK_S, step_s / 4), observing)
    except EnvironmentFailed as exc:
        # The call's own actions killed the world. It is undone, and the agent may answer again.
        if draft.performed and life.can_resume and not world.replays:
            raise
        draft.fail(f"The observation at the answer failed: {exc}", interrupted=False)
        return True
    except Exception as exc:  # noqa: BLE001  # whatever a world raises, the answer stands
        draft.fail(f"The observation at the answer failed: {why(exc)}", interrupted=False)
    if world.replays:  # its record gives its state again
        return False
    try:
        state = world.snapshot(life.journal.count)  # also in the middle of an access
        draft.snapshot = await within(min(_KEEP_S, step_s / 2), state)
    except Exception as exc:  # noqa: BLE001  # the same
        life.journal.log(f"no snapshot of what was answered: {why(exc)}")
    return False


async def take_answer(life: Life, answer: str, draft: Draft, *, died: bool) -> None:
    """Take the answer that ends a step: submit it, or keep it for the operator who grades.

    Raises:
        StoreFailed, SessionTaken: It could not be recorded, and was not submitted.
    """
    # An operator grades by itself, so its agent's answer is only kept.
    if not life.spec.is_operated:
        await _submit(life, answer, draft, died=died)
        return
    draft.performed += 1
    draft.info[FINAL_RESPONSE] = answer
    _add_to_history(life, draft)
    life.measuring.final_response = answer
    await life.journal.add(draft)


async def _submit(life: Life, answer: str, draft: Draft, *, died: bool) -> None:
    """Record the step that answers, and only then hand the answer over."""
    # Before the record, so that nothing of the agent changes the world that is graded.
    await life.world.stop_agent()
    draft.performed += 1
    draft.answers = True
    try:
        await life.journal.add(draft)
    except StoreFailed as exc:
        # An answer that is not recorded must not be graded: a restart would not know of it.
        life.journal.withdraw()
        draft.performed -= 1
        draft.answers = False
        done = ""
        if draft.kind != "response":
            draft.fail("the answer was not submitted", interrupted=draft.interrupted)
            life.journal.append(draft)
            done = " What came before it in this call was performed: do not repeat it."
        raise StoreFailed(
            f"The answer was not submitted, because it cannot be recorded. {exc.__cause__}{done}"
        ) from None
    _add_to_history(life, draft)
    can_resume = died and life.can_resume
    reason = (life.world.died or "It could not be looked at.") if died else None
    # The grade takes long, and cutting this call off must not undo the answer.
    life.turn.leave_world()
    life.post(Answered(life.number, answer, utc_now(), died=reason, can_resume=can_resume))


def _add_to_history(life: Life, draft: Draft) -> None:
    life.measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])

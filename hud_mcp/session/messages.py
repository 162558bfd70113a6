"""The steps of a conversation: a message with the words that come back, and its repetition."""

import asyncio
from functools import partial

from hud_mcp.base.lines import storable
from hud_mcp.errors import InvalidAction, OutOfStep
from hud_mcp.record.values import OVER, TrajectoryStep
from hud_mcp.session.draft import Draft
from hud_mcp.session.driver import Driver
from hud_mcp.session.life import Life
from hud_mcp.session.replay import Repeat, WorldLost
from hud_mcp.session.steps import out_of_step, submit
from hud_mcp.session.talk import Heard
from hud_mcp.store import Store
from hud_mcp.values.observation import Observation

MESSAGE, ANSWER = "message_user", "answer"
"""The types of a message's action: to the user, and by `response`."""


async def say(life: Life, text: str, *, ends: bool) -> Heard:
    """Hand the agent's words to the template, and record them; raises as `Session.say`."""
    talk = life.driver.talk
    if not ends and (talk is None or talk.heard.asks):
        raise InvalidAction(
            "This task has no user to talk to now: answer with response. Nothing was said."
        )
    draft = Draft("message", [{"type": ANSWER if ends else MESSAGE, "text": text}])
    draft.was_dead = life.world.died is not None
    moves = life.world.moves
    try:
        if moves is not None:
            await moves.before(draft.events)
        heard = await life.driver.hear(text, ends=ends)
        draft.performed = 1
        draft.observation = Observation(text=heard.text)
        if moves is not None and not heard.is_over:
            await moves.after(draft.events, life.journal.count - life.journal.users + 1)
            heard, draft.notes = heard._replace(notes=tuple(moves.untold)), list(moves.untold)
            moves.untold.clear()
        draft.snapshot = None if heard.is_over else await life.direct.take_snapshot()
    except BaseException as exc:
        interrupted = isinstance(exc, asyncio.CancelledError)
        life.fail(draft, exc, "before its reply", interrupted=interrupted)
        await life.journal.keep(draft)
        raise
    if not heard.is_over:
        await life.journal.add(draft)
        return heard
    # It is the last one: it is recorded as an answer is, and graded by what the template yielded.
    draft.performed, draft.info[OVER] = 0, True
    if ends:
        draft.kind, draft.actions = "response", [{"type": "response", "text": text}]
    await submit(life, text, draft, by_message=not ends)
    return heard


async def recall(store: Store, trajectory_id: str, after_step: int, text: str) -> Heard:
    """Return what came back for the one message since a step; else raise OutOfStep."""
    # its user may have had several turns
    found = await store.load_steps(trajectory_id, max(0, after_step), after_step + 20)
    since = [step for step in found if step.kind != "user"]
    if (
        after_step < 0
        or len(since) != 1
        or since[0].actions[:1] != [{"type": MESSAGE, "text": text}]
    ):
        raise OutOfStep(out_of_step(after_step, after_step + len(found)))
    is_over = OVER in since[0].info
    return Heard(since[0].observation_text or "", is_over=is_over, ended=is_over, asks=False)


def repeater(driver: Driver) -> Repeat:
    """Return the repetition of a conversation's steps, by a driver whose template waits."""
    return partial(_repeat, driver)


async def _repeat(driver: Driver, step: TrajectoryStep) -> None:
    talk = driver.talk
    if step.kind != "message" or not step.performed:
        if talk is not None and step.kind not in ("message", "user"):
            talk.steps += 1
        return
    if talk is None or talk.heard.is_over:
        raise WorldLost(f"step {step.index}: its template waits for no message any more")
    action = step.actions[0]
    talk.conversation.is_repeated = True
    heard = await driver.hear(str(action["text"]), ends=action["type"] == ANSWER)
    talk.conversation.is_repeated = False
    if heard.is_over != (OVER in step.info) or storable(heard.text) != step.observation_text:
        raise WorldLost(f"step {step.index}: its template replied otherwise than before")

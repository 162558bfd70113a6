"""Quick actions that come one by one, and are one step of the record together.

A program that trains asks for each alone, and waits for it: a write for each would be most of its
time. So the store marks a session from its beginning: it is lost if its server dies before the
answer, and is never graded without them.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from hud_mcp.errors import ActionFailed, HudMcpError
from hud_mcp.session.draft import Draft, Stepped
from hud_mcp.session.life import Life
from hud_mcp.session.session import Session
from hud_mcp.values.action import ActionEffect, CustomAction
from hud_mcp.values.observation import Look, Observation

__all__ = ["Performed", "QuickActions"]


@dataclass(frozen=True, slots=True)
class Performed:
    """The result of one quick action.

    Attributes:
        effect: The effect in the world.
        seen: The observation after it.
    """

    effect: ActionEffect
    seen: Observation


class QuickActions:
    """Performs the quick actions of one session, and records them together.

    Nothing else is done with the session before `end`.

    Args:
        session: The session, whose store writes late.

    Attributes:
        session: The same.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._draft: Draft | None = None
        self._life: Life | None = None

    async def perform(self, action: CustomAction, look: Look) -> Performed | Stepped:
        """Perform one action, and observe. It is a step of its own where a replay gives no same.

        Args:
            action: Of the environment's own; what it is was checked.
            look: What to observe, without a picture; a text is observed at the end alone.

        Raises:
            SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As
                for `Session.step`.
        """
        session = self.session
        if session.journal.is_complete and session.life.world.replays:
            run = partial(self._perform, action, look)
            performed = await session.in_turn(run, session.limits.step_s)
            if performed is not None:
                return performed
        self.end()
        return await session.step((action,), look, deliver_image=False)

    def end(self) -> None:
        """Let what was performed be a step, which is written before or with the next one."""
        draft = self._ended()
        if draft is not None and self.session.life is self._life:
            self.session.journal.owe(draft)

    async def record(self) -> None:
        """Write what was performed.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next step.
            SessionTaken: Another server runs the session.
        """
        self.end()
        await self.session.journal.flush()

    async def _perform(self, action: CustomAction, look: Look) -> Performed | None:
        """Perform one in its turn; None where it was refused, and nothing was done."""
        session, world = self.session, self.session.life.world
        draft = self._begun(look)
        row = {"type": "custom", "action": action.action, "args": action.args}
        done: list[ActionEffect] = []
        try:
            await world.act((action,), done.append)
            over = done[0].terminated or done[0].truncated
            seen = await world.observe(
                look.model_copy(update={"text": True}) if over else look, deliver_image=False
            )
        except ActionFailed:
            return None
        except BaseException as exc:
            await self._record_failure(exc, row, look, done)
            raise
        draft.actions.append(row)
        draft.add(done[0])
        draft.observation = seen
        session.life.measuring.note_actions((row,))
        return Performed(done[0], seen)

    def _ended(self) -> Draft | None:
        """The step that no action is added to any more; None where nothing was performed."""
        draft, self._draft = self._draft, None
        return draft if draft is not None and draft.actions else None

    async def _record_failure(
        self, exc: BaseException, row: dict[str, Any], look: Look, done: list[ActionEffect]
    ) -> None:
        """Record an action that failed, after those that a dead world is built again from."""
        life, journal = self.session.life, self.session.journal
        draft = self._ended()
        if draft is not None:
            await journal.keep(draft)
        failed = life.begin("step", [row], look)
        for effect in done:
            failed.add(effect)
        interrupted = not isinstance(exc, HudMcpError)
        life.fail(failed, exc, "in its turn", interrupted=interrupted)
        await journal.keep(failed)

    def _begun(self, look: Look) -> Draft:
        """The step that the next action is added to."""
        life = self.session.life
        most = self.session.limits.actions_per_step
        if self._draft is not None and (self._life is not life or len(self._draft.actions) >= most):
            self.end()
        if self._draft is None:
            self._draft = Draft("step", [], scale=life.world.scale, look=look)
            self._life = life
        return self._draft

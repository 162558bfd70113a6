"""Quick actions that come one by one, and are one step of the record together.

A program that trains asks for each alone, and waits for it: a write for each would be most of its
time. So the store marks a session from its beginning: it is lost if its server dies before the
answer, and is never graded without them.
"""

from dataclasses import dataclass
from typing import Any

from hud_mcp.action import ActionEffect, CustomAction
from hud_mcp.errors import ActionFailed, HudMcpError
from hud_mcp.observation import Look, Observation
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.draft import Draft
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import Measuring

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
    """Performs the quick actions of one life of a world, and records them together.

    Args:
        world: The world; it replays.
        attempts: Begins the call of an action that fails.
        journal: Takes the steps.
        measuring: Takes what is done.
        most: How many actions a step of the record may have.
    """

    __slots__ = ("_attempts", "_draft", "_journal", "_measuring", "_most", "_world")

    def __init__(
        self,
        world: LiveWorld,
        *,
        attempts: Attempts,
        journal: Journal,
        measuring: Measuring,
        most: int,
    ) -> None:
        self._world = world
        self._attempts = attempts
        self._journal = journal
        self._measuring = measuring
        self._most = most
        self._draft: Draft | None = None

    async def perform(self, action: CustomAction, look: Look) -> Performed | None:
        """Perform one action, and observe.

        Args:
            action: An action for which the world waits for nothing.
            look: What to observe; its text is observed at the end of the episode alone.

        Returns:
            The result; None where the action was refused, and nothing was done.

        Raises:
            EnvironmentFailed: The world broke; that is recorded.
        """
        draft = self._begun(look)
        row = {"type": "custom", "action": action.action, "args": action.args}
        done: list[ActionEffect] = []
        try:
            await self._world.act((action,), done.append)
            over = done[0].terminated or done[0].truncated
            seen = await self._world.observe(
                look.model_copy(update={"text": True}) if over else look, deliver_image=False
            )
        except ActionFailed:
            return None
        except BaseException as exc:
            await self._record_failure(exc, row, look, done)
            raise
        draft.actions.append(row)
        draft.add(done[0])
        draft.see(seen)
        self._measuring.note_actions((row,))
        return Performed(done[0], seen)

    def end(self) -> None:
        """Let what was performed be a step, which is written before or with the next one."""
        draft = self._ended()
        if draft is not None:
            self._journal.owe(draft)

    def _ended(self) -> Draft | None:
        """The step that no action is added to any more; None where nothing was performed."""
        draft, self._draft = self._draft, None
        return draft if draft is not None and draft.actions else None

    async def _record_failure(
        self, exc: BaseException, row: dict[str, Any], look: Look, done: list[ActionEffect]
    ) -> None:
        """Record an action that failed, after those that a dead world is built again from."""
        draft = self._ended()
        if draft is not None:
            await self._journal.keep(draft)
        failed = self._attempts.begin("step", [row], look)
        for effect in done:
            failed.draft.add(effect)
        failed.fail(exc, "in its turn", interrupted=not isinstance(exc, HudMcpError))
        await self._journal.keep(failed.draft)

    def _begun(self, look: Look) -> Draft:
        """The step that the next action is added to."""
        if self._draft is not None and len(self._draft.actions) >= self._most:
            self.end()
        if self._draft is None:
            self._draft = Draft("step", [], scale=self._world.scale, look=look)
        return self._draft

"""Calls on a world while they are made, and what stands of one that fails."""

from typing import Any

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.grade import Cause, Outcome
from hud_mcp.observation import Look
from hud_mcp.session.deaths import whose_doing
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.draft import Draft, StepKind, why_stopped
from hud_mcp.session.events import Broke, Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.session_end import SessionEnd, died_again

__all__ = ["Attempts"]


class Attempts:
    """Begins the calls on one life of a world.

    Args:
        world: What they act on.
        journal: Takes their steps.
        direct: Who else uses the world.
        post: Is told where one finds the world broken.
        life: In which life of the world.
    """

    __slots__ = ("_direct", "_journal", "_life", "_post", "_world")

    def __init__(
        self, world: LiveWorld, journal: Journal, direct: DirectAccess, *, post: Post, life: int
    ) -> None:
        self._world = world
        self._journal = journal
        self._direct = direct
        self._post = post
        self._life = life

    @property
    def can_resume(self) -> bool:
        """Whether the world, if it dies now, can be resumed from what is recorded."""
        journal = self._journal
        return (
            journal.is_complete
            and not journal.is_behind
            and not journal.taken
            and self._world.can_resume(journal.changed, journal.snapshot_step)
        )

    def begin(self, kind: StepKind, actions: list[dict[str, Any]], look: Look) -> Draft:
        """Begin a call."""
        world = self._world
        was_dead = world.died is not None
        return Draft(kind, actions, scale=world.scale, look=look, was_dead=was_dead)

    def fail(self, draft: Draft, exc: BaseException, where: str, *, interrupted: bool) -> None:
        """Say in its step why a call failed; where the world died and comes back, nothing stands.

        Args:
            draft: The step. What no replay repeats of it is not taken into account yet.
            exc: What was raised.
            where: How far it had come.
            interrupted: Whether something else than the call's own failure ended it.
        """
        draft.fail(why_stopped(exc, where), interrupted=interrupted)
        if isinstance(exc, EnvironmentFailed) and self.can_resume:
            draft.undo()
            draft.fail(self._world.died or str(exc), interrupted=False)

    async def snapshot(self) -> bytes | None:
        """The world's state after a call, if nobody is in it by another way."""
        return await self._direct.take()

    def tell_broken(self, exc: EnvironmentFailed) -> None:
        """Say that a call found the world broken, and whose doing that is."""
        reason, deaths = self._world.died or str(exc), self._journal.deaths
        undone = bool(deaths) and deaths[-1].index == self._journal.count - 1
        cause = whose_doing(deaths, has_acted=self._journal.changed > 0) if undone else None
        if undone and cause is None:
            end = None  # nobody is to blame, and it comes back
        elif cause is Cause.AGENT:
            end = died_again(reason)
        else:
            end = SessionEnd(Outcome.ENVIRONMENT_FAILED, error=str(exc), told=str(exc))
        self._post(Broke(self._life, reason, end))

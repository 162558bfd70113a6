"""Calls on a world while they are made, and what stands of one that fails."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.grade import Cause, Outcome
from hud_mcp.observation import Look
from hud_mcp.session.deaths import whose_doing
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.draft import Draft, StepKind
from hud_mcp.session.events import Broke
from hud_mcp.session.executor import Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.session_end import SessionEnd, died_again
from hud_mcp.session.stepped import why_stopped

__all__ = ["Attempt", "Attempts"]

T = TypeVar("T")


class Attempt:
    """One call while it is made.

    Args:
        draft: Its step.
        world: What it acts on.
        can_resume: Whether the world, if it dies of the call, can be resumed.

    Attributes:
        draft: The same.
    """

    def __init__(self, draft: Draft, world: LiveWorld, *, can_resume: bool) -> None:
        self.draft = draft
        self._world = world
        self._was_dead = world.died is not None
        self._can_resume = can_resume

    def fail(self, exc: BaseException, where: str, *, interrupted: bool) -> None:
        """Say in its step why it failed; where the world died and comes back, nothing stands.

        Args:
            exc: What was raised.
            where: How far it had come.
            interrupted: Whether something else than the call's own failure ended it.
        """
        self.draft.fail(why_stopped(exc, where), interrupted=interrupted)
        if isinstance(exc, EnvironmentFailed) and self._can_resume:
            self.draft.undo(was_dead=self._was_dead)
            self.draft.fail(self._world.died or str(exc), interrupted=False)


class Attempts:
    """Begins the calls on one life of a world.

    Args:
        world: What they act on.
        journal: Takes their steps.
        direct: Who else uses the world.
        post: Is told where one finds the world broken.
        life: In which life of the world.
    """

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

    def begin(self, kind: StepKind, actions: list[dict[str, Any]], look: Look) -> Attempt:
        """Begin a call, before it adds what no replay repeats."""
        draft = Draft(kind, actions, scale=self._world.scale, look=look)
        return Attempt(draft, self._world, can_resume=self.can_resume)

    async def snapshot(self) -> bytes | None:
        """The world's state after a call, if nobody is in it by another way."""
        return await self._direct.take()

    async def make(self, run: Callable[[], Awaitable[T]]) -> T:
        """Make a call; where it finds the world broken, say so, and whose doing it is."""
        try:
            return await run()
        except EnvironmentFailed as exc:
            self._post(self._broke(exc))
            raise

    def _broke(self, exc: EnvironmentFailed) -> Broke:
        reason, deaths = self._world.died or str(exc), self._journal.deaths
        undone = bool(deaths) and deaths[-1].index == self._journal.count - 1
        cause = whose_doing(deaths, has_acted=self._journal.changed > 0) if undone else None
        if undone and cause is None:
            end = None  # nobody is to blame, and it comes back
        elif cause is Cause.AGENT:
            end = died_again(reason)
        else:
            end = SessionEnd(Outcome.ENVIRONMENT_FAILED, error=str(exc), told=str(exc))
        return Broke(self._life, reason, end)

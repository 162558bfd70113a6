"""A setup that several runs of a task share, as a session knows it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, Self

from hud_mcp.environment import Environment
from hud_mcp.environment.calls import CallTemplate
from hud_mcp.task import Task
from hud_mcp.world import World

__all__ = ["GroupSetup", "GroupSetups"]


class GroupSetup(Protocol):
    """The setup of one session, as it is shared with its group."""

    def of_session(self, trajectory_id: str) -> Self:
        """Return the same for a session with this record."""
        ...

    async def apply(
        self,
        world: World,
        template: CallTemplate,
        *,
        reopen: Callable[[], Awaitable[World]],
        log: Callable[[str], None],
    ) -> World:
        """Set a freshly opened world up, and return it, or another one in its place."""
        ...


class GroupSetups(Protocol):
    """The setups that the sessions of one process share."""

    def of(
        self, task: Task, environment: Environment, principal: str | None, job_id: str | None
    ) -> GroupSetup | None:
        """Return what a new session shares with its group; None if its setup is not shared."""
        ...

"""The parts of a session that never change, and the setup that it may share with its group."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from hud_mcp.environment import Environment
from hud_mcp.environment.calls import CallTemplate, task_hosts
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import Opening, Shared, World
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.session.limits import Limits
from hud_mcp.store.stored_session import StoredSession

__all__ = ["GroupSetup", "GroupSetups", "SessionSpec"]


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


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """The parts of a session that never change.

    Attributes:
        environment: Whose world and template it uses.
        task: What is asked.
        principal: Who started it; None for a caller without a name.
        token_digest: Of the token that it was started with; None without one.
        is_operated: Whether an operator started it: an answer is kept then, and not handed over.
        limits: What bounds it.
        reward_policy: Who sees the reward.
        job_id: The job that it belongs to, or None.
        trajectory_id: Its record's id.
        secret_digest: The SHA-256 of its own id.
        live_token: Of its live page.
        seed: For whatever its world draws at random.
        replayable: Whether the same actions and looks give the same state again.
        started_at: When it began.
        start_key: By what the starts of its task are counted.
        tries: How many of them there may be; None for any number.
        local_hosts: Hosts that any row may open, of this machine and of private networks too.
        name: Its short name: it tells sessions apart, and opens none.
        group_setup: The setup that it shares with its group; None where it runs its own.
    """

    environment: Environment
    task: Task
    principal: str | None
    token_digest: str | None
    is_operated: bool
    limits: Limits
    reward_policy: str
    job_id: str | None
    trajectory_id: str
    secret_digest: str
    live_token: str | None
    seed: int | None
    replayable: bool
    started_at: datetime
    start_key: str
    tries: int | None
    local_hosts: tuple[str, ...]
    name: str
    group_setup: GroupSetup | None = None

    @property
    def rewards_shown(self) -> bool:
        """Whether the agent is told the reward of a step."""
        return self.reward_policy == "per_step" or self.is_operated

    def begun(self, prompt: str | None) -> Trajectory:
        """Its record as it begins; with what it asks, where that is known by then."""
        return Trajectory(
            id=self.trajectory_id,
            job_id=self.job_id,
            environment=self.environment.name,
            environment_version=self.environment.version,
            task=self.task,
            context=self.environment.context_space.fill(self.task.context),
            seed=self.seed,
            prompt=prompt,
            started_at=self.started_at,
        )

    def opening(
        self, shared: Shared, log: Callable[[str], None], stored: StoredSession | None
    ) -> Opening:
        """What its world is opened with.

        Raises:
            InvalidContext: Its context is not one of the environment's.
        """
        environment, task = self.environment, self.task
        return Opening(
            context=environment.split_context(task.context),
            seed=self.seed,
            folder=environment.folder,
            shared=shared,
            log=log,
            handle=(stored.snapshot or None) if stored is not None else None,
            allow=task_hosts(task),
            is_trusted=task.source is None,
            template=environment.template_of(task),
            local_hosts=self.local_hosts,
            names_targets=task.prompt is not None,
            principal=self.principal,
        )

"""The parts of a session that never change: its spec, its bounds, and its group's setup."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from pydantic import Field

from hud_mcp.environment import Environment
from hud_mcp.environment.calls import CallTemplate, task_hosts
from hud_mcp.environment.spec import Opening, Shared
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import World
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.action import Value


class Limits(Value):
    """Explicit bounds, all configurable. Durations are seconds, sizes bytes."""

    sessions: int = Field(default=128, ge=1, description="Sessions at once, of all callers.")
    sessions_per_caller: int = Field(default=64, ge=1, description="Sessions at once of one.")
    actions_per_step: int = Field(default=50, ge=1)
    argument_bytes: int = Field(default=1_048_576, ge=1, description="Of a call's arguments.")
    observation_chars: int = Field(default=10_000, ge=200, description="Of an observation's text.")
    queue: int = Field(default=64, ge=1, description="Calls that may wait on one session.")
    setup_s: float = Field(default=120, gt=0)
    step_s: float = Field(default=60, gt=0)
    grade_s: float = Field(default=300, gt=0)
    reply_s: float = Field(default=45, gt=0, description="How long a reply waits for the grade.")
    idle_s: float = Field(default=1800, gt=0, description="Without a call, a session expires.")
    total_s: float = Field(default=14_400, gt=0, description="After this, it expires anyway.")
    provisional_s: float = Field(
        default=300, gt=0, description="One that a prompt started and nobody acts on."
    )
    log_lines: int = Field(default=10_000, ge=0)


class GroupSetup(Protocol):
    """The setup of one session, shared with its group."""

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
        """Return the shared setup of a new session; None if its setup is not shared."""
        ...


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """The parts of a session that never change.

    Attributes:
        environment: The environment of its world and template.
        task: The task.
        principal: The principal that started it; None for a caller without a name.
        token_digest: The digest of the token that started it; None without one.
        is_operated: Whether an operator started it. Its answer is kept then, and not handed over.
        limits: The bounds of the session.
        reward_policy: The policy on who sees the reward.
        job_id: The job of the session, or None.
        trajectory_id: The id of its record.
        secret_digest: The SHA-256 of its own id.
        live_token: The token of its live page.
        seed: The seed of all random draws of its world.
        replayable: Whether the same actions and looks give the same state again.
        started_at: The time of its beginning.
        start_key: The key under which the starts of its task are counted.
        tries: The most of these starts; None for any number.
        local_hosts: Hosts that any row may open, of this machine and of private networks too.
        group_setup: The setup shared with its group; None if the session runs its own.
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
    group_setup: GroupSetup | None = None

    @property
    def name(self) -> str:
        """The short name. It tells sessions apart, and opens none."""
        return self.trajectory_id[-6:]

    @property
    def rewards_shown(self) -> bool:
        """Whether the agent sees the reward of a step."""
        return self.reward_policy == "per_step" or self.is_operated

    def begun(self, prompt: str | None) -> Trajectory:
        """Return the record of the beginning, with the prompt if known by then."""
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
        """Return the opening of the world; raise InvalidContext if its space lacks the context."""
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

"""One life of a session's world: what is made anew for each, and used for one alone."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hud_mcp.action import Action, ResponseAction
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import task_hosts
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.session.answers import Answers
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.commands import Commands
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.driver import Driver
from hud_mcp.session.executor import Post
from hud_mcp.session.group_setup import GroupSetup
from hud_mcp.session.journal import Journal
from hud_mcp.session.limits import Limits
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import Measuring
from hud_mcp.session.operated import OperatorCalls
from hud_mcp.session.quick import QuickActions
from hud_mcp.session.steps import Steps
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import Task
from hud_mcp.world import Opening, Shared

__all__ = ["Life", "SessionSpec"]


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What a session is made of, and what never changes in it.

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
    group_setup: GroupSetup | None = None

    @property
    def name(self) -> str:
        """Its short name: it tells sessions apart, and opens none."""
        return self.trajectory_id[-6:]

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


class Life:
    """One life: a world, the template that runs on it, and the calls that use it.

    Args:
        number: How many there were before.
        spec: What the session is made of.
        journal: Takes every step.
        post: Is told what happens in it.
        shared: The process's shared services.
        program: A task that is cancelled with the whole event loop alone; None where none is.

    Attributes:
        number: The same.
        measuring: What the agent did and said, and what was measured.
        template: What asks and grades.
        world: Its world.
        direct: What uses that by other ways than calls.
        attempts: The calls that are made.
        answers: Takes the answer.
        steps: What an agent's call does.
        quick: What an agent's quick actions do that are recorded together.
        operated: What an operator's call does.
        commands: Performs calls, one after the other.
        driver: Runs the template.
    """

    def __init__(
        self,
        number: int,
        spec: SessionSpec,
        *,
        journal: Journal,
        post: Post,
        shared: Shared,
        program: "asyncio.Task[None] | None",
    ) -> None:
        environment, limits, log = spec.environment, spec.limits, journal.log
        self.number = number
        self.measuring = measuring = Measuring(keeps_history=spec.task.prompt is not None)
        self.template = environment.template_of(spec.task, measuring)
        self.world = LiveWorld(
            environment, replayable=spec.replayable, log=log, snapshots=journal.snapshots
        )
        if number == 0 and spec.group_setup is not None:  # later ones are as the record says
            self.world.group_setup = spec.group_setup.of_session(spec.trajectory_id)
        self.direct = DirectAccess(
            journal, self.world, post=post, life=number, log=log, limit_s=limits.step_s
        )
        self.attempts = Attempts(self.world, journal, self.direct, post=post, life=number)
        self.answers = Answers(
            environment,
            self.world,
            self.attempts,
            journal=journal,
            limits=limits,
            measuring=measuring,
            post=post,
            life=number,
            log=log,
        )
        self.steps = Steps(
            environment,
            self.world,
            limits=limits,
            attempts=self.attempts,
            answers=self.answers,
            journal=journal,
            measuring=measuring,
            rewards_shown=spec.rewards_shown,
            operated=spec.is_operated,
        )
        self.quick = QuickActions(
            self.world,
            attempts=self.attempts,
            journal=journal,
            measuring=measuring,
            most=limits.actions_per_step,
        )
        self.operated = OperatorCalls(
            environment,
            self.world,
            self.attempts,
            journal=journal,
            measuring=measuring,
            rewards_shown=spec.rewards_shown,
        )
        self.commands = Commands(
            queue=limits.queue, contention=shared.contention, name=spec.name, log=log
        )
        self.driver = Driver(
            self.template,
            spec.task,
            self.world,
            post=post,
            life=number,
            setup_s=limits.setup_s,
            grade_s=limits.grade_s,
            name=spec.name,
            log=log,
            contention=shared.contention,
            program=program,
        )

    def acts_now(self, actions: Sequence[Action], look: Look) -> bool:
        """Whether a step needs no task: its world says that it is short, and nothing is busy."""
        if not self.commands.is_idle or self.direct.under_way:
            return False
        answers = any(isinstance(action, ResponseAction) for action in actions)
        return not answers and self.world.acts_now(actions, look)

    @property
    def submits_at_once(self) -> bool:
        """Whether an answer needs no task: its template waits for nothing, and nothing is busy."""
        waits = self.commands.is_idle and not self.direct.under_way
        return waits and self.driver.is_at_once and self.answers.is_ready

    def submit_at_once(self, answer: str) -> "asyncio.Future[None]":
        """Submit an answer that needs no task; raises and returns as `Answers.submit_at_once`."""
        self.commands.pause()
        try:
            submitted = self.answers.submit_at_once(answer)
        except BaseException:
            self.commands.release()
            raise
        submitted.add_done_callback(lambda _done: self.commands.release())
        return submitted

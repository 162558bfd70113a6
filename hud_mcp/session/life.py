"""One life of a session's world: the parts that are made anew for each, and used for one alone."""

import asyncio

from hud_mcp.session.answers import Answers
from hud_mcp.session.attempts import Attempts
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.driver import Driver
from hud_mcp.session.events import Post
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.measuring import Measuring
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.steps import Steps
from hud_mcp.session.turn import Turn
from hud_mcp.world import Shared

__all__ = ["Life"]


class Life:
    """One life: a world, the template that runs on it, and the calls that use it.

    Args:
        number: How many there were before.
        spec: The parts of the session.
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
        turn: Lets one call at a time use the world.
        answers: Takes the answer.
        steps: What an agent's call does.
        driver: Runs the template.
    """

    __slots__ = (
        "answers",
        "attempts",
        "direct",
        "driver",
        "measuring",
        "number",
        "steps",
        "template",
        "turn",
        "world",
    )

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
        limits, log = spec.limits, journal.log
        self.number = number
        self.measuring = measuring = Measuring(keeps_history=spec.task.prompt is not None)
        self.template = spec.environment.template_of(spec.task, measuring)
        self.world = world = LiveWorld(
            spec.environment, replayable=spec.replayable, log=log, snapshots=journal.snapshots
        )
        if number == 0 and spec.group_setup is not None:  # later ones are as the record says
            world.group_setup = spec.group_setup.of_session(spec.trajectory_id)
        self.direct = DirectAccess(
            journal, world, post=post, life=number, log=log, limit_s=limits.step_s
        )
        self.attempts = attempts = Attempts(world, journal, self.direct, post=post, life=number)
        self.turn = Turn(
            most=limits.queue,
            contention=shared.contention,
            name=spec.name,
            log=log,
            on_broken=attempts.tell_broken,
        )
        self.answers = Answers(
            spec,
            world,
            attempts,
            journal=journal,
            measuring=measuring,
            post=post,
            life=number,
            log=log,
        )
        self.steps = Steps(
            spec,
            world,
            attempts=attempts,
            answers=self.answers,
            journal=journal,
            measuring=measuring,
        )
        self.driver = Driver(
            self.template,
            spec.task,
            world,
            post=post,
            life=number,
            setup_s=limits.setup_s,
            grade_s=limits.grade_s,
            name=spec.name,
            log=log,
            contention=shared.contention,
            program=program,
        )

    @property
    def is_used(self) -> bool:
        """Whether a call waits or runs, or the world is used directly."""
        return self.turn.count + self.direct.under_way > 0

    def forget(self) -> None:
        """Forget what only a session that goes on has a use for: its world is closed."""
        self.world.latest = None
        self.measuring.forget_history()

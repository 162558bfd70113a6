"""One life of a session's world: the parts that are made anew for each life."""

import asyncio
from typing import Any

from hud_mcp.environment.moves import Moves
from hud_mcp.environment.spec import Shared
from hud_mcp.errors import EnvironmentFailed, MoveFailed
from hud_mcp.session.direct import DirectAccess
from hud_mcp.session.draft import Draft, StepKind, why_stopped
from hud_mcp.session.driver import Driver
from hud_mcp.session.events import Broke, Post
from hud_mcp.session.history import Measuring, whose_doing
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.session.session_end import SessionEnd, died_again
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.turn import Turn
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look


class Life:
    """One life: a world, the template that runs on it, and the calls that use it."""

    __slots__ = (
        "direct", "driver", "journal", "measuring", "number", "post", "spec", "template", "turn",
        "world",
    )  # fmt: skip

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
        self.spec = spec
        self.journal = journal
        self.post = post
        self.measuring = measuring = Measuring(keeps_history=spec.task.prompt is not None)
        self.template = spec.environment.template_of(spec.task, measuring)
        self.world = world = LiveWorld(
            spec.environment, replayable=spec.replayable, log=log, snapshots=journal.snapshots
        )
        if self.template.moves:
            self.world.moves = Moves(
                self.template.moves, arguments=self._arguments, world=lambda: world.live
            )
        if number == 0 and spec.group_setup is not None:  # later ones are as the record says
            world.group_setup = spec.group_setup.of_session(spec.trajectory_id)
        self.direct = DirectAccess(
            journal, world, post=post, life=number, log=log, limit_s=limits.step_s
        )
        self.turn = Turn(
            most=limits.queue,
            contention=shared.contention,
            name=spec.name,
            log=log,
            on_broken=self.tell_broken,
        )
        self.driver = Driver(
            self.template,
            spec,
            world,
            post=post,
            life=number,
            journal=journal,
            contention=shared.contention,
            program=program,
        )

    @property
    def is_used(self) -> bool:
        """Whether a call waits or runs, or the world is used directly."""
        return self.turn.count + self.direct.under_way > 0

    @property
    def can_resume(self) -> bool:
        """Whether a world that dies now can be resumed from its record."""
        journal = self.journal
        return (
            journal.is_complete
            and not journal.is_behind
            and not journal.taken
            and self.world.can_resume(journal.changed, journal.snapshot_step)
        )

    def _arguments(self) -> dict[str, Any]:
        """Return the template's arguments and contexts, by name, for its moves."""
        task, taken = self.spec.task, self.template.arguments
        context = self.spec.environment.context_space.fill(task.context)
        return taken.parse(task.args) | {name: dict(context) for name in taken.context_names}

    def begin(self, kind: StepKind, actions: list[dict[str, Any]], look: Look) -> Draft:
        """Begin the step of a call."""
        world = self.world
        was_dead = world.died is not None
        return Draft(kind, actions, scale=world.scale, look=look, was_dead=was_dead)

    def fail(self, draft: Draft, exc: BaseException, where: str, *, interrupted: bool) -> None:
        """Note why the step's call failed. If the world died and comes back, nothing stands."""
        draft.fail(why_stopped(exc, where), interrupted=interrupted)
        # Undone only if it comes back: else the record shows how the world broke.
        if isinstance(exc, MoveFailed):  # the author's, so nothing is tried again
            draft.fail(exc.described, interrupted=False)
        elif isinstance(exc, EnvironmentFailed) and self.can_resume:
            draft.undo()
            draft.fail(self.world.died or str(exc), interrupted=False)

    def tell_broken(self, exc: EnvironmentFailed) -> None:
        """Report that a call found the world broken, and the cause."""
        reason, deaths = self.world.died or str(exc), self.journal.deaths
        undone = bool(deaths) and deaths[-1].index == self.journal.count - 1
        cause = whose_doing(deaths, has_acted=self.journal.changed > 0) if undone else None
        if undone and cause is None:
            end = None  # nobody is to blame, and it comes back
        elif cause is Cause.AGENT:
            end = died_again(reason)
        else:
            error = exc.described if isinstance(exc, MoveFailed) else str(exc)
            end = SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=str(exc))
        self.post(Broke(self.number, reason, end))

    def forget(self) -> None:
        """Forget the parts that only a living session needs, because the world is closed."""
        self.world.latest = None
        self.measuring.forget_history()

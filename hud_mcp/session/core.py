"""What a session is, and what carries out what is decided for it.

The state says what the session is, a life has the parts that use its world, the journal has its
rows. Each effect is an order to one of them; what comes of it is posted as an event.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from hud_mcp import telemetry
from hud_mcp.errors import HudMcpError, SessionBusy, SessionTaken, StoreFailed, WorldDied
from hud_mcp.grade import Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session import effects as do
from hud_mcp.session.changes import Changes
from hud_mcp.session.deaths import DiedAgain
from hud_mcp.session.events import Closed, Event, Examined, NotBack, Recorded, Resumed, Staged
from hud_mcp.session.executor import Executor, Rest
from hud_mcp.session.journal import Journal
from hud_mcp.session.life import Life, SessionSpec
from hud_mcp.session.once import Once
from hud_mcp.session.patience import in_patience
from hud_mcp.session.phase import Phase
from hud_mcp.session.receipts import died_text
from hud_mcp.session.record_ends import RecordEnds
from hud_mcp.session.replay import WorldLost, submitted_answer
from hud_mcp.session.session_end import SessionEnd, died_again, unread
from hud_mcp.session.state import State
from hud_mcp.session.strain import Strain
from hud_mcp.store import Store
from hud_mcp.store.characters import storable
from hud_mcp.store.stored_session import SessionFacts, StoredSession
from hud_mcp.template import Prompt
from hud_mcp.world import Opening, Shared

__all__ = ["Core"]

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Core:
    """The state of one session, and its parts.

    Args:
        spec: The parts of the session.
        store: Where it is recorded.
        shared: The process's shared services.
        stored: Its record, where another server process began it.
        provisional: Whether it expires early until somebody acts on it.
        program: A task that is cancelled with the whole event loop alone; None where none is.
        changes: Is told what is recorded.

    Attributes:
        spec: The same.
        journal: What it writes.
        strain: What the machine's load did to it.
        life: The parts that use its world.
        prompt: What its template asks; None until it does.
        failure: Why it could not be resumed, where its record could not be written.
        touched_s: When somebody acted on it last.
        waited_at_touch_s: How long this machine had let the process wait until then.
        ended: Set once its end may be read.
    """

    def __init__(
        self,
        spec: SessionSpec,
        *,
        store: Store,
        shared: Shared,
        stored: StoredSession | None,
        provisional: bool,
        program: "asyncio.Task[None] | None",
        changes: Changes,
    ) -> None:
        self.spec = spec
        self.prompt: Prompt | None = None
        self.failure: HudMcpError | None = None
        self.touched_s = time.monotonic()
        self.waited_at_touch_s = shared.contention.waited_s
        self.ended = Once()
        self._store = store
        self._shared = shared
        self._stored = stored
        self._program = program
        self._changes = changes
        self._opening: Opening | None = None
        self.journal = Journal(
            store,
            spec.trajectory_id,
            post=self.post,
            log_lines=spec.limits.log_lines,
            stored=stored,
            on_written=self._tell,
        )
        log = self.journal.log
        self.strain = Strain(
            shared.contention,
            log,
            lambda refused: self.journal.mark(overloaded=refused),
            stored.facts.overloaded if stored is not None else 0,
        )
        self.record = RecordEnds(spec, self.journal, self.strain)
        phase = Phase.STARTING if stored is None else Phase.RESUMING
        state = State(phase, provisional=provisional, is_back=stored is None)
        self._executor = Executor(state, self, name=spec.name, log=log)
        self.life = self._new_life(0)

    def _new_life(self, number: int) -> Life:
        return Life(
            number,
            self.spec,
            journal=self.journal,
            post=self.post,
            shared=self._shared,
            program=self._program,
        )

    @property
    def state(self) -> State:
        """What the session is now."""
        return self._executor.state

    def post(self, event: Event) -> State:
        """Say that something has happened; return what the session is then."""
        return self._executor.post(event)

    def take_prompt(self, prompt: Prompt) -> None:
        """Take what its template asks."""
        self.prompt = prompt

    def touch(self) -> None:
        """Note that somebody acts on it, or attends to it."""
        self.touched_s = time.monotonic()
        self.waited_at_touch_s = self._shared.contention.waited_s

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Wait until something holds of the state, and return that."""
        return await self._executor.until(holds)

    async def call(
        self, run: Callable[[], Awaitable[T]], limit_s: float, *, detached: bool = False
    ) -> T:
        """Make a call in its turn; raises as `Commands.call` does."""
        attempt = partial(self.life.attempts.make, run)
        return await self.life.commands.call(attempt, limit_s, detached=detached)

    async def call_now(self, run: Callable[[], Awaitable[T]]) -> T:
        """Make a call while none waits; raises as `Commands.call_now` does."""
        return await self.life.commands.call_now(partial(self.life.attempts.make, run))

    def stage(self) -> None:
        """Make what the world is opened with.

        Raises:
            InvalidContext: The context is not one of the environment's.
        """
        self._opening = self.spec.opening(self._shared, self.journal.log, self._stored)

    def run(self, effect: do.Effect) -> Rest | None:
        """Carry an effect out; return what of it has to be waited for."""
        match effect:
            case do.StartDriver() | do.Submit() | do.Proceed() | do.Dismiss() | do.Abort():
                self._order(effect)
            case do.StartCommands():
                self.life.commands.start()
            case do.CutOff():
                self.life.commands.cut_off()
            case do.CatchUp():
                self._catch_up()
            case do.RefuseWaiting(died=died):
                why = None if died is None else WorldDied(died_text(died, was_dead=True))
                self.life.commands.refuse_waiting(why)
            case do.Mark(fact=fact):
                self.journal.mark(**{fact: True})
            case do.LogLine(line=line):
                self.journal.log(line)
            case do.Tell():
                self.ended.set()
                self._tell()
                self._count_end()
            case _:
                return self._run_in_turn(effect)
        return None

    def _tell(self) -> None:
        self._changes.tell(self.spec.secret_digest)

    def _count_end(self) -> None:
        receipt = self.state.receipt
        if receipt is not None and telemetry.listeners:
            telemetry.add(
                "ended",
                environment=self.spec.environment.name,
                outcome=receipt.outcome.value,
                cause=receipt.cause.value if receipt.cause is not None else "",
            )

    def _order(
        self, effect: do.StartDriver | do.Submit | do.Proceed | do.Dismiss | do.Abort
    ) -> None:
        """Give the template's driver an order."""
        driver = self.life.driver
        match effect:
            case do.Submit(answer=answer):
                driver.submit(answer)
            case do.Proceed():
                driver.proceed()
            case do.Dismiss(end=end):
                driver.dismiss(end)
            case do.Abort(end=end):
                driver.abort(end)
            case _ if self._opening is not None:
                driver.start(self._opening)
            case _:
                raise ValueError("its world was started before it was prepared")

    def _run_in_turn(self, effect: do.Effect) -> Rest | None:
        match effect:
            case do.StopCommands():
                return self._stop_commands()
            case do.CloseWorld():
                return self._close_world()
            case do.WriteLog(release=release):
                return self._write_log(release=release)
            case do.Examine():
                return partial(self._examine, effect)
            case do.Record():
                return self._begin_record(effect)
            case _:
                return self._resume

    def _catch_up(self) -> None:
        attempt = partial(self.life.attempts.make, self.life.direct.catch_up)
        if self.life.direct.is_behind:
            try:
                self.life.commands.put(attempt, 2 * self.life.direct.limit_s)
            except SessionBusy as exc:  # the next direct access takes it
                self.journal.log(f"no snapshot: {exc}")

    def _stop_commands(self) -> Rest | None:
        life = self.life
        task = life.commands.cut_off()
        if task is None:
            life.direct.close()
            return None

        async def let_go() -> None:
            await life.commands.let_go(task)
            life.direct.close()

        return let_go

    def _close_world(self) -> Rest | None:
        world = self.life.world
        if world.is_empty:
            world.drop()
            return None
        return partial(in_patience, world.close, "closing the world", self.journal.log)

    def _write_log(self, *, release: bool) -> Rest | None:
        if self.journal.is_written and not release:
            self._has_closed()
            return None

        async def leave() -> None:
            await self.journal.leave()
            if release:
                await self.journal.release()

        async def write() -> None:
            try:
                await in_patience(leave, "writing the end of the log", self.journal.log)
            finally:
                self._has_closed()

        return write

    def _has_closed(self) -> None:
        self.life.driver.note_closed()
        self.post(Closed(self.state.life))

    async def _examine(self, effect: do.Examine) -> None:
        """Look whether the world is dead whose grader failed."""
        life, died = self.life, None
        facts = self._stored.facts if self._stored is not None else SessionFacts()
        try:
            if await life.world.is_dead():
                died = life.world.died or effect.reason or "It cannot be used."
        finally:
            self.post(
                Examined(
                    life.number,
                    died,
                    died_before=facts.died_in_grading,
                    failed_before=facts.failed_in_grading,
                    has_changed=self.journal.changed > 0,
                    can_resume=life.attempts.can_resume,
                )
            )

    def _begin_record(self, effect: do.Record) -> Rest | None:
        """Write how it ends, with no task where nothing has to wait for its turn."""
        self.record.log_rest()
        if effect.was_stopped:
            self.journal.mark(was_stopped=True)
            self.journal.log("its server was stopped, and the session waits in its record")
        begun = self._stored is not None or self.journal.has_begun
        empty = self.life.world.is_empty and not effect.end.parked
        if not (empty and begun and self.journal.is_idle):
            return partial(self._record, effect)
        handed_over = False
        try:
            written = self.record.end_at_once(effect.end, self.state.answer)
            written.add_done_callback(self._recorded)
            handed_over = True
        finally:
            if not handed_over:
                self.post(Recorded(None, taken=self.journal.taken))
        return None

    def _recorded(self, written: "asyncio.Future[Receipt]") -> None:
        self.post(Recorded(written.result(), taken=self.journal.taken))

    async def _record(self, effect: do.Record) -> None:
        """Write how it ends; whatever fails, everybody who waits is told."""
        receipt = None
        try:
            if not effect.end.parked:
                receipt = await self.record.end(
                    effect.end, self.state.answer, is_begun=self._stored is not None
                )
        finally:
            self.post(Recorded(receipt, taken=self.journal.taken))

    async def _resume(self) -> None:
        """Open the world anew, and bring it to the last recorded step."""
        number = self.state.life
        try:
            if number > self.life.number:
                await self.journal.flush()  # what is owed is in what is read next
                self._stored = await self._store.load_session(self.spec.trajectory_id)
                self.life = self._new_life(number)
        except HudMcpError as exc:
            self.post(NotBack(number, unread(exc)))
            return
        began_s = time.monotonic()
        try:
            self.stage()
            if self.post(Staged(number)).is_driven and self._stored is not None:
                await self._repeat_record(self._stored, began_s)
        except (StoreFailed, SessionTaken) as exc:
            self.failure = exc
            self.post(NotBack(number, SessionEnd.left_to_record()))
        except DiedAgain as exc:
            again = died_again(self.life.world.died or str(exc))
            lost = SessionEnd(Outcome.LOST, error=str(exc), told=str(exc))
            self.post(NotBack(number, lost if self.state.died is None else again))
        except HudMcpError as exc:
            self.post(NotBack(number, SessionEnd(Outcome.LOST, error=str(exc), told=str(exc))))
        except BaseException:
            self.post(NotBack(number, SessionEnd.left_to_record()))
            raise

    async def _repeat_record(self, stored: StoredSession, began_s: float) -> None:
        """Run the template to its prompt, and repeat or restore what the record has."""
        life, steps = self.life, stored.trajectory.steps
        prompt = await life.driver.wait_for_prompt()
        if prompt is None:  # it has its end
            return
        if stored.trajectory.prompt is None:  # nobody was told of it yet
            await self.journal.save_prompt(prompt.text)
        elif storable(prompt.text) != stored.trajectory.prompt:
            raise WorldLost("its template now yields another prompt")
        self.take_prompt(prompt)
        if self.state.phase is not Phase.RESUMING:
            return
        life.commands.start()
        took_s = sum((s.ended_at - s.started_at).total_seconds() for s in steps)
        bound_s = self.spec.limits.setup_s + 2 * max(0.0, took_s)
        await life.commands.call(partial(self._resume_world, stored), bound_s)
        took_s = time.monotonic() - began_s
        self.journal.log(f"brought back after {len(steps)} steps in {took_s:.1f} s")
        self.journal.mark(was_stopped=False)
        answer = submitted_answer(steps)
        if answer is not None:
            if not self.state.is_coming_back:
                self.journal.mark(lost_gradings=stored.facts.lost_gradings + 1)
                self.journal.log(
                    "its answer is graded again, as its server ended before it had a grade"
                )
            # Before: it is how gradings that end it are counted, and whose it is to grade.
            await self.journal.flush()
        self.touch()
        telemetry.add("resumed", environment=self.spec.environment.name)
        self.post(Resumed(life.number, answer, steps[-1].ended_at if answer is not None else None))

    async def _resume_world(self, stored: StoredSession) -> None:
        await self.life.world.resume(stored)
        self.life.measuring.restore(stored.trajectory.steps)
        self.journal.restore(stored.snapshot_step if stored.snapshot is not None else None)

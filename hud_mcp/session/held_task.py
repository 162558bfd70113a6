"""A held task: its spec, state, life and journal, and `post`, the one way to change it."""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import anyio

from hud_mcp.environment.prompt import Prompt
from hud_mcp.environment.spec import Opening, Shared
from hud_mcp.errors import (
    AlreadyAnswered,
    EnvironmentFailed,
    HudMcpError,
    SessionEnded,
    SessionResuming,
    WorldDied,
)
from hud_mcp.record.values import UNDONE
from hud_mcp.session import events as ev
from hud_mcp.session.draft import Stepped
from hud_mcp.session.events import Changes
from hud_mcp.session.journal import Journal
from hud_mcp.session.life import Life
from hud_mcp.session.log import callback_context, clean_context
from hud_mcp.session.receipts import RESUMING, Strain, answered_text, died_text, over_text
from hud_mcp.session.spec import SessionSpec
from hud_mcp.session.state import State, decide
from hud_mcp.session.turn import Call, CallCutOff
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.grade import Outcome

logger = logging.getLogger(__name__)
T = TypeVar("T")

Rest: TypeAlias = Callable[[], Awaitable[object]]
"""The part of an effect that has to be waited for."""

_IN_TURN = (ev.StopCommands, ev.Examine, ev.Record, ev.CloseWorld, ev.WriteLog, ev.Resume)
"""Effects that may have to wait, and so keep their order. All others are done at once."""


class HeldTask:
    """One session in this process, without the calls on it.

    Effects that need not wait are carried out in the turn of the event. From the first that has to
    wait, one task of the session does the rest in order. An order to the template overtakes them.
    """

    __slots__ = (
        "_deciding", "_effects", "_events", "_functions", "_program", "_task", "_waiting",
        "changes", "expiry", "failure", "journal", "life", "on_over", "opening", "prompt",
        "retry", "shared", "spec", "state", "store", "stored", "strain", "touched_s",
        "waited_at_touch_s",
    )  # fmt: skip

    def __init__(
        self,
        spec: SessionSpec,
        *,
        effects: "Mapping[type, Callable[[Any, Any], Rest | None]]",
        store: Store,
        shared: Shared,
        stored: StoredSession | None,
        provisional: bool,
        program: "asyncio.Task[None] | None",
        changes: Changes,
        on_over: "Callable[[Any], None]",
    ) -> None:
        self.spec = spec
        phase = ev.Phase.STARTING if stored is None else ev.Phase.RESUMING
        self.state = State(phase, provisional=provisional, is_back=stored is None)
        self.prompt: Prompt | None = None
        # The reason why it is not resumed, if its record could not be written.
        self.failure: HudMcpError | None = None
        self._functions = effects
        self.store = store
        self.shared = shared
        self.stored = stored
        self._program = program  # its cancellation means that the event loop ends
        self.changes = changes
        self.on_over = on_over
        self.opening: Opening | None = None
        self._events: list[ev.Event] = []  # an empty deque takes 760 bytes
        self._effects: list[ev.Effect | Rest] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._deciding = False
        self._task: asyncio.Task[None] | None = None
        self.retry: asyncio.TimerHandle | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self.journal = Journal(
            store,
            spec.trajectory_id,
            post=self.post,
            log_lines=spec.limits.log_lines,
            stored=stored,
            on_written=self.tell_change,
        )
        earlier = stored.facts.overloaded if stored is not None else 0
        self.strain = Strain(shared.contention, self.journal, earlier)
        self.life = self.new_life(0)
        self.touch()

    def new_life(self, number: int) -> Life:
        """Make the parts that use a world."""
        return Life(
            number,
            self.spec,
            journal=self.journal,
            post=self.post,
            shared=self.shared,
            program=self._program,
        )

    def touch(self) -> None:
        """Note a use of the session: its idle time begins anew."""
        self.touched_s = time.monotonic()
        self.waited_at_touch_s = self.shared.contention.waited_s

    def waited_since(self, waited_s: float) -> float:
        """Seconds that the machine has delayed the process since an earlier reading."""
        return self.shared.contention.waited_s - waited_s

    # Events and effects.

    def post(self, event: ev.Event) -> State:
        """Report an event, and return the state that follows."""
        self._events.append(event)
        # An effect has posted it: it is decided after the present event, so no decision nests.
        if self._deciding:
            return self.state
        if "sniffio" in sys.modules and asyncio.current_task() is None:  # in a timer's callback
            return callback_context().run(self._decide_all)
        return self._decide_all()

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Wait until a condition holds of the state, and return the state."""
        while not holds(self.state):
            changed = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed
        return self.state

    def _decide_all(self) -> State:
        """Decide on all reported events, and begin what follows."""
        self._deciding = True
        try:
            while self._events:
                self._decide(self._events.pop(0))
        finally:
            self._deciding = False
        return self.state

    def _decide(self, event: ev.Event) -> None:
        before = self.state
        self.state, effects = decide(before, event)
        # All waiting tasks look again, because each waits for a condition of its own.
        if self.state is not before and self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        for i, effect in enumerate(effects):
            # An effect that may wait goes behind those that do; all others overtake them.
            if isinstance(effect, _IN_TURN) and self._task is not None:
                self._effects.extend(effects[i:])
                return
            rest = self._begin(effect)
            if rest is not None:
                self._effects.extend((rest, *effects[i + 1 :]))
                # A clean context: nothing of the request behind the event stays in the task.
                self._task = asyncio.get_running_loop().create_task(
                    self._run(),
                    name=f"session {self.spec.name}",
                    context=clean_context(self.spec.name, self.journal.log),
                )
                return

    def _begin(self, effect: ev.Effect) -> Rest | None:
        """Do the immediate part of an effect; return the rest, or None."""
        try:
            return self._functions[type(effect)](self, effect)
        except Exception as exc:  # what comes after it, is done nevertheless
            logger.exception("%s: %s failed", self.spec.name, type(effect).__name__)
            # A template that was not resumed would leave its session waiting for it.
            if isinstance(effect, ev.StartDriver | ev.Submit | ev.Proceed):
                self.life.driver.fail(str(exc))
            return None

    async def _run(self) -> None:
        """Do the waiting effects, also after the event loop's end has cancelled this task."""
        while self._effects:
            effect = self._effects.pop(0)
            rest = effect if callable(effect) else self._begin(effect)
            try:
                if rest is not None:
                    await rest()
            except asyncio.CancelledError:
                logger.debug("%s: cut off as the event loop ends", self.spec.name)
            except Exception:  # what comes after it, is done nevertheless
                logger.exception("%s: an effect failed", self.spec.name)
        self._task = None

    def tell_change(self) -> None:
        """Tell the listeners that something of the session is recorded."""
        self.changes.tell(self.spec.secret_digest)

    # Calls on the world.

    async def over(self) -> None:
        """Wait until the end may be read."""
        await self.until(lambda state: state.is_over)

    async def closed(self) -> None:
        """Wait until the world is closed for good."""
        await self.until(lambda state: state.is_closed)

    async def back(self) -> None:
        """Wait until a world that has died is resumed."""
        if self.state.is_coming_back:
            await self.until(lambda state: not state.is_coming_back)

    async def in_turn(
        self, run: Call[T], limit_s: float, *, detached: bool = False, refuses: bool = True
    ) -> T:
        """Make a call on the world after those that wait, within a limit; return its result.

        A detached call goes on if its caller is cancelled. A call that does not refuse must look in
        its turn whether it meets the world.

        Raises:
            SessionEnded, SessionResuming, AlreadyAnswered, SessionBusy: The call was not made.
            WorldDied: The call was undone: the world died of it, and is resumed.
            EnvironmentFailed: The world broke, and the session has ended without a grade.
        """
        # Most calls meet an open world, and need no further look.
        if self.state.phase is not ev.Phase.OPEN:
            await self.back()
            self.refuse_if_over()
        self.touch()
        if self.state.provisional:
            self.post(ev.Touched())
        check = self.refuse_if_over if refuses else None
        began_s, waited_s = self.touched_s, self.waited_at_touch_s
        life, refused = self.life, True
        try:
            result = await life.turn.call(run, limit_s, detached=detached, check=check)
            refused = isinstance(result, Stepped) and result.error is not None
        except CallCutOff:
            raise SessionEnded(over_text(self.state)) from None
        except EnvironmentFailed as exc:
            raise await self._as_told(exc, life.number) from exc
        else:
            return result
        finally:
            self.touch()
            # The machine's load may have caused the refusal, which the receipt then says.
            if refused:
                waited_s = self.waited_at_touch_s - waited_s
                self.strain.note_refusal(waited_s, self.touched_s - began_s)

    async def _as_told(self, exc: EnvironmentFailed, life: int) -> HudMcpError:
        """Return the error for a call that found its world broken, once the sequel is known."""
        reason, deaths = self.state.died or str(exc), self.journal.deaths
        if self.state.is_coming_back or self.state.life != life:
            was_dead = bool(deaths) and deaths[-1].info.get(UNDONE) == "before"
            # The reply does not wait for the whole resumption: hosts give up on a silent call.
            with anyio.move_on_after(self.spec.limits.reply_s):
                await self.back()
            if not (self.state.is_over or self.state.phase is ev.Phase.ENDING):
                is_back = not self.state.is_coming_back
                return WorldDied(died_text(reason, was_dead=was_dead, is_back=is_back))
        await self.over()
        receipt = self.state.receipt
        if receipt is None or receipt.outcome is not Outcome.ENVIRONMENT_FAILED:
            return SessionEnded(over_text(self.state))
        return EnvironmentFailed(self.state.told or reason)

    def refuse_if_over(self) -> None:
        """Raise SessionEnded, SessionResuming or AlreadyAnswered if no call meets the world."""
        match self.state.meets:
            case ev.Meets.END:
                raise SessionEnded(over_text(self.state))
            case ev.Meets.RESUMING:  # `Sessions.find` waits for it
                raise SessionResuming(RESUMING)
            case ev.Meets.ANSWER:
                raise AlreadyAnswered(answered_text(self.state))
            case _:
                pass

    # Its world and its record.

    def stage(self) -> None:
        """Make the world's opening; InvalidContext if its environment has no such context."""
        self.opening = self.spec.opening(self.shared, self.journal.log, self.stored)

    async def flush_end(self) -> None:
        """Write an end that the record lacks; raises as `Journal.flush_end` does."""
        stands = await self.journal.flush_end()
        if stands is not None:
            self.post(ev.Recorded(stands))

    def stop_timers(self) -> None:
        """Stop all timers, for the end of the process."""
        for timer in (self.retry, self.expiry):
            if timer is not None:
                timer.cancel()

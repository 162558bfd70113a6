"""One session's executor: it decides what follows from each event, and has it done in order."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from hud_mcp.session.callback_context import callback_context
from hud_mcp.session.effects import (
    CloseWorld,
    Effect,
    Examine,
    Record,
    Resume,
    StopCommands,
    WriteLog,
)
from hud_mcp.session.events import Event
from hud_mcp.session.log import clean_context
from hud_mcp.session.state import State, decide

__all__ = ["Executor", "Post", "Rest"]

logger = logging.getLogger(__name__)

Post: TypeAlias = Callable[[Event], State]
"""Says that something has happened to a session; returns what it is then."""

Rest: TypeAlias = Callable[[], Awaitable[None]]
"""What of an effect has to be waited for."""

_IN_TURN = (StopCommands, Examine, Record, CloseWorld, WriteLog, Resume)
"""Effects that may have to wait, and that overtake nothing. All others are done at once."""


class _Runner(Protocol):
    """What carries an effect out."""

    def run(self, effect: Effect) -> Rest | None:
        """Do what can be done at once; return the rest, or None where there is none."""
        ...


class Executor:
    """Holds what a session is, and has its effects carried out.

    Effects that need not wait are carried out in the turn of whoever posts the event. From the
    first that has to, a task of the session does the rest in order, and is gone then: there is
    never more than one. An order to the template overtakes what waits.

    Args:
        state: What the session is.
        runner: Carries effects out.
        name: The session's short name.
        log: Takes a line for its log.

    Attributes:
        state: What the session is now.
    """

    def __init__(
        self, state: State, runner: _Runner, *, name: str, log: Callable[[str], None]
    ) -> None:
        self.state = state
        self._runner = runner
        self._name = name
        self._log = log
        self._events: list[Event] = []  # an empty deque takes 760 bytes
        self._effects: list[Effect | Rest] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._deciding = False
        self._task: asyncio.Task[None] | None = None

    def post(self, event: Event) -> State:
        """Say that something has happened; return what the session is then."""
        self._events.append(event)
        if self._deciding:
            return self.state
        if "sniffio" in sys.modules and asyncio.current_task() is None:  # in a timer's callback
            return callback_context().run(self._drain)
        return self._drain()

    def _drain(self) -> State:
        """Decide on all that has happened, and begin what follows."""
        self._deciding = True
        try:
            while self._events:
                self._decide(self._events.pop(0))
        finally:
            self._deciding = False
        return self.state

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Wait until something holds of the state, and return that."""
        while not holds(self.state):
            changed = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed
        return self.state

    def _decide(self, event: Event) -> None:
        before = self.state
        self.state, effects = decide(before, event)
        if self.state is not before and self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        for i, effect in enumerate(effects):
            if isinstance(effect, _IN_TURN) and self._task is not None:
                self._effects.extend(effects[i:])
                return
            rest = self._begin(effect)
            if rest is not None:
                self._effects.extend((rest, *effects[i + 1 :]))
                self._task = asyncio.get_running_loop().create_task(
                    self._run(),
                    name=f"session {self._name}",
                    context=clean_context(self._name, self._log),
                )
                return

    def _begin(self, effect: Effect) -> Rest | None:
        try:
            return self._runner.run(effect)
        except Exception:  # what comes after it, is done nevertheless
            logger.exception("%s: %s failed", self._name, type(effect).__name__)
            return None

    async def _run(self) -> None:
        """Do what waits. Only the end of the event loop cancels it: then it goes on too."""
        while self._effects:
            effect = self._effects.pop(0)
            rest = effect if callable(effect) else self._begin(effect)
            try:
                if rest is not None:
                    await rest()
            except asyncio.CancelledError:
                logger.debug("%s: cut off as the event loop ends", self._name)
            except Exception:  # what comes after it, is done nevertheless
                logger.exception("%s: an effect failed", self._name)
        self._task = None

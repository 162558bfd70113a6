"""What ends sessions that nobody attends to, and writes ends that could not be written."""

import asyncio
import time

import anyio

from hud_mcp.contention import Contention
from hud_mcp.grade import Cause, Outcome
from hud_mcp.session.leaving import flush_end
from hud_mcp.session.limits import Limits
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import LEFT_BY_PROGRAM, SessionEnd

__all__ = ["Reaper"]

_SWEEP_S = 1.0


class Reaper:
    """One task that looks after all sessions, once a second, from the first one on.

    Args:
        roster: Who is here.
        contention: What the machine takes, which is added to the limits.
        limits: How long a session may be open, and idle.
    """

    def __init__(self, roster: Roster, contention: Contention, limits: Limits) -> None:
        self._roster = roster
        self._contention = contention
        self._limits = limits
        self._task: asyncio.Task[None] | None = None
        self._ends: set[asyncio.Task[None]] = set()
        self._stopping = anyio.Event()

    def watch(self) -> "asyncio.Task[None]":
        """Begin, if it has not; return the task, which only the end of the event loop cancels."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._sweep(), name="reaper")
        return self._task

    def stop(self) -> None:
        """Look after nothing any more.

        The task is not cancelled: by that, its sessions would know the end of the event loop.
        """
        if self._task is not None:
            self._stopping.set()
            self._task = None

    async def _sweep(self) -> None:
        try:
            await self._sweep_until_stopped()
        except asyncio.CancelledError:  # the event loop is being ended: nobody else ends them
            living = self._roster.living()
            every = [s.finish(LEFT_BY_PROGRAM, abort=True) for s in living]
            await asyncio.gather(*every, return_exceptions=True)
            raise

    async def _sweep_until_stopped(self) -> None:
        while True:
            with anyio.move_on_after(_SWEEP_S):
                await self._stopping.wait()
                return
            for session in self._roster:
                text = self._expiry(session) if session.is_open else None
                if text is not None:
                    self._end(session, SessionEnd(Outcome.EXPIRED, told=text, cause=Cause.AGENT))
            for session in self._roster:
                if session.owes:
                    await flush_end(session)
            if not self._roster.forget():
                self._contention.stop()  # an idle server wakes for nothing

    def _end(self, session: Session, end: SessionEnd) -> None:
        """Have a session end; one that was answered in this moment ends with its grade."""
        task = asyncio.get_running_loop().create_task(session.finish(end))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    def _expiry(self, session: Session) -> str | None:
        """Why a session expires now; None where it does not."""
        now, waited = time.monotonic(), self._contention.waited_s
        idle = now - session.touched_s - (waited - session.waited_at_touch_s)
        open_s = now - session.begun_s - (waited - session.waited_at_begin_s)
        if open_s > self._limits.total_s:
            return f"It was open for {self._limits.total_s:g} s, the longest allowed."
        if session.busy:
            return None
        if session.provisional and idle > self._limits.provisional_s:
            return f"Nobody acted on it for {self._limits.provisional_s:g} s."
        if idle > self._limits.idle_s:
            return f"It was idle for {self._limits.idle_s:g} s."
        return None

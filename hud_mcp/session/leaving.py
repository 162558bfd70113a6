"""How a process leaves its sessions: to the next server where that can go on, else at their end."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

import anyio

from hud_mcp.environment import Environment
from hud_mcp.environment.world import Shared
from hud_mcp.errors import EnvironmentFailed, HudMcpError, SessionTaken, StoreFailed
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import LEFT_BY_PROGRAM, SessionEnd
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Outcome

__all__ = ["Leaving", "Lifecycle", "OpenEndpoints", "Program"]

logger = logging.getLogger(__name__)

_CLOSE_S = 1.5
"""How long closing takes at the most: hosts kill a server some 2 s after they have left it."""
_END_S = 1.0
"""How much of it the sessions have to end, and to be recorded."""
_ABORT_S = 0.7
"""How much of that a template has that is cancelled; one that ignores it is abandoned."""
_FINISH_S = 0.5
"""How much of that what runs has to come to its own end, before it is cut off."""
_REST_S = 0.15
"""How much what the worlds share has at least; then its processes are killed."""
_STORE_S = 0.2
"""How much the store has at least."""


class OpenEndpoints(Protocol):
    """What leads to worlds beside the calls of their sessions."""

    async def close(self) -> None:
        """Listen no more, and drop every connection. Again is not an error."""
        ...


class Lifecycle:
    """Runs the initialize hooks of environments, and at the end the shutdown hooks of the same."""

    def __init__(self) -> None:
        self._starting = anyio.Lock()
        self._started: dict[int, Environment] = {}

    async def start(self, environment: Environment, limit_s: float) -> None:
        """Run an environment's initialize hooks, if they have not run.

        Raises:
            EnvironmentFailed: One failed; the next call begins with the first again.
        """
        if id(environment) in self._started:
            return
        async with self._starting:
            if id(environment) in self._started:
                return
            try:
                with anyio.fail_after(limit_s):
                    await environment.start()
            except HudMcpError:
                raise
            except Exception as exc:
                logger.exception("an initialize hook of %s failed", environment.name)
                raise EnvironmentFailed(
                    f"An initialize hook of environment {environment.name!r} failed "
                    f"({type(exc).__name__}); the server's log says why."
                ) from exc
            self._started[id(environment)] = environment

    async def stop(self) -> None:
        """Run the shutdown hooks of every environment whose initialize hooks have run."""
        for environment in self._started.values():
            try:
                await environment.stop()
            except Exception:  # an author's hook; what it leaves open is its own
                logger.exception("a shutdown hook of %s failed", environment.name)


class Program:
    """The task by which sessions know that their whole event loop is being ended.

    Args:
        roster: Who is here.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def watch(self) -> "asyncio.Task[None]":
        """Return the task, which only the end of the event loop cancels."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wait(), name="program")
        return self._task

    def stop(self) -> None:
        """End the task. It is not cancelled: by that, sessions would know the end of the loop."""
        self._stopping.set()
        self._task = None

    async def _wait(self) -> None:
        try:
            await self._stopping.wait()
        except asyncio.CancelledError:  # nobody else ends the sessions
            living = self._roster.living()
            every = [s.finish(LEFT_BY_PROGRAM, abort=True) for s in living]
            await asyncio.gather(*every, return_exceptions=True)
            raise


class Leaving:
    """Closes what a process has, in order: endpoints, sessions, what worlds share, the store.

    Args:
        roster: Who is here.
        shared: What the worlds share.
        lifecycle: Runs the shutdown hooks.
        store: Where all is recorded.
    """

    def __init__(self, roster: Roster, shared: Shared, lifecycle: Lifecycle, store: Store) -> None:
        self._roster = roster
        self._shared = shared
        self._lifecycle = lifecycle
        self._store = store

    async def close(self, endpoints: Iterable[OpenEndpoints]) -> None:
        """Close everything, within a bound.

        Args:
            endpoints: Closed first.
        """
        deadline = anyio.current_time() + _CLOSE_S
        with anyio.move_on_after(_FINISH_S, shield=True):
            for each in endpoints:
                await each.close()
        left_s = deadline - _CLOSE_S + _END_S - anyio.current_time()
        with anyio.move_on_after(max(_FINISH_S, left_s), shield=True):
            await self._leave_all()
        with anyio.CancelScope(shield=True):
            left_s = deadline - _STORE_S - anyio.current_time()
            try:
                await self._shared.close(within_s=max(_REST_S, left_s))
            except ExceptionGroup:  # what was open with it is closed, and the rest goes on
                logger.exception("a shared service could not be closed")
        left_s = deadline - _STORE_S - anyio.current_time()
        with anyio.move_on_after(max(_REST_S, left_s), shield=True):
            await self._lifecycle.stop()
        with anyio.CancelScope(shield=True):
            await self._store.close(within_s=max(_STORE_S, deadline - anyio.current_time()))

    async def move(self, session: Session) -> bool:
        """Leave a session to another server, where it can go on there; whether it does.

        Its caller sees to it that no call of it is under way, and that none begins.
        """
        with anyio.move_on_after(_FINISH_S):
            await session.catch_up()
        if session.is_busy or session.state.is_over or not session.can_park:
            return False
        await _cut_off(session, SessionEnd.left_to_record())
        return True

    async def _leave_all(self) -> None:
        async with anyio.create_task_group() as group:
            for session in self._roster:
                session.stop_timers()
                if not session.state.is_closed:
                    group.start_soon(_leave, session)
                elif session.journal.owes:
                    group.start_soon(_flush_end, session)


async def _leave(session: Session) -> None:
    """Let a session go on in another process, where it can; else end it as lost."""
    if session.state.shown not in ("starting", "resuming"):
        with anyio.move_on_after(_FINISH_S):
            while session.is_busy and not session.state.is_over:  # noqa: ASYNC110  # half a second, once
                await anyio.sleep(0.02)
    if session.state.is_closed:
        return
    if session.state.shown == "resuming":
        await _cut_off(session, SessionEnd.left_to_record())
        return
    with anyio.move_on_after(_FINISH_S):
        await session.catch_up()
    await _cut_off(session, _end_of(session))


async def _cut_off(session: Session, end: SessionEnd) -> None:
    """End it as given; where its template listens to nobody, without its template."""
    with anyio.move_on_after(_ABORT_S):
        await session.finish(end, abort=True)
        return
    session.life.driver.abandon()
    await session.closed()


def _end_of(session: Session) -> SessionEnd:
    """How a session ends here whose server stops."""
    if session.state.provisional:
        told = "The server was stopped before anybody acted on it."
        return SessionEnd(Outcome.EXPIRED, told=told, cause=Cause.OPERATOR)
    if session.can_park:
        return SessionEnd.left_to_record()
    why = "The server was stopped."
    if session.journal.is_behind:
        why = (
            "The server was stopped, and it cannot go on in another one: its agent used its "
            "world directly, and there is no snapshot of what it did there last."
        )
    return SessionEnd(Outcome.LOST, error=why, told=why)


async def _flush_end(session: Session) -> None:
    """Write an end that could not be written when it came; it is tried again later."""
    try:
        await session.flush_end()
    except (StoreFailed, SessionTaken) as exc:
        logger.debug("%s", exc)

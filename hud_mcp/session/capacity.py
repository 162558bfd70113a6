"""Room for one more session: the count of a task's starts, the limits, and the order of leaving."""

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import anyio
import orjson

from hud_mcp.environment import Environment
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.task import Task
from hud_mcp.errors import EnvironmentFailed, HudMcpError, LimitReached, SessionTaken, StoreFailed
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import LEFT_BY_PROGRAM, SessionEnd
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Outcome

logger = logging.getLogger(__name__)

_CLOSE_S = 1.5
"""The longest closing: hosts kill a server some 2 s after they have left it."""
_END_S = 1.0
"""The part of it in which sessions end and are recorded."""
_ABORT_S = 0.7
"""The part of that for a cancelled template; one that ignores its cancellation is abandoned."""
_FINISH_S = 0.5
"""The part of that in which running calls finish by themselves, before they are cut off."""
_REST_S = 0.15
"""The least time for the worlds' shared services; then their processes are killed."""
_STORE_S = 0.2
"""The least time for the store."""


class OpenEndpoints(Protocol):
    """Ways into worlds beside the calls of their sessions."""

    async def close(self) -> None:
        """Stop listening, and drop every connection. Closing again is not an error."""
        ...


class Lifecycle:
    """The initialize hooks of environments, and their shutdown hooks at the end."""

    def __init__(self) -> None:
        self._starting = anyio.Lock()
        self._started: dict[int, Environment] = {}

    async def start(self, environment: Environment, limit_s: float) -> None:
        """Run an environment's initialize hooks, if they have not run.

        Raises:
            EnvironmentFailed: A hook failed; the next call begins with the first again.
        """
        if id(environment) in self._started:
            return
        async with self._starting:
            # Another start may have run the hooks while this one waited for the lock.
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
    """The task whose cancellation tells sessions that their whole event loop ends."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def watch(self) -> "asyncio.Task[None]":
        """Return the task. Only the end of the event loop cancels it."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wait(), name="program")
        return self._task

    def stop(self) -> None:
        """End the task without a cancellation, which would mean the loop's end to sessions."""
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
    """The end of a process, in order: endpoints, sessions, shared services, the store."""

    def __init__(self, roster: Roster, shared: Shared, lifecycle: Lifecycle, store: Store) -> None:
        self._roster = roster
        self._shared = shared
        self._lifecycle = lifecycle
        self._store = store

    async def close(self, endpoints: Iterable[OpenEndpoints]) -> None:
        """Close everything, within a bound."""
        deadline = anyio.current_time() + _CLOSE_S
        # Shielded: a cancelled server still records how its sessions end.
        with anyio.move_on_after(_FINISH_S, shield=True):
            for each in endpoints:
                await each.close()
        left_s = deadline - _CLOSE_S + _END_S - anyio.current_time()
        with anyio.move_on_after(max(_FINISH_S, left_s), shield=True):
            await self._leave_all()
        # The worlds' processes are shared, so they end after all sessions.
        with anyio.CancelScope(shield=True):
            left_s = deadline - _STORE_S - anyio.current_time()
            try:
                await self._shared.close(within_s=max(_REST_S, left_s))
            except ExceptionGroup:  # what was open with it is closed, and the rest goes on
                logger.exception("a shared service could not be closed")
        left_s = deadline - _STORE_S - anyio.current_time()
        with anyio.move_on_after(max(_REST_S, left_s), shield=True):
            await self._lifecycle.stop()
        # Last, because everything before it writes to the store.
        with anyio.CancelScope(shield=True):
            await self._store.close(within_s=max(_STORE_S, deadline - anyio.current_time()))

    async def move(self, session: Session) -> bool:
        """Leave an idle session to another server if it can go on there; return whether it does.

        The caller ensures that no call of the session is under way, and that none begins.
        """
        with anyio.move_on_after(_FINISH_S):
            await session.catch_up()
        # Only an idle session moves, so that no call is lost on the way.
        if session.is_busy or session.state.is_over or not session.can_park:
            return False
        await _cut_off(session, SessionEnd.left_to_record())
        return True

    async def _leave_all(self) -> None:
        async with anyio.create_task_group() as group:
            for session in self._roster:
                # A timer could end a session that is just being left to the next server.
                session.stop_timers()
                if not session.state.is_closed:
                    group.start_soon(_leave, session)
                elif session.journal.has_pending_end:
                    group.start_soon(_flush_end, session)


async def _leave(session: Session) -> None:
    """Let a session go on in another process if it can; else end it as lost."""
    # A start or a resumption cannot finish in this time, so it gets none.
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
    """End a session as given, and without its template if that does not listen."""
    with anyio.move_on_after(_ABORT_S):
        await session.finish(end, abort=True)
        return
    # A template that ignores its cancellation must not hold the process.
    session.life.driver.abandon()
    await session.closed()


def _end_of(session: Session) -> SessionEnd:
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
    """Write an end that could not be written when it came. A failure is tried again later."""
    try:
        await session.flush_end()
    except (StoreFailed, SessionTaken) as exc:
        logger.debug("%s", exc)


@dataclass(frozen=True, slots=True)
class Count:
    """The key under which a task's starts count together, and their most; None for any number."""

    key: str
    tries: int | None


class Capacity:
    """Room for sessions, within the limits; at most `tries` starts of one task by one principal."""

    def __init__(
        self,
        roster: Roster,
        store: Store,
        lifecycle: Lifecycle,
        *,
        limits: Limits,
        tasks: Iterable[Task],
        tries: int | None,
    ) -> None:
        self._roster = roster
        self._store = store
        self._lifecycle = lifecycle
        self._limits = limits
        self._tries = tries
        self.list(tasks)
        self.is_closed = False  # whether no more sessions may start

    def list(self, tasks: Iterable[Task]) -> None:
        """Count the starts of these tasks as their own from now on."""
        asked = {task.id: task.asked() for task in tasks}
        self._listed = asked | {each: each for each in asked.values()}

    def _key(self, principal: str | None, job_id: str | None, task: Task) -> str:
        """Return the key of a start's count: the principal, the job, and the task.

        A listed row counts as itself, under any context and seed. A task that a caller makes from a
        template counts without these, so that another seed makes no other task.
        """
        listed = self._listed
        known = (listed.get(task.asked()) or listed.get(task.id)) if listed else None
        asked = known or task.asked(fixed=False)
        return hashlib.sha256(orjson.dumps([principal, job_id, asked])).hexdigest()

    async def count(self, task: Task, caller: Caller, job_id: str | None) -> Count:
        """Return the count of a start, before it is recorded.

        Raises:
            LimitReached: The task has had its last start.
            StoreFailed: They cannot be counted.
        """
        key = self._key(caller.principal, job_id, task)
        # The operator's starts have no bound, as a run's plan says how often each task counts.
        tries = None if caller.principal == OPERATOR else self._tries
        if tries is not None:  # also here: nothing is opened for a start too many
            await self._store.check_tries(key, tries)
        return Count(key, tries)

    async def make_room(self, environment: Environment, caller: Caller) -> None:
        """Make room for one more session of a caller, before anything is opened.

        Raises:
            LimitReached: There is no room, and none gives way.
            EnvironmentFailed: An initialize hook failed.
        """
        await self._lifecycle.start(environment, self._limits.setup_s)
        while (untouched := self._next_to_go(caller)) is not None:
            told = "It was untouched, and its place was needed."
            await untouched.finish(SessionEnd(Outcome.EXPIRED, told=told, cause=Cause.OPERATOR))

    def _next_to_go(self, caller: Caller) -> Session | None:
        """Return the session that must leave first, or None; LimitReached if none may."""
        if self.is_closed:
            raise LimitReached("The server is shutting down; nothing was started.")
        limits = self._limits
        # The usual case needs no list of the living.
        if self._roster.living_count < min(limits.sessions, limits.sessions_per_caller):
            return None
        living = self._roster.living()
        mine = [s for s in living if s.caller.is_same(caller)]
        for group, limit, whose in (
            (mine, limits.sessions_per_caller, "yours"),
            (living, limits.sessions, "all callers'"),
        ):
            if len(group) < limit:
                continue
            waiting = [s for s in group if _is_untouched(s)]
            if not waiting:
                raise LimitReached(
                    f"{len(group)} sessions are open ({whose}; the limit is {limit}). Finish one "
                    "with response, or end one with cancel_task."
                )
            # The oldest offer has waited longest without a use.
            return min(waiting, key=lambda s: s.begun_s)
        return None


def _is_untouched(session: Session) -> bool:
    state = session.state
    return state.provisional and state.phase is Phase.OPEN and not session.is_busy

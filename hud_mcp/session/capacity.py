"""Whether one more session may start: how often a task, how many at once, which goes first."""

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import anyio
import orjson

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import Shared
from hud_mcp.errors import EnvironmentFailed, HudMcpError, LimitReached, SessionTaken, StoreFailed
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.limits import Limits
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import LEFT_BY_PROGRAM, SessionEnd
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Outcome

__all__ = ["Capacity", "Count", "Leaving", "Lifecycle", "OpenEndpoints", "Program"]


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


@dataclass(frozen=True, slots=True)
class Count:
    """By what the starts of a task are counted.

    Attributes:
        key: The same for all that count together.
        tries: How many there may be; None for any number.
    """

    key: str
    tries: int | None


class Capacity:
    """Makes room for sessions, within the limits.

    Args:
        roster: Who is here.
        store: Where the starts of a task are counted.
        lifecycle: Runs the hooks of environments before their first session.
        limits: How many there may be.
        tasks: Those that are listed; a start of one counts as its own, whatever it is called.
        tries: How often one principal may start the same task; None for any number.

    Attributes:
        is_closed: Whether it makes room for none any more.
    """

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
        self.is_closed = False

    def list(self, tasks: Iterable[Task]) -> None:
        """Count starts of these as their own from now on."""
        asked = {task.id: task.asked() for task in tasks}
        self._listed = asked | {each: each for each in asked.values()}

    def close(self) -> None:
        """Make room for none any more."""
        self.is_closed = True

    def _key(self, principal: str | None, job_id: str | None, task: Task) -> str:
        """By what starts are counted: whose they are, in which job, and what is asked.

        A listed row is itself, under whatever context and seed. Of what a caller makes from a
        template these are left out, so that another seed does not make it another task.
        """
        listed = self._listed
        known = (listed.get(task.asked()) or listed.get(task.id)) if listed else None
        asked = known or task.asked(fixed=False)
        return hashlib.sha256(orjson.dumps([principal, job_id, asked])).hexdigest()

    async def count(self, task: Task, caller: Caller, job_id: str | None) -> Count:
        """By what a start is counted, if it is not one too many. It is counted when it is recorded.

        Raises:
            LimitReached: As many have begun as there may be.
            StoreFailed: They cannot be counted.
        """
        key = self._key(caller.principal, job_id, task)
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
        """The session that must go first; None where there is room.

        Raises:
            LimitReached: There is no room, and none may go.
        """
        if self.is_closed:
            raise LimitReached("The server is shutting down; nothing was started.")
        limits = self._limits
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
            return min(waiting, key=lambda s: s.begun_s)
        return None


def _is_untouched(session: Session) -> bool:
    state = session.state
    return state.provisional and state.phase is Phase.OPEN and not session.is_busy

"""All sessions of a process: how one is found, started, expired, and closed at the end."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import anyio

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    IdTaken,
    InvalidTask,
    LimitReached,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    SessionResuming,
    SessionTaken,
    StoreFailed,
)
from hud_mcp.grade import Cause, Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.endings import LEFT_BY_PROGRAM, Ending
from hud_mcp.session.lifecycle import Lifecycle
from hud_mcp.session.limits import Limits
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.session.resume import Resumption
from hud_mcp.session.session import RESUMING, Session
from hud_mcp.session.turns import Turns
from hud_mcp.store import Store
from hud_mcp.store.plans import start_key
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import RecordMode, Task
from hud_mcp.taskset import Taskset
from hud_mcp.world import Shared

__all__ = ["Sessions"]

logger = logging.getLogger(__name__)

_SWEEP_S = 1.0
_CLOSE_S = 1.8
"""How long closing takes at the most: hosts kill a server some 2 s after they have left it."""
_END_S = 1.2
"""How much of it the sessions have to end, and to be recorded."""
_FINISH_S = 0.5
"""How much of that what runs has to come to its own end, before it is cut off."""
_ADOPT_S = 10.0
"""How often to look for sessions that no server runs any more."""
_FIRST_LOOK_S = 3.0
"""When to look first: the database loads after the first requests are answered."""
_CHOSEN_ID = re.compile(r"sess-[0-9a-f]{32,64}")
_OTHER_ID = (
    "This session id cannot be used for this start. Choose another one, `sess-` and 32 to 64 hex "
    "digits drawn at random, or leave it out. Nothing was started."
)
"""The same whatever is wrong with it: it says nothing of the sessions of others."""
_REMEMBERED = 1024
"""Ended sessions that are kept in memory; the store knows them all."""


class Sessions:
    """The registry. It belongs to the process, not to a connection or a server's lifespan.

    Args:
        environments: What can be started.
        store: Where everything is recorded.
        tasksets: Tasks that can be started by id.
        limits: What bounds it all.
        reward_policy: Who sees rewards; None for the templates' and environments' own
            defaults, then `on_submit`.
        job_id: The job that every session belongs to, or None.
        tries: How often one principal may start the same task, in a job or in none; None for any
            number. The operator may as often as it likes.
        adopts: Whether it sees to what other servers on this store left without a grade or an
            end; where not, only sessions that are asked for are brought back.
        local_hosts: Hosts that the row of any task may open, of this machine and of private
            networks too; a row that is not the user's own may name no others of those.
        record: How steps are written, one of `RECORD_MODES`; None for the environments' own
            choice, then `durable`.

    Attributes:
        environments, tasks, find_environment, environment_of, notes, mint: The catalogue's.
        live_base: Where the live pages of sessions are served, or None.

    Raises:
        InvalidTask: A listed task names an environment, a template or an argument that is
            not there, or two tasks have one id.
    """

    def __init__(
        self,
        environments: Iterable[Environment],
        *,
        store: Store,
        tasksets: Iterable[Taskset] = (),
        limits: Limits | None = None,
        reward_policy: str | None = None,
        job_id: str | None = None,
        tries: int | None = None,
        adopts: bool = True,
        local_hosts: Iterable[str] = (),
        record: RecordMode | None = None,
    ) -> None:
        catalogue = Catalogue(environments, tasksets)
        self.environments = catalogue.environments
        self.tasks = catalogue.tasks
        self.find_environment = catalogue.find_environment
        self.environment_of = catalogue.environment_of
        self.notes = catalogue.notes
        self.mint = catalogue.mint
        self.store = store
        self.limits = limits or Limits()
        self.reward_policy = reward_policy
        self.job_id = job_id
        self.record: RecordMode | None = record
        self._tries = tries
        asked = {task.id: task.asked() for task in catalogue.tasks}
        self._listed = asked | {each: each for each in asked.values()}
        self._local_hosts = tuple(local_hosts)
        self._shared = Shared()
        self._sessions: dict[str, Session] = {}
        self._living: dict[str, Session] = {}  # and those that have ended since it was asked
        self._failed: set[Session] = set()  # in starting; kept until they are closed
        self._lifecycle = Lifecycle()
        self._resumption = Resumption(
            store,
            self.environments,
            make_ready=self._make_ready,
            open_session=self._open_stored,
            find_here=self._find_here,
        )
        self._searches = Turns[Session | Receipt]()
        self._starts = Turns[Session]()
        self._reaper: asyncio.Task[None] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closing = False
        self._stopping = anyio.Event()
        self._adopts = adopts
        self._look_s = time.monotonic() + _ADOPT_S
        self._doors: list[Callable[[], Awaitable[None]]] = []
        self.live_base: str | None = None

    def begin(self) -> None:
        """Go on, soon, with what earlier servers on this store left without a grade or an end.

        Without it, that begins with the first session.
        """
        if self.store.exists:
            self._look_s = time.monotonic() + _FIRST_LOOK_S
            self._watch()

    def close_first(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have something closed before the sessions are: what lets in to their worlds."""
        self._doors.append(close)

    async def initialize(self, environment: Environment) -> None:
        """Run an environment's initialize hooks, once in the life of the process.

        Raises:
            EnvironmentFailed: One failed; the next call begins with the first again.
        """
        await self._lifecycle.start(environment, self.limits.setup_s)

    async def start(
        self,
        task: Task,
        *,
        caller: Caller,
        provisional: bool = False,
        session_id: str | None = None,
        drawn: bool = False,
        job_id: str | None = None,
        environment: Environment | None = None,
        record: RecordMode | None = None,
    ) -> Session:
        """Start a session and return it with its prompt.

        Args:
            task: What is asked.
            caller: Who starts it.
            provisional: Whether it expires early, and goes first when a limit is
                reached, until somebody acts on it.
            session_id: An id that the caller chose, so that the same call again, after a reply
                that was lost, returns the session that the first one began; of several at once,
                one begins it.
            drawn: Whether that id was drawn for this call alone, so that none can have begun.
            job_id: The job that it belongs to, in place of the registry's.
            environment: The task's, where it is none of the catalogue's.
            record: How its steps are written, in place of the registry's.

        Raises:
            InvalidTask, InvalidContext: The task does not fit its environment, or another id is
                to be chosen: this one is of another form, caller or task. Nothing ran.
            SessionEnded, SessionBusy: The chosen id is of a session that has ended, or that
                cannot be had here now.
            LimitReached: Too many sessions are open, or the task was started as often as it may be.
            EnvironmentFailed: The setup failed; that is recorded.
            StoreFailed: Nothing can be recorded, so nothing was started.

        If this call is cancelled, the half-made session ends as cancelled; where its caller chose
        the id, the start goes on, and the same call again returns the session.
        """
        if caller.is_agent:
            raise InvalidTask("This credential is of one session, and begins no other.")
        environment = environment or self.environment_of(task)
        task = environment.bind(task)
        begin = partial(
            self._begin,
            task,
            environment,
            caller=caller,
            provisional=provisional,
            session_id=session_id,
            job_id=job_id,
            record=record,
        )
        if session_id is None or drawn:
            return await begin()
        if not _CHOSEN_ID.fullmatch(session_id):
            raise InvalidTask(_OTHER_ID)
        same_start = (session_id, caller.principal, task.model_dump_json())
        return await self._starts.take(
            same_start, lambda: self._begin_once(session_id, task, caller, begin)
        )

    async def _begin_once(
        self,
        session_id: str,
        task: Task,
        caller: Caller,
        begin: Callable[[], Awaitable[Session]],
    ) -> Session:
        """Start a session under an id that its caller chose, or return the one that has begun."""
        if (found := await self._begun(session_id, task, caller)) is not None:
            return found
        try:
            return await begin()
        except IdTaken:  # by another start, in this moment
            if (found := await self._begun(session_id, task, caller)) is not None:
                return found
            raise

    async def _begun(self, session_id: str, task: Task, caller: Caller) -> Session | None:
        """The session that an earlier start with this id began; None where none has."""
        key = digest(session_id)
        here = self._sessions.get(key)
        known = (
            await self.store.find_begun(key) if here is None else (here.caller.principal, here.task)
        )
        if known is None:
            return None
        if known != (caller.principal, task):
            raise InvalidTask(_OTHER_ID)
        found = await self.find(session_id, caller)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        if found.receipt is not None:
            raise SessionEnded(ended_text(found.receipt, found.told))
        if found.prompt is None:
            raise SessionBusy("The session is still being prepared; call again.")
        return found

    async def _begin(
        self,
        task: Task,
        environment: Environment,
        *,
        caller: Caller,
        provisional: bool,
        session_id: str | None,
        job_id: str | None,
        record: RecordMode | None,
    ) -> Session:
        """Make a session and start it."""
        template = environment.template_of(task)
        job_id = job_id or self.job_id
        key = start_key(caller.principal, job_id, task, self._listed)
        tries = None if caller.principal == OPERATOR else self._tries
        if tries is not None:  # also here: nothing is opened for a start too many
            await self.store.check_tries(key, tries)
        await self._make_ready(environment, caller)  # last: nothing else may start in between
        self._watch()
        session = Session(
            environment,
            task,
            caller=caller,
            store=self.store,
            shared=self._shared,
            limits=self.limits,
            reward_policy=self._policy(environment, template.reward),
            job_id=job_id,
            provisional=provisional,
            session_id=session_id,
            start_key=key,
            tries=tries,
            local_hosts=self._local_hosts,
            program=self._reaper,
            record=record or self.record or environment.record or "durable",
        )
        if session_id is not None and session.secret_digest in self._sessions:
            raise IdTaken("Another session has this id; nothing was recorded.")
        self._enter(session)
        try:
            await session.start()
        except BaseException:
            del self._sessions[session.secret_digest]
            self._living.pop(session.secret_digest, None)
            self._failed.add(session)
            raise
        logger.info("session %s: %s started", session.name, task.id)
        return session

    async def find(
        self, session_id: str | None, caller: Caller, *, wait_s: float | None = None
    ) -> Session | Receipt:
        """Return a caller's session, whose world is what its record says.

        One that waits in its record is brought back first. Callers who ask meanwhile wait for
        that, and go on in the order in which they asked.

        Args:
            session_id: Its id; None or empty where the caller holds exactly one.
            caller: Who asks.
            wait_s: How long to wait for it to be brought back; None for as long as that takes.

        Returns:
            The session; or its receipt where it ended before this process began.

        Raises:
            SessionNotFound: No session of this caller has the id. An unknown id and
                another caller's give the same text.
            SessionBusy: Another server process runs it.
            SessionResuming: It is still being brought back.
            SessionEnded: Its server has ended, and it could not be brought back.

        If this call is cancelled, it is brought back nevertheless.
        """
        if session_id:
            key = digest(session_id)
        else:
            key = caller.session or self._only(caller).secret_digest
        if not caller.sees(key):
            raise _not_found(caller)
        here = self._here(key, caller)
        found = here or await self._bring_back(key, caller, wait_s)
        if session_id and isinstance(found, Session):
            found.know(session_id)
        return found

    async def current(self, session: Session) -> Session | Receipt:
        """Return what goes on in a session's place, which this process may have let go of.

        Raises:
            SessionBusy, SessionEnded: As for `find`.
        """
        here = self._here(session.secret_digest, session.caller)
        if here is not None:
            return here
        found = await self._bring_back(session.secret_digest, session.caller, None)
        if isinstance(found, Session):
            found.know(session.id)
        return found

    async def _bring_back(
        self, key: str, caller: Caller, wait_s: float | None
    ) -> Session | Receipt:
        try:
            with anyio.fail_after(wait_s):
                return await self._searches.take(
                    (key, caller.principal), lambda: self._search(key, caller)
                )
        except TimeoutError:
            raise SessionResuming(RESUMING) from None

    async def _search(self, key: str, caller: Caller) -> Session | Receipt:
        """Look a session up in the store, and bring it back if it goes on."""
        stored = await self.store.find_session(key, principal=caller.principal)
        if stored is None:
            raise _not_found(caller)
        trajectory_id, receipt = stored
        if receipt is not None:
            return receipt
        return await self._resumption.bring_back(trajectory_id, connection=caller.connection)

    async def adopt(self, trajectory_id: str) -> Session:
        """Go on with a session that no server runs, by its record's id.

        Whoever calls this has found out that it is the caller's to go on with.

        Raises:
            SessionEnded, SessionBusy: It cannot be had.
        """
        found = await self._resumption.bring_back(trajectory_id, connection=None)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    def here(self, session_id: str | None, caller: Caller) -> Session | None:
        """Return a caller's session by its id, if this process runs it or ended it; else None."""
        key = digest(session_id) if session_id else caller.session
        if key is None or not caller.sees(key):
            return None
        session = self._here(key, caller)
        if session is not None:
            session.know(session.id or session_id or "")
        return session

    def _here(self, key: str, caller: Caller) -> Session | None:
        """A session that can be used at once; None where it must be waited for, or is not here."""
        session = self._sessions.get(key)
        if session is None or session.caller.principal != caller.principal:
            return None
        if session.is_let_go:
            return session if self._closing else None
        # Nobody overtakes those who wait for it.
        waits = self._searches.waits_for((key, caller.principal))
        return None if waits or session.state == "resuming" else session

    def _find_here(self, trajectory_id: str) -> Session | None:
        """What this process has of a session, by its record's id."""
        every = self._sessions.values()
        return next((s for s in every if s.trajectory_id == trajectory_id), None)

    def held(self, caller: Caller) -> list[Session]:
        """The sessions that this caller can be recognised to have started and that live."""
        return [
            s
            for s in self._sessions.values()
            if s.caller.is_same(caller) and caller.sees(s.secret_digest) and not s.is_over
        ]

    def untouched(self, task: Task, caller: Caller) -> Session | None:
        """A session of this caller for the same task that nobody has acted on, or None."""
        for session in self.held(caller):
            if session.provisional and session.is_open and session.task == task:
                return session
        return None

    async def close(self) -> None:
        """Leave every session to the next server, within a bound, then close what worlds share.

        What runs has a moment to come to its end. A session that no other process could bring
        back ends as lost; one that was only offered, and never acted on, as expired.
        """
        self._closing = True
        self._resumption.stop()
        if self._looking is not None:
            self._looking.cancel()
        if self._reaper is not None:
            self._stopping.set()  # not cancelled: that is how its sessions know the loop's end
            self._reaper = None
        self._shared.contention.stop()
        deadline = anyio.current_time() + _CLOSE_S
        with anyio.move_on_after(_FINISH_S, shield=True):
            for close in self._doors:
                await close()
        every = [*self._sessions.values(), *self._failed]
        left_s = deadline - _CLOSE_S + _END_S - anyio.current_time()
        with anyio.move_on_after(max(_FINISH_S, left_s), shield=True):
            async with anyio.create_task_group() as group:
                for session in every:
                    if not session.is_closed:
                        group.start_soon(_leave, session)
                    elif session.owes:
                        group.start_soon(_settle, session)
        with anyio.move_on_after(max(0.4, deadline - anyio.current_time()), shield=True):
            try:
                await self._shared.close()
            except ExceptionGroup:  # what was open with it is closed, and the rest goes on
                logger.exception("a shared service could not be closed")
            await self._lifecycle.stop()
        with anyio.CancelScope(shield=True):
            await self.store.close(within_s=max(0.2, deadline - anyio.current_time()))

    def _only(self, caller: Caller) -> Session:
        if caller.connection is None:
            raise SessionNotFound(
                "Pass `session`, the id that start_task returned: this connection does not "
                "remember sessions."
            )
        mine = [s for s in self._sessions.values() if s.caller == caller]
        living = [s for s in mine if not s.is_over or (s.is_let_go and not s.taken)]
        if len(living) == 1:
            return living[0]
        if living:
            raise SessionNotFound(
                f"You hold {len(living)} sessions; pass `session` to say which one."
            )
        if mine:
            return mine[-1]
        raise SessionNotFound("No session yet. Call start_task first.")

    def _policy(self, environment: Environment, template: str | None) -> str:
        return self.reward_policy or template or environment.reward or "on_submit"

    def _open_stored(
        self, environment: Environment, stored: StoredSession, caller: Caller
    ) -> Session:
        """Make a session of another process's record, which is this one's now."""
        self._watch()
        session = Session(
            environment,
            stored.trajectory.task,
            caller=caller,
            store=self.store,
            shared=self._shared,
            limits=self.limits,
            reward_policy=stored.reward_policy,
            job_id=stored.trajectory.job_id,
            stored=stored,
            local_hosts=self._local_hosts,
            program=self._reaper,
        )
        self._enter(session)
        return session

    def _enter(self, session: Session) -> None:
        self._sessions[session.secret_digest] = self._living[session.secret_digest] = session
        self._shared.contention.start()
        self._watch()

    async def _make_ready(self, environment: Environment, caller: Caller) -> None:
        await self.initialize(environment)
        await self._make_room(caller)

    async def _make_room(self, caller: Caller) -> None:
        while (untouched := self._in_the_way(caller)) is not None:
            text = "It was untouched, and its place was needed."
            await _end(untouched, Ending(Outcome.EXPIRED, told=text, cause=Cause.OPERATOR))

    def _in_the_way(self, caller: Caller) -> Session | None:
        """The session that must go first; None where there is room.

        Raises:
            LimitReached: There is no room, and none may go.
        """
        if self._closing:
            raise LimitReached("The server is shutting down; nothing was started.")
        if len(self._living) < min(self.limits.sessions, self.limits.sessions_per_caller):
            return None
        self._living = {key: s for key, s in self._living.items() if not s.is_over}
        living = list(self._living.values())
        mine = [s for s in living if s.caller.is_same(caller)]
        for group, limit, whose in (
            (mine, self.limits.sessions_per_caller, "yours"),
            (living, self.limits.sessions, "all callers'"),
        ):
            if len(group) < limit:
                continue
            waiting = [s for s in group if s.provisional and not s.busy and s.is_open]
            if not waiting:
                raise LimitReached(
                    f"{len(group)} sessions are open ({whose}; the limit is {limit}). Finish one "
                    "with response, or end one with cancel_task."
                )
            return min(waiting, key=lambda s: s.begun_s)
        return None

    def _watch(self) -> None:
        if self._reaper is None:
            self._reaper = asyncio.get_running_loop().create_task(self._sweep(), name="reaper")

    async def _sweep(self) -> None:
        """Expire sessions, and forget those that ended long ago."""
        try:
            await self._sweep_until_stopped()
        except asyncio.CancelledError:  # the event loop is being ended: nobody else ends them
            every = [s.finish(LEFT_BY_PROGRAM, abort=True) for s in self._living.values()]
            await asyncio.gather(*every, return_exceptions=True)
            raise

    async def _sweep_until_stopped(self) -> None:
        while True:
            with anyio.move_on_after(_SWEEP_S):
                await self._stopping.wait()
                return
            for session in list(self._sessions.values()):
                text = self._expiry(session) if session.is_open else None
                if text is not None:
                    ending = Ending(Outcome.EXPIRED, told=text, cause=Cause.AGENT)
                    task = asyncio.get_running_loop().create_task(_end(session, ending))
                    self._endings.add(task)
                    task.add_done_callback(self._endings.discard)
            for session in [*self._sessions.values(), *self._failed]:
                if session.owes:
                    await _settle(session)
            self._failed = {s for s in self._failed if s.owes or not s.is_closed}
            ended = [k for k, s in self._sessions.items() if s.is_over]
            if len(ended) == len(self._sessions):
                self._shared.contention.stop()  # an idle server wakes for nothing
            for key in ended[: max(0, len(ended) - _REMEMBERED)]:
                del self._sessions[key]
            if self._adopts and time.monotonic() >= self._look_s:
                self._look_s = time.monotonic() + _ADOPT_S
                self._look()

    def _look(self) -> None:
        """Go on with what others left, if that is not under way: it takes as long as it takes."""
        if self._looking is None or self._looking.done():
            looking = self._resumption.look(self.limits)
            self._looking = asyncio.get_running_loop().create_task(looking, name="look")

    def _expiry(self, session: Session) -> str | None:
        now, waited_since = time.monotonic(), self._shared.contention.waited_since
        idle = now - session.touched_s - waited_since(session.touched_s)
        if now - session.begun_s - waited_since(session.begun_s) > self.limits.total_s:
            return f"It was open for {self.limits.total_s:g} s, the longest allowed."
        if session.busy:
            return None
        if session.provisional and idle > self.limits.provisional_s:
            return f"Nobody acted on it for {self.limits.provisional_s:g} s."
        if idle > self.limits.idle_s:
            return f"It was idle for {self.limits.idle_s:g} s."
        return None


def _not_found(caller: Caller) -> SessionNotFound:
    if caller.is_agent:
        return SessionNotFound("There is no such session. Leave `session` out: you have just one.")
    return SessionNotFound(
        "There is no such session. Pass the `session` that start_task returned, or call "
        "start_task to begin a new one."
    )


async def _end(session: Session, ending: Ending) -> None:
    await session.finish(ending)  # one that was answered in this moment ends with its grade


async def _leave(session: Session) -> None:
    """Let a session go on in another process, where it can; else end it as lost."""
    if session.state not in ("starting", "resuming"):
        with anyio.move_on_after(_FINISH_S):
            while session.busy and not session.is_over:  # noqa: ASYNC110  # half a second, once
                await anyio.sleep(0.02)
    if session.is_closed:
        return
    if session.state == "resuming":
        await session.finish(Ending.left_to_record(), abort=True)
        return
    with anyio.move_on_after(_FINISH_S):
        await session.catch_up()
    if session.provisional:
        told = "The server was stopped before anybody acted on it."
        ending = Ending(Outcome.EXPIRED, told=told, cause=Cause.OPERATOR)
    elif session.can_park:
        ending = Ending.left_to_record()
    else:
        why = "The server was stopped."
        if session.is_behind:
            why = (
                "The server was stopped, and it cannot go on in another one: its agent used its "
                "world directly, and there is no snapshot of what it did there last."
            )
        ending = Ending(Outcome.LOST, error=why, told=why)
    await session.finish(ending, abort=True)


async def _settle(session: Session) -> None:
    """Write an end that could not be written when it came; it is tried again later."""
    try:
        await session.flush_end()
    except (StoreFailed, SessionTaken) as exc:
        logger.debug("%s", exc)

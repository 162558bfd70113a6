"""All sessions of a process: how one is found, started, expired, and closed at the end."""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.ending import digest, ended_text, make_receipt
from hud_mcp.environment import Environment
from hud_mcp.errors import (
    EnvironmentFailed,
    HudMcpError,
    InvalidContext,
    InvalidTask,
    LimitReached,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    StoreFailed,
    did_you_mean,
)
from hud_mcp.grade import Outcome
from hud_mcp.keeper import Ending
from hud_mcp.limits import Limits
from hud_mcp.replay import submitted_answer
from hud_mcp.session import GRADED_AGAIN, Caller, Session
from hud_mcp.store import Store
from hud_mcp.store.store import HeldSession, WaitingSession
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset
from hud_mcp.trajectory import Receipt, utc_now
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
_TAKE_S = 5.0
"""How long to wait for another server to let go of a session: one that stops takes 2 s."""
_ADOPT_S = 10.0
"""How often to look for sessions that no server runs any more."""
_FIRST_LOOK_S = 3.0
"""When to look first: the database loads after the first requests are answered."""
_CHOSEN_ID = re.compile(r"sess-[0-9a-f]{32,64}")
_GRADINGS = 3
"""How often an answer's grading may end with its server before that is its outcome."""
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
        adopts: Whether it sees to what other servers on this store left without a grade or an
            end; where not, only sessions that are asked for are brought back.

    Attributes:
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
        adopts: bool = True,
    ) -> None:
        self.environments = {e.name: e for e in environments}
        self.store = store
        self.limits = limits or Limits()
        self.reward_policy = reward_policy
        self.job_id = job_id
        self.tasks = Taskset([t for s in tasksets for t in s], name="The taskset")
        for task in self.tasks:
            self._check(task)
        self._shared = Shared()
        self._sessions: dict[str, Session] = {}
        self._failed: set[Session] = set()  # in starting; kept until they are closed
        self._starting = anyio.Lock()
        self._started: set[str] = set()
        self._reaper: asyncio.Task[None] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._closing = False
        self._adopts = adopts
        self._resumes: dict[str, asyncio.Task[Session | Receipt]] = {}
        self._look_s = time.monotonic() + _ADOPT_S
        self.live_base: str | None = None

    def begin(self) -> None:
        """Go on, soon, with what earlier servers on this store left without a grade or an end.

        Without it, that begins with the first session.
        """
        if self.store.exists:
            self._look_s = time.monotonic() + _FIRST_LOOK_S
            self._watch()

    def find_environment(self, name: str | None) -> Environment:
        """Return an environment; None means the only one.

        Raises:
            InvalidTask: There is none of that name, or there are several to choose from.
        """
        known = ", ".join(self.environments)
        if name is None:
            if len(self.environments) == 1:
                return next(iter(self.environments.values()))
            raise InvalidTask(f"Name the `environment`: one of {known}.")
        if name not in self.environments:
            hint = did_you_mean(name, self.environments)
            raise InvalidTask(f"There is no environment {name!r}.{hint} There are: {known}.")
        return self.environments[name]

    def notes(self, environment: str | None = None) -> list[str]:
        """What agents are told of the environments, or of one, beside templates and tools."""
        return [
            f"{e.name}: {note}"
            for e in self.environments.values()
            if environment in (None, e.name)
            for note in e.notes
        ]

    def resolve_template(self, template: str, environment: str | None) -> Environment:
        """Return the environment that has a template; its name may be left out if only one has.

        Raises:
            InvalidTask: None has it, or several have.
        """
        if environment is not None:
            found = self.find_environment(environment)
            found.find_template(template)
            return found
        having = [e for e in self.environments.values() if template in e.templates]
        if len(having) == 1:
            return having[0]
        if having:
            names = ", ".join(e.name for e in having)
            raise InvalidTask(f"Several environments have {template!r}; name one: {names}.")
        known = [t for e in self.environments.values() for t in e.templates]
        raise InvalidTask(
            f"There is no template {template!r}.{did_you_mean(template, known)} list_tasks shows "
            f"them; there are: {', '.join(known)}."
        )

    def mint(
        self,
        template: str,
        arguments: Mapping[str, Any],
        *,
        environment: str | None = None,
        context: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Task:
        """Make a task of a template and arguments, all checked; nothing runs.

        Raises:
            InvalidTask: The template or an argument is not there, or of the wrong kind.
            InvalidContext: The context is not one of the environment's.
        """
        found = self.resolve_template(template, environment)
        task = found.find_template(template)(**arguments)
        if context:
            found.context_space.fill(context)
        elif context is None and found.context_selector is not None:
            if seed is not None:  # so that the same seed is the same task
                found.context_selector.seed(seed)
            context = found.context_selector.select()
        seed = found.seed if seed is None else seed
        return task.model_copy(update={"context": dict(context or {}), "seed": seed})

    async def start(
        self,
        task: Task,
        *,
        caller: Caller,
        provisional: bool = False,
        session_id: str | None = None,
        drawn: bool = False,
    ) -> Session:
        """Start a session and return it with its prompt.

        Args:
            task: What is asked.
            caller: Who starts it.
            provisional: Whether it expires early, and goes first when a limit is
                reached, until somebody acts on it.
            session_id: An id that the caller chose, so that the same call again, after a reply
                that was lost, returns the session that the first one began.
            drawn: Whether that id was drawn for this call alone, so that none can have begun.

        Raises:
            InvalidTask, InvalidContext: The task does not fit its environment. Nothing ran.
            SessionEnded, SessionBusy: The chosen id is of a session that has ended, or that
                cannot be had here now.
            LimitReached: Too many sessions are open.
            EnvironmentFailed: The setup failed; that is recorded.
            StoreFailed: Nothing can be recorded, so nothing was started.

        If this call is cancelled, the half-made session ends as cancelled.
        """
        environment = self.find_environment(task.env)
        template = environment.find_template(task.template)
        template.arguments.parse(task.args)
        environment.context_space.fill(task.context)
        if session_id is not None and not drawn:
            begun = await self._begun(session_id, task, caller)
            if begun is not None:
                return begun
        await self._initialize(environment)
        await self._make_room(caller)  # last: nothing else may start between this and the next line
        session = Session(
            environment,
            task,
            caller=caller,
            store=self.store,
            shared=self._shared,
            limits=self.limits,
            reward_policy=self._policy(environment, template.reward),
            job_id=self.job_id,
            provisional=provisional,
            session_id=session_id,
        )
        self._sessions[session.secret_digest] = session
        self._watch()
        try:
            await session.start()
        except BaseException:
            del self._sessions[session.secret_digest]
            self._failed.add(session)
            raise
        logger.info("session %s: %s started", session.name, task.id)
        return session

    async def _begun(self, session_id: str, task: Task, caller: Caller) -> Session | None:
        """The session that an earlier call with this id began; None where none has."""
        if not _CHOSEN_ID.fullmatch(session_id):
            raise InvalidTask(
                "A session's id that a caller chooses is `sess-` and 32 to 64 hex digits, drawn "
                "at random. Nothing was started."
            )
        try:
            found = await self.find(session_id, caller)
        except SessionNotFound:
            return None
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        if found.receipt is not None:
            raise SessionEnded(ended_text(found.receipt, found.told))
        if found.task != task:
            raise InvalidTask("This id is of a session with another task. Nothing was started.")
        if found.prompt is None:
            raise SessionBusy("The session is still being prepared; call again.")
        return found

    async def find(self, session_id: str | None, caller: Caller) -> Session | Receipt:
        """Return a caller's session.

        Args:
            session_id: Its id; None or empty where the caller holds exactly one.
            caller: Who asks.

        Returns:
            The session; or its receipt where it ended before this process began.

        Raises:
            SessionNotFound: No session of this caller has the id. An unknown id and
                another caller's give the same text.
            SessionBusy: Another server process runs it.
            SessionEnded: Its server has ended, and it could not be brought back.
        """
        if not session_id:
            return self._only(caller)
        here = self.here(session_id, caller)
        if here is not None:
            return here
        stored = await self.store.find_session(digest(session_id), principal=caller.principal)
        if stored is None:
            raise SessionNotFound(
                "There is no such session. Pass the `session` that start_task returned, or call "
                "start_task to begin a new one."
            )
        trajectory_id, receipt = stored
        if receipt is not None:
            return receipt
        found = await self._bring_back(trajectory_id, connection=caller.connection)
        if isinstance(found, Session):
            found.id = session_id
        return found

    def here(self, session_id: str | None, caller: Caller) -> Session | None:
        """Return a caller's session by its id, if this process runs it or ended it; else None."""
        session = self._sessions.get(digest(session_id)) if session_id else None
        if session is None or session.caller.principal != caller.principal:
            return None
        if session.state == "parked" or session.taken:
            return session if self._closing else None
        session.id = session.id or session_id or ""
        return session

    def held(self, caller: Caller) -> list[Session]:
        """The sessions that this caller can be recognised to have started and that live."""
        return [s for s in self._sessions.values() if s.caller.is_same(caller) and not s.is_over]

    def untouched(self, task: Task, caller: Caller) -> Session | None:
        """A session of this caller for the same task that nobody has acted on, or None."""
        for session in self.held(caller):
            if session.provisional and session.state == "open" and session.task == task:
                return session
        return None

    async def close(self) -> None:
        """Leave every session to the next server, within a bound, then close what worlds share.

        What runs has a moment to come to its end. A session that no other process could bring
        back ends as lost; one that was only offered, and never acted on, as expired.
        """
        self._closing = True
        for task in self._resumes.values():
            task.cancel()
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        every = [*self._sessions.values(), *self._failed]
        deadline = anyio.current_time() + _CLOSE_S
        with anyio.move_on_after(_END_S, shield=True):
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
            for name in self._started:
                await _stop_environment(self.environments[name])
        with anyio.CancelScope(shield=True):
            await self.store.close(within_s=max(0.2, deadline - anyio.current_time()))

    async def _bring_back(self, trajectory_id: str, *, connection: str | None) -> Session | Receipt:
        """Go on with a session that another process began; callers at once share one attempt.

        It goes on where its caller is cancelled: who calls again finds it further on.
        """
        task = self._resumes.get(trajectory_id)
        if task is None:
            if self._closing:
                raise SessionEnded("This server is stopping; call again with the session's id.")
            task = asyncio.get_running_loop().create_task(
                self._resume(trajectory_id, connection), name=f"resume {trajectory_id}"
            )
            self._resumes[trajectory_id] = task
            task.add_done_callback(lambda done: self._resumed(trajectory_id, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise SessionEnded(
                "This server is stopping; call again with the session's id."
            ) from None

    def _resumed(self, trajectory_id: str, done: "asyncio.Task[Session | Receipt]") -> None:
        del self._resumes[trajectory_id]
        if not done.cancelled() and (exc := done.exception()) is not None:
            level = logging.INFO if isinstance(exc, HudMcpError) else logging.ERROR
            logger.log(level, "%s was not brought back: %s", trajectory_id, exc)

    async def _resume(self, trajectory_id: str, connection: str | None) -> Session | Receipt:
        held = await self.store.hold(trajectory_id)
        environment = self.environments.get(held.trajectory.environment)
        if environment is None:
            raise SessionEnded(
                f"This session is in environment {held.trajectory.environment!r}, which this "
                "server does not serve. Call one that does."
            )
        if not await self._claim(trajectory_id):
            held = await self.store.hold(trajectory_id)
            if held.trajectory.receipt is not None:
                return held.trajectory.receipt
            raise SessionBusy(
                "Another server process runs this session. Call that one; or stop it, and call "
                "here again."
            )
        caller = Caller(connection=connection)
        try:
            held = await self.store.hold(trajectory_id)  # as its last owner left it
            caller = replace(caller, principal=held.principal)
            await self._prepare(environment, held, caller)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.store.release_session(trajectory_id)
            raise
        session = Session(
            environment,
            held.trajectory.task,
            caller=caller,
            store=self.store,
            shared=self._shared,
            limits=self.limits,
            reward_policy=held.reward_policy,
            job_id=held.trajectory.job_id,
            held=held,
        )
        self._sessions[session.secret_digest] = session
        self._watch()
        await session.resume()
        steps = len(held.trajectory.steps)
        logger.info("session %s: brought back after %d steps", session.name, steps)
        return session

    async def _prepare(self, environment: Environment, held: HeldSession, caller: Caller) -> None:
        """See to it that a session of this server can go on in an environment.

        Raises:
            SessionEnded: It cannot; it has ended as lost.
        """
        reason = _changed(environment, held)
        if reason is not None:
            raise SessionEnded(ended_text(await self._end_held(held, Outcome.LOST, reason)))
        await self._initialize(environment)
        await self._make_room(caller)

    async def _claim(self, trajectory_id: str) -> bool:
        """Make a session this server's; one that is just being let go of is waited for."""
        with anyio.move_on_after(_TAKE_S):
            while not await self.store.claim_session(trajectory_id):
                held = await self.store.hold(trajectory_id)
                if held.trajectory.receipt is not None:
                    return False
                await anyio.sleep(0.05)
            return True
        return False

    async def _end_held(self, held: HeldSession, outcome: Outcome, reason: str) -> Receipt:
        """End a session that is this server's and whose world is not open."""
        begun = held.trajectory
        receipt = make_receipt(
            Ending(outcome, error=reason, told=reason),
            trajectory=begun.id,
            environment=begun.environment,
            environment_digest=held.environment_digest,
            task=begun.task,
            answer=submitted_answer(begun.steps),
            reward_policy=held.reward_policy,
            started_at=begun.started_at,
            ended_at=utc_now(),
        )
        await self.store.end_session(begun.id, receipt)
        logger.warning("%s of %s: %s", outcome, begun.id, reason)
        return receipt

    async def _adopt(self) -> None:
        """Grade what waits for its grade, and end what nobody will go on with."""
        try:
            waiting = await self.store.waiting_sessions(list(self.environments))
            for found in waiting:
                if found.trajectory_id in self._resumes or self._closing:
                    continue
                if found.answered:
                    await self._bring_back(found.trajectory_id, connection=None)
                elif (end := self._overdue(found)) is not None:
                    await self._end_waiting(found, *end)
        except HudMcpError as exc:
            logger.info("%s", exc)

    def _overdue(self, found: WaitingSession) -> tuple[Outcome, str] | None:
        """How a session ends that no server runs; None while somebody may still go on with it."""
        now = utc_now()
        if not found.has_prompt:
            return Outcome.LOST, "Its server ended while it was being prepared."
        if (now - found.started_at).total_seconds() > self.limits.total_s:
            return (
                Outcome.EXPIRED,
                f"It was open for {self.limits.total_s:g} s, the longest allowed.",
            )
        if (now - found.since).total_seconds() > self.limits.idle_s:
            text = f"Its server ended, and nobody went on with it for {self.limits.idle_s:g} s."
            return Outcome.EXPIRED, text
        return None

    async def _end_waiting(self, found: WaitingSession, outcome: Outcome, reason: str) -> None:
        if await self.store.claim_session(found.trajectory_id):
            held = await self.store.hold(found.trajectory_id)
            await self._end_held(held, outcome, reason)

    def _only(self, caller: Caller) -> Session:
        if caller.connection is None:
            raise SessionNotFound(
                "Pass `session`, the id that start_task returned: this connection does not "
                "remember sessions."
            )
        mine = [s for s in self._sessions.values() if s.caller == caller]
        living = [s for s in mine if not s.is_over]
        if len(living) == 1:
            return living[0]
        if living:
            raise SessionNotFound(
                f"You hold {len(living)} sessions; pass `session` to say which one."
            )
        if mine:
            return mine[-1]
        raise SessionNotFound("No session yet. Call start_task first.")

    def _check(self, task: Task) -> None:
        """Refuse a listed task that could not be started.

        Raises:
            InvalidTask: Naming it, and what is wrong with it.
        """
        try:
            environment = self.find_environment(task.env)
            environment.find_template(task.template).arguments.parse(task.args)
            environment.context_space.fill(task.context)
        except (InvalidTask, InvalidContext) as exc:
            raise InvalidTask(f"The task {task.id!r} cannot be offered. {exc}") from None

    def _policy(self, environment: Environment, template: str | None) -> str:
        return self.reward_policy or template or environment.reward or "on_submit"

    async def initialize(self, environment: Environment) -> None:
        """Run an environment's initialize hooks, once in the life of the process.

        Raises:
            EnvironmentFailed: One failed; the next call begins with the first again.
        """
        await self._initialize(environment)

    async def adopt(self, trajectory_id: str) -> Session:
        """Go on with a session that no server runs, by its record's id.

        Whoever calls this has found out that it is the caller's to go on with.

        Raises:
            SessionEnded, SessionBusy: It cannot be had.
        """
        found = await self._bring_back(trajectory_id, connection=None)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    async def _initialize(self, environment: Environment) -> None:
        async with self._starting:
            if environment.name in self._started:
                return
            try:
                with anyio.fail_after(self.limits.setup_s):
                    await environment.start()
            except HudMcpError:
                raise
            except Exception as exc:
                logger.exception("an initialize hook of %s failed", environment.name)
                raise EnvironmentFailed(
                    f"An initialize hook of environment {environment.name!r} failed "
                    f"({type(exc).__name__}); the server's log says why."
                ) from exc
            self._started.add(environment.name)

    async def _make_room(self, caller: Caller) -> None:
        while (untouched := self._in_the_way(caller)) is not None:
            text = "It was untouched, and its place was needed."
            await _end(untouched, Ending(Outcome.EXPIRED, told=text))

    def _in_the_way(self, caller: Caller) -> Session | None:
        """The session that must go first; None where there is room.

        Raises:
            LimitReached: There is no room, and none may go.
        """
        if self._closing:
            raise LimitReached("The server is shutting down; nothing was started.")
        if len(self._sessions) < min(self.limits.sessions, self.limits.sessions_per_caller):
            return None
        living = [s for s in self._sessions.values() if not s.is_over]
        mine = [s for s in living if s.caller.is_same(caller)]
        for group, limit, whose in (
            (mine, self.limits.sessions_per_caller, "yours"),
            (living, self.limits.sessions, "all callers'"),
        ):
            if len(group) < limit:
                continue
            waiting = [s for s in group if s.provisional and not s.busy and s.state == "open"]
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
        while True:
            await anyio.sleep(_SWEEP_S)
            for session in list(self._sessions.values()):
                text = None if session.state != "open" else self._expiry(session)
                if text is not None:
                    ending = Ending(Outcome.EXPIRED, told=text)
                    task = asyncio.get_running_loop().create_task(_end(session, ending))
                    self._endings.add(task)
                    task.add_done_callback(self._endings.discard)
            for session in [*self._sessions.values(), *self._failed]:
                if session.owes:
                    await _settle(session)
            self._failed = {s for s in self._failed if s.owes or not s.is_closed}
            ended = [k for k, s in self._sessions.items() if s.is_over]
            for key in ended[: max(0, len(ended) - _REMEMBERED)]:
                del self._sessions[key]
            if self._adopts and time.monotonic() >= self._look_s:
                self._look_s = time.monotonic() + _ADOPT_S
                await self._adopt()

    def _expiry(self, session: Session) -> str | None:
        now = time.monotonic()
        idle = now - session.touched_s
        if now - session.begun_s > self.limits.total_s:
            return f"It was open for {self.limits.total_s:g} s, the longest allowed."
        if session.busy:
            return None
        if session.provisional and idle > self.limits.provisional_s:
            return f"Nobody acted on it for {self.limits.provisional_s:g} s."
        if idle > self.limits.idle_s:
            return f"It was idle for {self.limits.idle_s:g} s."
        return None


async def _end(session: Session, ending: Ending) -> None:
    abort = session.state == "grading" or ending.outcome is Outcome.LOST
    await session.finish(ending, abort=abort)


async def _leave(session: Session) -> None:
    """Let a session go on in another process, where it can; else end it as lost."""
    if session.state != "starting":
        with anyio.move_on_after(_FINISH_S):
            while session.busy and not session.is_over:  # noqa: ASYNC110  # half a second, once
                await anyio.sleep(0.02)
    if session.is_closed:
        return
    if session.provisional:
        ending = Ending(Outcome.EXPIRED, told="The server was stopped before anybody acted on it.")
    elif session.can_park:
        ending = Ending(Outcome.LOST, parked=True)
    else:
        ending = Ending(Outcome.LOST, told="The server was stopped.")
    await session.finish(ending, abort=True)


def _changed(environment: Environment, held: HeldSession) -> str | None:
    """Why a session cannot go on in this environment; None where nothing has changed."""
    template = held.trajectory.task.template
    if template not in environment.templates:
        return f"Its environment has no template {template!r} any more."
    if held.environment_digest and held.environment_digest != environment.digest:
        return "Its server ended, and the environment's source has changed since."
    again = (held.trajectory.logs or "").count(GRADED_AGAIN)
    if again + 1 >= _GRADINGS and submitted_answer(held.trajectory.steps) is not None:
        return f"Its server ended each of the {again + 1} times that its answer was graded."
    return None


async def _settle(session: Session) -> None:
    """Write an end that could not be written when it came; it is tried again later."""
    try:
        await session.settle()
    except StoreFailed as exc:
        logger.debug("%s", exc)


async def _stop_environment(environment: Environment) -> None:
    try:
        await environment.stop()
    except Exception:  # an author's hook; what it leaves open is its own
        logger.exception("a shutdown hook of %s failed", environment.name)

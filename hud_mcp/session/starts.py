"""The start of sessions, once each, even if a caller that chose the id asks again."""

import asyncio
import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hud_mcp.base import telemetry
from hud_mcp.environment import Environment
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.task import Task
from hud_mcp.errors import IdTaken, InvalidTask, LimitReached, SessionBusy, SessionEnded, clipped
from hud_mcp.record.job import Job
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.registry import service
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.capacity import Capacity, Count
from hud_mcp.session.events import Changes
from hud_mcp.session.finding import Finding
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.spec import GroupSetups, Limits, SessionSpec
from hud_mcp.session.starting import SharedWork
from hud_mcp.session.starting import start as start_session
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession

logger = logging.getLogger(__name__)

_CHOSEN_ID = re.compile(r"sess-[0-9a-f]{32,64}")
_OTHER_ID = (
    "This session id cannot be used for this start. Choose another one, `sess-` and 32 to 64 hex "
    "digits drawn at random, or leave it out. Nothing was started."
)
"""The error for every fault of a chosen id, so that it tells nothing of others' sessions."""


@dataclass(frozen=True, slots=True)
class Start:
    """A requested start of a bound task; its starts count in the job `counted_in`."""

    task: Task
    environment: Environment
    caller: Caller
    job_id: str | None = None
    counted_in: str | None = None
    provisional: bool = False
    session_id: str | None = None


class SessionFactory:
    """Makes sessions, and adds them to the roster."""

    def __init__(
        self,
        roster: Roster,
        *,
        store: Store,
        shared: Shared,
        limits: Limits,
        reward_policy: str | None,
        local_hosts: Iterable[str],
        changes: Changes,
        program: "Callable[[], asyncio.Task[None]]",
    ) -> None:
        self._roster = roster
        self._store = store
        self._shared = shared
        self._limits = limits
        self._reward_policy = reward_policy
        self._local_hosts = tuple(local_hosts)
        self._changes = changes
        self._program = program
        self._on_over = self._leave  # one method for all sessions
        self._setups: GroupSetups = service("group setups")(store)

    def make(self, start: Start, count: Count) -> Session:
        """Make a new session; raises IdTaken if another session here has the chosen id."""
        task, environment, caller = start.task, start.environment, start.caller
        session_id = start.session_id or f"sess-{secrets.token_hex(16)}"
        secret_digest = digest(session_id)
        # The roster is asked first, because the store knows the id only after its row is written.
        if start.session_id is not None and secret_digest in self._roster:
            raise IdTaken("Another session has this id; nothing was recorded.")
        own = environment.template_of(task).reward
        replayable = environment.replays(task)
        # A replay must give the same random draws, so they need a recorded seed.
        drawn = secrets.token_bytes(28)  # at once: each is a call of the operating system
        seed = int.from_bytes(drawn[:4]) if task.seed is None and replayable else task.seed
        trajectory_id = f"traj-{drawn[4:12].hex()}"
        spec = SessionSpec(
            environment=environment,
            task=task,
            principal=caller.principal,
            token_digest=caller.token_digest,
            is_operated=caller.principal == OPERATOR,
            limits=self._limits,
            reward_policy=self._reward_policy or own or environment.reward or "on_submit",
            job_id=start.job_id,
            trajectory_id=trajectory_id,
            secret_digest=secret_digest,
            live_token=drawn[12:].hex(),
            seed=seed,
            replayable=replayable,
            started_at=utc_now(),
            start_key=count.key,
            tries=count.tries,
            local_hosts=self._local_hosts,
            group_setup=self._setups.of(task, environment, caller.principal, start.job_id),
        )
        return self._add(spec, session_id, caller, provisional=start.provisional)

    def make_again(
        self, environment: Environment, stored: StoredSession, caller: Caller
    ) -> Session:
        """Make the session that resumes a record, which this process has claimed."""
        begun = stored.trajectory
        spec = SessionSpec(
            environment=environment,
            task=begun.task,
            principal=caller.principal,
            token_digest=caller.token_digest,
            is_operated=caller.principal == OPERATOR,
            limits=self._limits,
            reward_policy=stored.reward_policy,
            job_id=begun.job_id,
            trajectory_id=begun.id,
            secret_digest=stored.secret_digest,
            live_token=stored.live_token,
            seed=begun.seed,
            replayable=environment.replays(begun.task),
            started_at=begun.started_at,
            # A resumed session was counted at its start.
            start_key="",
            tries=None,
            local_hosts=self._local_hosts,
        )
        return self._add(spec, "", caller, stored=stored)

    def _add(
        self,
        spec: SessionSpec,
        session_id: str,
        caller: Caller,
        *,
        provisional: bool = False,
        stored: StoredSession | None = None,
    ) -> Session:
        session = Session(
            spec,
            session_id=session_id,
            caller=caller,
            store=self._store,
            shared=self._shared,
            provisional=provisional,
            stored=stored,
            program=self._program(),
            changes=self._changes,
            on_over=self._on_over,
        )
        self._roster.add(session)
        # Measured only while sessions live, so that an idle server wakes for nothing.
        self._shared.contention.start()
        return session

    def _leave(self, session: Session) -> None:
        """Note that a session is over. An idle server has no timers then."""
        if self._roster.leave(session):
            self._shared.contention.rest()


class Starts:
    """The start of sessions."""

    def __init__(
        self,
        roster: Roster,
        capacity: Capacity,
        factory: SessionFactory,
        finding: Finding,
        store: Store,
    ) -> None:
        self._roster = roster
        self._capacity = capacity
        self._factory = factory
        self._finding = finding
        self._store = store
        self._work = SharedWork[Session]()

    async def begin(self, start: Start) -> Session:
        """Start a new session; raises as `Sessions.start` does."""
        # Counted before room is made, so that a start too many ends no other session.
        count = await self._capacity.count(start.task, start.caller, start.counted_in)
        # Last: nothing may begin in between.
        await self._capacity.make_room(start.environment, start.caller)
        session = self._factory.make(start, count)
        try:
            await start_session(session)
        except BaseException as exc:
            self._roster.drop(session)
            if isinstance(exc, LimitReached) and exc.quota is not None:
                telemetry.add("quota", quota=exc.quota)
            raise
        telemetry.add("started", environment=start.environment.name)
        logger.info("session %s: %s started", session.name, start.task.id)
        return session

    async def once(self, start: Start, session_id: str) -> Session:
        """Start a session under an id that its caller chose, or return the one that has begun.

        Callers at once share one start, which goes on if they leave.

        Raises:
            InvalidTask: The id is of another form, caller or task.
            SessionEnded, SessionBusy: The session has begun before, and cannot be had here now.
            HudMcpError: As for `begin`.
        """
        if not _CHOSEN_ID.fullmatch(session_id):
            raise InvalidTask(_OTHER_ID)
        # The task is in the key: another task under the same id is refused, and not shared.
        same = (session_id, start.caller.principal, start.task.model_dump_json())
        return await self._work.result_of(same, lambda: self._begin_once(start, session_id))

    async def _begin_once(self, start: Start, session_id: str) -> Session:
        here = self._roster.get(digest(session_id))
        if here is not None and (found := await self._begun(start, session_id)) is not None:
            return found
        try:
            return await self.begin(start)
        except (IdTaken, LimitReached):  # an earlier start may have begun it, and be counted
            # Its own earlier start may be the one that took the id, or the last place.
            if (found := await self._begun(start, session_id)) is not None:
                return found
            raise

    async def _begun(self, start: Start, session_id: str) -> Session | None:
        """The session that an earlier start with this id began, or None."""
        key = digest(session_id)
        here = self._roster.get(key)
        known = (
            await self._store.find_begun(key)
            if here is None
            else (here.caller.principal, here.task)
        )
        if known is None:
            return None
        if known != (start.caller.principal, start.task):
            raise InvalidTask(_OTHER_ID)
        found = await self._finding.find(session_id, start.caller)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        if found.receipt is not None:
            raise SessionEnded(ended_text(found.receipt, found.state.told))
        if found.prompt is None:
            raise SessionBusy("The session is still being prepared; call again.")
        return found


_MOST_CHARS = 200


async def join_job(store: Store, name: Any, caller: Caller, *, of_server: str | None) -> str:
    """Return the id of the caller's job with a name; the first call makes it.

    A name belongs to its caller: the same name of another token is another job. No name leads to a
    job of a run, whose plan says what counts. So nobody joins or reads a neighbour's job.

    Raises:
        InvalidTask: The name is not valid, or the caller may name no job here. Nothing was started.
        StoreFailed: The job cannot be recorded.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_CHARS:
        raise InvalidTask(
            f"hud-mcp/job is a job's name, a text of at most {_MOST_CHARS} characters; got "
            f"{clipped(name)}. Nothing was started."
        )
    if of_server is not None:
        raise InvalidTask(
            "All sessions of this server belong to one job (serve --job), so none can be named. "
            "Leave hud-mcp/job out. Nothing was started."
        )
    if caller.is_agent or not caller.is_known:
        raise InvalidTask(
            "A job is named over stdio, or by callers with a token of the server's (serve "
            "--token): without a token, everybody could join it. Nothing was started."
        )
    job = Job(id=_id(name, caller), name=name, planned=False)
    if not await store.join_job(job):
        raise InvalidTask(
            f"The job {name!r} has a plan now, and a session outside the plan would not count. "
            "Name another job. Nothing was started."
        )
    return job.id


def _id(name: str, caller: Caller) -> str:
    """Return the same id for the same caller and name, on every server of a store."""
    whose = caller.token_digest or "local"
    named = f"hud-mcp job\0{whose}\0{name}".encode("utf-8", "replace")
    return f"job-{hashlib.sha256(named).hexdigest()[:32]}"

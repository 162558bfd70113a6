"""The sessions that other servers left: each is claimed, then resumed, graded or ended."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, SessionBusy, SessionEnded
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Capacity
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.receipts import ended_text, receipt_of_stored
from hud_mcp.session.replay import submitted_answer
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.spec import Limits
from hud_mcp.session.starting import SharedWork
from hud_mcp.session.starting import resume as resume_session
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession, WaitingSession
from hud_mcp.values.grade import Cause, Outcome

logger = logging.getLogger(__name__)

_TAKE_S = 5.0
"""The usual wait for another server to release a session; a stopping server takes 2 s."""
_LOOK_S = 10.0
"""The time between two looks for sessions without a server."""
_FIRST_LOOK_S = 3.0
"""The time before the first look: the database loads after the first replies."""
_GRADINGS = 3
"""The most gradings of one answer that end with their server; then the grading has failed."""

_MAY_LACK_STEPS = (
    "Its machine or its server went down; the last steps may be missing from its record."
)
"""The reason of a session that is lost without an answer."""


class Resumption:
    """The resumption of sessions that other server processes left on a store."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        *,
        capacity: Capacity,
        make_again: Callable[[Environment, StoredSession, Caller], Session],
        roster: Roster,
        limits: Limits,
        is_wanted: bool,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._capacity = capacity
        self._make_again = make_again
        self._roster = roster
        self._limits = limits
        self._is_wanted = is_wanted
        self._work = SharedWork[Session | Receipt]()
        self._looking: asyncio.Task[None] | None = None
        self.is_stopped = False
        self.take_s = _TAKE_S  # the longest wait for another server to release a session

    async def resume(self, trajectory_id: str, *, connection: str | None) -> Session | Receipt:
        """Resume a session that waits in its record, or return its receipt.

        Callers at once share one attempt. It goes on if its caller is cancelled, and the next call
        finds it further on. A session that goes on or is graded here is returned unchanged.

        Raises:
            SessionBusy: Another server process runs the session.
            SessionEnded: The session cannot come back, or this server is stopping.
        """
        return await self._share(
            trajectory_id, lambda: self._resume_waiting(trajectory_id, connection)
        )

    async def _share(
        self, trajectory_id: str, work: Callable[[], Coroutine[Any, Any, Session | Receipt]]
    ) -> Session | Receipt:
        """Do one thing at a time with a session. Callers meanwhile share its result."""
        stopping = "This server is stopping; call again with the session's id."
        if self.is_stopped and not self._work.is_under_way(trajectory_id):
            raise SessionEnded(stopping)
        try:
            return await self._work.result_of(trajectory_id, work)
        except asyncio.CancelledError:
            # Cancelled by `stop`, and not by the caller: the caller gets an error it can act on.
            task = asyncio.current_task()
            if not self.is_stopped or (task is not None and task.cancelling()):
                raise
            raise SessionEnded(stopping) from None

    async def end(self, trajectory_id: str, outcome: Outcome, reason: str) -> None:
        """End a session without a server; raise SessionBusy if another one has resumed it."""
        await self._share(trajectory_id, lambda: self._end_waiting(trajectory_id, outcome, reason))

    def stop(self) -> None:
        """Give up the running attempts, and begin nothing more."""
        self.is_stopped = True
        self._work.cancel()
        self.stop_looking()

    # What nobody asks for.

    def begin(self) -> None:
        """Look soon for sessions that earlier servers left, if there is a record by now."""
        if self._store.exists:
            self.watch(_FIRST_LOOK_S)

    def watch(self, first_s: float = _LOOK_S) -> None:
        """Begin to look regularly; beginning again is not an error."""
        if self._is_wanted and self._looking is None and not self.is_stopped:
            looking = self._look_on(first_s)
            self._looking = asyncio.get_running_loop().create_task(looking, name="look")

    def stop_looking(self) -> None:
        """Resume nothing unasked any more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look_on(self, pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            began_s = time.monotonic()
            await self._look()
            # From the beginning of the look, so that a slow database does not stretch the interval.
            pause_s = max(0.0, began_s + _LOOK_S - time.monotonic())

    async def _look(self) -> None:
        """Grade the sessions that wait for their grade, and end those that nobody will resume."""
        try:
            waiting = await self._store.waiting_sessions(list(self._catalogue.environments))
        except HudMcpError as exc:
            logger.info("%s", exc)
            return
        for found in waiting:
            try:
                await self._look_after(found)
            except HudMcpError as exc:  # the other sessions are cared for nevertheless
                logger.info("%s: %s", found.trajectory_id, exc)

    async def _look_after(self, found: WaitingSession) -> None:
        if self._work.is_under_way(found.trajectory_id) or self.is_stopped:
            return
        if found.answered:
            await self.resume(found.trajectory_id, connection=None)
        elif self._roster.of_record(found.trajectory_id) is not None:
            return  # another server has resumed it meanwhile
        elif (end := _overdue(found, self._limits)) is not None:
            await self.end(found.trajectory_id, *end)

    # One of them.

    async def _resume_waiting(
        self, trajectory_id: str, connection: str | None
    ) -> Session | Receipt:
        here = self._roster.of_record(trajectory_id)
        if here is not None and here.state.is_let_go:
            await here.closed()  # until then its record is not complete
            connection = here.caller.connection or connection
        elif here is not None:
            return here
        stored = await self._store.load_session(trajectory_id)
        environment = self._version_of(stored)
        if environment is None:
            raise SessionEnded(
                f"This session is in environment {stored.trajectory.environment!r}, which this "
                "server does not serve. Call one that does."
            )
        # Before the session is made, so that two servers never open its world.
        if not await self._claim(trajectory_id):
            stored = await self._store.load_session(trajectory_id)
            if stored.trajectory.receipt is not None:
                return stored.trajectory.receipt
            raise SessionBusy(
                "Another server process runs this session. Call that one; or stop it, and call "
                "here again."
            )
        caller = Caller(connection=connection)
        try:
            # the record that its last owner left
            stored = await self._store.load_session(trajectory_id)
            caller = replace(caller, principal=stored.principal)
            await self._prepare(environment, stored, caller)
        except BaseException:
            # Released, so that another server can try.
            with anyio.CancelScope(shield=True):
                await self._store.release_session(trajectory_id)
            raise
        session = self._make_again(environment, stored, caller)
        await resume_session(session)
        steps = len(stored.trajectory.steps)
        logger.info("session %s: resumed after %d steps", session.name, steps)
        return session

    def _version_of(self, stored: StoredSession) -> Environment | None:
        """The version that a session began with, if this process has it; else the present one."""
        name = stored.trajectory.environment
        # A session goes on in the version that it began with.
        begun = self._catalogue.former.get((name, stored.environment_digest))
        return begun or self._catalogue.environments.get(name)

    async def _prepare(
        self, environment: Environment, stored: StoredSession, caller: Caller
    ) -> None:
        """Ensure that a session can go on here; else end it as lost, and raise SessionEnded."""
        reason = _changed(environment, stored)
        if reason is not None:
            raise SessionEnded(ended_text(await self._end_stored(stored, Outcome.LOST, reason)))
        await self._capacity.make_room(environment, caller)

    async def _claim(self, trajectory_id: str) -> bool:
        """Claim a session for this server, after a wait if its owner is releasing it."""
        with anyio.move_on_after(self.take_s):
            while not await self._store.claim_session(trajectory_id):
                stored = await self._store.load_session(trajectory_id)
                if stored.trajectory.receipt is not None:
                    return False
                await anyio.sleep(0.05)
            return True
        return False

    async def _end_stored(self, stored: StoredSession, outcome: Outcome, reason: str) -> Receipt:
        """End a session that is this server's, without opening its world."""
        cause = _who_left(stored) if outcome is Outcome.EXPIRED else None
        end = SessionEnd(outcome, error=reason, told=reason, cause=cause)
        receipt = receipt_of_stored(stored, end)
        await self._store.end_session(receipt.trajectory, receipt)
        logger.warning("%s of %s: %s", outcome, receipt.trajectory, reason)
        return receipt

    async def _end_waiting(self, trajectory_id: str, outcome: Outcome, reason: str) -> Receipt:
        if not await self._store.claim_session(trajectory_id):
            raise SessionBusy("Another server process has resumed this session.")
        stored = await self._store.load_session(trajectory_id)
        return await self._end_stored(stored, outcome, reason)


def _who_left(stored: StoredSession) -> Cause:
    """Return the cause of a session that nobody could reach: the server's stop, or its death."""
    return Cause.OPERATOR if stored.facts.was_stopped else Cause.MACHINE


def _changed(environment: Environment, stored: StoredSession) -> str | None:
    """The reason why a session cannot go on in this environment; None if nothing has changed."""
    answer = submitted_answer(stored.trajectory.steps)
    # Steps that its agent saw may be missing, and another state must not go on as this one.
    if stored.unflushed and answer is None:
        return _MAY_LACK_STEPS
    task = stored.trajectory.task
    if task.prompt is None and task.template not in environment.templates:
        return f"Its environment has no template {task.template!r} any more."
    functions = environment.functions
    gone = [c.function for c in (*task.setup, *task.evaluate) if c.function not in functions]
    if gone:
        return f"Its environment has no function {gone[0]!r} any more."
    # A replay in another source may differ without a sign.
    if stored.environment_digest and stored.environment_digest != environment.digest:
        return "Its server ended, and the environment's source has changed since."
    again = stored.facts.lost_gradings
    if again + 1 >= _GRADINGS and answer is not None:
        return f"Its server ended each of the {again + 1} times that its answer was graded."
    return None


def _overdue(found: WaitingSession, limits: Limits) -> tuple[Outcome, str] | None:
    """The end of a session without a server; None while it may still be resumed."""
    now = utc_now()
    if not found.has_prompt:
        return Outcome.LOST, "Its server ended while it was being prepared."
    if found.unflushed:
        return Outcome.LOST, _MAY_LACK_STEPS
    if (now - found.started_at).total_seconds() > limits.total_s:
        return (
            Outcome.EXPIRED,
            f"It was open for {limits.total_s:g} s, the longest allowed.",
        )
    if (now - found.since).total_seconds() > limits.idle_s:
        text = f"Its server ended, and nobody went on with it for {limits.idle_s:g} s."
        return Outcome.EXPIRED, text
    return None

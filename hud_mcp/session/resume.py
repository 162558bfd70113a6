"""Resuming one session that another server process began and left.

It is claimed in the store before anything is done with it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, SessionBusy, SessionEnded
from hud_mcp.grade import Cause, Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Capacity
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.factory import SessionFactory
from hud_mcp.session.receipts import ended_text, receipt_of_stored
from hud_mcp.session.replay import submitted_answer
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store
from hud_mcp.store.stored_session import StoredSession

__all__ = ["MAY_LACK_STEPS", "Resumption"]

logger = logging.getLogger(__name__)

_TAKE_S = 5.0
"""How long to wait for another server to let go of a session: one that stops takes 2 s."""
_GRADINGS = 3
"""How often an answer's grading may end with its server before that is its outcome."""

MAY_LACK_STEPS = (
    "Its machine or its server went down; the last steps may be missing from its record."
)
"""Why a session is lost that was not answered."""


class Resumption:
    """Resumes what other server processes left on a store.

    Args:
        store: Where they are recorded.
        catalogue: The environments that this process serves, and has served.
        capacity: Makes room for the session, or raises.
        factory: Makes the session that goes on.
        roster: Who is here already.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        *,
        capacity: Capacity,
        factory: SessionFactory,
        roster: Roster,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._capacity = capacity
        self._factory = factory
        self._roster = roster
        self._resumes: dict[str, asyncio.Task[Session | Receipt]] = {}
        self._stopped = False
        self._take_s = _TAKE_S

    async def resume(self, trajectory_id: str, *, connection: str | None) -> Session | Receipt:
        """Resume a session that waits in its record; callers at once share one attempt.

        Another process began it, or this one has let go of it. One that goes on here, or is
        being graded here, is returned as it is. What is begun goes on where its caller is
        cancelled: who calls again finds it further on.

        Args:
            trajectory_id: Its record's id.
            connection: What identifies the connection of the caller, where something does.

        Returns:
            The session; or its receipt where it has ended.

        Raises:
            SessionBusy: Another server process runs it.
            SessionEnded: It cannot come back, or this server is stopping.
        """
        return await self._share(
            trajectory_id, lambda: self._resume_waiting(trajectory_id, connection)
        )

    async def _share(
        self, trajectory_id: str, work: Callable[[], Coroutine[Any, Any, Session | Receipt]]
    ) -> Session | Receipt:
        """Do one thing at a time with a session; whoever comes meanwhile is given what it gives."""
        task = self._resumes.get(trajectory_id)
        if task is None:
            if self._stopped:
                raise SessionEnded("This server is stopping; call again with the session's id.")
            task = asyncio.get_running_loop().create_task(work(), name=f"resume {trajectory_id}")
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

    async def end(self, trajectory_id: str, outcome: Outcome, reason: str) -> None:
        """End a session that no server runs, if none has resumed it by now.

        Raises:
            SessionBusy: Another server process has.
        """
        await self._share(trajectory_id, lambda: self._end_waiting(trajectory_id, outcome, reason))

    def is_under_way(self, trajectory_id: str) -> bool:
        """Whether a session is being resumed or ended."""
        return trajectory_id in self._resumes

    def wait_to_take(self, seconds: float) -> None:
        """Wait so long for another server to let go of a session."""
        self._take_s = seconds

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is begun."""
        return self._stopped

    def stop(self) -> None:
        """Give up what is under way, and begin nothing more."""
        self._stopped = True
        for task in self._resumes.values():
            task.cancel()

    def _resumed(self, trajectory_id: str, done: "asyncio.Task[Session | Receipt]") -> None:
        del self._resumes[trajectory_id]
        if not done.cancelled() and (exc := done.exception()) is not None:
            level = logging.INFO if isinstance(exc, HudMcpError) else logging.ERROR
            logger.log(level, "%s was not resumed: %s", trajectory_id, exc)

    async def _resume_waiting(
        self, trajectory_id: str, connection: str | None
    ) -> Session | Receipt:
        here = self._roster.of_record(trajectory_id)
        if here is not None and here.is_let_go:
            await here.closed()  # until then its record is not as it is left
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
            stored = await self._store.load_session(trajectory_id)  # as its last owner left it
            caller = replace(caller, principal=stored.principal)
            await self._prepare(environment, stored, caller)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._store.release_session(trajectory_id)
            raise
        session = self._factory.make_again(environment, stored, caller)
        await session.resume()
        steps = len(stored.trajectory.steps)
        logger.info("session %s: resumed after %d steps", session.name, steps)
        return session

    def _version_of(self, stored: StoredSession) -> Environment | None:
        """The version that a session began with, where this process has it; else the one served."""
        name = stored.trajectory.environment
        begun = self._catalogue.former.get((name, stored.environment_digest))
        return begun or self._catalogue.environments.get(name)

    async def _prepare(
        self, environment: Environment, stored: StoredSession, caller: Caller
    ) -> None:
        """See to it that a session of this server can go on in an environment.

        Raises:
            SessionEnded: It cannot; it has ended as lost.
        """
        reason = _changed(environment, stored)
        if reason is not None:
            raise SessionEnded(ended_text(await self._end_stored(stored, Outcome.LOST, reason)))
        await self._capacity.make_room(environment, caller)

    async def _claim(self, trajectory_id: str) -> bool:
        """Make a session this server's; one that is just being let go of is waited for."""
        with anyio.move_on_after(self._take_s):
            while not await self._store.claim_session(trajectory_id):
                stored = await self._store.load_session(trajectory_id)
                if stored.trajectory.receipt is not None:
                    return False
                await anyio.sleep(0.05)
            return True
        return False

    async def _end_stored(self, stored: StoredSession, outcome: Outcome, reason: str) -> Receipt:
        """End a session that is this server's and whose world is not open."""
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
    """Whose doing it is that nobody could reach a session: who stopped its server, or its death."""
    return Cause.OPERATOR if stored.facts.was_stopped else Cause.MACHINE


def _changed(environment: Environment, stored: StoredSession) -> str | None:
    """Why a session cannot go on in this environment; None where nothing has changed."""
    answer = submitted_answer(stored.trajectory.steps)
    if stored.unflushed and answer is None:
        return MAY_LACK_STEPS
    task = stored.trajectory.task
    if task.prompt is None and task.template not in environment.templates:
        return f"Its environment has no template {task.template!r} any more."
    functions = environment.functions
    gone = [c.function for c in (*task.setup, *task.evaluate) if c.function not in functions]
    if gone:
        return f"Its environment has no function {gone[0]!r} any more."
    if stored.environment_digest and stored.environment_digest != environment.digest:
        return "Its server ended, and the environment's source has changed since."
    again = stored.facts.lost_gradings
    if again + 1 >= _GRADINGS and answer is not None:
        return f"Its server ended each of the {again + 1} times that its answer was graded."
    return None

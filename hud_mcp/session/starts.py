"""How sessions are started: once each, also where their callers chose the ids and ask again."""

import logging
import re
from dataclasses import dataclass

from hud_mcp import telemetry
from hud_mcp.environment import Environment
from hud_mcp.errors import IdTaken, InvalidTask, LimitReached, SessionBusy, SessionEnded
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.capacity import Capacity
from hud_mcp.session.factory import SessionFactory
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.session.roster import Roster
from hud_mcp.session.search import Search
from hud_mcp.session.session import Session
from hud_mcp.session.turns import Turns
from hud_mcp.store import Store
from hud_mcp.task import Task

__all__ = ["Start", "Starts"]

logger = logging.getLogger(__name__)

_CHOSEN_ID = re.compile(r"sess-[0-9a-f]{32,64}")
_OTHER_ID = (
    "This session id cannot be used for this start. Choose another one, `sess-` and 32 to 64 hex "
    "digits drawn at random, or leave it out. Nothing was started."
)
"""The same whatever is wrong with it: it says nothing of the sessions of others."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start as it is asked for.

    Attributes:
        task: What is asked; bound.
        environment: Its environment.
        caller: Who starts it.
        job_id: The job that it belongs to, or None.
        counted_in: The job in which it is counted how often its task was started, or None.
        provisional: Whether it expires early until somebody acts on it.
        session_id: The id that its caller chose; None where one is to be drawn.
        first: Whether its caller says that no start with this id was made before.
    """

    task: Task
    environment: Environment
    caller: Caller
    job_id: str | None = None
    counted_in: str | None = None
    provisional: bool = False
    session_id: str | None = None
    first: bool = False


class Starts:
    """Starts sessions.

    Args:
        roster: Who is here.
        capacity: Makes room for them.
        factory: Makes them.
        search: Finds those that began before.
        store: Where they are recorded.
    """

    def __init__(
        self,
        roster: Roster,
        capacity: Capacity,
        factory: SessionFactory,
        search: Search,
        store: Store,
    ) -> None:
        self._roster = roster
        self._capacity = capacity
        self._factory = factory
        self._search = search
        self._store = store
        self._turns = Turns[Session]()

    async def begin(self, start: Start) -> Session:
        """Start a new session; raises as `Sessions.start` does."""
        task, environment, caller = start.task, start.environment, start.caller
        count = await self._capacity.count(task, caller, start.counted_in)
        await self._capacity.make_room(environment, caller)  # last: nothing may begin in between
        session = self._factory.make(
            task,
            environment,
            caller=caller,
            count=count,
            job_id=start.job_id,
            provisional=start.provisional,
            session_id=start.session_id,
        )
        try:
            await session.start()
        except BaseException as exc:
            self._roster.drop(session)
            if isinstance(exc, LimitReached) and exc.quota is not None:
                telemetry.add("quota", quota=exc.quota)
            raise
        telemetry.add("started", environment=environment.name)
        logger.info("session %s: %s started", session.name, task.id)
        return session

    async def once(self, start: Start, session_id: str) -> Session:
        """Start a session under an id that its caller chose, or return the one that has begun.

        Callers at once share one start, which goes on where they leave.

        Raises:
            InvalidTask: The id is of another form, caller or task.
            SessionEnded, SessionBusy: It has begun before, and cannot be had here now.
            HudMcpError: As for `begin`.
        """
        if not _CHOSEN_ID.fullmatch(session_id):
            raise InvalidTask(_OTHER_ID)
        same = (session_id, start.caller.principal, start.task.model_dump_json())
        return await self._turns.take(same, lambda: self._begin_once(start, session_id))

    async def _begin_once(self, start: Start, session_id: str) -> Session:
        is_new = start.first and self._roster.get(digest(session_id)) is None
        if not is_new and (found := await self._begun(start, session_id)) is not None:
            return found
        try:
            return await self.begin(start)
        except IdTaken:  # by another start, in this moment
            if (found := await self._begun(start, session_id)) is not None:
                return found
            raise

    async def _begun(self, start: Start, session_id: str) -> Session | None:
        """The session that an earlier start with this id began; None where none has."""
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
        found = await self._search.find(session_id, start.caller)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        if found.receipt is not None:
            raise SessionEnded(ended_text(found.receipt, found.told))
        if found.prompt is None:
            raise SessionBusy("The session is still being prepared; call again.")
        return found

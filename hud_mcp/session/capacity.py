"""Whether one more session may start: how often a task, how many at once, which goes first."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import LimitReached
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.leaving import Lifecycle
from hud_mcp.session.limits import Limits
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Outcome

__all__ = ["Capacity", "Count"]


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

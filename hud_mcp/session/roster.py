"""The sessions that this process runs, and those that ended lately."""

from collections.abc import Callable, Iterator

from hud_mcp.environment.task import Task
from hud_mcp.errors import SessionNotFound
from hud_mcp.session.caller import Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.log import keep_prints
from hud_mcp.session.session import Session

_REMEMBERED = 1024
"""The most ended sessions in memory; the store has all of them."""


class Roster:
    """Every session of the process, found by the digest of its id or by its caller."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._living: dict[str, Session] = {}
        self._failed: set[Session] = set()  # in starting; kept until they are closed
        self._end_prints: Callable[[], None] | None = None

    def __iter__(self) -> Iterator[Session]:
        """All sessions, with those that failed to start last. Others may be added meanwhile."""
        return iter([*self._sessions.values(), *self._failed])

    def __contains__(self, key: str) -> bool:
        return key in self._sessions

    def add(self, session: Session) -> None:
        """Add a session, in place of a released one. Its prints are its own."""
        self._end_prints = self._end_prints or keep_prints()
        self._sessions[session.secret_digest] = self._living[session.secret_digest] = session
        if len(self._sessions) > 2 * (_REMEMBERED + len(self._living)):
            self._forget()

    def drop(self, session: Session) -> None:
        """Remove a session that failed to start; it is kept until it is closed."""
        del self._sessions[session.secret_digest]
        self._failed = {
            s for s in self._failed if s.journal.has_pending_end or not s.state.is_closed
        }
        self._failed.add(session)
        self.leave(session)

    def leave(self, session: Session) -> bool:
        """Note that a session is over; return whether none goes on."""
        if self._living.get(session.secret_digest) is session:
            del self._living[session.secret_digest]
        return not self._living

    def close(self) -> None:
        """Give the program its output back; sessions that go on print there."""
        if self._end_prints is not None:
            self._end_prints()
            self._end_prints = None

    def get(self, key: str) -> Session | None:
        """The session whose id has this digest, or None."""
        return self._sessions.get(key)

    def of_record(self, trajectory_id: str) -> Session | None:
        """The session with this record, or None."""
        every = self._sessions.values()
        return next((s for s in every if s.trajectory_id == trajectory_id), None)

    @property
    def living_count(self) -> int:
        """The number of sessions that are not over."""
        return len(self._living)

    def living(self) -> list[Session]:
        """The sessions that are not over, in the order in which they came."""
        return list(self._living.values())

    def living_of(self, caller: Caller) -> list[Session]:
        """The living sessions that this caller surely started."""
        return [
            s
            for s in self._living.values()
            if s.caller.is_same(caller) and caller.sees(s.secret_digest)
        ]

    def untouched(self, task: Task, caller: Caller) -> Session | None:
        """A session of this caller for the same task that nobody has acted on, or None."""
        for session in self.living_of(caller):
            state = session.state
            if state.provisional and state.phase is Phase.OPEN and session.task == task:
                return session
        return None

    def only(self, caller: Caller) -> Session:
        """The session of a caller that names none; the last one if all are over.

        Raises:
            SessionNotFound: The caller has none or several, or cannot be told from others.
        """
        if caller.connection is None:
            raise SessionNotFound(
                "Pass `session`, the id that start_task returned: this connection does not "
                "remember sessions."
            )
        mine = [s for s in self._sessions.values() if s.caller == caller]
        living = [
            s for s in mine if not s.state.is_over or (s.state.is_let_go and not s.state.taken)
        ]
        if len(living) == 1:
            return living[0]
        if living:
            raise SessionNotFound(holds_several(len(living)))
        if mine:
            return mine[-1]
        raise SessionNotFound("No session yet. Call start_task first.")

    def _forget(self) -> None:
        """Forget the sessions that ended long ago, if their end is written."""
        ended = [
            key
            for key, session in self._sessions.items()
            if session.state.is_over and not session.journal.has_pending_end
        ]
        for key in ended[: max(0, len(ended) - _REMEMBERED)]:
            del self._sessions[key]


def holds_several(count: int) -> str:
    """The text for a caller that names none of its several sessions."""
    return f"You hold {count} sessions; pass `session` to say which one."

"""A caller's own sessions, for whoever has lost an id: listed and found by their records' ids.

Ids are secrets, and the store has digests of them alone. So a list never has one: it has the ids of
records, which open a session for the very caller that started it, and for nobody else. That is
whoever sends the same token; or, over stdio, the same connection. Without a token, HTTP tells
nobody from another, and nothing is listed or found.
"""

from dataclasses import replace

from hud_mcp.errors import InvalidTask
from hud_mcp.session.caller import Caller
from hud_mcp.session.roster import Roster
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.store.stored_session import OwnSession

__all__ = ["MOST", "RECORD", "OwnSessions"]

RECORD = "traj-"
"""Begins a record's id."""

MOST = 50
"""Sessions in one list."""


class OwnSessions:
    """Lists and finds them.

    Args:
        roster: Who is here.
        store: Who is not.
    """

    def __init__(self, roster: Roster, store: Store) -> None:
        self._roster = roster
        self._store = store

    async def list(self, caller: Caller) -> list[tuple[OwnSession, Session | None]]:
        """The newest sessions of a caller, newest first; each with what is here of it, if it is.

        Raises:
            InvalidTask: The caller is not told from others.
            StoreFailed: The store cannot be read.
        """
        if caller.is_agent:
            raise InvalidTask("You have only one session; leave out `list`.")
        if not caller.is_known:
            raise InvalidTask(
                "Sessions are listed over stdio, and for callers with a token of the server's "
                "(serve --token). Without a token, the server cannot tell callers apart."
            )
        here = {each.trajectory_id: each for each in self._roster}
        if caller.token_digest is not None:
            found = await self._store.list_own(caller.token_digest, MOST)
        else:
            mine = [each for each in here.values() if each.caller.is_same(caller)]
            found = [_own(each) for each in mine[::-1][:MOST]]
        return [
            (replace(each, has_ended=_is_over(each, session)), session)
            for each in found
            for session in [here.get(each.trajectory_id)]
        ]

    async def find(self, trajectory_id: str, caller: Caller) -> str | None:
        """The digest of the id of a caller's session, by its record's id; None where it has none.

        Raises:
            StoreFailed: The store cannot be read.
        """
        if caller.is_agent or not caller.is_known:
            return None
        if caller.token_digest is not None:
            return await self._store.find_own(caller.token_digest, trajectory_id)
        here = self._roster.of_record(trajectory_id)
        return here.secret_digest if here is not None and here.caller.is_same(caller) else None


def _own(session: Session) -> OwnSession:
    return OwnSession(
        trajectory_id=session.trajectory_id,
        task=session.task.id,
        environment=session.environment.name,
        started_at=session.started_at,
        has_ended=session.is_over,
    )


def _is_over(own: OwnSession, here: Session | None) -> bool:
    return own.has_ended or (here is not None and here.is_over and not here.is_let_go)

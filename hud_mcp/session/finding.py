"""The search for a caller's session: here, or in the record, from which it is resumed first.

Ids are secrets, and the store has only their digests, so lists have the ids of records. These open
a session for the caller that started it alone: the same token, or the same connection over stdio.
Without a token, HTTP cannot tell callers apart, so nothing is listed or found by them.
"""

from dataclasses import replace
from typing import Protocol

import anyio

from hud_mcp.errors import InvalidTask, SessionEnded, SessionNotFound, SessionResuming
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import HTTP, Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.receipts import RESUMING, digest, ended_text
from hud_mcp.session.resumption import Resumption
from hud_mcp.session.roster import Roster, holds_several
from hud_mcp.session.session import Session
from hud_mcp.session.starting import SharedWork
from hud_mcp.store import Store
from hud_mcp.store.lease import LEASE_S
from hud_mcp.store.stored_session import OwnSession

_RECORD = "traj-"
"""The start of a record's id."""

MOST = 50
"""The most sessions in one list."""


class SharedConnections(Protocol):
    """The connections over HTTP of several servers, by the digests of their Mcp-Session-Ids."""

    async def add_to_connection(self, key: str, trajectory_id: str) -> None:
        """Record that a session was started on a connection."""
        ...

    async def list_of_connection(
        self, key: str, *, principal: str | None
    ) -> list[tuple[str, bool]]:
        """Return a connection's sessions: the digest of each id, and whether it is over."""
        ...


class Finding:
    """The search for a session that its caller may have."""

    def __init__(self, roster: Roster, store: Store, resumption: Resumption) -> None:
        self.roster = roster
        self.store = store
        self._resumption = resumption
        self._work = SharedWork[Session | Receipt]()
        self._connections: SharedConnections | None = None

    def share_connections(self, connections: SharedConnections) -> None:
        """Search the sessions of a connection there, because other processes serve it too."""
        self._connections = connections
        self._resumption.take_s = LEASE_S + 5.0

    async def add_to_connection(self, session: Session, caller: Caller) -> None:
        """Record the connection of a session's start, if other processes serve it too.

        Raises:
            StoreFailed: The connection is not recorded.
        """
        if self._connections is not None and (name := _over_http(caller)) is not None:
            await self._connections.add_to_connection(digest(name), session.trajectory_id)

    async def find(
        self, session_id: str | None, caller: Caller, *, wait_s: float | None = None
    ) -> Session | Receipt:
        """Return a caller's session, at its last recorded step, or its receipt if it ended before.

        A session that waits in its record is resumed first, at most `wait_s`. Callers that ask
        meanwhile wait for that, in their order. If this call is cancelled, it is resumed
        nevertheless.

        Raises:
            SessionNotFound: No session of this caller has the id. An unknown id and another
                caller's give the same text.
            SessionBusy: Another server process runs the session.
            SessionResuming: The session is still being resumed.
            SessionEnded: The session's server has ended, and it could not be resumed.
        """
        of_record = None
        if session_id:
            key = digest(session_id)
            if session_id.startswith(_RECORD):
                of_record = await self.find_own(session_id, caller)
                key = of_record or key
        else:
            key = caller.session or await self._only(caller)
        if not caller.sees(key):
            raise _not_found(caller)
        found = self._usable(key, caller) or await self._resume(key, caller, wait_s)
        if session_id and isinstance(found, Session) and not (of_record and found.id):
            found.id = session_id
        return found

    def here(self, session_id: str | None, caller: Caller) -> Session | None:
        """Return a caller's session, if this process runs it or ended it; else None."""
        key = digest(session_id) if session_id else caller.session
        if key is None or not caller.sees(key):
            return None
        session = self._usable(key, caller)
        if session is not None:
            session.id = session.id or session_id or ""
        return session

    async def key_of(self, session_id: str, caller: Caller) -> str | None:
        """Return the digest of the id of a caller's session, without resuming it.

        None if the caller has no such session. The result does not tell whether another caller has.

        Raises:
            StoreFailed: The store cannot be read.
        """
        key: str | None = digest(session_id)
        if session_id.startswith(_RECORD):
            key = await self.find_own(session_id, caller)
        if key is None or not caller.sees(key):
            return None
        if self._usable(key, caller) is not None:
            return key
        return key if await self.store.find_session(key, principal=caller.principal) else None

    async def current(self, session: Session) -> Session | Receipt:
        """Return the session that goes on in another's place; raises as `find` does."""
        key, caller = session.secret_digest, session.caller
        here = self._usable(key, caller)
        if here is not None:
            return here
        found = await self._resume(key, caller, None)
        if isinstance(found, Session):
            found.id = session.id
        return found

    async def resume(self, trajectory_id: str) -> Session:
        """Resume a session, by its record's id; raises as `find` does."""
        self._resumption.watch()
        found = await self._resumption.resume(trajectory_id, connection=None)
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    async def list_own(self, caller: Caller) -> list[tuple[OwnSession, Session | None]]:
        """Return the newest sessions of a caller, newest first, each with its session here, if any.

        Raises:
            InvalidTask: The caller cannot be told from others.
            StoreFailed: The store cannot be read.
        """
        if caller.is_agent:
            raise InvalidTask("You have only one session; leave out `list`.")
        if not caller.is_known:
            raise InvalidTask(
                "Sessions are listed over stdio, and for callers with a token of the server's "
                "(serve --token). Without a token, the server cannot tell callers apart."
            )
        here = {each.trajectory_id: each for each in self.roster}
        if caller.token_digest is not None:
            found = await self.store.list_own(caller.token_digest, MOST)
        else:
            mine = [each for each in here.values() if each.caller.is_same(caller)]
            found = [_listed(each) for each in mine[::-1][:MOST]]
        return [
            (replace(each, has_ended=_has_ended(each, session)), session)
            for each in found
            for session in [here.get(each.trajectory_id)]
        ]

    async def find_own(self, trajectory_id: str, caller: Caller) -> str | None:
        """Return the digest of the id of a caller's session, by its record's id; None without one.

        Raises:
            StoreFailed: The store cannot be read.
        """
        if caller.is_agent or not caller.is_known:
            return None
        if caller.token_digest is not None:
            return await self.store.find_own(caller.token_digest, trajectory_id)
        here = self.roster.of_record(trajectory_id)
        return here.secret_digest if here is not None and here.caller.is_same(caller) else None

    async def _only(self, caller: Caller) -> str:
        """Return the digest of the only session of a caller that names none; raises as `find`."""
        if self._connections is not None and (name := _over_http(caller)) is not None:
            found = await self._connections.list_of_connection(
                digest(name), principal=caller.principal
            )
            living = [key for key, is_over in found if not is_over]
            if len(living) > 1:
                raise SessionNotFound(holds_several(len(living)))
            if found:
                return living[0] if living else found[-1][0]
        return self.roster.only(caller).secret_digest

    def _usable(self, key: str, caller: Caller) -> Session | None:
        """Return a session that can be used at once; None if it is not ready, or not here."""
        session = self.roster.get(key)
        if session is None or session.caller.principal != caller.principal:
            return None
        if session.state.phase is Phase.OPEN:
            # Nobody overtakes the callers that wait for the session.
            return None if self._work.is_under_way((key, caller.principal)) else session
        if session.state.is_let_go:
            return session if self._resumption.is_stopped else None
        waits = self._work.is_under_way((key, caller.principal))
        return None if waits or session.state.shown == "resuming" else session

    async def _resume(self, key: str, caller: Caller, wait_s: float | None) -> Session | Receipt:
        try:
            with anyio.fail_after(wait_s):
                return await self._work.result_of(
                    (key, caller.principal), lambda: self._look_up(key, caller)
                )
        except TimeoutError:
            raise SessionResuming(RESUMING) from None

    async def _look_up(self, key: str, caller: Caller) -> Session | Receipt:
        stored = await self.store.find_session(key, principal=caller.principal)
        if stored is None:
            raise _not_found(caller)
        trajectory_id, receipt = stored
        if receipt is not None:
            return receipt
        self._resumption.watch()
        return await self._resumption.resume(trajectory_id, connection=caller.connection)


def _listed(session: Session) -> OwnSession:
    return OwnSession(
        trajectory_id=session.trajectory_id,
        task=session.task.id,
        environment=session.environment.name,
        started_at=session.spec.started_at,
        has_ended=session.state.is_over,
    )


def _has_ended(own: OwnSession, here: Session | None) -> bool:
    return own.has_ended or (here is not None and here.state.is_over and not here.state.is_let_go)


def _over_http(caller: Caller) -> str | None:
    """The Mcp-Session-Id of a caller; None without one."""
    connection = caller.connection or ""
    return connection.removeprefix(HTTP) if connection.startswith(HTTP) else None


def _not_found(caller: Caller) -> SessionNotFound:
    if caller.is_agent:
        return SessionNotFound("There is no such session. Leave `session` out: you have just one.")
    return SessionNotFound(
        "There is no such session. Pass the `session` that start_task returned, or call "
        "start_task to begin a new one."
    )

"""Who is to answer a call: this process, another replica, or nobody just now."""

import enum
import random
from collections.abc import Set as AbstractSet

import anyio

from hud_mcp.plugins.operate.replicas.known import OtherReplica
from hud_mcp.plugins.operate.replicas.message import Message
from hud_mcp.plugins.operate.replicas.records import ReplicaRecords
from hud_mcp.session.caller import Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions

__all__ = ["HERE", "NOBODY", "Routes"]


class _Place(enum.Enum):
    HERE = "this process answers"
    NOBODY = "no replica takes it"


HERE, NOBODY = _Place.HERE, _Place.NOBODY


class Routes:
    """Finds who answers.

    Args:
        sessions: Those of this process.
        records: The rows that all replicas share.

    Attributes:
        is_draining: Whether this process begins and resumes no sessions any more.
    """

    def __init__(self, sessions: Sessions, records: ReplicaRecords) -> None:
        self._sessions = sessions
        self._records = records
        self.is_draining = False
        self._calls: dict[str, int] = {}
        self._leaving: dict[str, anyio.Event] = {}

    def drain(self) -> None:
        """Begin and resume no sessions any more."""
        self.is_draining = True

    def begin(self, key: str | None) -> None:
        """Take note that a call of a session is answered here."""
        if key is not None:
            self._calls[key] = self._calls.get(key, 0) + 1

    def end(self, key: str | None) -> None:
        """Take note that it is answered."""
        if key is not None:
            self._calls[key] -= 1
            if not self._calls[key]:
                del self._calls[key]

    def stop_calls(self, key: str) -> bool:
        """Let calls of a session wait while it moves; whether it may move, as none is under way."""
        if key in self._calls or key in self._leaving:
            return False
        self._leaving[key] = anyio.Event()
        return True

    def let_go(self, key: str) -> None:
        """Let those go on that wait: the session has moved, or stays."""
        self._leaving.pop(key).set()

    async def key_of(self, said: Message, caller: Caller, connection: str | None) -> str | None:
        """The hash of the id of the session that a call means; None where it means none.

        Raises:
            StoreFailed: The store cannot be read.
        """
        if said.session is not None:
            found = digest(said.session)
            if said.session.startswith("traj-"):
                found = await self._sessions.find_own(said.session, caller) or found
            return found
        if caller.session is not None:
            return caller.session
        if not said.wants_session or connection is None:
            return None
        held = await self._records.list_of_connection(
            digest(connection), principal=caller.principal
        )
        living = [key for key, is_over in held if not is_over]
        if len(living) > 1:
            return None
        return living[0] if living else held[-1][0] if held else None

    async def find(
        self, said: Message, key: str | None, caller: Caller, *, without: AbstractSet[str]
    ) -> "OtherReplica | _Place":
        """Who answers a call.

        Args:
            said: The call.
            key: The hash of its session's id.
            caller: Who calls.
            without: Processes that are not there, by their names in the store.

        Raises:
            StoreFailed: The store cannot be read.
        """
        if key is None:
            return await self._any(without) if said.begins and self.is_draining else HERE
        if (leaving := self._leaving.get(key)) is not None:
            await leaving.wait()
        here = self._sessions.roster.get(key)
        if here is not None and not here.state.is_let_go:
            return HERE
        route = await self._records.find_route(key, principal=caller.principal)
        if route is None:
            return await self._any(without) if said.begins and self.is_draining else HERE
        if route.is_over or route.owner == self._records.own_id:
            return HERE
        if route.replica is None or route.owner in without:
            return await self._any(without) if self.is_draining else HERE
        return route.replica

    async def _any(self, without: AbstractSet[str]) -> "OtherReplica | _Place":
        """Any other replica that begins sessions."""
        others = await self._records.list_others()
        there = [each for each in others if each.server_id not in without]
        return random.choice(there) if there else NOBODY  # noqa: S311  # any is as good

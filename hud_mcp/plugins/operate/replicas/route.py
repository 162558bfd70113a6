"""The route of a call by the common records: this process, another replica, or nobody just now."""

import enum
import hashlib
import random
from collections.abc import Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from mcp.server.auth.provider import AccessToken
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Event

from hud_mcp.plugins.operate import statements
from hud_mcp.plugins.operate.replicas.message import Announced, Message
from hud_mcp.plugins.operate.values import KnownConnection, OtherReplica, Route
from hud_mcp.session.caller import CONNECTION, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.store.archive import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection

IDLE_S = 3600.0
"""After so long without a request, a connection of the 2025-11-25 era is forgotten."""


class ReplicaRecords:
    """The rows of replicas and of the connections that each of them serves.

    Every method raises `StoreFailed` if the database cannot be read or written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def own_id(self) -> str:
        """The name of this process in the store."""
        return self._database.lease.server_id

    async def announce(self, announced: Announced) -> None:
        """Tell the other replicas where this one is, from now on."""
        lease = self._database.lease
        lease.details = details = asdict(announced)

        def announce(connection: "Connection") -> None:
            lease.register(connection)
            statements.announce(connection, lease.server_id, details)

        await self._database.write(announce)

    async def find_route(self, key: str, *, principal: str | None) -> Route | None:
        """Find the process of a session, by the hash of its id; None if the principal has none."""
        return await self._database.read(lambda c: statements.find_route(c, key, principal))

    async def list_others(self, *, draining: bool = False) -> list[OtherReplica]:
        """Return the other living replicas that begin sessions; with `draining`, the others too."""
        lease = self._database.lease
        found = await self._database.read(
            lambda c: statements.list_replicas(c, lease.lease_s, draining=draining)
        )
        return [each for each in found if each.server_id != lease.server_id]

    async def add_connection(self, key: str, caller: str, introduction: Mapping[str, Any]) -> None:
        """Record a connection, by the hash of its id."""
        await self._database.write(
            lambda c: statements.add_connection(c, key, caller, introduction, IDLE_S)
        )

    async def find_connection(self, key: str) -> KnownConnection | None:
        """Find a connection; None if it is unknown."""
        return await self._database.read(lambda c: statements.find_connection(c, key))

    async def touch_connections(self, keys: Sequence[str]) -> None:
        """Note that connections are in use."""
        await self._database.write(lambda c: statements.touch_connections(c, keys))

    async def forget_connection(self, key: str) -> None:
        """Forget a connection; its sessions live on."""
        await self._database.write(lambda c: statements.forget_connection(c, key))

    async def add_to_connection(self, key: str, trajectory_id: str) -> None:
        """Note that a session was started on a connection."""
        await self._database.write(lambda c: statements.add_to_connection(c, key, trajectory_id))

    async def list_of_connection(
        self, key: str, *, principal: str | None
    ) -> list[tuple[str, bool]]:
        """Return the sessions of a connection: the hash of each id, and whether it is over."""
        return await self._database.read(lambda c: statements.list_of_connection(c, key, principal))


class _Place(enum.Enum):
    HERE = "this process answers"
    NOBODY = "no replica takes it"


HERE, NOBODY = _Place.HERE, _Place.NOBODY


class Routes:
    """Finds the process that answers."""

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
        """Note that a call of a session is answered here."""
        if key is not None:
            self._calls[key] = self._calls.get(key, 0) + 1

    def end(self, key: str | None) -> None:
        """Note that the call is answered."""
        if key is not None:
            self._calls[key] -= 1
            if not self._calls[key]:
                del self._calls[key]

    def stop_calls(self, key: str) -> bool:
        """Let calls of a session wait while it moves; False if one is under way, and it stays."""
        if key in self._calls or key in self._leaving:
            return False
        self._leaving[key] = anyio.Event()
        return True

    def let_go(self, key: str) -> None:
        """Let the waiting calls go on: the session has moved, or stays."""
        self._leaving.pop(key).set()

    async def key_of(self, said: Message, caller: Caller, connection: str | None) -> str | None:
        """Return the hash of the id of the session that a call means; None if it means none.

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
        """Return the process that answers a call, by the hash of its session's id.

        `without` names dead processes, as the store does.

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
        others = await self._records.list_others()
        there = [each for each in others if each.server_id not in without]
        return random.choice(there) if there else NOBODY  # noqa: S311  # any is as good


HEADER = "hud-mcp-replica"
"""The header in which a client returns the tag, and a replica says why it did not answer."""


@dataclass(frozen=True)
class Arrival:
    """One request to be answered.

    Attributes:
        scope, receive, send: ASGI's; `receive` gives what comes after the body.
        method: HTTP's.
        headers: By lower-case names.
        body: The whole body.
        caller: The caller.
        whose: The hash of whose connections it may use.
        is_forwarded: Whether another replica forwarded it.
    """

    scope: Scope
    receive: Receive
    send: Send
    method: str
    headers: Mapping[str, str]
    body: bytes
    caller: Caller
    whose: str
    is_forwarded: bool

    @property
    def connection(self) -> str | None:
        """The Mcp-Session-Id of a 2025-11-25 request; None of any other."""
        return self.headers.get("mcp-session-id") if self.is_legacy else None

    @property
    def is_legacy(self) -> bool:
        """Whether it is of the 2025-11-25 era or earlier, as the SDK tells them apart."""
        version = self.headers.get("mcp-protocol-version")
        return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS

    async def pass_to(self, app: ASGIApp) -> None:
        """Let an app answer."""
        await app(self.scope, replayed(self.body, self.receive), self.send)

    def as_connection(self, local: str, send: Send) -> "Arrival":
        """Return the same request under this process's Mcp-Session-Id of its connection."""
        headers = [(k, v) for k, v in self.scope["headers"] if k != b"mcp-session-id"]
        headers.append((b"mcp-session-id", local.encode()))
        scope: MutableMapping[str, Any] = {
            **self.scope, "headers": headers, CONNECTION: self.connection
        }  # fmt: skip
        return replace(self, scope=scope, send=send)

    async def reply(
        self, status: int, row: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON, or with nothing."""
        body = b"" if row is None else orjson.dumps(row)
        told = {"content-type": "application/json", "content-length": str(len(body))}
        told |= headers or {}
        raw = [(k.encode(), v.encode()) for k, v in told.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})

    async def fail(self, request_id: Any, code: int, text: str, *, status: int = 200) -> None:
        """Answer with an error of JSON-RPC."""
        await self.reply(status, failure(request_id, code, text))


def failure(request_id: Any, code: int, text: str) -> dict[str, Any]:
    """Return an error of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


def whose(access: AccessToken | None) -> str:
    """Return the hash of whose a connection is: another credential does not go on with it."""
    named = None if access is None else (access.client_id, access.subject)
    return hashlib.sha256(repr(named).encode()).hexdigest()


async def read_body(receive: Receive, most: int) -> bytes | None:
    """Read a request's body; None if it is too large, or its client has left."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def replayed(body: bytes, receive: Receive | None = None) -> Receive:
    """Return a receiver that gives a body once, and then the events that follow."""
    given = False

    async def receive_again() -> Event:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        if receive is None:
            await anyio.sleep_forever()
            raise AssertionError
        return await receive()

    return receive_again

"""One of several servers on one store: it answers a call, forwards it, or takes a session over."""

import logging
import random
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hud_mcp.errors import HudMcpError, StoreFailed
from hud_mcp.plugins.operate.replicas.connections import Connections
from hud_mcp.plugins.operate.replicas.forwarding import (
    FORWARDED,
    GONE,
    MOVED,
    NOT_HERE,
    SEEN,
    Forged,
    Forwarding,
    NotThisProcess,
    Once,
    Outcome,
    Secret,
    SentBefore,
)
from hud_mcp.plugins.operate.replicas.message import Announced, Message, read_message
from hud_mcp.plugins.operate.replicas.route import (
    HEADER,
    HERE,
    Arrival,
    ReplicaRecords,
    Routes,
    failure,
    read_body,
    whose,
)
from hud_mcp.plugins.operate.values import OtherReplica
from hud_mcp.server.web.auth import Tokens, caller_of_token
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions

logger = logging.getLogger(__name__)

_TRIES = 8
"""Attempts to find a session that moves while its call is under way."""
_PAUSE_S = 0.05
_RETRY_S = 1
_INTERNAL = -32603
_UNAVAILABLE = 503
_LISTEN = "subscriptions/listen"
_FORGED = (
    "This request says that a replica forwarded it, and its signature is not one of theirs. "
    f"Leave the header {FORWARDED} out; or give all replicas the same --replica-secret-file and "
    "the right time."
)
_UNSETTLED = "The session moves between servers just now. Nothing was done; call again."
_LEAVING = "This server is stopping, and no other one takes new sessions. Call again soon."


class Replica:
    """The front of a server that is one of several. It refuses larger requests than its bound.

    Attributes:
        calls: The number of sessions' calls that this process is answering.
        requests: The number of requests that it is answering or forwarding.
    """

    def __init__(
        self,
        sessions: Sessions,
        announced: Announced,
        *,
        secret: Secret,
        access: Tokens | None,
        max_body_bytes: int,
    ) -> None:
        self.sessions = sessions
        self.announced = announced
        self.records = ReplicaRecords(sessions.store.database)
        self.routes = Routes(sessions, self.records)
        self.calls = 0
        self.requests = 0
        self._secret = secret
        self._once = Once()
        self._tokens = access
        self._most = max_body_bytes
        self._forwarding = Forwarding(secret)
        self._connections = Connections(self.records)
        sessions.share_connections(self.records)

    def around(self, app: ASGIApp, *, path: str, security: TransportSecuritySettings) -> ASGIApp:
        """Wrap the server of MCP at a path. It gets this process's requests, and other paths'."""
        guard = TransportSecurityMiddleware(security)
        self._connections.be_before(app)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] != path:
                await app(scope, receive, send)
                return
            if self.routes.is_draining:
                send = _closing(send)
            with self._counting(scope["method"]):
                arrival = await self._admit(guard, scope, receive, send, app)
                said = None if arrival is None else read_message(arrival.body)
                if arrival is None:
                    return
                if said is None or said.method != _LISTEN:
                    await self._answer(arrival, said)
                    return
            await self._connections.answer(arrival, said)  # it lasts until its client leaves

        return answer

    async def begin(self) -> None:
        """Tell the other replicas where this one is."""
        await self.records.announce(self.announced)

    async def begin_to_leave(self) -> None:
        """Begin and resume no sessions any more, and tell the other replicas."""
        self.routes.drain()
        self.sessions.take_no_more()
        try:
            await self.records.announce(replace(self.announced, is_draining=True))
        except StoreFailed as exc:
            logger.warning("the others are not told that this replica leaves: %s", exc)

    async def close(self) -> None:
        """Close its connections to others."""
        self._connections.stop()
        await self._forwarding.close()

    async def _admit(
        self,
        guard: TransportSecurityMiddleware,
        scope: Scope,
        receive: Receive,
        send: Send,
        app: ASGIApp,
    ) -> Arrival | None:
        """Read an authorised request; None if it was answered already."""
        request = Request(scope)
        access = None
        if self._tokens is not None:
            access = await self._tokens.verify_token(_bearer(request))
            if access is None:
                await app(scope, receive, send)  # which says how to authenticate
                return None
        refusal = await guard.validate_request(request, is_post=request.method == "POST")
        if refusal is not None:
            await refusal(scope, receive, send)
            return None
        body = await read_body(receive, self._most)
        arrival = Arrival(
            scope,
            receive,
            send,
            request.method,
            request.headers,
            body or b"",
            caller_of_token(access),
            whose(access),
            FORWARDED in request.headers,
        )
        if body is None:
            await arrival.fail(None, -32600, "The request is too large.", status=413)
            return None
        return arrival if await self._is_genuine(arrival) else None

    async def _is_genuine(self, arrival: Arrival) -> bool:
        """Whether a request is what it says; answers it otherwise."""
        if not arrival.is_forwarded:
            return True
        value, own = arrival.headers[FORWARDED], self.records.own_id
        try:
            mac = self._secret.check(
                value, own, method=arrival.method, headers=arrival.headers, body=arrival.body
            )
            self._once.add(mac)
        except Forged:
            logger.warning("a request was refused: no replica has forwarded it")
            await arrival.fail(None, -32600, _FORGED, status=403)
            return False
        except NotThisProcess:
            await arrival.reply(NOT_HERE, headers={HEADER: GONE})
            return False
        except SentBefore:
            await arrival.reply(NOT_HERE, headers={HEADER: SEEN})
            return False
        return True

    @contextmanager
    def _counting(self, method: str) -> Generator[None]:
        """Count a request from its first byte on, but not a stream, which a GET asks for."""
        self.requests += method != "GET"
        try:
            yield
        finally:
            self.requests -= method != "GET"

    async def _answer(self, arrival: Arrival, said: Message | None) -> None:
        if arrival.connection is not None and not arrival.is_forwarded:
            await self._tell_others(arrival, said)
        if arrival.method == "DELETE" and arrival.connection is not None:
            await self._forget(arrival)
            return
        if (
            arrival.is_forwarded
            and _cancels(said)
            and not self._connections.is_known(arrival.connection or "")
        ):
            await arrival.reply(202)
            return
        if said is None or not (said.wants_session or said.begins):
            await self._connections.answer(arrival, said)
            return
        try:
            await self._answer_or_forward(arrival, said)
        except HudMcpError as exc:
            await arrival.fail(said.id, _INTERNAL, str(exc))

    async def _forget(self, arrival: Arrival) -> None:
        """Leave a connection for its client, in every replica."""
        name = arrival.connection or ""
        known = await self.records.find_connection(digest(name))
        if known is not None and known.caller == arrival.whose:
            await self.records.forget_connection(digest(name))
        if self._connections.is_known(name) or not arrival.is_forwarded:
            await self._connections.answer(arrival, None)
        else:
            await arrival.reply(200)

    async def _tell_others(self, arrival: Arrival, said: Message | None) -> None:
        """Forward a message for whichever replica has a call of this connection."""
        if not (_cancels(said) or arrival.method == "DELETE"):
            return
        quiet = replace(arrival, send=_unheard, receive=_silence)
        known = await self.records.find_connection(digest(arrival.connection or ""))
        if known is None or known.caller != arrival.whose:
            return
        async with anyio.create_task_group() as group:
            for other in await self.records.list_others(draining=True):
                group.start_soon(self._tell, quiet, other)

    async def _tell(self, arrival: Arrival, other: OtherReplica) -> None:
        with anyio.move_on_after(5.0):
            await self._forwarding.forward(arrival, None, other, sender=self.records.own_id)

    async def _answer_or_forward(self, arrival: Arrival, said: Message) -> None:
        """Let the replica answer that runs the session; this one, if none does."""
        key = await self.routes.key_of(said, arrival.caller, arrival.connection)
        unreached = set[str]()
        for _ in range(_TRIES):
            to = await self.routes.find(said, key, arrival.caller, without=unreached)
            if to is HERE:
                async with self._counted(key):
                    await self._connections.answer(arrival, said)
                return
            if arrival.is_forwarded:
                await arrival.reply(NOT_HERE, headers={HEADER: MOVED})
                return
            if not isinstance(to, OtherReplica):
                await arrival.reply(
                    _UNAVAILABLE,
                    failure(said.id, _INTERNAL, _LEAVING),
                    headers={"retry-after": str(_RETRY_S)},
                )
                return
            outcome = await self._forwarding.forward(arrival, said, to, sender=self.records.own_id)
            if outcome is Outcome.ANSWERED:
                return
            if outcome is Outcome.BROKEN and not said.repeats:
                await self._forwarding.tell_broken(arrival, said)
                return
            if outcome is not Outcome.MOVED:
                unreached.add(to.server_id)
            await anyio.sleep(_PAUSE_S * random.uniform(0.5, 1.0))  # noqa: S311  # so that not all come at once
        await arrival.fail(said.id, _INTERNAL, _UNSETTLED)

    @asynccontextmanager
    async def _counted(self, key: str | None) -> AsyncGenerator[None]:
        """Count a call that this process answers, so that its session does not move meanwhile."""
        self.calls += 1
        self.routes.begin(key)
        try:
            yield
        finally:
            self.calls -= 1
            self.routes.end(key)


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _cancels(said: Message | None) -> bool:
    return said is not None and said.method == "notifications/cancelled"


def _closing(send: Send) -> Send:

    async def send_last(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [(k, v) for k, v in message["headers"] if k.lower() != b"connection"]
            message = {**message, "headers": [*kept, (b"connection", b"close")]}
        await send(message)

    return send_last


async def _silence() -> Any:
    await anyio.sleep_forever()


async def _unheard(_message: Any) -> None:
    """A reply stream that drops everything."""

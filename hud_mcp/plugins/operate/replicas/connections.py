"""Connections of the 2025-11-25 era, each of which every replica can serve.

A client has one Mcp-Session-Id, which the opening process uses too. Another process opens its own
connection of the SDK, with the client's credential, under another name. The SDK compares the
credential on each request.
"""

import asyncio
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import orjson
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from starlette.types import ASGIApp, Message

from hud_mcp.plugins.operate.replicas.message import Message as Said
from hud_mcp.plugins.operate.replicas.route import Arrival, ReplicaRecords, replayed
from hud_mcp.session.receipts import digest

logger = logging.getLogger(__name__)

_NOT_FOUND = 404
_REFUSED = 400
_INTRODUCE_S = 30.0
_TOUCH_S = 60.0
"""The interval at which the connections in use are recorded."""
_MOST = 20_000
"""Connections that a process remembers; the store knows them all."""


@dataclass
class _Known:
    """A connection that this process has open.

    Attributes:
        local: The SDK's name for it here.
        whose: The hash of whose it is.
        turn: One introduction at a time.
        used: Whether there was a request since that was noted last.
        open: The number of its requests that are being answered.
    """

    local: str | None
    whose: str
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    used: bool = True
    open: int = 0


class Connections:
    """The connections that this process serves, and their records for all replicas."""

    def __init__(self, records: ReplicaRecords) -> None:
        self._records = records
        self._known: dict[str, _Known] = {}
        self._app: ASGIApp
        self._touching: asyncio.Task[None] | None = None

    def be_before(self, app: ASGIApp) -> None:
        """Let an app answer, with the SDK's own connections."""
        self._app = app

    def stop(self) -> None:
        """Note no more which connections are in use."""
        if self._touching is not None:
            self._touching.cancel()

    async def answer(self, arrival: Arrival, said: Said | None) -> None:
        """Answer a request in this process, whichever replica opened its connection."""
        if self._touching is None:
            self._touching = asyncio.get_running_loop().create_task(self._touch(), name="touch")
        name = arrival.connection
        if not arrival.is_legacy:
            await arrival.pass_to(self._app)
        elif name is None:
            await self._open(arrival, said)
        else:
            await self._answer(arrival, name, again=True)

    def forget(self, name: str) -> None:
        """Forget a connection that its client has left."""
        self._known.pop(digest(name), None)

    def is_known(self, name: str) -> bool:
        """Whether this process has a connection open."""
        return digest(name) in self._known

    async def _open(self, arrival: Arrival, said: Said | None) -> None:
        """Answer a request without a connection. A new one is recorded before the reply."""

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < _REFUSED:
                name = _header(message, b"mcp-session-id")
                if name is not None and said is not None and said.method == "initialize":
                    key = digest(name)
                    await self._records.add_connection(key, arrival.whose, said.params)
                    self._remember(key, _Known(name, arrival.whose))
            await arrival.send(message)

        await replace(arrival, send=send).pass_to(self._app)

    async def _answer(self, arrival: Arrival, name: str, *, again: bool) -> None:
        known = await self._find(arrival, name)
        local = name if known is None or known.local is None else known.local
        forgotten = False

        async def send(message: Message) -> None:
            nonlocal forgotten
            if message["type"] == "http.response.start":
                # The SDK forgets a connection that nobody uses; the store may know it still.
                forgotten = again and known is not None and message["status"] == _NOT_FOUND
                message = _renamed(message, local, name)
            if not forgotten:
                await arrival.send(message)

        if known is not None:
            known.open, known.used = known.open + 1, True
        try:
            await arrival.as_connection(local, send).pass_to(self._app)
        finally:
            if known is not None:
                known.open -= 1
        if arrival.method == "DELETE" and known is not None:
            self.forget(name)
        elif forgotten:
            self.forget(name)
            await self._answer(arrival, name, again=False)

    async def _find(self, arrival: Arrival, name: str) -> _Known | None:
        """Return the connection of a request; None if its caller has none of that id."""
        key = digest(name)
        known = self._known.get(key)
        if known is not None and known.whose != arrival.whose:
            return None
        if known is not None and known.local is not None:
            return known
        stored = await self._records.find_connection(key)
        if stored is None or stored.caller != arrival.whose:
            return None
        known = self._known.get(key) or _Known(None, stored.caller)
        self._remember(key, known)
        async with known.turn:
            if known.local is None:
                known.local = await self._introduce(arrival, dict(stored.introduction))
        return known

    def _remember(self, key: str, known: _Known) -> None:
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = known

    async def _introduce(self, arrival: Arrival, params: dict[str, Any]) -> str | None:
        """Open a connection in the place of the client; return the SDK's name for it here."""
        params.setdefault("protocolVersion", LATEST_HANDSHAKE_VERSION)
        row = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        with anyio.fail_after(_INTRODUCE_S):
            local = await self._ask(arrival, row, None)
            if local is None:
                logger.warning("a connection of another replica could not be opened here")
                return None
            await self._ask(
                arrival, {"jsonrpc": "2.0", "method": "notifications/initialized"}, local
            )
        return local

    async def _ask(self, arrival: Arrival, row: dict[str, Any], local: str | None) -> str | None:
        """Send the SDK a message within this process; return the connection of its reply."""
        body = orjson.dumps(row)
        kept = (b"host", b"authorization")
        headers = [(k, v) for k, v in arrival.scope["headers"] if k in kept]
        headers += [
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if local is not None:
            headers.append((b"mcp-session-id", local.encode()))
        scope: MutableMapping[str, Any] = {**arrival.scope, "method": "POST", "headers": headers}
        found: str | None = None

        async def send(message: Message) -> None:
            nonlocal found
            if message["type"] == "http.response.start" and message["status"] < _REFUSED:
                found = _header(message, b"mcp-session-id")

        await self._app(scope, replayed(body), send)
        return found

    async def _touch(self) -> None:
        """Note now and then which connections are in use, so that none of them is forgotten."""
        while True:
            await anyio.sleep(_TOUCH_S)
            keys = [key for key, each in self._known.items() if each.used or each.open]
            for key in keys:
                self._known[key].used = False
            try:
                if keys:
                    await self._records.touch_connections(keys)
            except Exception as exc:  # noqa: BLE001  # the next time is soon
                logger.warning("connections in use could not be noted: %s", exc)


def _header(message: Message, name: bytes) -> str | None:
    return next((v.decode("latin-1") for k, v in message["headers"] if k.lower() == name), None)


def _renamed(message: Message, local: str, name: str) -> Message:
    """Return a reply's beginning under the client's name for its connection."""
    if local == name:
        return message
    headers = [
        (k, name.encode() if k.lower() == b"mcp-session-id" else v) for k, v in message["headers"]
    ]
    return {**message, "headers": headers}

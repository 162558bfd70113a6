"""One HTTP request as a replica reads it, and the answers that it gives itself."""

import hashlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import anyio
import orjson
from mcp.server.auth.provider import AccessToken
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hud_mcp.session.caller import CONNECTION, Caller

__all__ = ["HEADER", "TAG", "Arrival", "failure", "read_body", "replayed", "whose"]

TAG = "hud-mcp/replica"
"""In the `_meta` of a tool's result: the tag of the replica that answered."""

HEADER = "hud-mcp-replica"
"""The header in which a client returns it, and in which a replica says why it did not answer."""


@dataclass(frozen=True)
class Arrival:
    """One request to be answered.

    Attributes:
        scope, receive, send: ASGI's; `receive` gives what comes after the body.
        method: HTTP's.
        headers: By lower-case names.
        body: The whole body.
        caller: Who asks.
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
        """Have an app answer."""
        await app(self.scope, replayed(self.body, self.receive), self.send)

    def as_connection(self, local: str, send: Send) -> "Arrival":
        """The same request under the Mcp-Session-Id that this process knows its connection by."""
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
    """An error of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


def whose(access: AccessToken | None) -> str:
    """The hash of whose a connection is: another credential does not go on with it."""
    named = None if access is None else (access.client_id, access.subject)
    return hashlib.sha256(repr(named).encode()).hexdigest()


async def read_body(receive: Receive, most: int) -> bytes | None:
    """Read a request's body; None where it is larger than allowed, or its client has left."""
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
    """What gives a body once, and then what else comes; nothing where nobody is there."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        if receive is None:
            await anyio.sleep_forever()
            raise AssertionError
        return await receive()

    return receive_again

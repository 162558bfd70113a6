"""A call over HTTP, in both eras of MCP: its requests, its pauses, and its reply.

Nothing here does I/O. A piece of work is a generator. It yields requests and pauses, and receives
their results. `transport` performs both, with an event loop and without.
"""

import json
import random
import re
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, Union

from hud_mcp_client.errors import CallRefused, ConnectionFailed, Unauthorized
from hud_mcp_client.values import Row, ToolReply, as_row

__all__ = [
    "LEGACY",
    "MODERN",
    "Arrived",
    "Fault",
    "Pause",
    "Protocol",
    "Reader",
    "Send",
    "Wire",
    "Work",
]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"

Protocol = Literal["auto", "2026-07-28", "2025-11-25"]

_CLIENT = {"name": "hud-mcp-client", "version": "0.1.0"}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_UNAUTHORIZED, _NOT_FOUND, _TOO_LARGE = 401, 404, 413
_NOT_YET = (429, 503)
"""Statuses of a call that the server has not begun, and takes later."""
_UNKNOWN = (502, 504)
"""Statuses of a proxy that got no reply. The server may have begun the call."""
_CLOSED = -32000
"""The server left before it answered: `CONNECTION_CLOSED` of MCP's SDKs."""
_UNKNOWN_METHOD = -32601
_TAG = "hud-mcp/replica"
"""In the `_meta` of a reply: the name of the server that sent it, of several behind one address."""
_IS_TAG = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch
_MOST_TAGS = 10_000
"""The most sessions with a known server; for the others, the servers find it."""


@dataclass(frozen=True)
class Send:
    """A request to send. `id` is its reply's; None if it has no reply."""

    method: Literal["POST", "DELETE"]
    headers: Mapping[str, str]
    body: bytes = b""
    id: int | None = None


@dataclass(frozen=True)
class Pause:
    """A time to wait, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Arrived:
    """A response.

    Attributes:
        status: The HTTP status.
        headers: The HTTP headers, by lower-case names.
        message: The JSON-RPC reply; None without one.
        text: The body, unless it is a reply.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    message: Row | None = None
    text: str = ""


@dataclass(frozen=True)
class Fault:
    """A failure without a response.

    Attributes:
        reason: The reason, for people.
        sent: Whether the server may have received the request.
    """

    reason: str
    sent: bool


T = TypeVar("T")
Work = Generator[Union[Send, Pause], Any, T]  # noqa: UP007  # an alias is evaluated, on Python 3.10 too


class Reader:
    """Finds the reply to the request of an id in a stream of server-sent events."""

    def __init__(self, id: int | None) -> None:  # noqa: A002  # JSON-RPC's word
        self._id = id
        self._rest = ""
        self._data: list[str] = []

    def feed(self, text: str) -> Row | None:
        """Add a piece of the stream; return the reply once it is whole."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if (found := self._line(line.removesuffix("\r"))) is not None:
                return found
        return None

    def _line(self, line: str) -> Row | None:
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            return None
        if line or not self._data:
            return None
        text, self._data = "\n".join(self._data), []
        return self.whole(text)

    def whole(self, text: str) -> Row | None:
        """Return the reply in a text of JSON; None for any other text."""
        try:
            message = as_row(json.loads(text))
        except ValueError:
            return None
        if message.get("jsonrpc") != "2.0":
            return None
        is_reply = "result" in message or "error" in message
        return message if is_reply and message.get("id") in (self._id, None) else None


class Wire:
    """One server, as a client speaks to it.

    Args:
        place: The name of the server in errors.
        token: The token that the server requires, or None.
        protocol: The era of MCP; `auto` asks the server.
        retry_s: The longest time of repeated calls that the server has not done.
    """

    def __init__(
        self, place: str, *, token: str | None, protocol: Protocol, retry_s: float
    ) -> None:
        self._place = place
        self._token = token
        self._asked = protocol
        self._retry_s = retry_s
        self._era: str | None = None
        self._connection: str | None = None
        self._id = 0
        self._tags: dict[str, str] = {}

    @property
    def era(self) -> str | None:
        """The era in use; None before the first call."""
        return self._era

    def call_tool(
        self,
        name: str,
        arguments: Row,
        *,
        repeats: bool,
        meta: Row | None = None,
    ) -> Work[ToolReply]:
        """Call a tool.

        Args:
            name: The tool's name.
            arguments: Its arguments.
            repeats: Whether a repeated call acts only once, so that it may follow a lost reply.
            meta: The metadata beside the arguments.

        Raises:
            ConnectionFailed: No reply came within `retry_s`.
            Unauthorized: The server does not take the token.
            CallRefused: The server knows no such tool.
        """
        params = {"name": name, "arguments": dict(arguments)}
        result = yield from self._request("tools/call", params, meta or {}, repeats=repeats)
        reply = ToolReply.of(result)
        self._keep_tag(arguments.get("session"), reply.meta.get(_TAG))
        return reply

    def _keep_tag(self, session: Any, tag: Any) -> None:
        """Remember the server that answered for a session, so that the next call finds it."""
        if not isinstance(session, str) or not isinstance(tag, str) or not _IS_TAG(tag):
            return
        self._tags.pop(session, None)
        self._tags[session] = tag
        while len(self._tags) > _MOST_TAGS:
            del self._tags[next(iter(self._tags))]

    def leave(self) -> Work[None]:
        """Tell the server that this connection is over. Sessions live on."""
        if self._connection is not None:
            yield Send("DELETE", self._headers("", {}))
            self._connection = None

    def _request(self, method: str, params: Row, meta: Row, *, repeats: bool) -> Work[Row]:
        patience = _Patience(self._retry_s)
        while True:
            if self._era is None or (self._era == LEGACY and self._connection is None):
                yield from self._introduce(patience)
            got = yield self._message(method, params, meta)
            if self._era == LEGACY and getattr(got, "status", 0) == _NOT_FOUND:
                # the server has forgotten the connection, and has done nothing
                self._connection = None
                yield from patience.wait(f"{self._place} forgets its connections")
                continue
            fault = self._fault(got)
            if fault is None:
                return self._result(got)
            if fault.sent and not repeats:
                raise ConnectionFailed(
                    f"{self._place} gave no reply: {fault.reason}. It may have done the call; this "
                    "one is not sent twice. Look at the session before you go on."
                )
            yield from patience.wait(f"{self._place} gave no reply: {fault.reason}")

    def _introduce(self, patience: "_Patience") -> Work[None]:
        """Find out the era, and open a connection if the era has connections."""
        if LEGACY not in (self._asked, self._era):
            self._era = MODERN
            found = yield from self._first(self._message_of("server/discover"), patience)
            if MODERN in ((found or {}).get("supportedVersions") or ()):
                return
            if self._asked == MODERN:
                self._era = None
                raise CallRefused(f"{self._place} does not speak MCP {MODERN}.")
        self._era = LEGACY
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
        if (
            yield from self._first(lambda: self._message("initialize", params, {}), patience)
        ) is None:
            self._era = None
            raise CallRefused(
                f"{self._place} does not speak MCP. Is the address that of the server's /mcp?"
            )
        yield self._notification("notifications/initialized")

    def _message_of(self, method: str) -> Any:
        return lambda: self._message(method, {}, {})

    def _first(self, message: Any, patience: "_Patience") -> Work[Row | None]:
        """Return the result of a request that changes nothing; None if the server refuses it."""
        while True:
            got = yield message()
            if (fault := self._fault(got)) is not None:
                yield from patience.wait(f"{self._place} gave no reply: {fault.reason}")
                continue
            if (connection := got.headers.get("mcp-session-id")) is not None:
                self._connection = connection
            if got.message is not None and "result" in got.message:
                result: Row = got.message["result"]
                return result
            self._check(got)
            return None

    def _fault(self, got: "Arrived | Fault") -> Fault | None:
        """Return the reason why there is no reply; None if there is one."""
        if isinstance(got, Fault):
            return got
        if got.status in _NOT_YET:
            return Fault(f"it is busy (HTTP {got.status})", sent=False)
        if got.status in _UNKNOWN:
            return Fault(f"HTTP {got.status}", sent=True)
        if got.status < 300 and got.message is None and not got.text:  # noqa: PLR2004  # success
            return Fault("it closed the connection in the middle", sent=True)
        error = as_row(as_row(got.message).get("error"))
        if error.get("code") == _CLOSED:
            return Fault("it is going down", sent=True)
        return None

    def _check(self, got: Arrived) -> None:
        """Raise the error of a status about the token or the address."""
        if got.status == _UNAUTHORIZED:
            given = "does not take the token that was given" if self._token else "wants a token"
            raise Unauthorized(f"{self._place} {given}. Pass the server's as `token`.")
        if got.status == _TOO_LARGE:
            raise CallRefused(f"{self._place} takes no call as large as this one.")

    def _result(self, got: Arrived) -> Row:
        self._check(got)
        if got.message is not None and "result" in got.message:
            result: Row = got.message["result"]
            return result
        error = as_row(as_row(got.message).get("error"))
        said = error.get("message") or got.text[:300] or f"HTTP {got.status}"
        raise CallRefused(f"{self._place} refused the call: {said}")

    def _message(self, method: str, params: Row, meta: Row) -> Send:
        self._id += 1
        # A server gives signs of life only on request; a silent one counts as dead.
        told = {**meta, "progressToken": self._id} if method == "tools/call" else dict(meta)
        if self._era == MODERN:
            told |= {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": _CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        whole = {**params, "_meta": told} if told else dict(params)
        row = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": whole}
        return Send("POST", self._headers(method, params), _json(row), self._id)

    def _notification(self, method: str) -> Send:
        return Send("POST", self._headers(method, {}), _json({"jsonrpc": "2.0", "method": method}))

    def _headers(self, method: str, params: Row) -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._era == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if "name" in params:
                headers["Mcp-Name"] = str(params["name"])
        elif self._connection is not None:
            headers |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": self._connection}
        arguments = as_row(params.get("arguments"))
        if (tag := self._tags.get(str(arguments.get("session")))) is not None:
            headers["Hud-Mcp-Replica"] = tag
        return headers


class _Patience:
    """Growing pauses, until a time is over."""

    def __init__(self, seconds: float) -> None:
        self._end_s = time.monotonic() + seconds
        self._next_s = _FIRST_PAUSE_S

    def wait(self, reason: str) -> Work[None]:
        """Pause; raise `ConnectionFailed` once the time is over."""
        if time.monotonic() >= self._end_s:
            raise ConnectionFailed(
                f"{reason}. What was recorded, stands: resume the session when the server is back."
            )
        yield Pause(self._next_s * random.uniform(0.5, 1.0))  # noqa: S311  # so that many do not come at once
        self._next_s = min(self._next_s * 2, _LONGEST_PAUSE_S)


def _json(row: Row) -> bytes:
    return json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode()

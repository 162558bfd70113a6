"""Streamable HTTP: both protocol eras on one path, closed to everyone else by default."""

import re
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import orjson
from anyio import lowlevel
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hud_mcp.base.lines import escape_separators
from hud_mcp.base.listening import is_loopback, listen, port_of, shown_host
from hud_mcp.errors import HudMcpError, clipped
from hud_mcp.server.stdio.frames import (
    NoMessage,
    Request,
    error_frame,
    is_untidy,
    read_message,
    tidied,
)
from hud_mcp.server.web.auth import Hosts, PlainHosts, Tokens
from hud_mcp.server.web.listener import WebServer

__all__ = ["PATH", "Forms", "Front", "http_app", "serve_http"]


Form: TypeAlias = Literal["json", "events", "either"]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_ACKNOWLEDGED: Final = 202
_NO_CONNECTION: Final = (
    "This request has no Mcp-Session-Id. Send `initialize` first, and with every later request "
    "the Mcp-Session-Id header that answers it."
)
_OURS: Mapping[str, str] = {"Bad Request: Missing session ID": _NO_CONNECTION}
"""Our texts in place of the SDK's."""


class Forms:
    """An ASGI app that takes requests in every host's form, and answers in the client's form.

    A client that accepts only JSON gets JSON, without progress, and a client that accepts only a
    stream of events gets a stream. No `Accept` means JSON. A body that is no message is refused
    with stdio's text. No sent character could end a line too early for a reader.

    Args:
        app: The app that answers.
        path: The app's path of MCP; other requests pass unchanged.
        max_body_bytes: The largest body that is read here; the app refuses a larger one.
    """

    def __init__(self, app: ASGIApp, *, path: str, max_body_bytes: int) -> None:
        self._app = app
        self._path = path
        self._most = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_post = scope["method"] == "POST"
        form = _form(headers) if is_post else "either"
        if form is None:
            await _refuse(headers, send)
            return
        # A subscription is a stream for every client, as the SDK requires.
        is_stream = headers.get("mcp-method") == "subscriptions/listen"
        # No event has an id, so a stream that a client wants to resume begins anew.
        kept = [(k, v) for k, v in scope["headers"] if k != b"last-event-id"]
        if (is_post and not (is_stream and form == "json")) or "accept" not in headers:
            kept = [(k, v) for k, v in kept if k != b"accept"]
            kept.append((b"accept", f"{_JSON}, {_EVENTS}".encode()))
        scope = {**scope, "headers": kept}
        asked = _Asked(receive, self._most)
        answer = _Answer(send, asked, form)
        await self._app(scope, asked.receive if is_post else receive, answer.send)


class _Asked:
    """The body of a request, which is passed on whole and tidied, and checked for a message."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive = receive
        self._most = most_bytes
        self._is_read = False
        self.id: Any = None
        self.problem: NoMessage | None = None

    async def receive(self) -> Message:
        """Return the body, then every later message."""
        if self._is_read:
            return await self._receive()
        self._is_read = True
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
            if len(body) > self._most:
                return {**message, "body": bytes(body)}
            if not message.get("more_body"):
                return {**message, "body": self._read(bytes(body))}

    def _read(self, body: bytes) -> bytes:
        message = read_message(body)
        if isinstance(message, NoMessage):
            self.id, self.problem = message.id, message
            return body
        if isinstance(message, Request):
            self.id = message.id
        if not is_untidy(body):
            return body
        given = cast("dict[str, Any]", orjson.loads(body))
        params = tidied(given.get("params"))
        if params == given.get("params"):
            return body
        rest = {name: value for name, value in given.items() if name != "params"}
        return orjson.dumps(rest if params is None else {**rest, "params": params})


class _Answer:
    """The answer of the app, passed on in the client's form."""

    def __init__(self, send: Send, asked: _Asked, form: Form) -> None:
        self._send = send
        self._asked = asked
        self._form = form
        self._start: Message = {}
        self._buffered = bytearray()
        self._is_buffered = False
        self._is_text = False

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on, or keep it until it is whole."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif not self._is_buffered:
            if self._is_text:  # each part is a whole event or body, so no character is cut
                message = {**message, "body": escape_separators(message.get("body", b""))}
            await self._send(message)
        else:
            self._buffered += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(bytes(self._buffered))

    async def _begin(self, message: Message) -> None:
        kind = Headers(raw=message["headers"]).get("content-type", "")
        is_json, is_stream = kind.startswith(_JSON), kind.startswith(_EVENTS)
        self._is_text = is_json or is_stream
        self._start = message
        # JSON is also kept for its length, which escapes change. The SDK acknowledges messages that
        # it takes for notifications, such as a request with an invalid id.
        is_wrong = self._asked.problem is not None and message["status"] == _ACKNOWLEDGED
        if is_wrong:
            self._start = {**message, "status": 400}
        if is_wrong or is_json or (is_stream and self._form == "json"):
            self._is_buffered = True
        else:
            await self._send(message)

    async def _finish(self, body: bytes) -> None:
        status, kind = self._start["status"], _JSON
        if Headers(raw=self._start["headers"]).get("content-type", "").startswith(_EVENTS):
            body = _answer_in(body) or error_frame(
                self._asked.id, INTERNAL_ERROR, "The connection ended before there was an answer."
            )
        elif status >= 400:  # noqa: PLR2004  # HTTP's errors
            body = self._explained(body)
        elif self._form == "events" and body:
            body, kind = b"event: message\r\ndata: " + body + b"\r\n\r\n", _EVENTS
        body = escape_separators(body)
        raw = [(k, v) for k, v in self._start["headers"] if k not in _OF_BODY]
        raw += [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await self._send({**self._start, "headers": raw})
        await self._send({"type": "http.response.body", "body": body})

    def _explained(self, body: bytes) -> bytes:
        """Return the client's error, with our text if the SDK's says less."""
        problem = self._asked.problem
        if problem is not None:
            return error_frame(problem.id, problem.code, problem.message).rstrip()
        try:
            said = orjson.loads(body)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            return body
        ours = _OURS.get(said)
        return body if ours is None else error_frame(self._asked.id, INVALID_REQUEST, ours).rstrip()


_OF_BODY = frozenset({b"content-type", b"content-length"})


def _answer_in(stream: bytes) -> bytes | None:
    """Return the answer among the events of a stream; the others report progress."""
    for event in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(lines)
        if not data:
            continue
        message = cast("dict[str, Any]", orjson.loads(data))
        if "result" in message or "error" in message:
            return data
    return None


def _form(headers: Headers) -> Form | None:
    """Return the form that a client takes; None if it takes neither."""
    given = ",".join(headers.getlist("accept")).strip()
    if not given:
        return "json"
    kinds = dict(map(_kind, filter(None, (each.strip() for each in given.split(",")))))
    takes_json, takes_events = (
        next((kinds[kind] for kind in names if kind in kinds), False)
        for names in ((_JSON, "application/*", "*/*"), (_EVENTS, "text/*", "*/*"))
    )
    if takes_json and takes_events:
        return "either"
    return "json" if takes_json else "events" if takes_events else None


def _kind(given: str) -> tuple[str, bool]:
    """Return a media type of `Accept`, and whether it is accepted: `q=0` refuses it."""
    kind, *parameters = (part.strip().lower() for part in given.split(";"))
    weight = next((p.partition("=")[2] for p in parameters if p.startswith("q=")), "1")
    return kind, weight.rstrip("0.") != ""


async def _refuse(headers: Headers, send: Send) -> None:
    text = (
        f"Accept is {clipped(headers['accept'])}; this server answers in {_JSON} or {_EVENTS}. "
        "Accept one of them, or both."
    )
    body = error_frame(None, INVALID_REQUEST, text).rstrip()
    told = {"content-type": _JSON, "content-length": str(len(body))}
    raw = [(name.encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": 406, "headers": raw})
    await send({"type": "http.response.body", "body": body})


PATH = "/mcp"


class Front(Protocol):
    """An app that answers in place of a server, and passes on requests for the server."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """More accepted values of the Host header."""
        ...

    async def begin(
        self,
        app: ASGIApp,
        *,
        address: str,
        path: str,
        access: Tokens | None,
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> ASGIApp:
        """Return the app that answers in place of the server's.

        Args:
            app: The MCP server's app.
            address: The address of the listener.
            path: The path of MCP.
            access: The credentials of callers; None if the server asks for none.
            security: The accepted hosts and origins.
            max_body_bytes: The largest accepted request.
        """
        ...

    async def leave(self, listener: socket.socket, is_waited_for: Callable[[], bool]) -> None:
        """Answer the last calls, before the sessions are left.

        Args:
            listener: The listening socket.
            is_waited_for: Whether a connection has not brought a request yet.
        """
        ...


async def serve_http(
    server: Server[Any],
    *,
    host: str,
    port: int,
    access: Tokens | None = None,
    allowed_hosts: tuple[str, ...] = (),
    announce: Callable[[str], None],
    on_stop: Callable[[signal.Signals | None], Awaitable[None]],
    max_body_bytes: int = 4 * 1024 * 1024,
    beside: Sequence[BaseRoute] = (),
    sockets: bool = False,
    front: Front | None = None,
) -> signal.Signals | None:
    """Serve until SIGINT or SIGTERM, and then end in order.

    Args:
        server: The server.
        host: The address to listen on.
        port: The port; 0 for any free one.
        access: The credentials of callers. Required unless the host is loopback.
        allowed_hosts: More accepted values of the Host header, with port or `:*`.
        announce: Called with the URL once requests are answered.
        on_stop: Called with the ending signal while running requests can still be answered, to end
            them.
        max_body_bytes: A larger request is refused (413) before it is parsed.
        beside: More routes on the same port, before MCP, with their own security.
        sockets: Whether one of these routes is a WebSocket's.
        front: An app that answers requests in the server's place, or None.

    Returns:
        The signal that ended it. The process's exit status is the caller's business.

    Raises:
        HudMcpError: The host is not loopback and anybody may call, or the port is taken.
        StoreFailed: The front cannot begin.
    """
    if not is_loopback(host) and access is None:
        raise HudMcpError(
            f"{host} is open to other machines; give a --token (or HUD_MCP_TOKEN) or --oauth, or "
            "listen on 127.0.0.1."
        )
    listener = listen(host, port)
    bound = port_of(listener)
    identity = None if access is None else access.identity
    asked = [each for each in (front, identity) if each is not None]
    allowed_hosts = (*allowed_hosts, *(name for each in asked for name in each.hosts))
    app: Any = http_app(
        server,
        host=host,
        port=bound,
        access=access,
        allowed_hosts=allowed_hosts,
        max_body_bytes=max_body_bytes,
    )
    app.router.routes[:0] = beside
    address = f"http://{shown_host(host)}:{bound}"
    if front is not None:
        app = await front.begin(
            app,
            address=address,
            path=PATH,
            access=access,
            security=_security(host, bound, allowed_hosts),
            max_body_bytes=max_body_bytes,
        )
    app = _readable_by_pages(app, _security(host, bound, allowed_hosts))
    if identity is not None:  # its paths are for pages of every origin
        app = identity.around(app, address=address, path=PATH, hosts=Hosts(host, allowed_hosts))

    async def stop() -> None:
        if front is not None:
            await front.leave(listener, lambda: web.has_new_connections)
        await on_stop(web.signal)

    web = WebServer(
        PlainHosts(app),
        on_ready=lambda: announce(f"{address}{PATH}"),
        on_stop=stop,
        lifespan=True,
        sockets=sockets,
    )
    with listener:
        # A stop before this never begins it: uvicorn reports a start that is cut short.
        await lowlevel.checkpoint()
        await web.serve(sockets=[listener])
    return web.signal


def http_app(
    server: Server[Any],
    *,
    host: str,
    port: int,
    access: Tokens | None,
    allowed_hosts: tuple[str, ...] = (),
    max_body_bytes: int,
) -> Any:
    """Return the app that answers requests for a server, on any listener.

    Args:
        server: The server.
        host: The clients' name for it.
        port: The port in the clients' requests.
        access: As for `serve_http`.
        allowed_hosts: More accepted values of the Host header.
        max_body_bytes: The largest accepted request.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=max_body_bytes,
        transport_security=_security(host, port, allowed_hosts),
        **_authentication(access, f"http://{shown_host(host)}:{port}"),
    )
    app.add_middleware(Forms, path=PATH, max_body_bytes=max_body_bytes)
    return app


def _readable_by_pages(app: ASGIApp, security: TransportSecuritySettings) -> ASGIApp:
    """Let pages of the accepted origins read answers, as clients in a browser must (CORS)."""
    origins = (re.escape(each).replace(r":\*", r"(:\d+)?") for each in security.allowed_origins)
    return CORSMiddleware(
        app,
        allow_origin_regex="|".join(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("Mcp-Session-Id", "WWW-Authenticate"),
    )


def _authentication(access: Tokens | None, url: str) -> dict[str, Any]:
    if access is None:
        return {}
    auth = AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None)
    return {"auth": auth, "token_verifier": access}


def _security(host: str, port: int, more: tuple[str, ...]) -> TransportSecuritySettings:
    """Accept only requests that name this server. A web page elsewhere cannot (DNS rebinding)."""
    names = ["127.0.0.1:*", "localhost:*", "[::1]:*", f"{shown_host(host)}:{port}", *more]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins
    )

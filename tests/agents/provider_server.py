"""A server on loopback that speaks the protocols of four providers, and says what a test tells it.

    with provider_server(lambda asked: Says("4")) as server:
        ...  # server.base_url("anthropic"), server.asked

It runs in a thread, so that a test may wait for another process meanwhile. Anthropic's Messages,
OpenAI's Chat Completions and Responses, and Gemini's generateContent; each streams too, where a
request asks for it.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from provider_formats import FORMATS, Call, Format, Heard, Says

__all__ = [
    "Asked",
    "Breaks",
    "Call",
    "ProviderServer",
    "Refuses",
    "Says",
    "Script",
    "Sends",
    "overflows",
    "provider_server",
]

_BREAKS = "x-breaks"

_PATHS = (
    (re.compile(r"/v1/messages$"), "anthropic"),
    (re.compile(r"/chat/completions$"), "openai-chat"),
    (re.compile(r"/responses$"), "openai"),
    (re.compile(r"/models/[^:]+:(generateContent|streamGenerateContent)$"), "google"),
)


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        provider: In whose format: `anthropic`, `openai`, `openai-chat` or `google`.
        model: The model's name.
        number: How many requests came before it.
        heard: What it has, whichever the format.
        body: As it came.
        headers: The same, their names in lower case.
    """

    provider: str
    model: str
    number: int
    heard: Heard
    body: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Refuses:
    """A refusal.

    Attributes:
        status: Of HTTP.
        message: What it says.
        headers: More headers, such as `retry-after`.
    """

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sends:
    """Whatever a server may send.

    Attributes:
        body: JSON, or a text that is none.
        status: Of HTTP.
        headers: More headers, such as `retry-after`.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Breaks:
    """A reply whose connection breaks in its middle.

    Attributes:
        says: The reply, of which half is sent.
    """

    says: Says = field(default_factory=Says)


def overflows(asked: Asked) -> Refuses:
    """What the provider says where the context is full."""
    return Refuses(400, FORMATS[asked.provider].overflow)


Script = Callable[[Asked], Says | Refuses | Sends | Breaks]


class ProviderServer:
    """A running server.

    Attributes:
        script: Says what comes back for a request.
        asked: Every request so far.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def base_url(self, provider: str) -> str:
        """What a client of a provider takes for its base URL."""
        return self.url if provider in ("anthropic", "google") else f"{self.url}/v1"

    def reply(
        self, kind: Format, model: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], Any]:
        """The status, headers and body for a request."""
        heard = kind.hear(body)
        with self._lock:
            asked = Asked(kind.provider, model, len(self.asked), heard, body, headers)
            self.asked.append(asked)
        given = self.script(asked)
        if isinstance(given, Sends):
            return given.status, given.headers, given.body
        if isinstance(given, Refuses):
            return given.status, given.headers, kind.refuse(given.status, given.message)
        if isinstance(given, Breaks):
            return 200, {_BREAKS: "1"}, kind.write(model, given.says)
        return 200, {}, kind.write(model, given)

    def serve(self) -> None:
        """Serve until `close`."""
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def provider_server(script: Script) -> Iterator[ProviderServer]:
    """Serve until the end of the block."""
    server = ProviderServer(script)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def _answering(server: ProviderServer) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that the library calls
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.partition("?")[0]
            provider = next((name for pattern, name in _PATHS if pattern.search(path)), None)
            if provider is None:
                self._send(404, {}, json.dumps({"error": f"no {path}"}).encode())
                return
            named = re.search(r"/models/([^:]+):", path)
            model = named[1] if named else body["model"]
            kind = FORMATS[provider]
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, reply = server.reply(kind, model, body, headers)
            streams = body.get("stream") or ":stream" in path
            if status == 200 and streams and kind.stream is not None:
                ends = provider.startswith("openai-")
                self._stream(kind.stream(reply), ends=ends, breaks=_BREAKS in more)
            else:
                text = reply if isinstance(reply, str) else json.dumps(reply)
                self._send(status, more, text.encode())

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

        def _send(self, status: int, more: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            for name, value in more.items():
                self.send_header(name, value)
            self.end_headers()
            self._write(body, breaks=_BREAKS in more)

        def _write(self, body: bytes, *, breaks: bool) -> None:
            self.wfile.write(body[: len(body) // 2] if breaks else body)
            self.close_connection |= breaks

        def _stream(
            self, events: Iterator[tuple[str | None, dict[str, Any]]], *, ends: bool, breaks: bool
        ) -> None:
            lines: list[str] = []
            for name, data in events:
                lines += [f"event: {name}"] if name else []
                lines += [f"data: {json.dumps(data)}", ""]
            lines += ["data: [DONE]", ""] if ends else []
            body = "\n".join([*lines, ""]).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self._write(body, breaks=breaks)

    return Answering

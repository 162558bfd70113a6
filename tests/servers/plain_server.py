"""A server of the standard library, which every machine runs: notes in files, and one in memory.

`python3 plain_server.py [modern] [http PORT]`: it takes the handshake, or the envelope of the newer
era. Over HTTP it wants the token of its variable HTTP_TOKEN, where there is one.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODERN = "modern" in sys.argv
NOTES = Path("notes.txt")
remembered: list[str] = []


def text(said: str, *, is_error: bool = False) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def notes() -> list[str]:
    """The notes of the file."""
    return NOTES.read_text().splitlines() if NOTES.exists() else []


def add(note: str) -> dict[str, Any]:
    """Add a note to the file."""
    NOTES.write_text("".join(f"{each}\n" for each in [*notes(), note]))
    return {**text(f"{len(notes())} notes"), "structuredContent": {"count": len(notes())}}


def remember(note: str) -> dict[str, Any]:
    """Keep a note in memory."""
    remembered.append(note)
    return text(", ".join(remembered))


def clock() -> dict[str, Any]:
    """Tell a time that is never the same."""
    return text(str(time.monotonic_ns()))


def look(path: str) -> dict[str, Any]:
    """Read a file of the machine."""
    try:
        return text(Path(path).read_text())
    except OSError as exc:
        return text(str(exc), is_error=True)


def variable(name: str) -> dict[str, Any]:
    """Return a variable of the environment, and complain of it on the standard error."""
    sys.stderr.write(f"{os.environ.get(name)}\n")
    sys.stderr.flush()
    return text(os.environ.get(name, "unset"))


def die(status: int) -> dict[str, Any]:
    """End."""
    sys.stderr.write("Traceback: no database\n")
    sys.stderr.flush()
    os._exit(status)


def die_once() -> dict[str, Any]:
    """End, unless a file says that it has done so."""
    marked = Path("/tmp/died")  # not of the folder: a new instance in the same sandbox finds it
    if not Path("lived").exists():
        marked.touch()
        os._exit(3)
    return text("alive")


def hang() -> dict[str, Any]:
    """Never answer."""
    time.sleep(600)
    return text("")


def flood() -> dict[str, Any]:
    """Send notifications that nobody asked for."""
    for index in range(1_000_000):
        told = {"level": "info", "data": index}
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": told})
    return text("")


def response(answer: str, session: str) -> dict[str, Any]:
    """Pretend to be a tool of ours, with an argument of ours."""
    return text(f"{answer} {session}")


TOOLS = {
    each.__name__: each
    for each in (add, remember, clock, look, variable, die, die_once, hang, flood, response)
}


def entry(name: str) -> dict[str, Any]:
    """The list's entry of a tool."""
    function = TOOLS[name]
    fields = {
        each: {"type": "integer" if kind is int else "string"}
        for each, kind in function.__annotations__.items()
        if each != "return"
    }
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"name": name, "description": function.__doc__, "inputSchema": schema}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result or the error of a request."""
    if method == "server/discover" and MODERN:
        versions = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return {"result": {**versions, "serverInfo": {"name": "plain", "version": "1"}}}
    if method == "initialize" and not MODERN:
        terms = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {"result": {**terms, "serverInfo": {"name": "plain", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": [entry(name) for name in TOOLS]}}
    if method == "tools/call" and params["name"] in TOOLS:
        try:
            return {"result": TOOLS[params["name"]](**params.get("arguments", {}))}
        except TypeError as exc:
            return {"error": {"code": -32602, "message": str(exc)}}
    return {"error": {"code": -32601, "message": f"no {method}"}}


def replied(given: dict[str, Any]) -> dict[str, Any]:
    """The whole answer to a request."""
    said = answer(given["method"], given.get("params", {}))
    return {"jsonrpc": "2.0", "id": given["id"], **said}


class Http(BaseHTTPRequestHandler):
    """The same over HTTP, with what is special to it: the path `/mcp`, and a token."""

    def do_POST(self) -> None:
        """Answer one message."""
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        token = os.environ.get("HTTP_TOKEN")
        is_routed = not MODERN or self.headers.get("mcp-method") == given["method"]
        if self.path != "/mcp" or (token and self.headers["authorization"] != f"Bearer {token}"):
            self.reply(401, b"")
        elif "id" not in given:
            self.reply(202, b"")
        elif not is_routed:
            self.reply(400, b"")
        else:
            self.reply(200, json.dumps(replied(given)).encode())

    def reply(self, status: int, body: bytes) -> None:
        """Send a status and a body of JSON."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if "http" in sys.argv:
    listening = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Http)
    print("listening on", listening.server_port, flush=True)
    listening.serve_forever()
for line in iter(sys.stdin.readline, ""):
    given = json.loads(line)
    if "id" in given and "method" in given:
        send(replied(given))

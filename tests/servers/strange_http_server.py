"""A server over HTTP that is strange in one way: `python3 strange_http_server.py HOW [URL]`."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOW = sys.argv[1]
TOOL = {"name": "look", "inputSchema": {"type": "object"}}


def answer(method: str) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        terms = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {**terms, "serverInfo": {"name": "strange", "version": "1"}}
    return {"tools": [TOOL]} if method == "tools/list" else {"content": []}


class Http(BaseHTTPRequestHandler):
    """Good until a tool is called."""

    def do_POST(self) -> None:
        """Answer one message."""
        with Path("requests").open("a") as requests:
            requests.write(f"{self.headers}\n")
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in given:
            self.send_response(202)
            self.end_headers()
            return
        if HOW == "redirects":
            self.send_response(307)
            self.send_header("location", sys.argv[2])
            self.end_headers()
            return
        is_odd = HOW == "has sessions" and self.headers["mcp-session-id"] != "a-session"
        if given["method"] == "server/discover" or (is_odd and given["method"] != "initialize"):
            self.send_response(404)
            self.end_headers()
            return
        if given["method"] == "tools/call" and HOW != "has sessions":
            self.be_strange()
            return
        said = {"jsonrpc": "2.0", "id": given["id"], "result": answer(given["method"])}
        self.begin("application/json")
        self.wfile.write(json.dumps(said).encode())

    def do_DELETE(self) -> None:
        """Note the end of a session."""
        Path("ended").write_text(self.headers["mcp-session-id"])
        self.send_response(200)
        self.end_headers()

    def begin(self, kind: str) -> None:
        """Begin a body that ends with the connection."""
        self.send_response(200)
        self.send_header("content-type", kind)
        if HOW == "has sessions":
            self.send_header("mcp-session-id", "a-session")
        self.end_headers()

    def be_strange(self) -> None:
        """Answer a call as no server should."""
        if HOW == "streams for ever":
            self.begin("text/event-stream")
            said = {"data": "x" * 1_000_000}  # bytes, since their number depends on the machine
            notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": said}
            while True:
                self.wfile.write(f"event: message\ndata: {json.dumps(notice)}\n\n".encode())
        if HOW == "is huge":
            self.begin("application/json")
            for _ in range(64):
                self.wfile.write(b" " * 1_000_000)
        if HOW == "never answers":
            time.sleep(600)
        if HOW == "closes":
            self.begin("text/event-stream")
            self.wfile.write(b"event: message\ndata: {")


listening = ThreadingHTTPServer(("127.0.0.1", 0), Http)
print(listening.server_port, flush=True)
listening.serve_forever()

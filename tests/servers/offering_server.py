"""A server with prompts, resources, progress, and tools that come, go and end it.

`python3 offering_server.py [modern]`: standard library only.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

MODERN = "modern" in sys.argv
PICTURE = "iVBORw0KGgo="
PROMPTS = [
    {"name": "review", "title": "Review", "arguments": [{"name": "path", "required": True}]},
    {"name": "session", "arguments": [{"name": "session"}]},
    {"name": "odd", "arguments": "all of them"},
]
RESOURCES = [{"uri": "note://all", "name": "all notes", "mimeType": "text/plain", "size": 3}]
TEMPLATES = [{"uriTemplate": "note:///{path}", "name": "note"}]
called: list[str] = []
cancelled: list[Any] = []


class Fault(Exception):
    """The server's own error."""


def text(said: object) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": str(said)}]}


def tell(method: str, params: dict[str, Any] | None = None) -> None:
    """Send a notification."""
    send({"method": method, "params": params or {}})


def write(given: dict[str, Any], _params: Any) -> None:
    """Write a file."""
    Path(given["path"]).write_text(given["text"])


def grow(_given: Any, _params: Any) -> None:
    """List one tool more."""
    TOOLS.append("new_one")
    tell("notifications/tools/list_changed")


def shrink(_given: Any, _params: Any) -> None:
    """List one tool less."""
    TOOLS.remove("many")
    tell("notifications/tools/list_changed")


def links(_given: Any, _params: Any) -> dict[str, Any]:
    """Name two resources."""
    link = {"type": "resource_link", "uri": "note:///a.txt", "name": "a"}
    return {"content": [link, {"type": "resource", "resource": contents("note://all")}]}


def heavy(_given: Any, _params: Any) -> dict[str, Any]:
    """Return a block with much beside its text."""
    beside = {"type": "text", "text": "x", "annotations": {"why": "z" * 100_000}}
    return {"content": [beside, {"type": "text", "text": "kept"}]}


def slow(_given: Any, params: dict[str, Any]) -> None:
    """Tell of progress, and write to the log."""
    token = params["_meta"]["progressToken"]
    step = {"progressToken": token, "progress": 1, "total": 2, "message": "half of it"}
    tell("notifications/progress", step)
    tell("notifications/message", {"level": "info", "data": "a line of its log"})


def die(given: dict[str, Any], _params: Any) -> None:
    """End, or not, as the arguments say."""
    if given.get("pin") != "0000":
        os._exit(5)


def die_third(_given: Any, _params: Any) -> None:
    """End at the third call."""
    if called.count("die_third") == 3:
        os._exit(5)


CALLS: dict[str, Any] = {
    each.__name__: each for each in (write, grow, shrink, links, heavy, slow, die, die_third)
}
CALLS |= {
    "many": lambda *_: {"content": [{"type": "text", "text": str(n)} for n in range(150)]},
    "long": lambda *_: text("line\n" * 4000),
    "wide": lambda *_: {**text("x"), "structuredContent": {"rows": ["y" * 100] * 4000}},
    "gave_up": lambda *_: text(len(cancelled)),
    "read": lambda *_: None,
    "response": lambda *_: None,
    "silent": lambda *_: None,
}
TOOLS = list(CALLS)


def call(params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a tool; None for no answer."""
    name, given = params["name"], params.get("arguments") or {}
    called.append(name)
    if name not in TOOLS:
        raise Fault(f"{name} is gone")
    result = CALLS[name](given, params)
    return None if name == "silent" else result or text(f"{name} {len(called)}")


def contents(uri: str) -> dict[str, Any]:
    """A resource."""
    if uri == "note://all":
        return {"uri": uri, "mimeType": "text/plain", "text": os.environ.get("TOKEN", "all")}
    if uri == "note:///picture":
        return {"uri": uri, "mimeType": "image/png", "blob": PICTURE}
    if uri == "note:///huge":
        return {"uri": uri, "mimeType": "video/mp4", "blob": "A" * 1_000_000}
    if uri == "note:///end":
        os._exit(5)
    path = Path(uri.removeprefix("note:///"))
    if not path.is_file():
        raise Fault(f"no resource {uri}")
    return {"uri": uri, "text": path.read_text()}


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    """A prompt's message, with its arguments."""
    said = f"{params['name']} {params.get('arguments')}"
    message = {"role": "user", "content": {"type": "text", "text": said}}
    return {"description": "Reviews.", "messages": [message]}


def terms(_params: Any) -> dict[str, Any]:
    """The server's introduction."""
    versions = {"supportedVersions": ["2026-07-28"], "protocolVersion": "2025-11-25"}
    info = {"serverInfo": {"name": "offering", "version": "1"}}
    return {**versions, "capabilities": {"tools": {}}, **info}


METHODS: dict[str, Any] = {
    "server/discover" if MODERN else "initialize": terms,
    "tools/list": lambda _: {"tools": [entry(each) for each in TOOLS]},
    "prompts/list": lambda _: {"prompts": PROMPTS},
    "resources/list": lambda _: {"resources": RESOURCES},
    "resources/templates/list": lambda _: {"resourceTemplates": TEMPLATES},
    "tools/call": call,
    "prompts/get": prompt,
    "resources/read": lambda params: {"contents": [contents(params["uri"])]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for no answer."""
    if method not in METHODS:
        raise Fault(f"no {method}")
    return METHODS[method](params)


def entry(name: str) -> dict[str, Any]:
    """The list's entry of a tool."""
    fields = {each: {"type": "string"} for each in ("path", "text", "pin")}
    return {"name": name, "inputSchema": {"type": "object", "properties": fields}}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if Path("poison").exists():
    sys.exit(9)
for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        cancelled.append(message["params"])
    if "id" not in message or "method" not in message:
        continue
    try:
        result = answer(message["method"], message.get("params") or {})
        if result is not None:
            send({"id": message["id"], "result": result})
    except Fault as exc:
        send({"id": message["id"], "error": {"code": -32602, "message": str(exc)}})

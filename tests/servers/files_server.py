"""A server for files of the standard library, which obeys: no path and no size is refused."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: str, text: str) -> str:
    """Write a file, and the folders above it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return "written"


def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


def names(path: str) -> str:
    """List a folder."""
    return "\n".join(sorted(os.listdir(path)))  # noqa: PTH208


def link(path: str, target: str) -> str:
    """Make a link in place of what is there."""
    Path(path).unlink(missing_ok=True)
    Path(path).symlink_to(target)
    return "linked"


def pipe(path: str) -> str:
    """Make a pipe in place of what is there."""
    Path(path).unlink(missing_ok=True)
    os.mkfifo(path)
    return "made"


def grow(path: str, size: str) -> str:
    """Make a file of so many bytes, of which the disk has none."""
    with Path(path).open("wb") as file:
        file.truncate(int(size))
    return "grown"


TOOLS: dict[str, Callable[..., str]] = {
    each.__name__: each for each in (write, read, names, link, pipe, grow)
}


def entry(name: str) -> dict[str, Any]:
    """The list's entry of a tool."""
    fields = [each for each in TOOLS[name].__annotations__ if each != "return"]
    properties = {each: {"type": "string"} for each in fields}
    schema = {"type": "object", "properties": properties, "required": fields}
    return {"name": name, "description": TOOLS[name].__doc__, "inputSchema": schema}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result or the error of a request."""
    if method == "initialize":
        terms = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {"result": {**terms, "serverInfo": {"name": "files", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": [entry(name) for name in TOOLS]}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": f"no {method}"}}
    try:
        told, is_error = TOOLS[params["name"]](**params.get("arguments", {})), False
    except OSError as exc:
        told, is_error = str(exc), True
    return {"result": {"content": [{"type": "text", "text": told}], "isError": is_error}}


for line in iter(sys.stdin.readline, ""):
    given = json.loads(line)
    if "id" in given and "method" in given:
        said = answer(given["method"], given.get("params", {}))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": given["id"], **said}) + "\n")
        sys.stdout.flush()

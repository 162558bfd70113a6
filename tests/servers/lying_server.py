"""A server that breaks the protocol in one way, which its argument names: standard library only."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

IGNORED_S = 60


def send(message: object) -> None:
    """Write one message."""
    write(json.dumps(message) + "\n")


def write(text: str) -> None:
    """Write a text at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def reply(number: Any, result: object) -> None:
    """Answer a request."""
    send({"jsonrpc": "2.0", "id": number, "result": result})


def error(number: Any, said: object) -> None:
    """Answer a request with an error."""
    send({"jsonrpc": "2.0", "id": number, "error": said})


def flood(_number: Any) -> None:
    """Send notifications that nobody asked for."""
    for index in range(1_000_000):
        told = {"level": "info", "data": index}
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": told})


def junk(_number: Any) -> None:
    """Write text that is no message."""
    for _ in range(10_000):
        write("what I am doing\n")


def huge_line(number: Any) -> None:
    """Write a message without an end."""
    write(f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"x": "')
    for _ in range(20):
        write("y" * 1_000_000)
    time.sleep(IGNORED_S)


def death(_number: Any) -> None:
    """End in answer to a call."""
    sys.stderr.write("Traceback: no database\n")
    sys.exit(7)


def half_line(_number: Any) -> None:
    """End in the middle of a message."""
    write('{"jsonrpc": "2.0", "id": ')
    sys.exit(0)


def closed_output(_number: Any) -> None:
    """Close the output, and go on."""
    os.close(1)
    time.sleep(IGNORED_S)


def requests(_number: Any) -> None:
    """Ask the client many things at once."""
    for index in range(100):
        send({"jsonrpc": "2.0", "id": f"r{index}", "method": "elicitation/create"})
    time.sleep(IGNORED_S)


def twice(number: Any) -> None:
    """Answer twice."""
    for _ in range(2):
        reply(number, {"content": []})


def chunks(number: Any) -> None:
    """Write a message in single bytes."""
    text = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": [], "ü": "ü"}})
    for byte in text.encode() + b"\n":
        sys.stdout.buffer.write(bytes([byte]))
        sys.stdout.buffer.flush()


def errors(_number: Any) -> None:
    """Write to the standard error for ever."""
    while True:
        sys.stderr.write("x" * 1000 + "\n")


LIES: dict[str, Any] = {
    "other id": lambda number: reply(number + 1000, {"content": []}),
    "boolean id": lambda _number: reply(number=True, result={"content": []}),
    "text id": lambda number: reply(str(number), {"content": []}),
    "no result": lambda number: reply(number, "a text"),
    "error": lambda number: error(number, {"code": -32602, "message": "no such"}),
    "odd error": lambda number: error(number, "broken"),
    "no answer": lambda _number: None,
    "flood": flood,
    "junk": junk,
    "huge line": huge_line,
    "death": death,
    "half line": half_line,
    "closed output": closed_output,
    "requests": requests,
    "twice": twice,
    "chunks": chunks,
    "errors": errors,
}

START_LIES = {f"{how} at the start": lie for how, lie in LIES.items()} | {
    "other version at the start": lambda number: reply(number, {"protocolVersion": "1999-01-01"}),
}
"""Told once the folder has the file `begun.txt`, so that an instance before that is honest."""


def main(how: str) -> None:
    """Serve until the end of the input."""
    if how == "greeting":
        write("Welcome! Listening on stdio.\n[]\n\n")
    if how == "deaf":
        sys.stdin.readline()
        time.sleep(IGNORED_S)
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        number, method = message.get("id"), message["method"]
        if number is None:
            continue
        if method == "initialize" and how in START_LIES and Path("begun.txt").exists():
            START_LIES[how](number)
        elif method == "initialize":
            terms = {"protocolVersion": "2025-11-25", "capabilities": {}}
            reply(number, {**terms, "serverInfo": {"name": "liar", "version": "0"}})
        elif method == "tools/list":
            tools = [{"name": "lie", "inputSchema": {"type": "object"}}]
            reply(number, {"tools": tools})
        elif method == "tools/call" and how in LIES:
            LIES[how](number)
        elif method == "tools/call":
            reply(number, {"content": [{"type": "text", "text": how}]})
        else:
            error(number, {"code": -32601, "message": method})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "honest")

"""A server of the standard library that asks its client: `python3 asking_server.py [modern]`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

MODERN = "modern" in sys.argv
STATE = "a state of the server 0815"
DONE = Path("done.txt")
TOKEN = os.environ.get("ASKING_TOKEN")
PICTURE = "iVBORw0KGgo="


def note(line: str) -> None:
    """Note an effect in the folder."""
    with DONE.open("a") as done:
        done.write(line + "\n")


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def form(message: str) -> dict[str, Any]:
    """A question with a form of one field."""
    schema = {"type": "object", "properties": {"seats": {"type": "integer"}}}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def url() -> dict[str, Any]:
    """A question that a page answers."""
    params = {
        "mode": "url",
        "message": "Sign in",
        "url": "https://example.com/",
        "elicitationId": "7",
    }
    return {"method": "elicitation/create", "params": params}


def sampling(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request for a model."""
    given = [{"role": role, "content": content} for role, content in messages]
    params = {"messages": given, "systemPrompt": f"Be {TOKEN}", "maxTokens": 5, **more}
    return {"method": "sampling/createMessage", "params": params}


def said(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


QUESTIONS = {
    "book": [form("Book it?")],
    "twice": [form("First?"), form("Second?")],
    "visit": [url()],
    "sample": [sampling(("user", said("hi")))],
    "sample_all": [
        sampling(
            ("user", said("hi")),
            ("assistant", [said("yes"), said("sir")]),
            ("user", [said("see"), {"type": "image", "data": PICTURE, "mimeType": "image/png"}]),
            maxTokens=1_000_000,
            temperature=0.5,
            stopSequences=["END"],
        )
    ],
    "sample_tools": [sampling(("user", said("hi")), tools=[{"name": "x", "inputSchema": {}}])],
    "sample_huge": [sampling(("user", said("x" * 2_000_000)))],
    "sample_nothing": [sampling()],
    "sample_sound": [
        sampling(("user", {"type": "audio", "data": PICTURE, "mimeType": "audio/wav"}))
    ],
    "roots": [{"method": "roots/list"}],
    "silent": [],
    "leak": [form(f"Is it {TOKEN}?")],
}


def ask(request: dict[str, Any], number: int) -> dict[str, Any]:
    """Ask a client of the handshake's era, and wait for its answer."""
    send({"id": f"q{number}", **request})
    for line in iter(sys.stdin.readline, ""):
        given = json.loads(line)
        if given.get("id") == f"q{number}":
            return given.get("result") or given["error"]
        if "id" in given and "method" in given:
            send({"id": given["id"], "error": {"code": -32603, "message": "busy asking"}})
    sys.exit(0)


def call(params: dict[str, Any]) -> dict[str, Any]:
    """The result of a call; the effect is noted with the answers."""
    name, questions = params["name"], QUESTIONS[params["name"]]
    if MODERN:
        done = int((params.get("requestState") or "0").removeprefix(STATE) or 0)
        answers = [params["inputResponses"]["q"]] if done else []
        if done < len(questions):
            state = f"{STATE}{done + 1}"
            needed = {"inputRequests": {"q": questions[done]}, "requestState": state}
            return {"resultType": "input_required", **needed}
    else:
        note(f"{name} began")
        answers = [ask(each, number) for number, each in enumerate(questions)]
    note(f"{name} {json.dumps(params.get('arguments', {}), sort_keys=True)}")
    said = json.dumps(answers[-1:], sort_keys=True)
    return {"resultType": "complete", "content": [{"type": "text", "text": said}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result or the error of a request."""
    if method == "server/discover" and MODERN:
        versions = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return {"result": {**versions, "serverInfo": {"name": "asking", "version": "1"}}}
    if method == "initialize" and not MODERN:
        terms = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {"result": {**terms, "serverInfo": {"name": "asking", "version": "1"}}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"day": {"type": "string"}}}
        return {"result": {"tools": [{"name": each, "inputSchema": schema} for each in QUESTIONS]}}
    if method == "tools/call":
        return {"result": call(params)}
    return {"error": {"code": -32601, "message": f"no {method}"}}


for line in iter(sys.stdin.readline, ""):
    given = json.loads(line)
    if "id" in given and "method" in given:
        send({"id": given["id"], **answer(given["method"], given.get("params", {}))})

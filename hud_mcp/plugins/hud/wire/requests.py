"""Requests and replies of the control channel as the wire has them."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from hud_mcp.environment.prompt import Prompt
from hud_mcp.plugins.hud.wire.frames import FRAME_BYTES, encode_frame
from hud_mcp.record.values import Receipt
from hud_mcp.session.session import Session
from hud_mcp.values.call import CANCEL_TASK, LIST_TASKS, RESPONSE, START_TASK, TASK_STATUS
from hud_mcp.values.grade import Cause, Outcome, cause_of

INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32600, -32601, -32602, -32603
FAILED, UNAUTHORIZED = -32000, -32001


class RpcError(Exception):
    """The error reply to a request."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def read_request(frame: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a request's method and parameters; RpcError says that one is missing or wrong."""
    method, params = frame.get("method"), frame.get("params")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "a request has a `method`, a string")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, f"{method}: `params` is an object")
    return method, cast("dict[str, Any]", params or {})


def error(code: int, text: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the reply to a request that failed."""
    said = {"code": code, "message": text or "it failed, and nothing is known of why"}
    return {"error": {**said, "data": data} if data else said}


def fitting(frame: dict[str, Any]) -> bytes:
    """Return a reply as its line. If the line is too long for clients, it says so instead."""
    line = encode_frame(frame)
    if len(line) <= FRAME_BYTES:
        return line
    note = f"the reply has {len(line)} bytes, and a frame at most {FRAME_BYTES}"
    result: dict[str, Any] = frame.get("result", {})
    if "score" in result:  # the grade is sent; the record has the rest
        kept = {k: result[k] for k in ("score", "done", "trajectory", "graded_at")}
        return encode_frame({**frame, "result": {**kept, "content": f"{note}; the record has it"}})
    return encode_frame({"jsonrpc": "2.0", "id": frame["id"], **error(FAILED, note)})


def started(session: Session) -> dict[str, Any]:
    """Return a started task as the wire has it; its prompt is text, or messages."""
    prompt = session.prompt or Prompt(())
    shown: Any = [m.original or {"role": m.role, "content": m.text} for m in prompt.messages]
    if [(m.role, m.original) for m in prompt.messages] == [("user", None)]:
        shown = prompt.messages[0].text
    return {"trajectory": session.trajectory_id, **prompt.extra, "prompt": shown}


def known_of(receipt: Receipt | None) -> dict[str, Any]:
    """Return the data of an error about an ended session: its outcome and its stored grade."""
    if receipt is None:
        return {}
    known: dict[str, Any] = {"outcome": receipt.outcome.value}
    if receipt.said_cause:
        known["cause"] = cause_of(receipt.outcome, receipt.cause).value
    if receipt.outcome is Outcome.GRADED and receipt.reward is not None:
        known |= {"grade": graded(receipt), "answer_digest": receipt.answer_digest}
    return known


def graded(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt as the wire has it; `score` is the reward. Without one, raise RpcError."""
    if receipt.outcome is not Outcome.GRADED or receipt.reward is None:
        how = " ".join(part for part in (receipt.outcome.value, receipt.said_cause) if part)
        raise RpcError(FAILED, f"the task ended without a grade: {how}")
    frame: dict[str, Any] = {
        "score": float(receipt.reward),
        "done": True,
        "info": receipt.info,
        "trajectory": receipt.trajectory,
        "graded_at": receipt.ended_at.isoformat(),
    }
    if receipt.is_by_agent:
        frame["cause"] = Cause.AGENT.value
    if receipt.content is not None:
        frame["content"] = receipt.content
    if receipt.subscores:
        frame["subscores"] = [s.model_dump(mode="json") for s in receipt.subscores]
    return frame


_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LAST_PORT = 65_535


def check_greeting(params: Mapping[str, Any]) -> str | None:
    """Check a `hello`, and return its session id; RpcError names a field that cannot be."""
    wanted = params.get("session_id")
    if wanted is not None and not isinstance(wanted, str):
        raise RpcError(INVALID_PARAMS, "hello: 'session_id' must be a string")
    asked: str | None = None
    for name, check in _LISTS.items():
        given = params.get(name)
        if given is None:
            continue
        if not isinstance(given, list):
            raise RpcError(INVALID_PARAMS, f"hello: '{name}' must be a list")
        for number, each in enumerate(cast("list[Any]", given)):
            where = f"'{name}[{number}]'"
            if not isinstance(each, dict):
                raise RpcError(INVALID_PARAMS, f"hello: {where} must be an object")
            problem = check(cast("dict[str, Any]", each))
            if problem is not None:
                raise RpcError(INVALID_PARAMS, f"hello: {where}: {problem}")
            asked = asked or name
    if asked is not None:
        raise RpcError(FAILED, f"hello: this server cannot enforce '{asked}'; leave it out")
    return wanted


def _route_problem(given: Mapping[str, Any]) -> str | None:
    host, port = given.get("host"), given.get("port")
    if not _is_plain(given.get("capability")):
        return "'capability' must be the name of one"
    if not _is_plain(host) or any(sign.isspace() for sign in str(host)) or _is_address(str(host)):
        return "'host' must be a host's name"
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= _LAST_PORT:
        return f"'port' must be a whole number from 1 to {_LAST_PORT}"
    return None


def _connection_problem(given: Mapping[str, Any]) -> str | None:
    name, url, headers = given.get("name"), given.get("url"), given.get("headers")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "'name' must begin with a lower-case letter, then a to z, 0 to 9, _ and -"
    if not _is_plain(given.get("capability")):
        return "'capability' must be the name of one"
    if not isinstance(url, str) or not _is_upstream(url):
        return "'url' must be of http or https, with a host, and without credentials or a query"
    return _headers_problem(headers)


def _headers_problem(headers: Any) -> str | None:
    if not isinstance(headers, dict) or not headers:
        return "'headers' must be an object, and not empty"
    for key, value in cast("dict[str, Any]", headers).items():
        if not _HEADER.fullmatch(key) or not isinstance(value, str) or not value:
            return "'headers' must have texts by the names of headers"
        if "\r" in value or "\n" in value:
            return "'headers' must have texts of one line"
    return None


_LISTS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "workspace_routes": _route_problem,
    "connections": _connection_problem,
}


def _is_plain(given: Any) -> bool:
    return isinstance(given, str) and bool(given) and given == given.strip()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_upstream(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain


_METHODS: Mapping[str, str] = {
    START_TASK: "tasks.start",
    LIST_TASKS: "tasks.list",
    CANCEL_TASK: "tasks.cancel",
    TASK_STATUS: "tasks.grade with the same answer",
    RESPONSE: "tasks.grade",
}
"""The method of the wire for each tool that a text may name."""

_PLAIN = "|".join(name for name in _METHODS if name != RESPONSE)  # `response` is a plain word too
_TOOL = re.compile(
    rf"`({'|'.join(_METHODS)})`"
    rf"|\b({_PLAIN})\b"
    rf"|(?<=\bwith )({RESPONSE})\b"
)


def in_hud_words(text: str) -> str:
    """Replace the tools of MCP in an error text by the methods of the wire."""
    return _TOOL.sub(lambda found: _METHODS[next(filter(None, found.groups()))], text)

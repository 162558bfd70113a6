"""Newline-delimited JSON-RPC 2.0, without I/O: bytes to frames, frames to messages, and back.

Every fault here is a value (`NoMessage`), because each has its own answer on the wire and none of
them ends a connection.
"""

import json
import re
from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import orjson
from mcp.shared.dispatcher import as_request_id
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INVALID_REQUEST,
    PARSE_ERROR,
    RequestId,
)

from hud_mcp.base.lines import dump_line

JsonObject: TypeAlias = dict[str, Any]

_ID_BITS: Final = 63


class Request(NamedTuple):
    """A frame that expects an answer under `id`."""

    id: RequestId
    method: str
    params: JsonObject | None


class Notification(NamedTuple):
    """A frame that expects no answer."""

    method: str
    params: JsonObject | None


class Response(NamedTuple):
    """The client's answer to a request of ours: a result, or an error."""

    id: RequestId
    result: JsonObject | None
    error: JsonObject | None


class NoMessage(NamedTuple):
    """A frame that is not a message. The reply is this error, and the connection stays open."""

    id: RequestId | None
    code: int
    message: str


Message: TypeAlias = Request | Notification | Response

OURS: Final = "hud-mcp-"
"""The beginning of the ids of our own requests."""


_BATCH: Final = "a batch, which MCP does not have; send each message alone"
_TOKEN: Final = re.compile(rb'\s*("(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++(?=[\s,}\]]))')
_RESPONSE_KEYS: Final = frozenset((b'"result"', b'"error"'))


def request_id_in(head: bytes) -> RequestId | None:
    """Find the request id among the top-level members at the start of a frame.

    Args:
        head: The frame's first bytes; a token that they cut short is not read.

    Returns:
        The id; None if it is missing, invalid, or a response's.
    """
    found: RequestId | None = None
    depth = position = 0
    previous = key = b""
    while match := _TOKEN.match(head, position):
        token = match[1]
        position = match.end()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and token == b":":
            key = previous
            if key in _RESPONSE_KEYS:
                return None
        elif depth == 1 and previous == b":" and key == b'"id"':
            found = _id_or_none(token)
        previous = token
    return found


def _id_or_none(token: bytes) -> RequestId | None:
    try:
        return as_request_id(orjson.loads(token))
    except orjson.JSONDecodeError:
        return None


def _id_of_unread(line: bytes) -> RequestId | None:
    """Return the id of a request that is refused as a whole, so that its sender does not wait.

    A text that was cut in the middle of a character ends in a lone surrogate, which JavaScript and
    Python write as an escape and UTF-8 cannot hold.
    """
    try:
        body: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match body:
        case {"method": str(), "id": str(found)}:
            return found
        case {"method": str(), "id": int(found)} if found.bit_length() <= _ID_BITS:
            return as_request_id(found)
        case _:
            return None


def refuse_long(head: bytes, most_bytes: int) -> NoMessage:
    """Refuse a frame over the limit, of which only the first bytes are known."""
    text = f"Message too large: this server reads messages of up to {most_bytes} bytes"
    return NoMessage(request_id_in(head), INVALID_REQUEST, text)


def read_message(line: bytes) -> Message | NoMessage | None:
    """Read one frame.

    Integers beyond 64 bits become floats, as in every peer that is written in JavaScript.

    Args:
        line: One line, without its line feed.

    Returns:
        The message, or the error to answer. None for a response that none of our requests has:
        JSON-RPC has no answer to a response.
    """
    try:
        body: object = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        text = f"Parse error: the line is not valid JSON in UTF-8: {exc}"
        return NoMessage(_id_of_unread(line), PARSE_ERROR, text)
    if not isinstance(body, dict):
        kind = _BATCH if isinstance(body, list) else "no JSON object"
        return NoMessage(None, INVALID_REQUEST, f"Invalid request: the message is {kind}")
    members = cast("JsonObject", body)
    method, params = members.get("method"), members.get("params")
    if is_untidy(line):
        params = tidied(params)
    takes = params is None or isinstance(params, dict)
    if takes and isinstance(method, str) and members.get("jsonrpc") == "2.0":
        if "id" not in members:
            return Notification(method, params)
        message_id = as_request_id(members["id"])
        if message_id is not None:
            return Request(message_id, method, params)
    return _no_request(members, has_params=takes)


def _no_request(members: JsonObject, *, has_params: bool) -> Response | NoMessage | None:
    """Read a response, or describe the fault of a frame; None for a response to nobody."""
    message_id = as_request_id(members.get("id"))
    if "method" not in members and ("result" in members or "error" in members):
        if not isinstance(message_id, str) or not message_id.startswith(OURS):
            return None
        result, error = members.get("result"), members.get("error")
        read = (cast("JsonObject", v) if isinstance(v, dict) else None for v in (result, error))
        return Response(message_id, *read)
    if "method" not in members:
        problem = "it has no method"
    elif members.get("jsonrpc") != "2.0":
        problem = "jsonrpc is not '2.0'"
    elif not isinstance(members["method"], str):
        problem = "method is not a string"
    elif not has_params:
        problem = "params is not an object"
    else:
        problem = "id is neither a string nor an integer"
    return NoMessage(message_id, INVALID_REQUEST, f"Invalid request: {problem}")


def result_frame(request_id: RequestId, result: Mapping[str, Any]) -> bytes:
    """Write a request's result; as the others, raise ValueError for data beyond JSON."""
    return dump_line({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_frame(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """Write a request's error; `data` is left out when it is None."""
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return dump_line({"jsonrpc": "2.0", "id": request_id, "error": error})


def notification_frame(method: str, params: Mapping[str, Any] | None, **more: Any) -> bytes:
    """Write a notification, or with an `id` a request of ours, without `params` that are None."""
    more |= {} if params is None else {"params": params}
    return dump_line({"jsonrpc": "2.0", "method": method, **more})


_CAPABILITIES = frozenset({"capabilities", CLIENT_CAPABILITIES_META_KEY})
_OBJECTS = _CAPABILITIES | {"_meta", "arguments", "clientInfo", "context"}
"""The members of params that are objects: `[]` there is an empty object."""
_OPTIONAL_META = frozenset({"progressToken", CLIENT_INFO_META_KEY})


def is_untidy(body: bytes) -> bool:
    """Whether a message's params may have parts that count as absent."""
    return b"[]" in body or b"[ ]" in body or b"null" in body


def tidied(params: Any) -> Any:
    """Return the params of a message without the parts that count as absent.

    Args:
        params: The params. `[]` means no params, and an empty object in a member that is an object.
            `null` means no progress token.
    """
    if params == [] or params is None:
        return None
    if not isinstance(params, dict):
        return params
    kept = _objects(cast("JsonObject", params), _OBJECTS)
    meta = kept.get("_meta")
    if isinstance(meta, dict):
        told = _objects(cast("JsonObject", meta), _OBJECTS)
        absent = {name for name in _OPTIONAL_META if name in told and told[name] is None}
        kept["_meta"] = {name: value for name, value in told.items() if name not in absent}
    return kept


def _objects(members: JsonObject, names: Container[str]) -> JsonObject:
    """Return members with an empty object for each `[]`, also in each capability."""
    kept: JsonObject = {}
    for name, value in members.items():
        if value == [] and name in names:
            kept[name] = {}
        elif name in _CAPABILITIES and isinstance(value, dict):
            each = cast("JsonObject", value)
            kept[name] = _objects(each, each)
        else:
            kept[name] = value
    return kept

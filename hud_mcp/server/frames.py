"""Newline-delimited JSON-RPC 2.0, without I/O: bytes to frames, frames to messages, and back.

Everything that goes wrong here is a value (`Refusal`), because each failure has its own answer on
the wire and none of them ends a connection.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import orjson
from mcp_types import INVALID_REQUEST, PARSE_ERROR, RequestId
from pydantic_core import to_jsonable_python

JsonObject: TypeAlias = dict[str, Any]

_HEAD_BYTES: Final = 1024
_ENTRY_BYTES: Final = 256
_BLANK: Final = b" \t\r"
_DUMP: Final = orjson.OPT_APPEND_NEWLINE
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
    """The peer's answer to a request of ours: a `result`, or else an `error` object."""

    id: RequestId | None
    result: JsonObject | None
    error: JsonObject | None


class Refusal(NamedTuple):
    """A frame that is no message. It is answered with this error, and the connection lives on."""

    id: RequestId | None
    code: int
    message: str


Message: TypeAlias = Request | Notification | Response


class FrameSplitter:
    """Cuts a byte stream into lines and never holds more than one line's limit.

    A line over the limit yields one `Refusal` at the moment it passes the limit; the rest of it is
    dropped as it arrives. Blank lines yield nothing.

    Args:
        max_frame_bytes: The longest line, without its line feed.
    """

    __slots__ = ("_discarding", "_held", "_max", "_parts")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max = max_frame_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._discarding = False

    def feed(self, data: bytes) -> Iterator[bytes | Refusal]:
        """Take in a chunk and yield each line that it completes, or a refusal in its place.

        The chunk is consumed as the iterator advances, so exhaust it before the next call.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._end_line(data[start:end])
            start = end + 1
        if start < len(data):
            yield from self._hold(data[start:] if start else data)

    def finish(self) -> Iterator[bytes | Refusal]:
        """Yield what the stream's end completes: a last line that has no line feed."""
        yield from self._end_line(b"")

    def _end_line(self, tail: bytes) -> Iterator[bytes | Refusal]:
        if self._discarding:
            self._discarding = False
            return
        if self._held + len(tail) > self._max:
            yield self._oversized(tail)
            return
        line = tail
        if self._parts:
            line = b"".join((*self._parts, tail))
            self._parts.clear()
            self._held = 0
        if line.strip(_BLANK):
            yield line

    def _hold(self, part: bytes) -> Iterator[bytes | Refusal]:
        if self._discarding:
            return
        if self._held + len(part) > self._max:
            yield self._oversized(part)
            self._discarding = True
            return
        self._parts.append(part)
        self._held += len(part)

    def _oversized(self, tail: bytes) -> Refusal:
        head = b""
        for part in (*self._parts, tail):
            head += part[: _HEAD_BYTES - len(head)]
            if len(head) == _HEAD_BYTES:
                break
        self._parts.clear()
        self._held = 0
        text = f"Message too large: this server reads messages of up to {self._max} bytes"
        return Refusal(request_id_in(head), INVALID_REQUEST, text)


class Backlog:
    """Messages that wait for their turn: first in, first out; a request can be taken out by id.

    Attributes:
        size_bytes: What the waiting messages weigh: their frames, and a constant for each.
    """

    __slots__ = ("_entries", "size_bytes")

    def __init__(self) -> None:
        self._entries: OrderedDict[object, tuple[Request | Notification, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._entries

    def put(self, message: Request | Notification, frame_bytes: int) -> None:
        """Add a message at the end; a request's id must not be in the backlog already."""
        key: object = message.id if isinstance(message, Request) else object()
        self._entries[key] = (message, frame_bytes)
        self.size_bytes += frame_bytes + _ENTRY_BYTES

    def take(self) -> Request | Notification:
        """Remove and return the first message.

        Raises:
            KeyError: The backlog is empty.
        """
        _, (message, frame_bytes) = self._entries.popitem(last=False)
        self.size_bytes -= frame_bytes + _ENTRY_BYTES
        return message

    def drop(self, request_id: RequestId) -> bool:
        """Remove a request; False if it does not wait here."""
        entry = self._entries.pop(request_id, None)
        if entry is None:
            return False
        self.size_bytes -= entry[1] + _ENTRY_BYTES
        return True


_TOKEN: Final = re.compile(rb'\s*("(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++(?=[\s,}\]]))')
_RESPONSE_KEYS: Final = frozenset((b'"result"', b'"error"'))


def request_id_in(head: bytes) -> RequestId | None:
    """Find the request id among the top-level members at the start of a frame.

    Args:
        head: The frame's first bytes; a token that they cut short is not read.

    Returns:
        The id, or None where it is not there, is no valid id, or belongs to a response.
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
    """The id of a request that is refused as a whole, so that whoever sent it does not wait.

    A text that was cut in the middle of a character ends in a lone surrogate, which JavaScript and
    Python write as an escape and UTF-8 cannot hold.
    """
    try:
        body: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    request = cast("JsonObject", body)
    found = as_request_id(request.get("id")) if isinstance(request.get("method"), str) else None
    return None if isinstance(found, int) and found.bit_length() > _ID_BITS else found


def as_request_id(value: object) -> RequestId | None:
    """Narrow a JSON value to a request id; a bool is none, although Python calls it an int."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    return None


def read_message(line: bytes) -> Message | Refusal | None:
    """Read one frame.

    Integers beyond 64 bits arrive as floats, as they do in every peer that is written in
    JavaScript.

    Args:
        line: One line, without its line feed.

    Returns:
        The message, or what to answer instead, or None for a malformed response, to which
        JSON-RPC has no answer.
    """
    try:
        body: object = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        text = f"Parse error: the line is not valid JSON in UTF-8: {exc}"
        return Refusal(_id_of_unread(line), PARSE_ERROR, text)
    if not isinstance(body, dict):
        kind = "a batch" if isinstance(body, list) else "no JSON object"
        return Refusal(None, INVALID_REQUEST, f"Invalid request: the message is {kind}")
    return _classify(cast("JsonObject", body))


def _classify(body: JsonObject) -> Message | Refusal | None:
    message_id = as_request_id(body.get("id"))
    if "method" not in body:
        if "result" in body or "error" in body:
            return _response(message_id, body)
        return Refusal(message_id, INVALID_REQUEST, "Invalid request: it has no method")
    method, params = body["method"], body.get("params")
    if body.get("jsonrpc") != "2.0":
        problem = "jsonrpc is not '2.0'"
    elif not isinstance(method, str):
        problem = "method is no string"
    elif params is not None and not isinstance(params, dict):
        problem = "params is no object"
    elif "id" not in body:
        return Notification(method, cast("JsonObject | None", params))
    elif message_id is None:
        problem = "id is neither a string nor an integer"
    else:
        return Request(message_id, method, cast("JsonObject | None", params))
    return Refusal(message_id, INVALID_REQUEST, f"Invalid request: {problem}")


def _response(message_id: RequestId | None, body: JsonObject) -> Response | None:
    result, error = body.get("result"), body.get("error")
    if isinstance(error, dict):
        return Response(message_id, None, cast("JsonObject", error))
    if isinstance(result, dict):
        return Response(message_id, cast("JsonObject", result), None)
    return None


def result_frame(request_id: RequestId, result: Mapping[str, Any]) -> bytes:
    """Write a request's result.

    Raises:
        ValueError: The result holds what JSON cannot carry.
    """
    return _dump({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_frame(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """Write a request's error; `data` is left out when it is None.

    Raises:
        ValueError: The data hold what JSON cannot carry.
    """
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return _dump({"jsonrpc": "2.0", "id": request_id, "error": error})


def request_frame(request_id: RequestId, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Write a request of ours; `params` are left out when they are None or empty.

    Raises:
        ValueError: The params hold what JSON cannot carry.
    """
    frame: JsonObject = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params:
        frame["params"] = params
    return _dump(frame)


def notification_frame(method: str, params: Mapping[str, Any] | None) -> bytes:
    """Write a notification; `params` are left out when they are None.

    Raises:
        ValueError: The params hold what JSON cannot carry.
    """
    frame: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        frame["params"] = params
    return _dump(frame)


def _dump(frame: JsonObject) -> bytes:
    try:
        return orjson.dumps(frame, option=_DUMP)
    except orjson.JSONEncodeError:
        return _dump_anything(frame)


def _dump_anything(frame: JsonObject) -> bytes:
    """Write what orjson refuses: models, keys that are no strings, big integers, lone surrogates.

    A lone surrogate, which is not text in any encoding, becomes a question mark.
    """
    try:
        plain = to_jsonable_python(frame, inf_nan_mode="null", bytes_mode="base64")
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not representable as JSON: {error}") from error
    return text.encode(errors="replace") + b"\n"

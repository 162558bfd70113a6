"""What a line of a byte stream is taken for, and what is written back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.server.stdio.frames import (
    NoMessage,
    Notification,
    Request,
    Response,
    error_frame,
    notification_frame,
    read_message,
    refuse_long,
    request_id_in,
    result_frame,
)

LINE = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"a\xc3\xa9\\n"}}'

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def test_a_line_over_the_limit_is_refused_under_its_id() -> None:
    """The refusal names the limit, and whoever sent the line knows that it is meant."""
    no_message = refuse_long(LINE[:50], 40)
    assert (no_message.id, no_message.code) == (7, -32600)
    assert "up to 40 bytes" in no_message.message


@each_of(
    ("head", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":"', 5),
        (b'{"method":"x","params":{"id":4,"s":"\\"}"},"id":"a\\u0041","x', "aA"),
        (b'{"params":{"id":4},"method":"', None),
        (b'{"id":12', None),
        (b'{"id":true,"method"', None),
        (b'{"id":null,"method"', None),
        (b'{"id":1.5,"method"', None),
        (b'{"id":3,"result":{"', None),
        (b'{"error":{},"id":3,', None),
        (b'[{"id":3,"method"', None),
        (b'"id":3,', None),
        (b"", None),
        (b"\xff\xfe{", None),
    ],
)
def test_the_id_is_found_among_the_top_members_only(
    head: bytes, request_id: int | str | None
) -> None:
    """An id inside the params, cut short or of a response is not the request's."""
    assert request_id_in(head) == request_id


@settings(max_examples=40)
@given(
    st.dictionaries(st.text(max_size=8), json_values),
    st.integers(-(2**63), 2**64 - 1) | st.text(),
)
def test_the_id_of_any_request_is_found(params: dict[str, Any], request_id: int | str) -> None:
    """A complete frame is only a longer head."""
    body = {"params": params, "id": request_id, "method": "x"}
    assert request_id_in(json.dumps(body).encode()) == request_id


@each_of(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', Request(1, "m", None)),
        (b'{"jsonrpc":"2.0","id":"1","method":"m","params":{"a":1}}', Request("1", "m", {"a": 1})),
        (b'{"jsonrpc":"2.0","method":"m","params":null}', Notification("m", None)),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}', None),
        (b'{"jsonrpc":"2.0","id":1,"result":3}', None),
        (b'{"jsonrpc":"2.0","id":"hud-mcp-1","result":{}}', Response("hud-mcp-1", {}, None)),
    ],
)
def test_a_message_is_read(line: bytes, expected: object) -> None:
    """Requests and notifications are told apart by their members; a stray response is nothing."""
    assert read_message(line) == expected


@each_of(
    ("line", "request_id", "code"),
    [
        (b"hello", None, -32700),
        (b'{"id":1', None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":NaN}', None, -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', None, -32600),
        (b"[]", None, -32600),
        (b"3", None, -32600),
        (b"null", None, -32600),
        (b"{}", None, -32600),
        (b'{"jsonrpc":"2.0","id":1}', 1, -32600),
        (b'{"id":1,"method":"m"}', 1, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1' + b"0" * 400 + b',"method":"m"}', None, -32700),
    ],
)
def test_what_is_no_message_is_refused(line: bytes, request_id: object, code: int) -> None:
    """JSON that cannot be read is a parse error, and the rest an invalid request with its id."""
    no_message = read_message(line)
    assert isinstance(no_message, NoMessage)
    assert (no_message.id, no_message.code) == (request_id, code)


@pytest.mark.parametrize("id_first", [True, False])
def test_a_request_with_half_a_character_is_refused_under_its_id(*, id_first: bool) -> None:
    """Whoever sent it is told what is wrong, and does not wait for an answer that never comes."""
    params = {"name": "response", "arguments": {"answer": "cut \ud83d"}}
    rest = {"method": "tools/call", "params": params, "jsonrpc": "2.0"}
    body = {"id": 7, **rest} if id_first else {**rest, "id": 7}
    no_message = read_message(json.dumps(body).encode())
    assert isinstance(no_message, NoMessage)
    assert (no_message.id, no_message.code) == (7, -32700)
    assert "surrogate" in no_message.message


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_reading_never_raises(line: bytes) -> None:
    """Whatever a line holds, it is a message, a refusal or nothing."""
    assert isinstance(read_message(line), Request | Notification | Response | NoMessage | None)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=8), json_values))
def test_every_frame_is_one_line_that_reads_back(value: dict[str, Any]) -> None:
    """No value breaks a frame in two."""
    frames = [result_frame(1, value), notification_frame("m", value)]
    assert [frame.count(b"\n") for frame in frames] == [1, 1]
    assert all(frame.endswith(b"\n") for frame in frames)
    assert json.loads(frames[0]) == {"jsonrpc": "2.0", "id": 1, "result": value}
    assert read_message(frames[1]) == Notification("m", value)


def test_an_error_without_data_has_no_data_member() -> None:
    """The data are left out, not null."""
    assert json.loads(error_frame(None, -1, "no")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no"},
    }


def test_what_the_fast_writer_refuses_is_written_by_the_slow_one() -> None:
    """Keys that are no strings, integers of any size and lone surrogates do not fail a result."""
    frame = result_frame(1, {"a": {1: 2**80}, "b": "\ud83d", "c": float("nan")})
    assert json.loads(frame)["result"] == {"a": {"1": 2**80}, "b": "?", "c": None}


def test_what_json_cannot_carry_is_a_value_error() -> None:
    """The caller can answer with an error instead."""
    with pytest.raises(ValueError, match="object"):
        result_frame(1, {"a": object()})
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(ValueError, match="ircular"):
        result_frame(1, endless)

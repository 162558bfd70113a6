"""What the client sends and believes, without a connection."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp_client.errors import CallRefused, ConnectionFailed, Unauthorized
from hud_mcp_client.wire import LEGACY, MODERN, Arrived, Fault, Pause, Reader, Send, Wire

REPLY = {"jsonrpc": "2.0", "id": 7, "result": {"text": "ä\u2028\u0085\x0bß"}}
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}


def stream(*messages: Any, ascii_only: bool) -> str:
    """Messages as server-sent events."""
    parts = [json.dumps(each, ensure_ascii=ascii_only) for each in messages]
    return ": hello\r\n\r\n" + "".join(f"event: message\r\ndata: {part}\r\n\r\n" for part in parts)


@given(st.lists(st.integers(0, 400)), st.booleans())
def test_a_reply_is_found_wherever_the_stream_is_cut(cuts: list[int], ascii_only: bool) -> None:  # noqa: FBT001
    """Signs of life, replies to others and the separators of Unicode do not hide it."""
    other = {**REPLY, "id": 6}
    text = stream(PROGRESS, other, REPLY, ascii_only=ascii_only)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    reader = Reader(7)
    found = [reader.feed(text[a:b]) for a, b in itertools.pairwise(edges)]
    assert [each for each in found if each is not None] == [REPLY]


class Served:
    """Plays a server of some answers against a piece of work, in no time."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Send] = []
        self.pauses = 0

    def perform(self, work: Any) -> Any:
        """Perform it, and return what it returns."""
        came: Any = None
        while True:
            try:
                todo = work.send(came)
            except StopIteration as stop:
                return stop.value
            came = None
            if isinstance(todo, Pause):
                self.pauses += 1
            else:
                self.sent.append(todo)
                answer = self.answers.pop(0)
                came = answer(todo) if callable(answer) else answer

    @property
    def methods(self) -> list[str]:
        """What was asked, in order."""
        return [json.loads(each.body)["method"] if each.body else each.method for each in self.sent]


def result(value: Any, **headers: str) -> Any:
    """A server that answers a request."""
    return lambda sent: Arrived(200, headers, {"jsonrpc": "2.0", "id": sent.id, "result": value})


MODERN_HELLO = result({"supportedVersions": [MODERN]})
LEGACY_HELLO = result({"protocolVersion": LEGACY}, **{"mcp-session-id": "c1"})
NOTED = Arrived(202)
DONE = result({"content": [{"type": "text", "text": "done"}]})


def wire(protocol: Any = "auto", retry_s: float = 60.0) -> Wire:
    """A wire to a server."""
    return Wire("the server", token=None, protocol=protocol, retry_s=retry_s)


def test_the_newest_era_is_spoken_where_the_server_knows_it() -> None:
    """Every request then has the era, the method and the tool in its headers."""
    served = Served(MODERN_HELLO, DONE)
    assert served.perform(wire().call_tool("look", {}, repeats=True)).text == "done"
    assert served.methods == ["server/discover", "tools/call"]
    headers = served.sent[1].headers
    assert headers["MCP-Protocol-Version"] == MODERN
    assert (headers["Mcp-Method"], headers["Mcp-Name"]) == ("tools/call", "look")


def test_an_older_server_is_spoken_to_in_its_own_era() -> None:
    """It refuses the question of the newest; then a connection is opened, and kept."""
    refusal = Arrived(400, {}, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600}})
    served = Served(refusal, LEGACY_HELLO, NOTED, DONE, DONE, Arrived(200))
    there = wire()
    served.perform(there.call_tool("look", {}, repeats=True))
    served.perform(there.call_tool("look", {}, repeats=True))
    served.perform(there.leave())
    assert served.methods == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
        "DELETE",
    ]
    assert served.sent[-2].headers["Mcp-Session-Id"] == "c1"


def test_a_connection_that_the_server_forgot_is_opened_again() -> None:
    """A 404 says that nothing was done, so even what must not be repeated is sent again."""
    served = Served(LEGACY_HELLO, NOTED, Arrived(404), LEGACY_HELLO, NOTED, DONE)
    there = wire(LEGACY)
    assert served.perform(there.call_tool("sell", {}, repeats=False)).text == "done"


@each_of(
    "lost",
    [
        Fault("ReadError", sent=True),
        Arrived(200),
        Arrived(502),
        Arrived(200, {}, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000}}),
    ],
    ids=["broken", "cut", "gateway", "leaving"],
)
def test_only_what_may_be_repeated_is_sent_again(lost: Any) -> None:
    """Where the server may have done the call, another one raises."""
    served = Served(MODERN_HELLO, lost, DONE)
    assert served.perform(wire().call_tool("look", {}, repeats=True)).text == "done"
    assert served.pauses == 1
    with pytest.raises(ConnectionFailed, match="not sent twice"):
        Served(MODERN_HELLO, lost).perform(wire().call_tool("sell", {}, repeats=False))


@each_of(
    ("answer", "error", "text"),
    [
        (Arrived(401, {}, None, "{}"), Unauthorized, "wants a token"),
        (Arrived(413, {}, None, "no"), CallRefused, "as large"),
        (Arrived(404, {}, None, "Not Found"), CallRefused, "does not speak MCP"),
        (Arrived(200, {}, None, "<html>"), CallRefused, "does not speak MCP"),
    ],
)
def test_what_is_no_reply_says_what_to_look_at(
    answer: Arrived, error: type[Exception], text: str
) -> None:
    """A wrong token, a page, a wrong path: nothing of it is tried again."""
    with pytest.raises(error, match=text):
        Served(answer, answer).perform(wire().call_tool("look", {}, repeats=True))


def test_patience_ends() -> None:
    """The error says why, and that the session can be resumed."""
    fault = Fault("ConnectError", sent=False)
    with pytest.raises(ConnectionFailed, match=r"ConnectError.*resume the session"):
        Served(fault).perform(wire(retry_s=0.0).call_tool("look", {}, repeats=True))


def test_the_tag_of_a_replica_is_returned_with_the_next_call_of_its_session() -> None:
    """A later reply corrects it; what is no tag, or is of another session, goes into no header."""
    tags = ("a", "b", "x\r\nHost: evil", 7, None)
    served = Served(
        MODERN_HELLO, *(result({"_meta": {"hud-mcp/replica": t}}) for t in tags), result({})
    )
    wire = Wire("it", token=None, protocol="auto", retry_s=1)
    for _ in range(len(tags)):
        served.perform(wire.call_tool("step", {"session": "s"}, repeats=True))
    served.perform(wire.call_tool("step", {"session": "other"}, repeats=True))
    sent = [each.headers.get("Hud-Mcp-Replica") for each in served.sent]
    assert sent == [None, None, "a", "b", "b", "b", None]

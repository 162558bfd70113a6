"""A reply is the same turn, streamed or not, however its bytes come."""

import copy
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import DIALECT_NAMES, EXCHANGES, STREAM, WHOLE, Exchange, exchanges, read, told

from hud_mcp.plugins.models.gateway.dialects import ReadTurn
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS
from hud_mcp.plugins.models.gateway.dialects.replies import REPLY_BYTES

STREAMS = [each for each in EXCHANGES if each.events is not None]
BODIES = [each for each in EXCHANGES if each.whole is not None]
PINGS = ': OPENROUTER PROCESSING\n\nevent: ping\ndata: {"type": "ping"}\n\nid: 7\nretry: 3\n'


def about(each: Exchange) -> str:
    """Name an exchange."""
    return f"{each.name}: {each.about}"


def streamed(each: Exchange, data: bytes, size: int = 10**9) -> tuple[ReadTurn, bool, int]:
    """Read a stream; return its turn, whether it was whole, and how many bytes went on at once."""
    reader = each.dialect.reader(each.asked(), 200, STREAM)
    went = read(reader, data, size)
    return reader.turn(), reader.is_complete, went


@pytest.mark.parametrize("each", STREAMS, ids=about)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_stream_is_one_turn_however_it_is_cut(each: Exchange, size: int) -> None:
    """Chunks end inside of characters, names and line ends."""
    turn, is_complete, _ = streamed(each, each.stream(), size)
    assert told(turn) == each.turn
    assert is_complete is not each.is_broken


@pytest.mark.parametrize("each", STREAMS, ids=about)
@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 5])
def test_a_stream_may_have_any_line_end_and_signs_of_life(
    each: Exchange, newline: str, size: int
) -> None:
    """Comments, pings, ids, a byte order mark: none of them is of the turn."""
    data = each.stream(newline, between=PINGS.replace("\n", newline))
    turn, _, _ = streamed(each, b"\xef\xbb\xbf" + data, size)
    assert told(turn) == each.turn


@pytest.mark.parametrize("each", BODIES, ids=about)
def test_a_reply_without_a_stream_is_the_same_turn(each: Exchange) -> None:
    """It goes on at its end, and not before the turn is recorded."""
    reader = each.dialect.reader(each.asked(), each.status, WHOLE)
    assert read(reader, each.plain(), 11) == 0
    assert told(reader.turn()) == each.turn


@pytest.mark.parametrize("each", [each for each in STREAMS if not each.is_broken], ids=about)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_end_of_a_stream_waits_for_the_record_and_its_begin_does_not(
    each: Exchange, newline: str
) -> None:
    """Each event before the last goes on as soon as it is whole, and none in parts."""
    blank = (newline * 2).encode()
    reader = each.dialect.reader(each.asked(), 200, STREAM)
    events = [event + blank for event in each.stream(newline).split(blank)[:-1]]
    last_name = events[-1].partition(newline.encode())[0] + newline.encode()
    assert each.dialect.reader(each.asked(), 200, STREAM).feed(last_name) == 0
    went = [reader.feed(event) for event in events]
    last = next(number for number, each_went in enumerate(went) if not each_went)
    assert last > 0 or len(events) == 1
    assert went[:last] == [len(event) for event in events[:last]]
    assert not any(went[last:])
    reader.end()
    assert reader.is_complete


@pytest.mark.sampled(1)
@pytest.mark.parametrize("each", [each for each in STREAMS if not each.is_broken], ids=about)
@settings(max_examples=50)
@given(data=st.data())
def test_a_stream_that_breaks_off_is_a_part_of_its_turn(
    each: Exchange, data: st.DataObject
) -> None:
    """It is complete only where its last event came; nothing in it is invented."""
    whole = each.stream()
    cut = data.draw(st.integers(0, len(whole) - 1))
    size = data.draw(st.integers(1, 50))
    turn, is_complete, went = streamed(each, whole[:cut], size)
    assert went <= cut
    assert (each.turn["text"] or "").startswith(turn.text or "")
    assert (each.turn["reasoning"] or "").startswith(turn.reasoning or "")
    assert len(turn.calls) <= len(each.turn["calls"])
    if is_complete:
        assert turn.stop_reason == each.turn["stop_reason"]
        assert told(turn)["calls"] == each.turn["calls"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**30) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def altered(value: Any, path: list[int], put: Any) -> Any:
    """Return a JSON value with another one put somewhere into it."""
    if not path or not isinstance(value, dict | list) or not value:
        return put
    changed: Any = copy.copy(value)  # pyright: ignore[reportUnknownArgumentType]
    names: list[Any] = list(changed if isinstance(changed, dict) else range(len(changed)))
    name = names[path[0] % len(names)]
    changed[name] = altered(changed[name], path[1:], put)
    return changed


PATHS = st.lists(st.integers(0, 40), min_size=1, max_size=7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("each", EXCHANGES, ids=about)
@settings(max_examples=60)
@given(path=PATHS, put=JSON, at=st.integers(0, 50))
def test_a_provider_may_write_anything(each: Exchange, path: list[int], put: Any, at: int) -> None:
    """A wrong type in any place of a reply is passed over."""
    asked = each.asked()
    reader = each.dialect.reader(asked, each.status, WHOLE)
    read(reader, json.dumps(altered(each.whole, path, put)).encode())
    reader.turn()
    if each.events:
        events = list(each.events)
        events[at % len(events)] = altered(events[at % len(events)], path, put)
        changed = dataclasses.replace(each, events=events)
        streamed(each, changed.stream())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", DIALECT_NAMES)
@settings(max_examples=60)
@given(data=st.binary(max_size=200), size=st.integers(1, 9), status=st.sampled_from([200, 500]))
def test_no_bytes_break_a_reader(name: str, data: bytes, size: int, status: int) -> None:
    """No more bytes go on than came."""
    each = exchanges(name)[0]
    for kind in (STREAM, WHOLE, ""):
        reader = each.dialect.reader(each.asked(), status, kind)
        assert read(reader, data, size) <= len(data)
        reader.turn()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", DIALECT_NAMES)
@pytest.mark.parametrize("kind", [STREAM, WHOLE])
def test_a_reply_without_end_passes_and_is_not_kept(name: str, kind: str) -> None:
    """Past the bound all bytes go on, and the turn says that it was not read whole."""
    each = exchanges(name)[0]
    reader = each.dialect.reader(each.asked(), 200, kind)
    chunk, fed, went = b"data: " + b"x" * 1_048_576, 0, 0
    while went == 0:
        fed += len(chunk)
        went += reader.feed(chunk)
        assert fed <= REPLY_BYTES + len(chunk)
    assert went == fed
    assert reader.feed(b"more\n\n") == len(b"more\n\n")
    reader.end()
    assert reader.turn().is_too_long
    assert not reader.is_complete


@pytest.mark.parametrize("name", DIALECT_NAMES)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_refusal_is_read_as_programs_read_it(name: str, status: int, *, is_stream: bool) -> None:
    """The sentence stands in the dialect's own form, whole and as the end of a stream."""
    each = exchanges(name)[0]
    sentence = "This run has used its budget: $1.02 of $1 (“--max-cost-per-run”)."
    sent, kind, body = DIALECTS[name].error(status, sentence, is_stream=is_stream)
    assert sent == (200 if is_stream else status)
    reader = each.dialect.reader(each.asked(), sent, kind)
    read(reader, body)
    assert reader.turn().error == sentence


def test_a_pair_of_halves_that_two_events_share_is_one_character() -> None:
    """A half alone is U+FFFD, which every store takes."""
    each = exchanges("chat")[0]
    parts = ['"\\ud83d"', '"\\udeaa"', '"!\\udeaa"']
    chunk = 'data: {{"choices": [{{"index": 0, "delta": {{"content": {}}}}}]}}\n\n'
    turn, _, _ = streamed(each, "".join(chunk.format(part) for part in parts).encode())
    assert turn.text == "🚪!\ufffd"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_the_data_of_an_event_may_have_several_lines(newline: str, size: int) -> None:
    """They are one text, by the standard of such streams."""
    each = exchanges("gemini")[0]
    chunk = json.dumps(each.events[0] if each.events else None, indent=1)
    data = "".join(f"data: {line}{newline}" for line in chunk.splitlines()) + newline
    turn, _, went = streamed(each, data.encode(), size)
    assert turn.reasoning == each.turn["reasoning"][:9]
    assert went == len(data) or newline == "\r\n"  # of the last line end, the half


def test_arguments_that_are_no_object_stay_text() -> None:
    """Deep, endless or broken JSON is what the model wrote, and is recorded as such."""
    each = exchanges("chat")[0]
    for text in ('{"a": 1', "[1]", '{"x": NaN}', f'{{"x": {"[" * 400}{"]" * 400}}}', "[" * 100_000):
        call = {"index": 0, "id": "c", "function": {"name": "step", "arguments": text}}
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        turn, _, _ = streamed(each, f"data: {json.dumps(chunk)}\n\n".encode())
        assert isinstance(turn.calls[0].arguments, str)


def test_a_stream_of_gemini_without_events_is_a_list() -> None:
    """Without `alt=sse` it writes one JSON list."""
    each = exchanges("gemini")[0]
    reader = each.dialect.reader(each.asked(), 200, "application/json; charset=UTF-8")
    read(reader, json.dumps(each.events).encode(), 13)
    assert told(reader.turn()) == each.turn
    assert reader.is_complete


def test_engines_number_calls_as_they_like() -> None:
    """Calls without an index are several; those with one may come in pieces."""
    each = exchanges("chat")[0]
    calls = [{"id": f"c{n}", "function": {"name": "step", "arguments": {"n": n}}} for n in (1, 2)]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    one = {"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}
    for given_chunks in (chunks, [one]):
        data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in given_chunks)
        turn, _, _ = streamed(each, data.encode())
        assert [(call.id, call.arguments) for call in turn.calls] == [
            ("c1", {"n": 1}),
            ("c2", {"n": 2}),
        ]

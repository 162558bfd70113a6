"""What comes over the wire: any bytes, in any pieces, at any pace."""

import asyncio
import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of
from waiting import PATIENCE_S, until

from hud_mcp.plugins.hud.wire.frames import BadFrame, Budget, FrameReader, encode_frame

pytestmark = pytest.mark.anyio

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
FRAMES = st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=6)


async def read_all(pieces: list[bytes], **options: Any) -> list[Any]:
    """Everything that a reader makes of a stream, with the codes of what is no frame."""
    stream = asyncio.StreamReader()
    reader = FrameReader(stream, **options)

    async def feed() -> None:
        for piece in pieces:
            if piece:
                stream.feed_data(piece)
            await anyio.lowlevel.checkpoint()
        stream.feed_eof()

    found: list[Any] = []
    async with anyio.create_task_group() as group:
        group.start_soon(feed)
        with anyio.fail_after(PATIENCE_S):
            while True:
                try:
                    frame = await reader.read()
                except BadFrame as exc:
                    found.append(exc.code)
                    if exc.fatal:
                        return found
                else:
                    if frame is None:
                        return found
                    found.append(frame)


@given(FRAMES, st.data())
def test_frames_are_read_however_they_are_cut(frames: list[Any], data: st.DataObject) -> None:
    """Cut at any places, with blank lines and CRLF between them, and the last newline or not."""
    ends = data.draw(
        st.lists(st.sampled_from([b"\n", b"\r\n", b"\n\n \t\n"]), min_size=6, max_size=6)
    )
    whole = b"".join(
        json.dumps(f, ensure_ascii=data.draw(st.booleans())).encode() + end
        for f, end in zip(frames, ends, strict=False)
    )
    if data.draw(st.booleans()):
        whole = whole.rstrip()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert asyncio.run(read_all(pieces)) == frames


def test_frames_are_read_byte_by_byte() -> None:
    """A split at every byte, within a letter of two bytes too."""
    frames = [{"id": 1, "method": "h\u00e9llo"}, {"id": "zwei", "params": {"a": "\U0001f642"}}]
    whole = b"".join(encode_frame(f) for f in frames)
    assert asyncio.run(read_all([bytes([b]) for b in whole])) == frames


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_any_bytes_are_frames_or_errors(pieces: list[bytes]) -> None:
    """No bytes raise anything but what says that they are no frame."""
    for found in asyncio.run(read_all(pieces)):
        assert isinstance(found, dict) or found in (-32700, -32600)


@each_of(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"GET / HTTP/1.1", -32700),
        (b'{"a": "\xff"}', -32700),
        (b'{"a": "\\ud800"}', -32700),
        (b'{"a": NaN}', -32700),
        (b"[" * 50_000, -32700),
        (b'{"a":' * 50_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b"null", -32600),
    ],
)
def test_what_is_no_frame_leaves_the_next_one_whole(line: bytes, code: int) -> None:
    """An error for the line alone; what follows is read."""
    assert asyncio.run(read_all([line + b'\n{"id":1}\n'])) == [code, {"id": 1}]


def test_a_frame_at_the_limit_is_read_and_one_byte_more_is_not() -> None:
    """To the byte, in one piece and in many."""
    fits = b'{"a":"' + b"x" * (1000 - 8) + b'"}'
    more = fits.replace(b"x", b"xx", 1)
    assert len(fits) == 1000
    for cut in (1, 400, 10_000):
        for line, expected in ((fits, [json.loads(fits)]), (more, [-32600])):
            whole = line + b"\n"
            pieces = [whole[i : i + cut] for i in range(0, len(whole), cut)]
            assert asyncio.run(read_all(pieces, limit=1000)) == expected


async def test_long_frames_of_all_peers_share_one_budget() -> None:
    """Where it is spent, another long frame is refused, a short one is read; it comes back."""
    budget = Budget(100_000)
    streams = [asyncio.StreamReader() for _ in range(3)]
    readers = [FrameReader(s, budget=budget) for s in streams]
    streams[0].feed_data(b'{"a":"' + b"x" * 90_000)
    first = asyncio.ensure_future(readers[0].read())
    await until(lambda: not streams[0]._buffer)
    streams[1].feed_data(b'{"a":"' + b"x" * 90_000 + b'"}\n')
    with anyio.fail_after(PATIENCE_S), pytest.raises(BadFrame, match="too many long frames"):
        await readers[1].read()
    streams[2].feed_data(b'{"a":1}\n')
    assert await readers[2].read() == {"a": 1}
    streams[0].feed_data(b'"}\n')
    assert len((await first or {})["a"]) == 90_000
    assert budget.reserve(100_000)


@pytest.mark.parametrize("seconds", [0.05])
async def test_a_frame_that_never_ends_is_given_up(seconds: float) -> None:
    """The time runs from its first byte, whatever trickles in."""
    stream = asyncio.StreamReader()
    reader = FrameReader(stream, within_s=seconds)
    stream.feed_data(b'{"a"')
    with anyio.fail_after(PATIENCE_S), pytest.raises(TimeoutError):
        await reader.read()
    assert reader.has_begun


def test_what_json_cannot_hold_is_encoded_all_the_same() -> None:
    """Half of a surrogate pair, a number of 100 bits, and what is not JSON at all."""
    line = encode_frame({"a": "\ud800", "b": 2**100, "c": object})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["b"] == 2**100

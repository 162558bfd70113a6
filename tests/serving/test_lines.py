"""How a byte stream is cut into lines, whatever its chunks are."""

import tracemalloc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hud_mcp.base.lines import LineBuffer, Overlong

LINE = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"a\xc3\xa9\\n"}}'


def taken(buffer: LineBuffer, data: bytes) -> list[bytes | Overlong]:
    """Everything that a chunk completes."""
    buffer.feed(data)
    return list(iter(buffer.take, None))


def split(chunks: list[bytes], limit: int = 1000) -> list[bytes | Overlong]:
    """Feed the chunks to a buffer, and take what they hold, to the end."""
    buffer = LineBuffer(limit)
    lines = [line for chunk in chunks for line in taken(buffer, chunk)]
    rest = buffer.take_rest()
    return [*lines, rest] if rest else lines


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0)))
def test_lines_do_not_depend_on_how_the_stream_is_chunked(
    lines: list[bytes], cuts: list[int]
) -> None:
    """Whatever the chunks, the lines are what the whole stream splits into."""
    data = b"\n".join(lines)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    expected = [bare for line in data.split(b"\n") if (bare := line.lstrip(b" \t\r"))]
    assert split([data[a:b] for a, b in pairwise(places)]) == expected


def test_a_stream_cut_at_every_byte_yields_the_same_lines() -> None:
    """Two chunks meet at each byte in turn, and nothing changes."""
    data = LINE + b"\r\n\n  \n" + LINE + b"\n"
    for cut in range(len(data) + 1):
        assert split([data[:cut], data[cut:]]) == [LINE + b"\r", LINE]


def test_the_last_line_needs_no_line_feed() -> None:
    """What is left at the end of the stream is its last line."""
    assert split([LINE]) == [LINE]


def test_a_line_at_the_limit_passes() -> None:
    """The limit is inclusive and does not count the line feed."""
    assert split([LINE + b"\n"], limit=len(LINE)) == [LINE]


def test_an_oversized_line_is_told_once_wherever_it_is_cut() -> None:
    """Its first bytes stand for the line, and its neighbours pass."""
    big = LINE[:-2] + b"x" * 200 + b"}}"
    data = LINE + b"\n" + big + b"\n" + LINE + b"\n"
    for cut in range(len(data) + 1):
        first, overlong, last = split([data[:cut], data[cut:]], limit=len(LINE))
        assert (first, last) == (LINE, LINE)
        assert isinstance(overlong, Overlong)
        assert overlong.head
        assert big.startswith(overlong.head)


def test_an_oversized_line_is_told_before_it_ends() -> None:
    """Nobody waits for a line feed that may never come."""
    buffer = LineBuffer(100)
    assert taken(buffer, LINE + b"x" * 100) == [Overlong(LINE + b"x" * 100)]
    assert taken(buffer, b"x" * 1000) == []
    assert buffer.is_dropping


def test_an_oversized_line_is_not_held() -> None:
    """Eighty times the limit passes through a buffer that holds no more than the limit."""
    limit = 1 << 18
    buffer = LineBuffer(limit)
    chunk = b"x" * 4096
    tracemalloc.start()
    try:
        for _ in range(80 * limit // len(chunk)):
            taken(buffer, chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * limit


def test_a_dropped_line_is_gone_with_its_rest() -> None:
    """What follows it is whole, in the same chunk or in another."""
    buffer = LineBuffer(100)
    assert taken(buffer, b"begun") == []
    buffer.drop_line()
    assert not buffer
    assert taken(buffer, b" and not ended") == []
    assert taken(buffer, b"; ended\nnext\n") == [b"next"]
    assert not buffer.is_dropping


def test_what_is_blank_counts_for_nothing() -> None:
    """A peer that only sends line feeds has begun no line."""
    buffer = LineBuffer(3)
    assert taken(buffer, b" \r\n\t\n" * 10) == []
    assert len(buffer) == 0
    assert taken(buffer, b"   abc\n") == [b"abc"]

"""Lines of bytes and JSON: bounded lines of a stream, JSON Lines, and JSON for every database."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from hud_mcp.errors import HudMcpError

_HEAD_BYTES: Final = 1024
_BLANK: Final = re.compile(rb"[\n\r\t ]*")


class Overlong(NamedTuple):
    """The stand-in for a line over the bound, with its first bytes."""

    head: bytes


class LineBuffer:
    """The bytes of a stream that were not taken yet, in lines without the blanks before them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()
        self._searched = 0
        self._is_dropping = False

    def __len__(self) -> int:
        return len(self._held)

    @property
    def is_dropping(self) -> bool:
        """Whether the next bytes belong to a dropped line."""
        return self._is_dropping

    @property
    def has_begun(self) -> bool:
        """Whether a line has begun; blanks before it are dropped."""
        self._skip_blank()
        return bool(self._held)

    def feed(self, data: bytes) -> None:
        """Add a chunk."""
        if self._is_dropping:
            _, newline, data = data.partition(b"\n")
            self._is_dropping = not newline
        self._held += data

    def take(self) -> bytes | Overlong | None:
        """Remove and return the next line, without its line feed; None if no line is complete.

        For a line over the bound, it returns one `Overlong` as soon as that is known. The rest of
        the line is dropped as it comes.
        """
        if self._held and self._held[0] in b"\n\r\t ":
            self._skip_blank()  # not after a line: a new owner of the stream gets every byte
        end = self._held.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._held)
            return self._give_up() if len(self._held) > self._most_bytes else None
        is_long = end > self._most_bytes
        line = bytes(self._held[: min(end, _HEAD_BYTES) if is_long else end])
        del self._held[: end + 1]
        self._searched = 0
        return Overlong(line) if is_long else line

    def take_rest(self) -> bytes:
        """Remove and return all bytes: at the end of a stream, a line without a feed."""
        rest = bytes(self._held)
        self._forget()
        return rest

    def drop_line(self) -> None:
        """Drop the line that has begun, and its rest as it comes."""
        self._give_up()

    def _give_up(self) -> Overlong:
        head = bytes(self._held[:_HEAD_BYTES])
        self._forget()
        self._is_dropping = True
        return Overlong(head)

    def _forget(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._held)
        if blank is not None and blank.end():
            del self._held[: blank.end()]
            self._searched = 0


_SEPARATORS = (
    ("\u0085".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
"""Characters at which programs in JavaScript, Python and others end a line, beside the line feed.

JSON has them in texts only, where the escape means the same; it escapes control characters anyway.
"""


def read_json_lines(
    data: bytes, where: object, failure: type[HudMcpError]
) -> Iterator[tuple[int, Any]]:
    """Read each line's value, with its number from 1; empty lines are skipped.

    Raises:
        HudMcpError: A line is not JSON. The error has the class `failure`, and names the file and
            the line.
    """
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value: Any = orjson.loads(line)
        except orjson.JSONDecodeError as exc:
            why = "it is not text in UTF-8" if _is_no_text(line) else str(exc)
            raise failure(f"{where}:{number}: this line is not JSON: {why}.") from None
        yield number, value


def json_lines(rows: Iterable[Any]) -> bytes:
    """Write each value on a line of its own."""
    lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return escape_separators(b"".join(lines))


def escape_separators(data: bytes) -> bytes:
    """Return the same JSON without characters at which a reader could end a line."""
    for separator, escape in _SEPARATORS:
        if separator in data:
            data = data.replace(separator, escape)
    return data


def _is_no_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False


def dump_line(frame: Mapping[str, Any]) -> bytes:
    """Write a frame, even with values that orjson refuses: models, odd keys, big integers.

    A lone surrogate, which is not text in any encoding, becomes a question mark. Raises ValueError
    for a value that is not JSON.
    """
    try:
        return escape_separators(orjson.dumps(frame, option=orjson.OPT_APPEND_NEWLINE))
    except orjson.JSONEncodeError:
        pass
    try:
        plain = to_jsonable_python(frame, inf_nan_mode="null", bytes_mode="base64")
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not representable as JSON: {error}") from error
    return escape_separators(text.encode(errors="replace")) + b"\n"


def dump(value: BaseModel, *, exclude_defaults: bool = False, finite: bool = True) -> str:
    """Return a value as JSON, as `to_json` does; not `finite` keeps numbers that Pydantic nulls."""
    if finite:
        try:
            return value.model_dump_json(exclude_defaults=exclude_defaults, ensure_ascii=True)
        # half a surrogate pair, which Python's encoder can write
        except PydanticSerializationError:
            pass
    return to_json(value.model_dump(mode="json", exclude_defaults=exclude_defaults))


_FINITE = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""The encoder for all calls: `json.dumps` would make one each time."""


def to_json(value: Any) -> str:
    """Return a value as the JSON that every database takes.

    JSON has no infinite number and no NaN, and PostgreSQL refuses Python's tokens for them. They
    are written as the texts `"NaN"` and `"Infinity"`, which a field of a number reads back.
    """
    try:
        return _FINITE.encode(value)
    except ValueError:
        return json.dumps(_with_finite_numbers(value), separators=(",", ":"))


def read_json(text: str | bytes) -> Any:
    """Read a JSON text as Python's `json` does, in half of the time.

    Raises:
        ValueError: The text is no JSON.
        RecursionError: The text is nested too deeply.
    """
    try:
        return from_json(text)
    except ValueError:  # half a surrogate pair, or 200 levels, which Python's decoder reads
        return json.loads(text)


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: _with_finite_numbers(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_with_finite_numbers(v) for v in cast("list[Any]", value)]
    return value


def storable(text: str) -> str:
    """Return a text that every database takes. PostgreSQL's texts cannot hold a NUL."""
    return text.replace("\0", "\ufffd")


def printable(text: str) -> str:
    """Do the same for a text that may hold lone surrogates, such as a name that is not UTF-8."""
    if text.isascii() and "\0" not in text:
        return text
    return storable(text.encode("utf-8", "replace").decode())

"""JSON Lines: one value a line, in files and on pipes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from hud_mcp.errors import HudMcpError

__all__ = ["dump_line", "escape_separators", "json_lines", "read_json_lines"]

_SEPARATORS = (
    ("\u0085".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
"""Where programs in JavaScript, Python and others end a line beside the ASCII line feed. JSON has
them in texts only, where the escape means the same; it escapes control characters anyway."""


def read_json_lines(
    data: bytes, where: object, failure: type[HudMcpError]
) -> Iterator[tuple[int, Any]]:
    """Read each line's value, with the line's number from 1; empty lines are skipped.

    Args:
        data: What the file holds.
        where: The file, for the error.
        failure: What is raised about a line that is not JSON.

    Raises:
        HudMcpError: Of the class `failure`, naming the file and the line.
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
    """The same JSON without a character at which some reader would end a line."""
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
    """Write a frame, also with what orjson refuses: models, odd keys, big integers.

    A lone surrogate, which is not text in any encoding, becomes a question mark.

    Raises:
        ValueError: Something in it is not JSON.
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

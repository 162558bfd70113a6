"""Files of JSON Lines: one value a line."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from hud_mcp.errors import HudMcpError

__all__ = ["escape_separators", "json_lines", "read_json_lines"]

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

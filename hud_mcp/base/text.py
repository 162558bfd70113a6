"""Others' texts, made fit to be shown: read from files, cut to a length, or without a secret."""

import codecs
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_JSON_CHARS = 20_000
"""The longest JSON value of others, such as a grade's `info`."""
_SECRET_CHARS = 8
"""The shortest key of a service; a server without keys often gets `x`, `none` or `EMPTY`."""


def clip(text: str, most_chars: int) -> str:
    """Return the first characters of a text; an ellipsis stands for the rest."""
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"


def clip_repr(value: Any, most_chars: int = 60) -> str:
    """Return a value's `repr`, cut to a length, for an error."""
    return clip(repr(value), most_chars)


def clip_and_count(text: str, most_chars: int, *, before: str = " ") -> str:
    """Return the first characters of a text, and the number of the others after a separator."""
    more = len(text) - most_chars
    return text if more <= 0 else f"{text[:most_chars]}{before}… {more} more characters"


def clip_text(text: str, max_chars: int) -> str:
    """Return an observation's text cut at a line's end to 200 or more characters, with a notice."""
    if len(text) <= max_chars:
        return text
    room = max_chars - 120
    cut = text.rfind("\n", 0, room)
    kept = text[: cut if cut > room // 2 else room]  # one very long line is cut inside
    return f"{kept}\n… {len(text) - len(kept)} more characters; scroll to see the rest."


def clip_json(value: Mapping[str, Any] | Iterable[Any] | None) -> str | None:
    """Return others' JSON as text, cut to a length; None if it is empty."""
    if not value:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = "(cannot be written as JSON)"
    return clip_and_count(text, _JSON_CHARS)


def mask(text: str, secret: str, shown: str) -> str:
    """Return a text with another one in place of a secret, a short one only as a whole word."""
    if not secret:
        return text
    if len(secret) >= _SECRET_CHARS:
        return text.replace(secret, shown)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: shown, text)


_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def without_mark(data: bytes) -> bytes:
    """Return text in UTF-8 without a byte order mark. A mark of UTF-16 is obeyed.

    Raises:
        UnicodeDecodeError: The mark means UTF-16, and the rest is not.
    """
    if data.startswith(_WIDE):
        return data.decode("utf-16").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def read_text_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a text file, in UTF-8, as `without_mark` does if the mark is true."""
    data = Path(path).read_bytes()
    try:
        return without_mark(data)
    except UnicodeDecodeError:  # only the beginning looks like a mark; the parser reports the rest
        return data


def read_text_file(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, with Python's newlines.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is no text.
    """
    text = read_text_bytes(path).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")

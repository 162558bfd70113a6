"""Texts that somebody else chose, made fit to be shown: cut to a length, or without a secret."""

import codecs
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "clip",
    "clip_and_count",
    "clip_json",
    "clip_repr",
    "clip_text",
    "mask",
    "read_text_bytes",
    "read_text_file",
    "without_mark",
]


_JSON_CHARS = 20_000
"""Of one JSON value that somebody else chose, such as a grade's `info`."""
_SECRET_CHARS = 8
"""No service gives a shorter key; a server without keys is given `x`, `none` or `EMPTY`."""


def clip(text: str, most_chars: int) -> str:
    """Return the first characters of a text; an ellipsis stands for the rest.

    Args:
        text: Returned as it is where it is short enough.
        most_chars: How many are kept, the ellipsis not counted.
    """
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"


def clip_repr(value: Any, most_chars: int = 60) -> str:
    """Return a value as Python writes it, cut to a length, for an error."""
    return clip(repr(value), most_chars)


def clip_and_count(text: str, most_chars: int, *, before: str = " ") -> str:
    """Return the first characters of a text, and how many more there are.

    Args:
        text: Returned as it is where it is short enough.
        most_chars: How many are kept, the notice not counted.
        before: What stands between the text and the notice, such as a line feed.
    """
    more = len(text) - most_chars
    return text if more <= 0 else f"{text[:most_chars]}{before}… {more} more characters"


def clip_text(text: str, max_chars: int) -> str:
    """Return an observation's text cut at a line's end, and how to see more of it.

    Args:
        text: The text, returned as it is where it is short enough.
        max_chars: The most that is returned, notice included; 200 or more.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - 120
    cut = text.rfind("\n", 0, room)
    kept = text[: cut if cut > room // 2 else room]  # one very long line is cut within
    return f"{kept}\n… {len(text) - len(kept)} more characters; scroll to see the rest."


def clip_json(value: Mapping[str, Any] | Iterable[Any] | None) -> str | None:
    """Return somebody's JSON as text, cut to a length; None where there is nothing in it."""
    if not value:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = "(cannot be written as JSON)"
    return clip_and_count(text, _JSON_CHARS)


def mask(text: str, secret: str, shown: str) -> str:
    """Return a text in which another one stands for a secret.

    Args:
        text: The text.
        secret: A short one is masked as a whole word only; an empty one nowhere.
        shown: Stands in its place.
    """
    if not secret:
        return text
    if len(secret) >= _SECRET_CHARS:
        return text.replace(secret, shown)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: shown, text)


_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def without_mark(data: bytes) -> bytes:
    """Text in UTF-8 without a byte order mark; from UTF-16 where the mark says so.

    Raises:
        UnicodeDecodeError: The mark says UTF-16, and the rest is not.
    """
    if data.startswith(_WIDE):
        return data.decode("utf-16").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def read_text_bytes(path: str | os.PathLike[str]) -> bytes:
    """What a text file holds, in UTF-8, without a mark; see `without_mark`.

    Raises:
        OSError: It cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        return without_mark(data)
    except UnicodeDecodeError:  # it only begins so: who parses it, says what it is not
        return data


def read_text_file(path: str | os.PathLike[str]) -> str:
    """The text of a file, with newlines as Python has them.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is no text.
    """
    text = read_text_bytes(path).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")

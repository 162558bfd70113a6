"""Text files that people give: as any editor writes them.

Excel, Notepad and PowerShell begin a file with a byte order mark, and may write UTF-16. A mark is
no part of the text, and nobody sees it.
"""

import codecs
import os
from pathlib import Path

__all__ = ["read_text_bytes", "read_text_file", "without_mark"]

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

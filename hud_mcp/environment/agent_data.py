"""The agent's data that a grader has read, and the errors that are about that data.

The author's files and services may raise the same types of errors as a parser of an agent's data.
Therefore an error counts as the agent's doing if it holds the agent's own words.
"""

import re
import sysconfig
import traceback
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

from hud_mcp.base.text import clip
from hud_mcp.errors import BrokenByAgent, EnvironmentFailed, broken_world, failed_by

__all__ = ["begin_grading", "blame", "note_agent_data"]

Data = TypeVar("Data", str, bytes)

_read: ContextVar["list[str | bytes] | None"] = ContextVar("_read", default=None)
_MOST_READ = 64
_MOST_KEPT_BYTES = 64 * 1024 * 1024
"""The bound of the kept data. Older data is forgotten, because it takes the server's memory."""
_LEAST_PIECE = 16
"""The shortest text of a library's call that counts as a piece of the agent's data.

A shorter piece counts only if the error itself names it: a library's own words may be in an answer
by chance."""
_COMPARED = 64 * 1024
_SHOWN_CHARS = 200
_QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1)[^\\])*)""", re.DOTALL)
"""The first literal of a message; a long one is cut, and has no end."""
_LIBRARIES = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) + "/" for name in ("stdlib", "purelib", "platlib")
)
_OWN = str(Path(__file__).resolve().parents[1]) + "/"


def begin_grading(answer: str) -> None:
    """Forget the data that was read before, and note the answer: a grading begins."""
    _read.set([answer])


def note_agent_data(data: Data) -> Data:
    """Note data of the agent's that a grader is given, and return it; only gradings note it."""
    read = _read.get()
    if read is not None:
        read.append(data)
        while len(read) > _MOST_READ or sum(map(len, read[1:])) > _MOST_KEPT_BYTES:
            del read[1]  # the answer stays
    return data


def blame(
    error: BaseException, more: Sequence[str | bytes] = ()
) -> BrokenByAgent | EnvironmentFailed | None:
    """Return the error that blames the agent or the world for a grader's error, or None.

    `more` is data of the agent's beside the noted data. None means that the author may be to blame.
    """
    broken = broken_world(error)
    if broken is not None:
        return broken
    raised = failed_by(error)
    data = [*(_read.get() or ()), *more]
    if raised is None or not data or not _is_about(raised, data):
        return None
    said = clip(" ".join(f"{type(raised).__name__}: {raised}".split()), _SHOWN_CHARS)
    return BrokenByAgent(f"What the agent made cannot be read as the grader reads it: {said}")


def _is_about(error: BaseException, data: Sequence[str | bytes]) -> bool:
    if isinstance(error, KeyError):
        return any(isinstance(each, str) and _is_whole(each, data) for each in error.args)
    return any(_is_piece(each, data) for each in _named(error)) or any(
        _is_whole(each, data) or (len(each) >= _LEAST_PIECE and _is_piece(each, data))
        for each in _read_by_library(error)
    )


def _named(error: BaseException) -> Iterator[str | bytes]:
    """Yield the data that an error itself names as its subject."""
    for name in ("doc", "object"):  # of JSON, and of an encoding
        value: Any = getattr(error, name, None)
        if isinstance(value, str | bytes):
            yield value
    said: Any = error.args[0] if error.args else None
    is_said = isinstance(error, ValueError) and isinstance(said, str)
    # As `int('forty')` and `Color('none')` say it.
    if is_said and (quoted := _QUOTED.search(said)) is not None:
        with suppress(ValueError, SyntaxError):
            yield cast("str", literal_eval(f"{quoted[0]}{quoted[1]}"))


def _read_by_library(error: BaseException) -> Iterator[str | bytes]:
    """Yield the local texts of the library's function that raised an error."""
    frames = [frame for frame, _line in traceback.walk_tb(error.__traceback__)]
    if not frames or isinstance(error, OSError):  # which names its file
        return
    last = frames[-1]
    file = str(Path(last.f_code.co_filename).resolve())
    if not file.startswith(_LIBRARIES) or file.startswith(_OWN):
        return
    yield from (each for each in last.f_locals.values() if isinstance(each, str | bytes) and each)


def _is_whole(text: str | bytes, data: Sequence[str | bytes]) -> bool:
    raw = _as_bytes(text)
    return any(raw in (each, each.strip()) for each in map(_as_bytes, data))


def _is_piece(text: str | bytes, data: Sequence[str | bytes]) -> bool:
    """Whether a text, or the beginning of a long one, is in the agent's data."""
    if not text:
        return _is_whole(text, data)
    raw = _as_bytes(text[:_COMPARED])
    # Python reads each end of a line as one character.
    return any(raw in each or raw in each.replace(b"\r\n", b"\n") for each in map(_as_bytes, data))


def _as_bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")

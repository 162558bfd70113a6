"""One line a record on stderr, for people or as JSON, with the short name of its session."""

import json
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

__all__ = ["MOST_CHARS", "LogFormat", "add_fields", "current_name", "formatter", "printed"]

LogFormat = Literal["text", "json"]
"""How a line of the log is written to stderr."""

MOST_CHARS = 4_000
"""The longest line of a log."""

current_name: ContextVar[str] = ContextVar("current_name", default="-")
"""The short name of the running task's session: it tells sessions apart, and opens none."""


def formatter(form: LogFormat) -> logging.Formatter:
    """The formatter of a form."""
    return _OneLine() if form == "text" else _OneObject()


def printed(line: str, form: LogFormat) -> str:
    """A line that was printed, with the time, as the log has it."""
    now = datetime.now().astimezone()
    if form == "json":
        return _as_object(now.astimezone(UTC), "info", "print", line)
    return f"{now:%H:%M:%S} print   {current_name.get()} {line}"[:MOST_CHARS]


class _OneObject(logging.Formatter):
    """One JSON object a record, for programs that gather logs."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        message = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return _as_object(when, record.levelname.lower(), record.name, message)
        more = {"error": f"{type(error).__name__}: {error}"[:MOST_CHARS], "at": _place_of(error)}
        return _as_object(when, record.levelname.lower(), record.name, message, more)


def _as_object(
    when: datetime, level: str, logger: str, message: str, more: Mapping[str, str] | None = None
) -> str:
    """A line of the log as JSON, with the session and the trace that it belongs to."""
    name = current_name.get()
    told = {
        "time": when.isoformat(timespec="milliseconds"),
        "level": level,
        "logger": logger,
        "message": message[:MOST_CHARS],
        **({"session": name} if name != "-" else {}),
        **(more or {}),
    }
    for fields in _more_fields:
        told |= fields()
    return json.dumps(told)


_more_fields: list[Callable[[], Mapping[str, str]]] = []


def add_fields(fields: Callable[[], Mapping[str, str]]) -> Callable[[], None]:
    """Have more fields in each line of a log of JSON from now on; return what ends that."""
    _more_fields.append(fields)
    return lambda: _more_fields.remove(fields)


def _place_of(error: BaseException) -> str:
    """The file and the line that raised it; empty where that is not known."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""


class _OneLine(logging.Formatter):
    """One line a record, whatever its message holds; a traceback's end instead of all of it."""

    def format(self, record: logging.LogRecord) -> str:
        message = " ".join(record.getMessage().split())
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            place = f" at {found}" if (found := _place_of(error)) else ""
            message += f" [{type(error).__name__}: {' '.join(str(error).split())}{place}]"
        when = self.formatTime(record, "%H:%M:%S")
        return f"{when} {record.levelname.lower():<7} {current_name.get()} {message}"[:MOST_CHARS]

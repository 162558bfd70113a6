"""Where lines of a log go: to stderr, one line each, and to the session that they belong to.

What a template prints, and what its libraries log while it runs, is part of its session's
record; none of it may reach standard output, which belongs to the protocol.
"""

import contextvars
import io
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, cast
from weakref import WeakKeyDictionary

__all__ = [
    "LineStream",
    "LogFormat",
    "add_fields",
    "callback_context",
    "clean_context",
    "configure_logging",
    "current_log",
    "current_name",
    "keep_prints",
    "pass_on",
    "take_rest",
]

LogFormat = Literal["text", "json"]
"""How a line of the log is written to stderr."""

current_log: ContextVar[Callable[[str], None] | None] = ContextVar("current_log", default=None)
"""Takes a line for the session that the running task works for; None outside of sessions."""

current_name: ContextVar[str] = ContextVar("current_name", default="-")
"""The short name of that session: it tells sessions apart, and opens none."""

_MAX_LINE = 4_000


def clean_context(name: str, log: Callable[[str], None]) -> contextvars.Context:
    """A context in which a session's own task runs: nothing of a request stays in it.

    Args:
        name: The session's short name.
        log: Takes a line for its log.
    """
    context = contextvars.Context()
    context.run(current_name.set, name)
    context.run(current_log.set, log)
    return context


def callback_context() -> contextvars.Context:
    """A copy of this context, in which AnyIO knows its loop outside of tasks too.

    Where `sniffio` is installed, AnyIO asks that alone, which finds asyncio in tasks and not in
    callbacks; libraries of models bring it.
    """
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


_COPIED = "hud_mcp_copied"
"""The mark of a log record that its session has already."""


class _SessionLines(logging.Handler):
    """Copies log records to the session that they belong to."""

    def emit(self, record: logging.LogRecord) -> None:
        take = current_log.get()
        # In a program that serves, and runs sessions itself, a record comes here in two ways.
        if take is None or _COPIED in record.__dict__:
            return
        record.__dict__[_COPIED] = True
        try:
            take(f"{record.levelname.lower()} {record.name}: {record.getMessage()}"[:_MAX_LINE])
        except Exception:  # noqa: BLE001  # a bad format string must not break what logs it
            self.handleError(record)


class _OneObject(logging.Formatter):
    """One JSON object a record, for programs that gather logs."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        message = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return _as_object(when, record.levelname.lower(), record.name, message)
        more = {"error": f"{type(error).__name__}: {error}"[:_MAX_LINE], "at": _place_of(error)}
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
        "message": message[:_MAX_LINE],
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
        return f"{when} {record.levelname.lower():<7} {current_name.get()} {message}"[:_MAX_LINE]


def configure_logging(level: str = "info", *, form: LogFormat = "text") -> None:
    """Send all logging to stderr, one line a record, and to the sessions' records.

    Args:
        level: The least that is logged.
        form: How a line is written: for people, or as JSON.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine() if form == "text" else _OneObject())
    root = logging.getLogger()
    root.handlers[:] = [handler, _SessionLines()]
    root.setLevel(level.upper())
    # The SDK's also logs the ids of its HTTP sessions, which are secrets.
    for noisy in (
        "httpx",
        "httpcore",
        "asyncio",
        "PIL",
        "mcp.server",
        "uvicorn.access",
        "uvicorn.error",
        "asyncssh",
        "httpx2",
        "httpcore2",
        "mcp.client",
    ):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def pass_on(line: str) -> None:
    """Print a line for the running session, whose log has it too, wherever output goes."""
    is_taken = isinstance(sys.stdout, LineStream | _ProgramsOutput)
    if not is_taken and (take := current_log.get()) is not None:
        take(line[:_MAX_LINE])
    sys.stdout.write(f"{line}\n")


_unfinished: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""The half line that each session has printed last, by the owner of its log.

Short names of two sessions can be the same. A session that prints after its end is not kept by it.
"""


def _owner(log: Callable[[str], None]) -> object:
    return getattr(log, "__self__", log)


def take_rest(log: Callable[[str], None]) -> str | None:
    """Return what a session has printed since its last line's end, and forget it.

    Args:
        log: The session's, as `clean_context` was given it.
    """
    return _unfinished.pop(_owner(log), None)


class LineStream(io.TextIOBase):
    """A text stream for what is printed: it gives whole lines to the running session's log.

    Args:
        target: Where everything goes too, such as stderr; a session's lines with the time and
            the session's short name.
        form: How a line is written there.
    """

    def __init__(self, target: TextIO, *, form: LogFormat = "text") -> None:
        self._target = target
        self._form = form
        self._unfinished = ""

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def write(self, text: str) -> int:
        """Pass text on, and log each line that it completes."""
        take = current_log.get()
        if take is not None:
            name = current_name.get()
            owner = _owner(take)
            *lines, rest = (_unfinished.pop(owner, "") + text).split("\n")
            for line in lines:
                take(line[:_MAX_LINE])
                self._pass_on(line, name)
            if rest:
                _unfinished[owner] = rest[-_MAX_LINE:]
        elif self._form == "text":
            self._target.write(text)
        else:
            *lines, rest = (self._unfinished + text).split("\n")
            self._unfinished = rest[-_MAX_LINE:]
            for line in lines:
                self._pass_on(line, "-")
        return len(text)

    def _pass_on(self, line: str, name: str) -> None:
        now = datetime.now().astimezone()
        told = (
            f"{now:%H:%M:%S} print   {name} {line}"[:_MAX_LINE]
            if self._form == "text"
            else _as_object(now.astimezone(UTC), "info", "print", line)
        )
        self._target.write(f"{told}\n")

    def flush(self) -> None:
        """Flush what everything is passed on to."""
        self._target.flush()


class _ProgramsOutput:
    """The standard output of a program that runs sessions itself: what they print is not in it.

    Attributes:
        stream: Where everything else goes: it is the program's own.
        users: How many registries of sessions need it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.users = 0
        self._made = logging.getLogRecordFactory()
        self._sessions = LineStream(sys.stderr)

    def write(self, text: str) -> int:
        """Pass text on to the running session's log, or to the program's output."""
        return (self.stream if current_log.get() is None else self._sessions).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def make_record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Make a record of a log, and copy it to the session that it belongs to."""
        record = self._made(*args, **kwargs)
        _session_lines.emit(record)
        return record

    def end(self) -> None:
        """Give the program its output back, once nobody needs this; another one's stays."""
        self.users -= 1
        if self.users:
            return
        if sys.stdout is self:
            sys.stdout = self.stream
        if logging.getLogRecordFactory() == self.make_record:
            logging.setLogRecordFactory(self._made)


_session_lines = _SessionLines()


def keep_prints() -> Callable[[], None]:
    """Have what sessions print and log in their records, in whatever program they run.

    A server's output is taken for that already. A program's own handlers and levels of logging
    stay as they are: a handler at the root would make `logging.basicConfig` do nothing.

    Returns:
        What ends it.
    """
    taken = sys.stdout
    if isinstance(taken, LineStream):
        return lambda: None
    if not isinstance(taken, _ProgramsOutput):
        taken = _ProgramsOutput(taken)
        sys.stdout = cast("TextIO", taken)
        if not any(isinstance(each, _SessionLines) for each in logging.getLogger().handlers):
            logging.setLogRecordFactory(taken.make_record)
    taken.users += 1
    return taken.end

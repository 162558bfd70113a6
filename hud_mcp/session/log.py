"""The ways of log lines and prints to stderr and their sessions: stdout is the protocol's."""

import contextvars
import io
import logging
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, TextIO, cast
from weakref import WeakKeyDictionary

from hud_mcp.base.telemetry import MOST_CHARS, LogFormat, current_name, formatter, printed

current_log: ContextVar[Callable[[str], None] | None] = ContextVar("current_log", default=None)
"""Takes a line for the running task's session; None outside of sessions."""


def clean_context(name: str, log: Callable[[str], None]) -> contextvars.Context:
    """Return a context for a session's own task, free of everything of the request."""
    context = contextvars.Context()
    context.run(current_name.set, name)
    context.run(current_log.set, log)
    return context


def callback_context() -> contextvars.Context:
    """Return a copy of this context, in which AnyIO knows its loop outside of tasks too."""
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


_COPIED = "hud_mcp_copied"
"""The mark of a log record that its session has already."""


class _SessionLines(logging.Handler):
    """The handler that copies log records to their sessions."""

    def emit(self, record: logging.LogRecord) -> None:
        take = current_log.get()
        # In a program that serves, and runs sessions itself, a record comes here in two ways.
        if take is None or _COPIED in record.__dict__:
            return
        record.__dict__[_COPIED] = True
        try:
            take(f"{record.levelname.lower()} {record.name}: {record.getMessage()}"[:MOST_CHARS])
        except Exception:  # noqa: BLE001  # a bad format string must not break what logs it
            self.handleError(record)


def configure_logging(level: str = "info", *, form: LogFormat = "text") -> None:
    """Send all logging to stderr, one line a record, and to the sessions' records."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler, _SessionLines()]
    root.setLevel(level.upper())
    # The SDK's transport also logs the ids of its HTTP sessions, which are secrets.
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
    """Print a line for the running session. Its log has the line too, wherever output goes."""
    is_taken = isinstance(sys.stdout, LineStream | _ProgramsOutput)
    if not is_taken and (take := current_log.get()) is not None:
        take(line[:MOST_CHARS])
    sys.stdout.write(f"{line}\n")


_unfinished: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""The unfinished line that each session has printed, by the owner of its log.

Two sessions can have the same short name. The weak keys let an ended session go.
"""


def _owner(log: Callable[[str], None]) -> object:
    return getattr(log, "__self__", log)


def take_rest(log: Callable[[str], None]) -> str | None:
    """Return and forget the text that a session has printed since its last line's end."""
    return _unfinished.pop(_owner(log), None)


class LineStream(io.TextIOBase):
    """A text stream for prints: whole lines go to the running session's log, and to a target."""

    def __init__(self, target: TextIO, *, form: LogFormat = "text") -> None:
        self._target = target
        self._form: LogFormat = form
        self._unfinished = ""

    def writable(self) -> bool:
        """Whether the stream can be written to: always."""
        return True

    def write(self, text: str) -> int:
        """Pass text on, and log each line that it completes."""
        take = current_log.get()
        if take is not None:
            owner = _owner(take)
            *lines, rest = (_unfinished.pop(owner, "") + text).split("\n")
            for line in lines:
                take(line[:MOST_CHARS])
                self._pass_on(line)
            if rest:
                _unfinished[owner] = rest[-MOST_CHARS:]
        elif self._form == "text":
            self._target.write(text)
        else:
            *lines, rest = (self._unfinished + text).split("\n")
            self._unfinished = rest[-MOST_CHARS:]
            for line in lines:
                self._pass_on(line)
        return len(text)

    def _pass_on(self, line: str) -> None:
        self._target.write(f"{printed(line, self._form)}\n")

    def flush(self) -> None:
        """Flush the target."""
        self._target.flush()


class _ProgramsOutput:
    """The standard output of a program that runs sessions, without their prints."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.users = 0
        self._made = logging.getLogRecordFactory()
        self._sessions = LineStream(sys.stderr)

    def write(self, text: str) -> int:
        """Pass text on to the running session's log, or to the program's output."""
        return (self.stream if current_log.get() is None else self._sessions).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def make_record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Make a log record, and copy it to its session."""
        record = self._made(*args, **kwargs)
        _session_lines.emit(record)
        return record

    def end(self) -> None:
        """Give the program its output back after the last user. Another replacement stays."""
        self.users -= 1
        if self.users:
            return
        if sys.stdout is self:
            sys.stdout = self.stream
        if logging.getLogRecordFactory() == self.make_record:
            logging.setLogRecordFactory(self._made)


_session_lines = _SessionLines()


def keep_prints() -> Callable[[], None]:
    """Have sessions' prints and logs in their records, in any program; return its end.

    A server redirects its output already. A program's own log handlers and levels stay: a handler
    at the root would make `logging.basicConfig` do nothing.
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

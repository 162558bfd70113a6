"""Spans and counts of this process for counters and tracers, and the lines of its log.

Without a listener a report costs a look at an empty list. The command that serves names the
listeners, which lie above.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, cast

T = TypeVar("T")
RunT = TypeVar("RunT", bound=Callable[..., Awaitable[Any]])


class Listener(Protocol):
    """A counter or a tracer."""

    def begin(self, span: "Span", *, current: bool) -> Callable[[], None]:
        """Note a span's beginning; return a function for its end.

        If it is current, spans that begin meanwhile in this context are parts of it.
        """
        ...

    def add(self, name: str, amount: int, labels: dict[str, Any]) -> None:
        """Note that an event has happened so many times."""
        ...

    def origin(self) -> Any:
        """Return the running task's present work, or None."""
        ...

    def follow(self, origin: Any, /) -> Callable[[], None]:
        """Make the next spans in this context parts of an origin; return a function for its end."""
        ...


listeners: list[Listener] = []
"""The listeners. Costly reports are made only if there are any."""


def listen(listener: Listener) -> Callable[[], None]:
    """Add a listener; return a function that removes it."""
    listeners.append(listener)

    def leave() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return leave


class Span:
    """Work that takes time: the body of a `with`, or the time between `start` and `end`.

    Its attributes have no secrets, texts of agents, or ids of sessions.
    """

    __slots__ = ("_ends", "attributes", "error", "is_void", "name")

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.attributes = attributes
        self.error: str | None = None
        self.is_void = False
        self._ends: list[Callable[[], None]] = []

    def start(self, *, current: bool = False) -> None:
        """Begin the work."""
        self._ends = [each.begin(self, current=current) for each in listeners]

    def say(self, **attributes: Any) -> None:
        """Add details."""
        self.attributes.update(attributes)

    def fail(self, error: str) -> None:
        """Note a failure without an exception."""
        self.error = error

    def drop(self, *, unless: bool = False) -> None:
        """Drop the span, because there was no work."""
        self.is_void = not unless

    def end(self, error: BaseException | None = None) -> None:
        """End the work; a second end changes nothing."""
        if error is not None:
            self.error = type(error).__name__
        ends, self._ends = self._ends, []
        for each in reversed(ends):
            each()

    def __enter__(self) -> Self:
        self.start(current=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(error)


_NOBODY = nullcontext[None]()


def span(name: str, **attributes: Any) -> AbstractContextManager[Span | None]:
    """Return a context that is a span, or gives None without listeners."""
    return Span(name, attributes) if listeners else _NOBODY


def add(name: str, amount: int = 1, **labels: Any) -> None:
    """Count an event so many times; a negative amount lowers a gauge."""
    for each in listeners:
        each.add(name, amount, labels)


def timed(waiting: "asyncio.Future[T]", name: str, **attributes: Any) -> "asyncio.Future[T]":
    """Make a span that lasts until a future is done; return the future."""
    one = Span(name, attributes)
    one.start()
    waiting.add_done_callback(lambda done: one.end(_error_of(done)))
    return waiting


def _error_of(done: "asyncio.Future[Any]") -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()


def following(run: RunT, name: str | None = None, **attributes: Any) -> RunT:
    """Make later work elsewhere, in a span if it has a name, a part of the running task's work."""
    if not listeners:
        return run
    origins = [(each, each.origin()) for each in listeners]

    async def followed(*given: Any) -> Any:
        left = [each.follow(origin) for each, origin in origins if origin is not None]
        try:
            if name is None:
                return await run(*given)
            with span(name, **attributes):
                return await run(*given)
        finally:
            for leave in reversed(left):
                leave()

    return cast("RunT", followed)


LogFormat = Literal["text", "json"]
"""The form of a log line on stderr."""

MOST_CHARS = 4_000
"""The longest line of a log."""

current_name: ContextVar[str] = ContextVar("current_name", default="-")
"""The short name of the running task's session. It tells sessions apart, and opens none."""


def formatter(form: LogFormat) -> logging.Formatter:
    """Return the formatter of a form."""
    return _OneLine() if form == "text" else _OneObject()


def printed(line: str, form: LogFormat) -> str:
    """Return a printed line in the form of the log, with the time."""
    now = datetime.now().astimezone()
    if form == "json":
        return _as_object(now.astimezone(UTC), "info", "print", line)
    return f"{now:%H:%M:%S} print   {current_name.get()} {line}"[:MOST_CHARS]


class _OneObject(logging.Formatter):
    """Writes one JSON object a record, for programs that gather logs."""

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
    """Return a log line as JSON, with its session and trace."""
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
    """Add fields to each later line of a JSON log; return a function that ends that."""
    _more_fields.append(fields)
    return lambda: _more_fields.remove(fields)


def _place_of(error: BaseException) -> str:
    """Return the file and the line of an error; empty if unknown."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""


class _OneLine(logging.Formatter):
    """Writes one line a record, for any message, with only the end of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = " ".join(record.getMessage().split())
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            place = f" at {found}" if (found := _place_of(error)) else ""
            message += f" [{type(error).__name__}: {' '.join(str(error).split())}{place}]"
        when = self.formatTime(record, "%H:%M:%S")
        return f"{when} {record.levelname.lower():<7} {current_name.get()} {message}"[:MOST_CHARS]

"""What goes on in this process, told to whoever counts or traces it; to nobody by default.

Rooms say here what takes time and what happens. Where nobody listens that costs a look at an
empty list: what listens is named by the command that serves, and lies above.
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

__all__ = [
    "MOST_CHARS",
    "Listener",
    "LogFormat",
    "Span",
    "add",
    "add_fields",
    "current_name",
    "following",
    "formatter",
    "listen",
    "listeners",
    "printed",
    "span",
    "timed",
]


T = TypeVar("T")
RunT = TypeVar("RunT", bound=Callable[..., Awaitable[Any]])


class Listener(Protocol):
    """What counts, or traces."""

    def begin(self, span: "Span", *, current: bool) -> Callable[[], None]:
        """Take note that something begins; return what is called at its end.

        Args:
            span: What begins; it says at its end how it went.
            current: Whether what begins until then in this context is a part of it.
        """
        ...

    def add(self, name: str, amount: int, labels: dict[str, Any]) -> None:
        """Take note that something has happened so many times."""
        ...

    def origin(self) -> Any:
        """What the running task does now; None where that is nothing that is known."""
        ...

    def follow(self, origin: Any, /) -> Callable[[], None]:
        """Take what begins from now on in this context as a part of an origin.

        Returns:
            What ends that, in the same context.
        """
        ...


listeners: list[Listener] = []
"""Who listens. What costs something to tell is told only where this is not empty."""


def listen(listener: Listener) -> Callable[[], None]:
    """Have something told from now on; return what ends that."""
    listeners.append(listener)

    def leave() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return leave


class Span:
    """Something that takes time: the body of a `with`, or what is between `start` and `end`.

    Args:
        name: What it is.
        attributes: What is told of it: no secret, no text of an agent's, no id of a session.

    Attributes:
        name: The same.
        attributes: The same.
        error: The class of what ended it; None where nothing did.
        is_void: Whether it turned out to be nothing.
    """

    __slots__ = ("_ends", "attributes", "error", "is_void", "name")

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.attributes = attributes
        self.error: str | None = None
        self.is_void = False
        self._ends: list[Callable[[], None]] = []

    def start(self, *, current: bool = False) -> None:
        """Begin it."""
        self._ends = [each.begin(self, current=current) for each in listeners]

    def say(self, **attributes: Any) -> None:
        """Tell more of it."""
        self.attributes.update(attributes)

    def fail(self, error: str) -> None:
        """Say what went wrong, where nothing is raised."""
        self.error = error

    def drop(self, *, unless: bool = False) -> None:
        """Say that it was nothing, so that it is not told of."""
        self.is_void = not unless

    def end(self, error: BaseException | None = None) -> None:
        """End it; a second time changes nothing."""
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
    """Something that begins with the body of a `with`, and ends with it.

    The `with` gives the span, or None where nobody listens.
    """
    return Span(name, attributes) if listeners else _NOBODY


def add(name: str, amount: int = 1, **labels: Any) -> None:
    """Say that something has happened so many times; a gauge goes down by a negative amount."""
    for each in listeners:
        each.add(name, amount, labels)


def timed(waiting: "asyncio.Future[T]", name: str, **attributes: Any) -> "asyncio.Future[T]":
    """Tell of something that goes on until a future is done; return the future."""
    one = Span(name, attributes)
    one.start()
    waiting.add_done_callback(lambda done: one.end(_error_of(done)))
    return waiting


def _error_of(done: "asyncio.Future[Any]") -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()


def following(run: RunT, name: str | None = None, **attributes: Any) -> RunT:
    """Make something that is done later, elsewhere, a part of what the running task does now.

    Args:
        run: What is done.
        name: What it is called, where it is told of itself.
        attributes: What is told of it.

    Returns:
        The same as `run`, or `run` itself where nobody listens.
    """
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

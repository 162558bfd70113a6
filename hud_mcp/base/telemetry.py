"""What goes on in this process, told to whoever counts or traces it; to nobody by default.

Rooms say here what takes time and what happens. Where nobody listens that costs a look at an
empty list: what listens is named by the command that serves, and lies above.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

__all__ = [
    "Listener",
    "Span",
    "add",
    "following",
    "listen",
    "listeners",
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

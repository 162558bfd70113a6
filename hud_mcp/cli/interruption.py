"""The end of a command: by a signal in order, its results kept, and with its last tasks."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TextIO

import anyio

from hud_mcp.base.process import stop_signals

logger = logging.getLogger(__name__)

_PATIENCE = 2
"""The number of signals that end a command in order. The next one kills it."""


class Interruption:
    """The state of a command that somebody may end. `signal` is the first one, or None."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._scope: anyio.CancelScope | None = None

    @property
    def status(self) -> int | None:
        """The exit status for the signal, or None."""
        return None if self.signal is None else 128 + self.signal

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await the result of `work` until it ends; a signal cancels it, and nothing else."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            if self.signal is None:
                await work()
        self._scope = None

    def forget(self) -> None:
        """Drop a signal that ended what comes after the work."""
        self.signal = None

    def note(self, number: int) -> None:
        """Take note of a signal."""
        if self.signal is None:
            self.signal = number
        if self._scope is not None:
            self._scope.cancel()


@asynccontextmanager
async def watched_signals(on_repeated: Callable[[], None]) -> AsyncGenerator[Interruption]:
    """Take SIGINT and SIGTERM while the body runs.

    The first signal ends the call that runs in `Interruption.run`. The code after it goes on, so
    that a second one, which calls `on_repeated`, loses no report. The third cancels the body.
    """
    interruption = Interruption()
    if os.name == "nt":  # there, only Ctrl-C comes, as an exception
        yield interruption
        return
    count = 0
    with anyio.CancelScope() as scope:

        def receive(number: int) -> None:
            nonlocal count
            count += 1
            interruption.note(number)
            if count == _PATIENCE:
                on_repeated()
            elif count > _PATIENCE:
                scope.cancel()

        with stop_signals(receive):
            yield interruption


def private_stdout() -> TextIO:
    """Keep standard output for the protocol; output of children and libraries goes to stderr."""
    private = os.dup(1)  # not inherited by children
    os.dup2(2, 1)
    return os.fdopen(private, "w")


_LEAVE_S = 0.3
"""The time in which leftover tasks may end. Everything is recorded by then."""


async def leave(code: int) -> None:
    """End the process here if a task listens to no cancellation: its loop would wait for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    stuck = (await asyncio.wait(others, timeout=_LEAVE_S))[1] if others else set[Any]()
    if stuck:
        logger.warning("the process ends, although %d tasks do not", len(stuck))
        sys.stderr.flush()
        os._exit(code)

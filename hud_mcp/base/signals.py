"""SIGINT and SIGTERM of a server: handled on its event loop, until a deadline, then given back."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a process to end in order."""


@contextmanager
def stop_signals(
    on_signal: Callable[[signal.Signals], None], *, patience: int | None = None
) -> Generator[None]:
    """Take SIGINT and SIGTERM while the body runs, in an event loop.

    On another thread it takes no signal: the owner of the main thread gets them, and ends the body.
    After `patience` signals, the next one ends the process at once, even if the loop is blocked.
    The status is 128 plus its number.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    count = 0

    # Not loop.add_signal_handler: its callbacks wait for a loop that may be blocked.
    def receive(number: int, frame: FrameType | None) -> None:
        del frame
        nonlocal count
        count += 1
        if patience is not None and count > patience:
            os._exit(128 + number)
        loop.call_soon_threadsafe(on_signal, signal.Signals(number))

    before = {number: signal.signal(number, receive) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def interruptible() -> Generator[None]:
    """Let SIGINT raise `KeyboardInterrupt` in the body, which gives the event loop no turn.

    On another thread than the main one it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


logger = logging.getLogger(__name__)

_WITHIN_S = 1.85
"""The longest end; the rest of two seconds is for the system to clean up."""
_LAST_S = 0.1
"""The time for the last lines and the end of other processes."""
_TIDY_S = 0.4
"""The time after which the machine counts as busy, and the interpreter may not tidy up either."""


class Deadline:
    """The end of a process: in order if that is quick enough, else at once.

    The records until then stand: the store writes whole steps. A session whose end is not recorded
    goes on in the next server, as after a kill. `kill` ends the child processes, on another thread.
    """

    def __init__(self, kill: Callable[[], None], *, within_s: float = _WITHIN_S) -> None:
        self._kill = kill
        self._within_s = within_s
        self._began_s: float | None = None
        self._code = 0

    def begin(self, code: int) -> None:
        """Set the deadline and the exit status once; a second call changes nothing."""
        if self._began_s is not None:
            return
        self._began_s, self._code = time.monotonic(), code
        timer = threading.Timer(self._within_s, self._expire)
        timer.name, timer.daemon = "end of the process", True
        timer.start()

    def finish(self) -> None:
        """Note that everything is closed. If little time is left, the process ends here."""
        if self._began_s is not None and time.monotonic() - self._began_s > _TIDY_S:
            self._leave()

    def _expire(self) -> None:
        # Writing may wait for a lock of a thread that gets no processor.
        threading.Timer(_LAST_S, self._leave).start()
        logger.warning("the process ends after %.2f s, although not all is closed", self._within_s)
        try:
            self._kill()
        finally:
            self._leave()

    def _leave(self) -> None:
        sys.stderr.flush()
        os._exit(self._code)

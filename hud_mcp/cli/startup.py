"""How commands start quickly."""

import gc
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["interrupted_quietly", "without_collecting"]

_COLLECTED_AFTER = (5_000, 10, 5)
"""After so many new objects, and so many collections of what is younger."""


@contextmanager
def interrupted_quietly() -> Generator[None]:
    """Let Ctrl-C end the process in the body, where imports would make tracebacks of it.

    A process that ignores Ctrl-C still does.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def without_collecting() -> Generator[None]:
    """Load or show much without looking for garbage meanwhile, which takes a tenth of that.

    What is there then stays to the end, and is not looked through again. A session is some sixty
    objects that live for a while: from now on, new ones are looked through less often too. With
    Python's own 700 that takes a tenth of a short session.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*_COLLECTED_AFTER)
        gc.enable()

"""How commands start quickly."""

import gc
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["interrupted_quietly", "without_collecting"]


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
    """Import without looking for garbage meanwhile, which takes a tenth of a start.

    What is there then stays to the end, and is not looked through again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

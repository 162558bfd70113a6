"""The process of a command: its signals, files, output and garbage collection."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import resource


_FILES = 65_536
"""More is of no use to a server, and slows programs that close every number there may be."""


def raise_file_limit() -> None:
    """Raise the limit of open files and connections as far as the system allows.

    The usual soft limit is 1,024, for programs that use `select`; a server holds more sessions.
    """
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def discard_output() -> None:
    """Write nothing more to standard output, nor what waits to be written.

    Python tries that once more when the process ends, and makes its status 120 if it fails.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


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
    """Load or show much without a search for garbage, which takes a tenth of that.

    The objects of the body stay to the end, and later searches leave them out. They are rarer too:
    with Python's own 700 they take a tenth of a short session, which is some sixty objects.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*_COLLECTED_AFTER)
        gc.enable()

"""What a command does to the process that it runs in."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import resource

__all__ = ["discard_output", "keep_to_itself", "raise_file_limit"]

_FILES = 65_536
"""More is of no use to a server, and slows programs that close every number there may be."""

_PR_SET_DUMPABLE = 4
"""Of prctl(2): what is not dumpable has its /proc files owned by root, and cannot be traced."""


def raise_file_limit() -> None:
    """Let this process have as many files and connections open as the system allows it.

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


def keep_to_itself() -> None:
    """On Linux, let no other process of this user read this one's memory, files and environment.

    A run's server and its runner hold the token from which those of its agents are made. Who is
    root, or has the run's store, is not kept out by it.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def discard_output() -> None:
    """Write nothing more to standard output, nor what waits to be written.

    Python tries that once more when the process ends, and makes its status 120 where it fails.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())

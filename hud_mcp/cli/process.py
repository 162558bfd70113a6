"""What a command does to the process that it runs in."""

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import resource

__all__ = ["discard_output", "raise_file_limit"]

_FILES = 65_536
"""More is of no use to a server, and slows programs that close every number there may be."""


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


def discard_output() -> None:
    """Write nothing more to standard output, nor what waits to be written.

    Python tries that once more when the process ends, and makes its status 120 where it fails.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())

"""Secrets of this process: files that no sandbox shows, and its own memory.

A folder that a sandbox shows can hold the answers of tasks: an environment, a taskset, a record, a
token. The reader of such a file notes it here, and a sandbox that opens covers it.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

_VARIABLE = "HUD_MCP_HIDDEN"
"""The paths that the parent process has noted: a run's server does not read the taskset itself."""

_hidden: dict[str, None] = dict.fromkeys(filter(None, os.environ.get(_VARIABLE, "").split(":")))


def hide(*paths: str | Path) -> None:
    """Note files or folders that no sandbox of this process may show from now on."""
    _hidden.update((str(Path(path).resolve()), None) for path in paths)


def hidden_paths() -> list[str]:
    """Return every noted path, absolute and without links."""
    return list(_hidden)


def hidden_for_children() -> dict[str, str]:
    """Return the variable that gives the noted paths to a child process."""
    return {_VARIABLE: ":".join(_hidden)}


_PR_SET_DUMPABLE = 4
"""Of prctl(2): root owns the /proc files of a process that is not dumpable; nobody can trace it."""


def keep_to_itself() -> None:
    """On Linux, hide this process's memory, files and environment from others of this user.

    A run's server and its runner hold the token from which their agents' tokens are made. This does
    not stop root, nor a holder of the run's store.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

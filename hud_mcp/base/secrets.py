"""The files and folders of this machine that no sandbox shows, wherever they are.

A sandbox shows some folders of the machine for their programs. What tells the answers of tasks
can be in one of them: an environment, a taskset, a record, a token. Whatever reads such a file
notes it here, and a sandbox that opens covers it.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["hidden_for_children", "hidden_paths", "hide", "keep_to_itself"]


_VARIABLE = "HUD_MCP_HIDDEN"
"""Paths that the process above has noted: a server of a run does not read the taskset itself."""

_hidden: dict[str, None] = dict.fromkeys(filter(None, os.environ.get(_VARIABLE, "").split(":")))


def hide(*paths: str | Path) -> None:
    """Note files or folders that no sandbox of this process may show from now on."""
    _hidden.update((str(Path(path).resolve()), None) for path in paths)


def hidden_paths() -> list[str]:
    """Every noted path, absolute and without links."""
    return list(_hidden)


def hidden_for_children() -> dict[str, str]:
    """The variable that gives the noted paths to a process below."""
    return {_VARIABLE: ":".join(_hidden)}


_PR_SET_DUMPABLE = 4
"""Of prctl(2): what is not dumpable has its /proc files owned by root, and cannot be traced."""


def keep_to_itself() -> None:
    """On Linux, let no other process of this user read this one's memory, files and environment.

    A run's server and its runner hold the token from which those of its agents are made. Who is
    root, or has the run's store, is not kept out by it.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

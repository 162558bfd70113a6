"""What a process does to keep its secrets from its neighbours, by the C library."""

import ctypes
import sys
from contextlib import suppress

__all__ = ["keep_to_itself"]

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

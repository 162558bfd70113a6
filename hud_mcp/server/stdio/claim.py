"""The protocol's two descriptors, taken from everything else in the process."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl

__all__ = ["StdioStreams", "claim_stdio"]

_claim: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class StdioStreams:
    """The protocol's two descriptors, which nothing else in the process knows."""

    stdin_fd: int
    stdout_fd: int


@contextmanager
def claim_stdio() -> Generator[StdioStreams]:
    """Take standard input and output for the protocol alone.

    Until the context exits, descriptor 0 reads the null device, and descriptor 1 and `sys.stdout`
    write to standard error, so that no print, library or child process reads from the protocol
    or writes to it. Enter it before any code that might keep a reference to `sys.stdout` or start
    a process.

    Yields:
        The protocol's descriptors; child processes do not inherit them.

    Raises:
        RuntimeError: Standard input and output are claimed already.
        OSError: One of them is closed. Nothing has changed.
    """
    if not _claim.acquire(blocking=False):
        raise RuntimeError("standard input and output are claimed already in this process")
    try:
        streams = StdioStreams(_private_copy(0), _private_copy(1))
        try:
            with _diverted(streams):
                yield streams
        finally:
            if sys.platform != "win32":  # there, a close waits for a thread that reads or writes
                os.close(streams.stdout_fd)
                os.close(streams.stdin_fd)
    finally:
        _claim.release()


def _private_copy(fd: int) -> int:
    if sys.platform == "win32":
        copy = os.dup(fd)
        os.set_inheritable(copy, False)
        return copy
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


@contextmanager
def _diverted(streams: StdioStreams) -> Generator[None]:
    stdout = sys.stdout
    _flush_stdout()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        _point(null, at=0)
        try:
            _point(2, at=1)
        except OSError:  # standard error is closed
            _point(null, at=1)
    finally:
        os.close(null)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        # Whatever was printed must be out before descriptor 1 is the protocol again.
        _flush_stdout()
        sys.stdout = stdout
        _flush_stdout()
        _point(streams.stdin_fd, at=0)
        _point(streams.stdout_fd, at=1)


def _point(source: int, *, at: int) -> None:
    os.dup2(source, at)
    if sys.platform == "win32":
        # A child process takes its handles from Win32, not from the C runtime.
        rebind_std_handle_to_fd(at)


def _flush_stdout() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):  # its reader is gone
                stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)  # what C libraries have printed

"""Run by the interpreter that has `hud`: its server, which ends with the process that began it.

The pipe on standard input is that process's sign of life; nobody else has its other end. The
server then has a while for its shutdown hooks, whether or not anybody waits for it; what it has
started ends with it. Arguments are those of `python -m hud.environment.server`.
"""

import atexit
import os
import runpy
import select
import signal
import sys
import threading
import time

_GRACE_S = 30.0
_LOOK_S = 0.02


def _end_with(pipe: int, left: threading.Event) -> None:
    try:
        while os.read(pipe, 4096):
            pass
    finally:
        left.set()
        os.kill(os.getpid(), signal.SIGTERM)
        _outlive_readers(time.monotonic() + _GRACE_S)
        _end_group()
        os._exit(1)


def _outlive_readers(until_s: float) -> None:
    """Wait; what hooks print goes nowhere once nobody reads it, and is no error to them."""
    watch = select.poll()
    for descriptor in (1, 2):
        watch.register(descriptor, 0)  # errors alone: that the other end is closed
    while time.monotonic() < until_s:
        for descriptor, _event in watch.poll(0):
            watch.unregister(descriptor)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, descriptor)
            os.close(nothing)
        time.sleep(_LOOK_S)


def _end_group() -> None:
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _end_group_if(left: threading.Event) -> None:
    """Nobody is there any more to end what the server has started."""
    if left.is_set():
        _end_group()


def _main() -> None:
    atexit.register(
        _end_group_if, left := threading.Event()
    )  # the first registered is the last run
    pipe = os.dup(0)  # not inherited: what an agent runs shall not read from it
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with, args=(pipe, left), daemon=True).start()
    sys.argv[0] = "hud.environment.server"
    runpy.run_module("hud.environment.server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()

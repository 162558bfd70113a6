"""Run HUD's server in the interpreter that has `hud`. It ends with the process that started it.

The pipe on standard input tells that the starter lives. After it closes, the server has a while for
its shutdown hooks. The arguments are those of `python -m hud.environment.server`.
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
_DRAIN_S = 1.0
_LOOK_S = 0.01
_CHUNK_BYTES = 65536


def _end_with(pipe: int, left: threading.Event) -> None:
    try:
        while os.read(pipe, 4096):
            pass
    finally:
        for descriptor in (1, 2):
            _outlive_reader(descriptor)
        left.set()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_S)
        _end_group()
        os._exit(1)


_relayed: list[int] = []
"""The pipes with prints of hooks that wait to be passed on."""


def _outlive_reader(descriptor: int) -> None:
    """Pass prints on while somebody reads them. Without a reader, printing is not an error."""
    reader, writer = os.pipe()
    outside = os.dup(descriptor)
    os.dup2(writer, descriptor)
    os.close(writer)
    _relayed.append(reader)
    threading.Thread(target=_relay, args=(reader, outside), daemon=True).start()


def _relay(reader: int, outside: int) -> None:
    while chunk := os.read(reader, _CHUNK_BYTES):
        try:
            os.write(outside, chunk)
        except OSError:  # nobody reads any more; it is taken all the same
            continue


def _drain() -> None:
    until_s = time.monotonic() + _DRAIN_S
    while _relayed and time.monotonic() < until_s and select.select(_relayed, [], [], 0)[0]:
        time.sleep(_LOOK_S)


def _end_group() -> None:
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _end_group_if(left: threading.Event) -> None:
    """Kill what the server started, if its starter is gone."""
    if left.is_set():
        _drain()
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

"""Run by the interpreter that has `hud`: its server, which ends with the process that began it.

The pipe on standard input is that process's sign of life; nobody else has its other end.
Arguments are those of `python -m hud.environment.server`.
"""

import os
import runpy
import signal
import sys
import threading
import time

_GRACE_S = 5.0


def _end_with(pipe: int) -> None:
    try:
        while os.read(pipe, 4096):
            pass
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_S)
        if hasattr(os, "killpg"):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)


def _main() -> None:
    pipe = os.dup(0)  # not inherited: what an agent runs shall not read from it
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    sys.argv[0] = "hud.environment.server"
    runpy.run_module("hud.environment.server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()

"""A process that has loaded this library once, and forks for each template that is to run.

It has one thread, runs no author's code, and reads one socket: each message is a descriptor of
what is to be run, and those that go with it. Environment variables, the folder and the places
to import from are the server's at that moment.
"""

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from hud_mcp.plugins.hud.place import runner
from hud_mcp.plugins.hud.place.namespaces import Mounts, adopt_orphans, enter, watch

__all__ = ["main"]

_MOST_FDS = 8


def main() -> None:
    """Serve the socket that is standard input, until it ends."""
    asked = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what has ended is gone
    adopt_orphans()
    for module in json.loads(sys.argv[2]):  # once for all of them
        importlib.import_module(module)
    while True:
        message, fds, _flags, _address = socket.recv_fds(asked, 1, _MOST_FDS)
        if not message:
            return
        if os.fork() == 0:
            asked.close()
            _become(fds)
        for fd in fds:
            os.close(fd)


def _become(fds: list[int]) -> NoReturn:
    """Turn this fork into the process that watches over a template's."""
    code = 1
    try:
        plan_fd, control_fd, output_fd, life_fd, *namespaces = fds
        with os.fdopen(plan_fd, "rb") as file:
            plan: dict[str, Any] = json.loads(file.read())
        os.setsid()
        os.environ.clear()
        os.environ.update(plan["environ"])
        os.chdir(plan["cwd"])
        sys.path[:] = plan["path"]
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        os.close(output_fd)
        if namespaces:
            enter(namespaces)
        for fd in namespaces:
            os.close(fd)
        if os.fork() != 0:
            os._exit(0)
        life = socket.socket(fileno=life_fd)
        mounts = Mounts() if namespaces else None
        if mounts is not None:
            mounts.show_processes()
        else:
            adopt_orphans()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            life.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = runner.run(plan, socket.socket(fileno=control_fd), mounts)
        else:
            os.close(control_fd)
            for fd in (1, 2):
                os.dup2(0, fd)
            watch(pid, life)
            code = 0
    except BaseException:  # noqa: BLE001  # a fork must not return; its output is the session's log
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)

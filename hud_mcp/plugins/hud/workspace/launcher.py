"""The process that forks for templates, one for all sessions of a server; and the server's side."""

import asyncio
import importlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hud_mcp.environment.spec import Shared
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.workspace import runner
from hud_mcp.plugins.hud.workspace.forks import Mounts, adopt_orphans, enter, watch

_MOST_FDS = 8


def main() -> None:
    """Serve the socket on standard input until it ends."""
    asked = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # an ended process is gone
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


logger = logging.getLogger(__name__)

_KEY = "the launcher of templates"
_CLOSE_S = 2.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hud_mcp.plugins.hud.workspace.launcher import main; main()"
)


class Launched:
    """A template's process that was started. Its owner closes it.

    `life` has the exit status after the end. Closing it kills the process and everything that the
    process started.
    """

    def __init__(self) -> None:
        self.control, self._their_control = socket.socketpair()
        self.life, self._their_life = socket.socketpair()
        self.output, self._their_output = os.pipe()

    @property
    def theirs(self) -> list[int]:
        """The descriptors of the process."""
        return [self._their_control.fileno(), self._their_output, self._their_life.fileno()]

    def close_theirs(self) -> None:
        """Close this process's copies of them."""
        self._their_control.close()
        self._their_life.close()
        os.close(self._their_output)

    def close(self) -> None:
        """End the process; the user of `control` closes that."""
        self.life.close()
        os.close(self.output)


class Launcher:
    """Starts templates' processes, which all need the modules of `preload`. Made by `of`."""

    def __init__(self, preload: Sequence[str]) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-P", "-c", _START, json.dumps(sys.path), json.dumps(preload)],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    @classmethod
    async def of(cls, shared: Shared, preload: Sequence[str]) -> "Launcher":
        """Return the launcher of this process; replace one that has ended."""

        async def open_one() -> Launcher:
            return cls(preload)

        found = await shared.get(_KEY, open_one)
        if found._process.poll() is not None:  # noqa: SLF001  # its own class
            logger.error("the launcher of templates has ended; another one is started")
            shared.forget(_KEY, found)
            await found.close()
            found = await shared.get(_KEY, open_one)
        return found

    def launch(self, plan: Mapping[str, Any], namespaces: Sequence[int]) -> Launched:
        """Start a process for a plan, in namespaces whose descriptors the caller keeps.

        EnvironmentFailed says that it cannot be started.
        """
        plan_fd = os.memfd_create("hud-mcp")
        launched = Launched()
        try:
            here = {"environ": dict(os.environ), "cwd": str(Path.cwd()), "path": sys.path}
            whole = {**plan, **here}
            with open(plan_fd, "wb", closefd=False) as file:
                file.write(json.dumps(whole).encode())
            os.lseek(plan_fd, 0, os.SEEK_SET)
            socket.send_fds(self._ours, [b"1"], [plan_fd, *launched.theirs, *namespaces])
        except OSError as exc:
            launched.close()
            launched.control.close()
            raise EnvironmentFailed(
                f"A template's process could not be started: {exc.strerror}. Start a new task."
            ) from exc
        finally:
            os.close(plan_fd)
            launched.close_theirs()
        return launched

    async def close(self) -> None:
        """Start no more processes; running ones go on. It may be called twice."""
        self._ours.close()
        if self._process.poll() is None:
            try:
                await asyncio.wait_for(asyncio.to_thread(self._process.wait), _CLOSE_S)
            except TimeoutError:
                self._process.kill()
        self._process.wait()

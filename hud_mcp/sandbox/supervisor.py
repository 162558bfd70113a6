"""The process of this machine that holds a sandbox open, from its start to its end."""

import os
import socket
import subprocess

import anyio

from hud_mcp.sandbox.bubblewrap import Launch
from hud_mcp.sandbox.descriptors import readable

__all__ = ["end_supervisor", "start_supervisor"]

_END_S = 3.0


def start_supervisor(
    launch: Launch, control: socket.socket, errors: int
) -> "subprocess.Popen[bytes]":
    """Start a supervisor; asyncio's own way would take a thread for each."""
    return subprocess.Popen(  # noqa: S603  # a command that is made here
        launch.argv,
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=launch.fds,
        env=launch.env,
        cwd="/",
        start_new_session=True,
        user=launch.user,
        group=launch.user,
        extra_groups=None if launch.user is None else (),
    )


async def end_supervisor(supervisor: "subprocess.Popen[bytes]") -> None:
    """Wait for a supervisor that was told to end; one that does not is killed."""
    if supervisor.poll() is not None:
        return
    ending = os.pidfd_open(supervisor.pid)
    try:
        with anyio.move_on_after(_END_S):
            await readable(ending)
        if supervisor.poll() is None:
            supervisor.kill()
            await readable(ending)
    finally:
        os.close(ending)
    supervisor.wait()

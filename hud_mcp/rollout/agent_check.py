"""What starts an agent in Python in a process of its own, and whether there is such an agent."""

import subprocess
import sys

import anyio

from hud_mcp.base.reaper import reaped
from hud_mcp.errors import InvalidAgent

__all__ = ["check_reference", "process_command"]

_CHECK_S = 120.0


def process_command(reference: str) -> list[str]:
    """The program, and its arguments, that works on one task as an agent in Python.

    Args:
        reference: Where the agent is written.
    """
    return [sys.executable, "-P", "-m", "hud_mcp.rollout.agent_process", reference]


async def check_reference(reference: str) -> None:
    """Check that there is such an agent, in a process of its own: its file may do anything.

    Args:
        reference: Where it is written.

    Raises:
        InvalidAgent: There is none, or it cannot work; the text says what to write.
    """
    # What the file starts as it is loaded may hold the output open.
    command = reaped([*process_command(reference), "--check"])
    done = None
    with anyio.move_on_after(_CHECK_S):
        done = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False
        )
    if done is None:
        raise InvalidAgent(f"{reference} takes more than {_CHECK_S:g} s to load.")
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()
        raise InvalidAgent(said or f"{reference} ends its process while it is loaded.")

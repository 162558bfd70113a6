"""The process of one agent in Python: `python -m hud_mcp.rollout.agent_process REFERENCE`.

The environment names its session. With `--check`, it only checks that there is such an agent.
"""

import os
import subprocess
import sys
import traceback

import anyio

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.given import GivenAgent, load_reference
from hud_mcp.base.reaper import reaped
from hud_mcp.errors import HudMcpError, InvalidAgent
from hud_mcp.rollout.remote import remote_conversation

__all__ = ["check_reference", "main", "process_command"]


_CHECK = "--check"


def main(arguments: list[str]) -> int:
    """Work on the task that the environment names, and return the exit status."""
    try:
        # The agent's file may do anything as it loads: only this process meets it.
        agent = load_reference(arguments[0])
        if _CHECK in arguments:
            return 0
        anyio.run(_work, agent)
    except HudMcpError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except Exception:  # noqa: BLE001  # the agent's own: its run's log has it
        traceback.print_exc()
        return 1
    return 0


async def _work(given: GivenAgent) -> None:
    session = os.environ["HUD_MCP_SESSION"]
    url, token = os.environ["HUD_MCP_URL"], os.environ["HUD_MCP_TOKEN"]
    async with remote_conversation(url, token, session) as conversation:
        agent = Agent(conversation, session=session, prompt=os.environ["HUD_MCP_PROMPT"])
        try:
            await given.work(agent, os.environ["HUD_MCP_TASK"])
        finally:
            for line in agent.lines:
                sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


_CHECK_S = 120.0


def process_command(reference: str) -> list[str]:
    """Return the command of a process that works on one task as an agent in Python."""
    return [sys.executable, "-P", "-m", "hud_mcp.rollout.agent_process", reference]


async def check_reference(reference: str) -> None:
    """Check in a process of its own that there is such an agent: its file may do anything.

    Raises:
        InvalidAgent: There is no such agent, or it cannot work; the text says what to write.
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

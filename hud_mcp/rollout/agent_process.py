"""The process of one agent in Python: it finds its session in its environment, as any command.

`python -m hud_mcp.rollout.agent_process REFERENCE` works on the task; with `--check`, it tells
whether there is such an agent, and works on nothing.
"""

import os
import sys
import traceback

import anyio

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.given import GivenAgent, load_reference
from hud_mcp.errors import HudMcpError
from hud_mcp.rollout.remote import remote_conversation

__all__ = ["main"]

_CHECK = "--check"


def main(arguments: list[str]) -> int:
    """Work on the task that the environment names; return the exit status."""
    try:
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

"""The reference of a row, played by an agent in conversation with the user of its script.

The agent asks the user for the user's own steps, where its policy names their tools.
"""

import json

from tau2_rows import Case, side_of
from tau2_script import WRITES

from hud_mcp import ActionFailed, Agent

__all__ = ["solve"]

WHO = "Could you please give me your email address, or your name and zip code?"
CLOSING = "Is there anything else that I can do for you?"
MOST_CLOSINGS = 3


async def solve(agent: Agent, case: Case) -> str:
    """Ask who it is, then do what the reference does, tell what is to be told, and take leave."""
    if await _is_over(agent, WHO):
        return ""
    for action in case.steps:
        name, arguments = action["name"], action["arguments"]
        if side_of(action) == "user":
            wish = f"Please use {name} on your side. {json.dumps(arguments) if arguments else ''}"
            if case.names(name) and await _is_over(agent, wish.strip()):
                return ""
            continue
        told = f"I would do this: {name} {json.dumps(arguments)}"
        is_write = WRITES.match(name)
        if is_write and await _is_over(agent, f"{told}. Do you confirm that I go ahead?"):
            return ""
        try:
            await agent.tool(name, **arguments)
        except ActionFailed:  # the reference of some rows fails
            continue
    told = [str(each) for each in case.criteria.get("communicate_info") or ()]
    if told and await _is_over(agent, f"You wanted to know: {'; '.join(told)}."):
        return ""
    for _ in range(MOST_CLOSINGS):
        if await _is_over(agent, CLOSING):
            return ""
    return "done"


async def _is_over(agent: Agent, text: str) -> bool:
    """Say something to the user; whether the conversation is over."""
    said = await agent.ask("message_user", {"text": text})
    if said.is_error:
        raise ActionFailed(said.text)
    return said.structured.get("state") == "ended"

"""How pages are solved on which fields are to be filled."""

import re

from miniwob_steps import quoted, solves, submit

from hud_mcp import Agent


@solves("choose-list")
async def choose_from_list(agent: Agent) -> None:
    """Choose an entry of the list."""
    name = re.fullmatch(r"Select (.+) from the list and click Submit\.?", agent.prompt)[1]
    await agent.custom("select_option", selector="#options", values=[name])
    await agent.click("#area button")


@solves("enter-text", "enter-text-dynamic")
async def enter_text(agent: Agent) -> None:
    """Type what is quoted."""
    await agent.type(quoted(agent)[0], "#tt")
    await submit(agent)


@solves("enter-password")
async def enter_password(agent: Agent) -> None:
    """Type the password twice."""
    for field in ("#password", "#verify"):
        await agent.type(quoted(agent)[0], field)
    await submit(agent)


@solves("login-user")
async def log_in(agent: Agent) -> None:
    """Type the name and the password."""
    for text, field in zip(quoted(agent), ("#username", "#password"), strict=True):
        await agent.type(text, field)
    await submit(agent)


@solves("focus-text", "focus-text-2")
async def focus_text(agent: Agent) -> None:
    """Click into a field; the first, where no number says which."""
    number = re.findall(r"(\d)(?:st|nd|rd)", agent.prompt) or ["1"]
    await agent.click(f"#area input >> nth={int(number[0]) - 1}")

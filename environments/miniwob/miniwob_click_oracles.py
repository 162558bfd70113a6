"""How pages are solved on which something is to be clicked."""

import re

from miniwob_steps import by_text, quoted, solves, submit, tick

from hud_mcp import Agent


@solves("click-test")
async def click_test(agent: Agent) -> None:
    """Click the only button."""
    await submit(agent)


@solves("click-test-2", "click-test-transfer")
async def click_one(agent: Agent) -> None:
    """Click the button with the name that is asked for."""
    name = re.findall(r"button (?:labeled )?(ONE|TWO)", agent.prompt)[0]
    await agent.click(by_text("button", name))


@solves("click-button", "unicode-test")
async def click_button(agent: Agent) -> None:
    """Click the first button with a name."""
    await agent.click(by_text("#area button", quoted(agent)[0]))


@solves("click-link")
async def click_link(agent: Agent) -> None:
    """Click a word of the text."""
    await agent.click(by_text("#area span", quoted(agent)[0]))


@solves("click-dialog")
async def close_dialog(agent: Agent) -> None:
    """Close the dialog."""
    await agent.click(".ui-dialog-titlebar-close")


@solves("click-dialog-2")
async def press_in_dialog(agent: Agent) -> None:
    """Press one button of the dialog; the cross is called x."""
    name = quoted(agent)[0]
    cross = ".ui-dialog-titlebar-close"
    await agent.click(cross if name == "x" else by_text(".ui-dialog button", name))


@solves("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer")
async def tick_boxes(agent: Agent) -> None:
    """Tick the boxes that are named, or none."""
    names = re.fullmatch(r"Select (.+) and click Submit\.?", agent.prompt)[1].split(", ")
    await tick(agent, *(name for name in names if name != "nothing"))
    await submit(agent)


@solves("click-option")
async def pick_option(agent: Agent) -> None:
    """Pick one of several."""
    await tick(agent, re.fullmatch(r"Select (.+) and click Submit\.?", agent.prompt)[1])
    await submit(agent)


@solves("click-tab")
async def show_tab(agent: Agent) -> None:
    """Show a tab by its number."""
    number = re.findall(r"Tab #(\d)", agent.prompt)[0]
    await agent.click(f'a[href="#tabs-{number}"]')


@solves("click-collapsible", "click-collapsible-nodelay")
async def open_section(agent: Agent) -> None:
    """Open the section, and press what it holds."""
    await agent.click("#area h3 >> nth=0")
    await submit(agent)

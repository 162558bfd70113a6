"""What a person does in the mail client, in a word each, for the oracles."""

import re

from web_steps import press_button, see

from hud_mcp import Agent

__all__ = [
    "add_people",
    "button_in",
    "items",
    "open_mail",
    "open_place",
    "read_down",
    "read_people",
    "read_year",
    "search",
    "select_all",
    "send",
    "unfold",
    "write_text",
]

_SEARCH = 'role=searchbox[name="Search mails"]'
_PERSON = re.compile(r"([^\s<>,:\"]+@[^\s<>,\"]+\.example)")


async def search(agent: Agent, words: str) -> None:
    """Search, and wait for what is found."""
    await agent.type(words, _SEARCH, enter=True)
    await see(agent, "Search results for")


async def open_mail(agent: Agent, subject: str) -> None:
    """Open the first conversation of a list that has this in its line."""
    await agent.click(f'.row a:has-text("{subject}") >> nth=0')
    await see(agent, "Back to the list")


async def open_place(agent: Agent, name: str, *, shows: str) -> None:
    """Open a place that the side lists."""
    await agent.click(f'role=navigation[name="Mailbox"] >> role=link[name=/^{name}/]')
    await see(agent, shows)


async def unfold(agent: Agent, count: int) -> None:
    """Show all mails of a conversation."""
    await press_button(agent, f"Unfold all {count} mails")


async def read_down(agent: Agent, *, by_px: int = 450) -> list[str]:
    """Read a page to its end; each view's text in order."""
    views = [agent.text]
    while "scroll to see" in agent.text or "out of view" in agent.text:
        await agent.step({"type": "scroll", "x": 700, "y": 450, "scroll_x": 0, "scroll_y": by_px})
        if agent.text == views[-1]:
            break
        views.append(agent.text)
    return views


async def select_all(agent: Agent) -> None:
    """Select every conversation of a list, on all of its pages."""
    await agent.click('role=checkbox[name="Select all on this page"]')
    every = re.search(r'button "(Select all \d+ conversations)"', agent.text)
    if every:
        await press_button(agent, every[1])


async def add_people(agent: Agent, field: str, *emails: str) -> None:
    """Write addresses into a field for people."""
    for email in emails:
        await agent.type(email, f'role=combobox[name="{field}"]', enter=True)


async def write_text(agent: Agent, text: str) -> None:
    """Write a mail's text."""
    await agent.type(text, 'role=textbox[name="Text"]')


async def send(agent: Agent) -> None:
    """Send the mail that is written."""
    await press_button(agent, "Send")
    await see(agent, "The mail was sent.")


def items(text: str) -> list[str]:
    """The items of a page's lists, each with the lines below its first."""
    return re.split(r"^ *- ", text, flags=re.MULTILINE)[1:]


def button_in(item: str, name: str) -> str:
    """The ref of the button in an item that is called so."""
    return re.search(rf'button "{name}" \[(\w+)', item)[1]


def read_people(text: str) -> list[str]:
    """The addresses in a text, each once."""
    return list(dict.fromkeys(_PERSON.findall(text)))


def read_year(text: str) -> int:
    """The year of the day that the top of the page shows."""
    return int(re.search(r"Today: \w+, \d+ \w+ (\d+)", text)[1])

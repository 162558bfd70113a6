"""What a reader of the wiki does, for the oracles: look up, open, read, edit."""

import re

from web_steps import heading, see

from hud_mcp import Agent

__all__ = [
    "below",
    "change",
    "edit",
    "fact",
    "follow",
    "look_up",
    "number_of",
    "open_tab",
    "prompt_name",
    "save",
]

_REPLACE, _SAVE = 'role=button[name="Replace all"]', 'role=button[name="Save page"]'


async def look_up(agent: Agent, title: str, *, shows: str | None = None) -> None:
    """Search for a title, and open the page; a redirect shows another heading."""
    await agent.type(title, 'role=searchbox[name="Search the wiki"]', enter=True)
    await see(agent, "found for “")
    await follow(agent, title, shows=shows)


async def follow(agent: Agent, words: str, *, shows: str | None = None) -> None:
    """Follow the first link of the page's content that is called so, to a page with a heading."""
    await agent.click(f'main >> role=link[name="{words}"] >> nth=0')
    await see(agent, heading(words if shows is None else shows, begins=True))


async def open_tab(agent: Agent, name: str, *, shows: str) -> None:
    """Open another view of the page."""
    await agent.click(f'role=navigation[name="This page"] >> role=link[name="{name}"]')
    await see(agent, heading(shows, begins=True))


def fact(agent: Agent, name: str) -> str:
    """What the infobox in view says.

    Raises:
        LookupError: It has no such line.
    """
    found = re.search(rf"^ *\| {name} \| (.+)$", agent.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"no {name!r} in view:\n{agent.text}")
    return re.sub(r'link "([^"]+)" \[[^]]*\]', r"\1", found[1])


def below(text: str, words: str) -> str:
    """The lines of a page below the heading that begins with these words."""
    return text[heading(words, begins=True).search(text).end() :]


def number_of(text: str) -> int:
    """The first number of a text."""
    return int(re.findall(r"\d[\d,]*", text)[0].replace(",", ""))


def prompt_name(agent: Agent, pattern: str) -> str:
    """A name that the prompt has, between the words of a pattern.

    Raises:
        LookupError: It has none.
    """
    found = re.search(pattern, agent.prompt)
    if found is None:
        raise LookupError(f"{pattern!r} is not in the prompt")
    return found[1]


async def edit(agent: Agent, title: str) -> None:
    """Open the page's editor, with the fields to find and to replace."""
    await open_tab(agent, "Edit", shows=f"Edit: {title}")
    await agent.click("summary >> nth=0")


async def change(agent: Agent, old: str, new: str) -> None:
    """Replace words everywhere in the text that is edited."""
    await agent.step(
        {"type": "type", "selector": _field("Find"), "text": old},
        {"type": "type", "selector": _field("Replace with"), "text": new},
        {"type": "click", "selector": _REPLACE},
    )
    await see(agent, " replaced.")


async def save(agent: Agent, summary: str = "Edit") -> None:
    """Save what was edited."""
    await agent.step(
        {"type": "type", "selector": _field("Edit summary"), "text": summary},
        {"type": "click", "selector": _SAVE},
    )
    await see(agent, "Your change is saved.")


def _field(label: str) -> str:
    return f'internal:label="{label}"s'

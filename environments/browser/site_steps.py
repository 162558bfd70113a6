"""What a person does on a page, in a word each, for the oracles."""

import re
from typing import Any

from hud_mcp import Agent

__all__ = [
    "check",
    "choose",
    "click_all",
    "fill",
    "follow",
    "heading",
    "pick",
    "press_button",
    "see",
    "sign_in",
]

_LOOKS, _PAUSE_MS = 20, 250


def heading(words: str, *, begins: bool = False) -> re.Pattern[str]:
    """The line of a heading with these words; `begins` if they are its first ones."""
    end = "" if begins else r'(?="| ·| \[|$)'
    return re.compile(rf'^[ -]*#+ (?:link ")?{re.escape(words)}{end}', re.MULTILINE)


async def see(agent: Agent, words: str | re.Pattern[str], *, gone: bool = False) -> None:
    """Look until the page says something, or says it no longer; slow pages take a moment.

    Raises:
        LookupError: It does not, for five seconds.
    """
    for _ in range(_LOOKS):
        found = words in agent.text if isinstance(words, str) else words.search(agent.text)
        if bool(found) != gone:
            return
        await agent.step({"type": "wait", "time": _PAUSE_MS})
    raise LookupError(f"the page {'still' if gone else 'never'} says {words!r}:\n{agent.text}")


async def press_button(agent: Agent, name: str) -> None:
    """Press the button that is called so."""
    await agent.click(_role("button", name))


async def follow(agent: Agent, name: str) -> None:
    """Follow the link that is called so."""
    await agent.click(_role("link", name))


async def pick(agent: Agent, name: str) -> None:
    """Pick the radio button that is called so."""
    await agent.click(_role("radio", name))


async def check(agent: Agent, name: str) -> None:
    """Tick the box that is called so."""
    await agent.click(_role("checkbox", name))


async def click_all(agent: Agent, **names: str) -> None:
    """Click one thing after the other without looking up; each is given by its role and name."""
    await agent.step(*({"type": "click", "selector": _role(*item)} for item in names.items()))


async def choose(agent: Agent, label: str, option: str) -> None:
    """Choose an option of the list that is labelled so."""
    await agent.custom("select_option", selector=_role("combobox", label), values=[option])


async def fill(agent: Agent, **fields: str) -> None:
    """Fill fields in one go; `Full_name` is the one that is labelled "Full name"."""
    await agent.step(*(_typing(label.replace("_", " "), text) for label, text in fields.items()))


async def sign_in(agent: Agent, user: str, password: str) -> None:
    """Sign in to the desk."""
    await fill(agent, User_name=user, Password=password)
    await press_button(agent, "Sign in")
    await see(agent, "Signed in as")
    await see(agent, "Loading", gone=True)


def _typing(label: str, text: str) -> dict[str, Any]:
    return {"type": "type", "selector": f'internal:label="{label}"s', "text": text}


def _role(role: str, name: str) -> str:
    return f'role={role}[name="{name}"]'

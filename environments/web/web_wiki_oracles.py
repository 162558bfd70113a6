"""How the wiki's questions are answered: the steps of a person who reads.

What to look up is read in the prompt, and everything else on the pages.
"""

import re
from typing import Literal

from web_steps import heading, see
from web_wiki_steps import below, fact, follow, look_up, number_of, open_tab, prompt_name

from hud_mcp import Agent

__all__ = ["compare", "heights", "namesakes", "trail"]


async def trail(agent: Agent, trail: str) -> str:
    """Follow the links from one infobox to the next."""
    if trail == "birthplace":
        await look_up(agent, prompt_name(agent, r"designer of (.+?) born"))
        await follow(agent, fact(agent, "designer"))
        return fact(agent, "born").split(" ", 1)[1]
    if trail == "source":
        await look_up(agent, prompt_name(agent, r"the town (.+?) rises"))
        await follow(agent, fact(agent, "river"))
        await follow(agent, fact(agent, "source"))
        return str(number_of(fact(agent, "height")))
    if trail == "flood":
        return await flood(agent, prompt_name(agent, r"The (.+?) took"))
    await look_up(agent, prompt_name(agent, r"architect of (.+?) when"))
    completed = number_of(fact(agent, "completed"))
    await follow(agent, fact(agent, "architect"))
    return str(completed - number_of(fact(agent, "born")))


async def flood(agent: Agent, event: str) -> str:
    """See what links to a flood; the bridge among it names its designer."""
    await look_up(agent, event)
    await open_tab(agent, "What links here", shows=f"What links to {event}")
    bridges = re.findall(r'link "([^"]+ Bridge)"', agent.text)
    await follow(agent, bridges[0])
    await agent.click("table >> role=row >> role=link >> nth=2")
    await see(agent, "| trade |")
    return str(number_of(fact(agent, "born")))


async def compare(agent: Agent, things: str) -> str:
    """Open every bridge or town of a river, and compare what the infoboxes say."""
    pattern = r"over the (River \w+)" if things == "bridges" else r"on the (River \w+)"
    river = prompt_name(agent, pattern)
    await look_up(agent, river)
    await open_tab(agent, "What links here", shows=f"What links to {river}")
    names = re.findall(r'\n *- link "([^"]+)"', below(agent.text, "What links to"))
    found: dict[str, int] = {}
    for name in names:
        wanted = name.endswith(" Bridge") if things == "bridges" else is_town(agent, name)
        if wanted:
            await follow(agent, name)
            if things == "bridges":
                found[name] = number_of(fact(agent, "length"))
            elif "| founded |" in agent.text and fact(agent, "river") == river:
                found[name.partition(" (")[0]] = number_of(fact(agent, "founded"))
            await agent.custom("back")
            await see(agent, heading(f"What links to {river}"))
    pick = max if things == "bridges" else min
    return pick(found, key=lambda name: found[name])


def is_town(agent: Agent, name: str) -> bool:
    """Whether a title may be a town's: one word, or one with its river's name."""
    return re.fullmatch(r"\w+( \(\w+\))?", name) is not None and "river" in agent.prompt.lower()


async def namesakes(agent: Agent, kind: str) -> str:
    """Start where the two differ, and take the link from there."""
    if kind == "people":
        await look_up(agent, prompt_name(agent, r"who designed (.+?)\?"))
        name = fact(agent, "designer")
        await follow(agent, name)
        return fact(agent, "died").split(" ", 1)[1]
    await look_up(agent, prompt_name(agent, r"library by (.+?) stands"))
    town = prompt_name(agent, r"are called (.+?)\.")
    libraries = re.findall(rf'link "({town} (?:Town )?Library)"', agent.text)
    await follow(agent, libraries[0])
    await follow(agent, town)
    return str(number_of(fact(agent, "population")))


async def heights(agent: Agent, which: Literal["first", "last"]) -> str:
    """Look at each edit of the page, and at what it did to the height."""
    title = prompt_name(agent, r"infobox of (.+?) was changed")
    await look_up(agent, title)
    await open_tab(agent, "History", shows=f"History: {title}")
    edits = re.findall(r'link "(Changes of \d+)"', agent.text)
    for name in edits if which == "last" else edits[::-1]:
        await follow(agent, name, shows="Changes: ")
        height = re.search(r"height = ~~(\d+)~~", agent.text)
        if height:
            editors = re.findall(r'link "([^"]+)" \[\w+ \?view=recent&user', agent.text)
            return f"{editors[-1]}, {height[1]}"
        await agent.custom("back")
        await see(agent, heading(f"History: {title}"))
    raise LookupError("no edit changed the height")

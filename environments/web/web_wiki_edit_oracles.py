"""How the wiki's other tasks are solved: the steps of a person who edits."""

import re

from web_steps import fill, heading, press_button, see
from web_wiki_steps import (
    below,
    change,
    edit,
    fact,
    follow,
    look_up,
    number_of,
    open_tab,
    prompt_name,
    save,
)

from hud_mcp import Agent

__all__ = [
    "answer_talk",
    "categorise",
    "complete",
    "merge",
    "move",
    "newest_survey",
    "redirect",
    "survey",
    "undo",
    "watch",
]

SOURCE = r'textbox "Text of the page" \[[^]]*\]: "?(.*)'


async def survey(agent: Agent, subject: str) -> None:
    """Read the newest survey's figure, and put it into the infobox."""
    title = prompt_name(agent, r"infobox of (.+?) is out")
    await look_up(agent, title)
    field = "length" if subject == "river" else "height"
    old = fact(agent, field)
    new = newest_survey(agent)
    await edit(agent, title)
    await change(agent, f"| {field} = {old}", f"| {field} = {new}")
    await save(agent, "Use the newest survey")


def newest_survey(agent: Agent) -> str:
    """The figure of the newest survey of the article in view."""
    return re.findall(r"corrected this to ([\d,]+ k?m)", agent.text)[-1]


async def undo(agent: Agent, damage: str) -> None:
    """Undo the edits that can be undone, and mend by hand what a later edit has touched."""
    title = prompt_name(agent, r"the article (.+?), in")
    await look_up(agent, title)
    await open_tab(agent, "History", shows=f"History: {title}")
    summary = "fixed some stuff" if damage == "once" else "lol"
    revision, vandal = bad_edit(agent.text, summary)
    if damage == "twice":
        for number in edits_of(agent.text, vandal):
            if number != revision:
                await follow(agent, f"Undo {number}", shows=f"Edit: {title}")
                await save(agent)
        await open_tab(agent, "History", shows=f"History: {title}")
        await follow(agent, f"Changes of {revision}", shows=f"Changes: {title}")
        pairs = re.findall(r"\+\+(.+?)\+\+", agent.text)
        await edit_by_hand(agent, title, pairs)
    else:
        await follow(agent, f"Undo {revision}", shows=f"Edit: {title}")
    await save(agent)


async def edit_by_hand(agent: Agent, title: str, added: list[str]) -> None:
    """Take the vandal's words out of the paragraph."""
    whole = [old_new(words) for words in added]
    await edit(agent, title)
    for old, new in whole:
        await change(agent, old, new)


def old_new(words: str) -> tuple[str, str]:
    """What to find of words that somebody put in, and what to put there instead."""
    text = words.strip()
    return (f"{text} ", "") if "biscuits" in text else (text, "is")


def bad_edit(text: str, summary: str) -> tuple[str, str]:
    """The number and the author of the edit with a summary in a history that is in view."""
    rows = re.findall(r'link "Revision (\d+)"(.*?)link "Undo', text, re.DOTALL)
    number, row = next(each for each in rows if f"({summary})" in each[1])
    return number, re.findall(r'link "([^"]+)"', row)[0]


def edits_of(text: str, user: str) -> list[str]:
    """The numbers of a user's edits in a history that is in view, the newest first."""
    rows = re.findall(r'link "Revision (\d+)"(.*?)(?=link "Revision|\Z)', text, re.DOTALL)
    return [number for number, row in rows if f'link "{user}"' in row]


async def move(agent: Agent, *, links: bool) -> None:
    """Move the page, then mend what links to its old title."""
    found = re.search(r"the article (.+?) to the title “(.+?)”.*?reason: “(.+?)”", agent.prompt)
    if found is None:
        raise LookupError("the prompt names no move")
    old, new, reason = found[1], found[2], found[3]
    await look_up(agent, old)
    await open_tab(agent, "Move", shows=f"Move: {old}")
    await fill(agent, New_title=new, Reason=reason)
    await press_button(agent, "Move page")
    await see(agent, "The page is moved.")
    if links:
        await look_up(agent, old, shows=new)
        await follow(agent, old)
        await open_tab(agent, "What links here", shows=f"What links to {old}")
        await relink(agent, old, new)


async def relink(agent: Agent, old: str, new: str) -> None:
    """Let every page that links to a title link to another; what links is in view."""
    here = below(agent.text, "What links to")
    url = re.findall(r"URL: (\S+)", agent.text)[0]
    for title in re.findall(r'link "([^"]+)"', here):
        await follow(agent, title)
        await edit(agent, title)
        await change(agent, f"[[{old}", f"[[{new}")
        await save(agent, "Follow the move")
        await agent.custom("goto", url=url)
        await see(agent, f"What links to {old}")


async def merge(agent: Agent, *, named: bool) -> None:
    """Copy the section over, and let the second article lead to the first."""
    pattern = r"The articles (.+?) and" if named else r"of the article (.+?) has"
    keep = prompt_name(agent, pattern)
    await look_up(agent, keep)
    if named:
        drop = prompt_name(agent, r" and (.+?) are about")
    else:
        drop = await second_article(agent, keep)
    await look_up(agent, drop)
    words = re.search(r"^## Reading room\n(.+)$", agent.text, re.MULTILINE)
    if words is None:
        raise LookupError("the second article has no such section")
    await look_up(agent, keep)
    await edit(agent, keep)
    tail = "[[Category:Buildings]]"
    section = f"== Reading room ==\\n{words[1]}\\n\\n{tail}"
    await change(agent, tail, section)
    await save(agent, f"Take the reading room over from {drop}")
    titles = [drop] if named else [*await leading_to(agent, drop), drop]
    for title in titles:
        await lead(agent, title, keep)


async def second_article(agent: Agent, keep: str) -> str:
    """Search for other libraries of the town, and see which is on the same river."""
    town = fact(agent, "town")
    river_of_town = await river_of(agent, town)
    await agent.type(f"{town} library", 'role=searchbox[name="Search the wiki"]', enter=True)
    await see(agent, "found for “")
    titles = re.findall(r'## link "([^"]+)"', agent.text)
    results = re.findall(r"URL: (\S+)", agent.text)[0]
    for title in (t for t in titles if t != keep and "ibrary" in t):
        await follow(agent, title, shows="")
        await see(agent, 'navigation "This page"')
        name = re.findall(r"^# (.+)$", agent.text, re.MULTILINE)[0]
        if name != keep and await river_of(agent, town) == river_of_town:
            return name
        await agent.custom("goto", url=results)
        await see(agent, "found for “")
    raise LookupError("there is no second article")


async def river_of(agent: Agent, town: str) -> str:
    """Open the town of the building in view, and see its river."""
    await follow(agent, town)
    return fact(agent, "river")


async def leading_to(agent: Agent, title: str) -> list[str]:
    """The redirects that lead to a title."""
    await look_up(agent, title)
    await open_tab(agent, "What links here", shows=f"What links to {title}")
    return re.findall(r'link "([^"]+)"[^\n]* \(redirect\)', agent.text)


async def open_redirect(agent: Agent, title: str) -> None:
    """Open a redirect itself, from the list of all pages."""
    await agent.click('role=link[name="All pages"]')
    await see(agent, heading("All pages"))
    await follow(agent, title)


async def lead(agent: Agent, title: str, target: str) -> None:
    """Make a page a redirect, whatever it was."""
    await open_redirect(agent, title)
    await open_tab(agent, "Edit", shows=f"Edit: {title}")
    await fill(agent, Text_of_the_page=f"#REDIRECT [[{target}]]")
    await save(agent, f"Lead to {target}")


async def redirect(agent: Agent, fault: str) -> None:
    """See in a redirect's history where it led first, and let it lead there."""
    if fault == "broken":
        titles = [prompt_name(agent, r"The redirect (.+?) leads")]
    else:
        titles = re.split(" and ", prompt_name(agent, r"The redirects (.+?) lead to each"))
    await open_redirect(agent, titles[0])
    await open_tab(agent, "History", shows=f"History: {titles[0]}")
    oldest = re.findall(r'link "(Revision \d+)"', agent.text)[-1]
    await follow(agent, oldest, shows=titles[0])
    await see(agent, "redirects to")
    target = re.findall(r'redirects to link "([^"]+)"', agent.text)[0]
    for title in titles:
        await lead(agent, title, target)


async def complete(agent: Agent) -> None:
    """Collect the figures from the bridges that have a question mark, then fill them in."""
    title = prompt_name(agent, r"of the article (.+?), some")
    await look_up(agent, title)
    rows: list[str] = re.findall(r"^ *\| .+$", agent.text, re.MULTILINE)
    filled: dict[str, list[str]] = {}
    for row in rows:
        cells = re.findall(r"\| (\d+|\?)(?= \||$)", row)
        if "?" in cells:
            filled[re.findall(r'link "([^"]+)"', row)[0]] = cells
    figures: dict[str, list[int]] = {}
    for bridge in filled:
        await follow(agent, bridge)
        figures[bridge] = [number_of(fact(agent, name)) for name in ("opened", "length", "height")]
        await agent.custom("back")
        await see(agent, heading(title))
    await edit(agent, title)
    source = re.search(SOURCE, agent.text)
    if source is None:
        raise LookupError("no source is in view")
    for bridge, cells in filled.items():
        start = re.search(rf"\| \[\[{bridge}\]\] \|\| \[\[[^\]]+\]\]", source[1])
        if start is None:
            raise LookupError(f"no row of {bridge}")
        old, new = ([start[0], *map(str, each)] for each in (cells, figures[bridge]))
        await change(agent, " || ".join(old), " || ".join(new))
    await save(agent, "Complete the table")


async def categorise(agent: Agent) -> None:
    """Search for those born in the town, and compare them with the category."""
    town = prompt_name(agent, r"was born in (.+?), and")
    name = prompt_name(agent, r"category “(.+?)”")
    await agent.type(f"born in {town}", 'role=searchbox[name="Search the wiki"]', enter=True)
    await see(agent, "found for “")
    born = await born_in(agent, town)
    await agent.click('role=link[name="Categories"]')
    await see(agent, heading("Categories"))
    await follow(agent, name, shows=f"Category: {name}")
    here = agent.text.partition("in this category:")[2].partition("All categories")[0]
    there = set(re.findall(r'link "([^"]+)"', here))
    for title in sorted(born ^ there):
        await look_up(agent, title)
        await edit(agent, title)
        tail = re.findall(r"\[\[Category:\w+s\]\]", agent.text)[0]
        category = f"[[Category:{name}]]"
        await change(agent, *((category, "") if title in there else (tail, f"{tail}\\n{category}")))
        await save(agent, "Put the category right")


async def born_in(agent: Agent, town: str) -> set[str]:
    """The people of whom the results say that they were born in a town."""
    found: set[str] = set()
    while True:
        for row in re.split(r"^ *- ## ", agent.text, flags=re.MULTILINE)[1:]:
            if f"born in {town} in" in row:
                found.add(re.findall(r'link "([^"]+)"', row)[0])
        if 'link "Next results"' not in agent.text:
            return found
        page = int(re.findall(r"Page (\d+) of", agent.text)[0])
        await agent.click('role=link[name="Next results"]')
        await see(agent, f"Page {page + 1} of")


async def answer_talk(agent: Agent) -> None:
    """Look the year up, and answer on the talk page."""
    bridge = prompt_name(agent, r"the talk page of (.+?), ")
    await look_up(agent, bridge)
    name = fact(agent, "designer")
    await follow(agent, name)
    year = number_of(fact(agent, "died"))
    await look_up(agent, bridge)
    await open_tab(agent, "Talk (1)", shows=f"Talk:{bridge}")
    await agent.click('role=link[name="New topic"]')
    await see(agent, heading("New topic", begins=True))
    await fill(agent, Heading="Answer", Text=str(year))
    await press_button(agent, "Add topic")
    await see(agent, "Your topic is on the page.")


async def watch(agent: Agent) -> None:
    """Clear the watchlist of what does not belong, then watch each bridge."""
    river = prompt_name(agent, r"over the (.+?), and")
    await look_up(agent, river)
    await open_tab(agent, "What links here", shows=f"What links to {river}")
    bridges = re.findall(r'link "([^"]+ Bridge)"', agent.text)
    await agent.click('role=link[name="Watchlist"]')
    await see(agent, "You watch")
    watched = re.findall(r'button "Unwatch ([^"]+)"', agent.text)
    for title in watched:
        if title not in bridges:
            await press_button(agent, f"Unwatch {title}")
            await see(agent, f'button "Unwatch {title}"', gone=True)
    for title in bridges:
        if title not in watched:
            await look_up(agent, title)
            await press_button(agent, "Watch")
            await see(agent, "is on your watchlist")

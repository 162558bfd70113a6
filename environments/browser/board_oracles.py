"""How the board's tasks are solved: the steps of a person who works with it."""

import re
from datetime import date

from site_steps import choose, fill, follow, heading, press_button, see

from hud_mcp import Agent

__all__ = ["advance", "archive", "archived_by", "drag", "new_card"]

COLUMNS = ("Ideas", "Doing", "Review", "Done")
LEFT, TOP, COLUMN_WIDTH, CARD_HEIGHT = 172, 180, 312, 102
"""Where the first card's middle is in a window of 1280 by 800 pixels, and how far the next are."""


async def drag(agent: Agent, card: str, column: str, place: str) -> None:
    """Drag a card with the mouse, from where the picture shows it to where it should go."""
    columns = read_board(await agent.look())
    source = next(name for name, titles in columns.items() if card in titles)
    start = _middle(source, columns[source].index(card))
    others = [title for title in columns[column] if title != card]
    end = _middle(column, 0 if place == "top" else len(others))
    end["y"] += -30 if place == "top" else 20
    await agent.step({"type": "drag", "path": [start, end]})
    await see(agent, f"{card}: moved to {column}.")


async def new_card(agent: Agent, title: str, label: str, owner: str, due: str) -> None:
    """Open the form with a key, pick the day in the calendar, and save with a chord."""
    await agent.press("n")
    await see(agent, heading("New card"))
    await fill(agent, Title=title)
    await choose(agent, "Label", label)
    await choose(agent, "Owner", owner)
    await press_button(agent, "Due date: none")
    day = date.fromisoformat(due)
    await see(agent, "Later month")
    while not re.search(rf"status: {day:%B %Y}", agent.text):
        await press_button(agent, "Later month")
    await press_button(agent, f"{day.day} {day:%B %Y}")
    await agent.press("ctrl", "enter")
    await see(agent, f"{title}: added to Ideas.")


async def archive(agent: Agent, column: str) -> None:
    """Hover each card of a column, open its menu, and archive it."""
    for title in read_board(await agent.look())[column]:
        await agent.step({"type": "move", "selector": f'role=listitem[name="{title}"]'})
        await press_button(agent, f"Menu of {title}")
        await agent.click('role=menuitem[name="Archive"]')
        await see(agent, f"{title}: archived.")


async def advance(agent: Agent, label: str) -> None:
    """Focus each card with a label, and move it with a key."""
    columns = read_board(await agent.look())
    labels = dict(re.findall(r"^ *- \[[^]]*\] (.+?)(?: · |\n *)(\w+)", agent.text, re.MULTILINE))
    for name in COLUMNS[:-1]:
        for title in columns[name]:
            if labels[title] == label:
                await agent.click(f'role=listitem[name="{title}"]')
                await agent.press("]")
                await see(agent, f"{title}: moved to")


async def archived_by(agent: Agent, card: str) -> str:
    """Scroll the log until the entry is there."""
    await follow(agent, "Activity")
    pattern = rf"(\w+) archived “{card}”"
    for _ in range(12):
        if found := re.search(pattern, agent.text):
            return found[1]
        await agent.step({"type": "scroll", "scroll_y": 850})
    raise LookupError(f"the log does not say who archived {card!r}")


def read_board(text: str) -> dict[str, list[str]]:
    """The titles of each column's cards, from top to bottom."""
    columns: dict[str, list[str]] = {}
    lines = r'^ *(?:region "([^"]+)":|- \[[^]]*\] (.+?)(?: · .*)?)$'
    for column, card in re.findall(lines, text, re.MULTILINE):
        if column:
            columns[column] = []
        else:
            columns[list(columns)[-1]].append(card)
    return columns


def _middle(column: str, place: int) -> dict[str, float]:
    x = LEFT + COLUMN_WIDTH * COLUMNS.index(column)
    return {"x": x, "y": TOP + CARD_HEIGHT * place}

"""A thousand letter counts and forty tasks of a browser, who works on them, and what that gives."""

import json
from pathlib import Path

from hud_mcp.agents.agent import Agent

__all__ = ["BROWSER_TASKS", "LETTER_TASKS", "rewards", "works", "write_tasks"]

LETTER_TASKS = 1000
BROWSER_TASKS = 40

_LETTERS = """
from hud_mcp import Environment

env = Environment("letters")


@env.template()
async def count(word: str = "lamp"):
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0
"""

_NOTES = """
from hud_mcp import Browser, BrowserWorld, Environment, SiteRequest, SiteResponse


async def backend(request: SiteRequest, state: dict):
    if request.method == "POST":
        state["notes"] += 1
    return SiteResponse(text=str(state["notes"]))


notes = Environment("notes", world=Browser(site="site/", backend=backend, state={"notes": 0}))


@notes.template()
async def add(browser: BrowserWorld, count: int = 1):
    await browser.goto("/")
    yield f"Add {count} notes, then answer 'done'."
    yield float(browser.state["notes"] == count)
"""

_PAGE = """<!doctype html>
<title>Notes</title>
<button onclick="fetch('/api/notes', {method: 'POST'}).then(() => location.reload())">Add</button>
"""


def write_tasks(folder: Path, *, letters: int = LETTER_TASKS, pages: int = BROWSER_TASKS) -> Path:
    """Write the environments and the rows, those of the browser among the others."""
    (folder / "env.py").write_text(_LETTERS + _NOTES)
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text(_PAGE)
    rows = [
        {"id": f"w{i}", "env": "letters", "template": "count", "args": {"word": "a" * (i % 9 + 1)}}
        for i in range(letters)
    ]
    for number in range(pages):
        row = {"id": f"p{number}", "env": "notes", "template": "add"}
        at = number * (letters // max(1, pages) + 1)
        rows.insert(at, {**row, "args": {"count": number % 2 + 1}})
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def works(agent: Agent) -> str:
    """Counts right, but for three letters; adds one note, whatever is asked."""
    if agent.prompt.startswith("How many"):
        length = len(agent.prompt.split("'")[1])
        return "many" if length == 3 else str(length)
    await agent.click("text=Add")
    return "done"


def rewards(*, letters: int = LETTER_TASKS, pages: int = BROWSER_TASKS) -> dict[str, float]:
    """What that agent gets, by the task's id."""
    counted = {f"w{i}": float(i % 9 + 1 != 3) for i in range(letters)}
    return counted | {f"p{i}": float(i % 2 + 1 == 1) for i in range(pages)}

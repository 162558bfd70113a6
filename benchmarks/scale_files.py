"""The environments of benchmarks/scale.py, and their rows."""

import json
from pathlib import Path

__all__ = ["FEW", "WORLDS", "write_files"]

FEW = 8
"""Tasks of the first job of a process, which is not measured."""

ENV = """
from hud_mcp import Browser, BrowserWorld, Environment, Gymnasium, NoWorld, Shell

none = Environment("none", world=NoWorld())
shell = Environment("shell", world=Shell())
gymnasium = Environment("gymnasium", world=Gymnasium("CartPole-v1", screen=False))
browser = Environment("browser", world=Browser(site="site/"))


@none.template()
async def count(word: str = "lamp"):
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0


@count.oracle
async def _(agent):
    return str(len(agent.prompt.split("'")[1]))


@none.template()
async def costly(word: str = "lamp"):
    sum(i * i for i in range(1_000_000))
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0


@browser.template()
async def look(page: BrowserWorld):
    await page.goto("/")
    yield "Look."
    yield 1.0


for each in (shell, gymnasium):

    @each.template()
    async def wait():
        yield "Wait."
        yield 1.0
"""
PAGE = "<!doctype html><title>Page</title>" + "<p>Some words of a page, and more of them.</p>" * 40
WORLDS = {"none": "count", "gymnasium": "wait", "shell": "wait", "browser": "look"}


def write_files(folder: Path, tasks: int, template: str = "count") -> None:
    """Write the environments, and the rows."""
    (folder / "env.py").write_text(ENV)
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "index.html").write_text(PAGE)
    write_rows(folder / "few.jsonl", FEW, template)
    write_rows(folder / "rows.jsonl", tasks, template)


def write_rows(path: Path, tasks: int, template: str) -> None:
    """Write rows of one template."""
    rows = [
        {"id": f"w{i}", "env": "none", "template": template, "args": {"word": "a" * (i % 9 + 1)}}
        for i in range(tasks)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

"""An MCP server over each session's own copy of `files/`, and what is to be done with it."""

import re
from pathlib import Path

from hud_mcp import Agent, Answer, Environment, ToolServer, ToolServerWorld, grade_checks

PLACES = {"spare key": "blue pot", "passport": "top drawer", "guest towels": "chest"}

NOTES = {
    each.stem: each.read_text().splitlines()
    for each in Path(__file__).parent.glob("files/notes/*.txt")
}

server = ToolServer(["python3", "server.py"], files="files/")
env = Environment("starter", version="0.1.0", world=server)


@env.template(id="find", description="Find a place in the notes", returns=str)
async def find(server: ToolServerWorld, thing: str = "spare key"):
    """Ask for a place; no note may be written."""
    answer: Answer[str] = yield f"Where do the notes say the {thing} is? Answer with the place."
    place = re.sub(r"^(in )?(the )?", "", answer.content.lower().strip(" ."))
    yield grade_checks({"found": place == PLACES[thing]}, server.calls.never("write_note"))


@env.template(id="add", description="Add a line to a note")
async def add(server: ToolServerWorld, title: str = "shopping", line: str = "Six eggs"):
    """Ask for a line; a verifier, where no agent was, reads a copy of what the server left."""
    yield f"Add the line {line!r} to the end of the note {title!r}. Change nothing else."
    left: dict[str, list[str]] = {}
    for each in (await server.run("cd notes && grep '' *")).stdout.splitlines():
        file, _, text = each.partition(":")
        left.setdefault(file.removesuffix(".txt"), []).append(text)
    note = left.pop(title, [])
    others = {name: lines for name, lines in NOTES.items() if name != title}
    changed = [] if left == others else ["another note"]
    yield grade_checks({"added": note == [*NOTES[title], line]}, changed)


@find.oracle
async def _(agent: Agent, thing: str):
    await agent.call("search_notes", words=thing)
    return PLACES[thing]


@add.oracle
async def _(agent: Agent, title: str, line: str):
    note = await agent.call("read_note", title=title)
    await agent.call("write_note", title=title, text=f"{note.text}\n{line}\n")
    return "It is there."

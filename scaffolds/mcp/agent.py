"""An agent in Python: it finds its words in the prompt. Let a model decide instead."""

import re


async def solve(agent):
    """Do what the prompt says, with the tools that are there."""
    if added := re.search(r"line '(.+)' to the end of the note '(.+)'", agent.prompt):
        line, title = added.groups()
        note = await agent.call("read_note", title=title)
        await agent.call("write_note", title=title, text=f"{note.text}\n{line}\n")
        return "It is there."
    thing = re.search(r"say the (.+) is\?", agent.prompt)[1]
    text = await text_on(agent, thing)
    place = re.search(rf"(?i){thing} (?:is|are) in the (.+)\.", text)
    return place[1] if place else "unknown"


async def text_on(agent, thing):
    """Search, or read one note after the other if the server has no search."""
    reply = await agent.call("search_notes", words=thing)
    if not reply.is_error:
        return reply.text
    titles = await agent.call("list_notes")
    for title in titles.text.splitlines():
        note = await agent.call("read_note", title=title)
        if thing in note.text.lower():
            return note.text
    return ""

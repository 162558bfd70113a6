"""An MCP server of the standard library: notes in files. Put your own in its place.

It reads a message of JSON-RPC from each line of its input, and answers on its output.
"""

import json
import re
import sys
from pathlib import Path

NOTES = Path("notes")
TITLE = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

TEXT, LIMIT = {"type": "string"}, {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
TITLE_OF = {**TEXT, "pattern": f"^{TITLE.pattern}$", "description": "The title of the note."}
LINES = {**LIMIT, "description": "The number of lines at most."}


class Refused(Exception):
    """A call that cannot be done; the agent reads the reason."""


def tool(description, *, reads, **arguments):
    """Return what the list of tools says of one; arguments without a default are required."""
    required = [name for name, schema in arguments.items() if "default" not in schema]
    schema = {"type": "object", "properties": arguments, "required": required}
    return {
        "description": description,
        "inputSchema": {**schema, "additionalProperties": False},
        "annotations": {"readOnlyHint": reads},
    }


TOOLS = {
    "list_notes": tool("List the titles of the notes.", reads=True, limit=LINES),
    "search_notes": tool(
        "Find the lines that have these words, one after the other. Each is told with its title.",
        reads=True,
        words={**TEXT, "description": "The words; capitals and small letters are the same."},
        limit=LINES,
    ),
    "read_note": tool("Read a note.", reads=True, title=TITLE_OF, limit=LINES),
    "write_note": tool(
        "Write a note, in the place of one with the same title.",
        reads=False,
        title=TITLE_OF,
        text={**TEXT, "description": "The whole text of the note."},
    ),
}


def path_of(title):
    """Return the file of a note; a title is no path."""
    if not TITLE.fullmatch(title):
        raise Refused(f"{title!r} is no title. Use at most 40 small letters, digits and -.")
    return NOTES / f"{title}.txt"


def list_notes(limit=20):
    return sorted(path.stem for path in NOTES.glob("*.txt"))[:limit]


def search_notes(words, limit=20):
    notes = [(title, path_of(title).read_text()) for title in list_notes(None)]
    lines = [(title, line) for title, text in notes for line in text.splitlines()]
    found = [f"{title}: {line}" for title, line in lines if words.lower() in line.lower()]
    return found[:limit] or [f"No note has {words!r}."]


def read_note(title, limit=20):
    path = path_of(title)
    if not path.is_file():
        raise Refused(f"There is no note {title!r}. There are: {', '.join(list_notes())}.")
    return path.read_text().splitlines()[:limit]


def write_note(title, text):
    NOTES.mkdir(exist_ok=True)
    path_of(title).write_text(text)
    return [f"Wrote {title}."]


def call(name, arguments):
    """Return the result of a tool; a mistake of the agent is no error of the protocol."""
    calls = {each.__name__: each for each in (list_notes, search_notes, read_note, write_note)}
    try:
        lines, is_error = calls[name](**arguments), False
    except (Refused, TypeError) as exc:
        lines, is_error = [str(exc)], True
    return {"content": [{"type": "text", "text": "\n".join(lines)}], "isError": is_error}


def answer(method, params):
    """Return the member `result` or `error` of an answer."""
    if method == "initialize":
        told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {"result": {**told, "serverInfo": {"name": "notes", "version": "0.1.0"}}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": name, **each} for name, each in TOOLS.items()]}}
    if method == "tools/call" and params.get("name") in TOOLS:
        return {"result": call(params["name"], params.get("arguments") or {})}
    return {"error": {"code": -32601, "message": f"There is no {params.get('name') or method}."}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:  # else it is a notification
        said = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)

"""A server's prompts and resources: their entries in lists, and what it answers, within bounds."""

import re
from collections.abc import Sequence
from typing import Any

from hud_mcp.base import libraries as base_libraries
from hud_mcp.base.text import clip
from hud_mcp.plugins.servers.listing import can_be_sent
from hud_mcp.plugins.servers.peer import Json, as_list, as_object
from hud_mcp.plugins.servers.reply import Masker, read_reply
from hud_mcp.values.call import OWN_SESSION
from hud_mcp.values.observation import Look

__all__ = ["prefix_of", "prompt_entries", "read_contents", "read_prompt", "resource_entries"]

_SESSION = "The session id that start_task returned."
_ANY: Json = {
    "uriTemplate": "{+uri}",
    "name": "server",
    "title": "A resource of the session's MCP server",
    "description": "The server's own address of it, such as one that a link names.",
}
_TEMPLATES = 100
"""The most templates in lists; all resources are read, listed or not."""
_MESSAGES, _TEXT_CHARS, _URI_CHARS = 100, 4000, 2000


def prefix_of(name: str) -> str:
    """Return a server's name as it stands before the names of its tools and prompts."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "server"


def prompt_entries(prompts: Sequence[Json], prefix: str) -> dict[str, Json]:
    """Return the entries of prompts by their names here, with the argument of the session last.

    An entry that clients refuse is left out: it would break the whole list.
    """
    found: dict[str, Json] = {}
    for entry in prompts:
        given: Any = entry.get("arguments") or []
        if not isinstance(entry.get("name"), str) or not isinstance(given, list):
            continue
        arguments = as_list(given)
        taken = [as_object(each).get("name") for each in arguments]
        ours = {"name": OWN_SESSION if "session" in taken else "session", "description": _SESSION}
        name = f"{prefix}.{entry['name']}"
        sent = {**entry, "name": name, "arguments": [*arguments, ours]}
        if can_be_sent("prompts", base_libraries.mcp_types.Prompt, sent):
            found.setdefault(name, sent)
    return found


def resource_entries(resources: Sequence[Json], templates: Sequence[Json]) -> tuple[Json, ...]:
    """Return templates below the session's address: any resource, then those that it lists."""
    if not resources and not templates:
        return ()
    listed = [{**each, "uriTemplate": each.get("uri")} for each in resources]
    template = base_libraries.mcp_types.ResourceTemplate
    sent = [
        {name: value for name, value in each.items() if name not in ("uri", "size")}
        for each in [*templates, *listed]
        if "{session}" not in str(each.get("uriTemplate"))
    ]
    fit = [each for each in sent if can_be_sent("resourceTemplates", template, each)]
    return (_ANY, *fit[: _TEMPLATES - 1])


async def read_prompt(result: Json, look: Look, masker: Masker) -> Json:
    """Return the messages of a prompt, masked and bounded as a reply of a tool is."""
    messages = [as_object(each) for each in as_list(result.get("messages"))[:_MESSAGES]]
    reply = await read_reply({"content": [one.get("content") for one in messages]}, look, masker)
    said = result.get("description")
    described = {"description": masker.text(clip(said, _TEXT_CHARS))} if said else {}
    roles = ["assistant" if one.get("role") == "assistant" else "user" for one in messages]
    both = zip(roles, reply.content, strict=True)
    return {**described, "messages": [{"role": role, "content": block} for role, block in both]}


async def read_contents(uri: str, result: Json, look: Look, masker: Masker) -> list[Json]:
    """Return the contents of a resource; a text stands in place of what is too large."""
    given = as_list(result.get("contents"))
    blocks = [{"type": "resource", "resource": each} for each in given]
    reply = await read_reply({"content": blocks}, look, masker)
    return [
        block["resource"] if "resource" in block else {"uri": uri, "text": block["text"]}
        for block in reply.content
    ]
